"""The Kubernetes manifests: every object with its file, and what a kustomization of them amounts to."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from chokaq.config import load_settings
from chokaq.config.settings import Settings

from .files import DEPLOY, document, documents

FOLDER = DEPLOY / "kubernetes"
EXAMPLE = "secret.example.yaml"
"""Shows which Secrets have to exist, and is in no kustomization."""
CONFIG = "chokaq.yaml"
"""Key of the configuration in a ConfigMap."""
UNITS = {"Mi": 1024**2, "Gi": 1024**3}
_SECRET_FILE = re.compile(r"\$\{file:\$CREDENTIALS_DIRECTORY/([^}]+)\}")
Spec = dict[str, Any]


class Object(NamedTuple):
    """One object of a manifest."""

    path: Path
    data: dict[str, Any]

    @property
    def kind(self) -> str:
        """Deployment, …"""
        return str(self.data["kind"])

    @property
    def name(self) -> str:
        """Within its kind and namespace."""
        return str(self.data["metadata"]["name"])

    @property
    def spec(self) -> Spec:
        """What it wants."""
        found: Spec = self.data["spec"]
        return found

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class Workload(NamedTuple):
    """An object that makes pods: its pods' labels and specification, and their only container."""

    object: Object
    labels: dict[str, str]
    pod: Spec
    container: Spec

    def __str__(self) -> str:
        return str(self.object)

    @property
    def environment(self) -> dict[str, str]:
        """The variables it sets."""
        return {variable["name"]: variable["value"] for variable in self.container.get("env", [])}

    @property
    def ports(self) -> dict[str, int]:
        """Its ports by name."""
        return {port["name"]: port["containerPort"] for port in self.container.get("ports", [])}

    def volume(self, kind: str) -> list[Spec]:
        """Its volumes of a kind (`configMap`, `secret`, `emptyDir`)."""
        return [volume[kind] for volume in self.pod["volumes"] if kind in volume]

    def mount(self, name: str) -> str:
        """Where a volume is."""
        [path] = [mount["mountPath"] for mount in self.container["volumeMounts"] if mount["name"] == name]
        return str(path)


def kustomizations() -> list[Path]:
    """Every kustomization.yaml."""
    return sorted(FOLDER.rglob("kustomization.yaml"))


def objects() -> list[Object]:
    """Every object of every manifest, the example Secrets among them."""
    return [
        Object(path, data)
        for path in sorted(FOLDER.rglob("*.yaml"))
        if path.name != "kustomization.yaml"
        for data in documents(path)
    ]


def of_kind(*kinds: str) -> list[Object]:
    """Those of some kinds."""
    return [found for found in objects() if found.kind in kinds]


def workloads() -> list[Workload]:
    """Everything that makes pods."""
    return list(_workloads(of_kind("Deployment", "Job")))


def workload(name: str) -> Workload:
    """One of them."""
    [found] = [each for each in workloads() if each.object.name == name]
    return found


def config_text(of: Workload) -> str:
    """The chokaq.yaml that its pods read."""
    [volume] = of.volume("configMap")
    [found] = [each for each in of_kind("ConfigMap") if each.name == volume["name"]]
    text: str = found.data["data"][CONFIG]
    return text


def secret(of: Workload) -> dict[str, str]:
    """The example of the Secret that its pods read."""
    [volume] = of.volume("secret")
    [found] = [each for each in of_kind("Secret") if each.name == volume["secretName"]]
    values: dict[str, str] = found.data["stringData"]
    return values


def secret_files(text: str) -> set[str]:
    """Names of the files that a configuration reads from $CREDENTIALS_DIRECTORY."""
    return set(_SECRET_FILE.findall(text))


def settings_of(found: Workload, folder: Path) -> Settings:
    """What the program makes of the pod's ConfigMap, environment and Secret."""
    credentials = folder / "credentials"
    credentials.mkdir(exist_ok=True)
    for name, value in secret(found).items():
        (credentials / name).write_text(value)
    (folder / CONFIG).write_text(config_text(found))
    environ = {**found.environment, "CREDENTIALS_DIRECTORY": str(credentials)}
    return load_settings(folder / CONFIG, environ)


def selects(selector: dict[str, Any]) -> list[str]:
    """Names of the workloads whose pods have these labels."""
    labels = selector.get("matchLabels", selector)
    assert labels
    return [found.object.name for found in workloads() if labels.items() <= found.labels.items()]


def in_bytes(quantity: str) -> int:
    """A quantity, as these manifests write them."""
    return int(quantity[:-2]) * UNITS[quantity[-2:]]


def reached(kustomization: Path) -> Iterator[Path]:
    """Every manifest that a kustomization comes to, through its resources and components."""
    told = document(kustomization)
    for entry in [*told.get("resources", []), *told.get("components", [])]:
        path = (kustomization.parent / entry).resolve()
        if path.is_dir():
            yield from reached(path / "kustomization.yaml")
        else:
            yield path


def build(folder: Path) -> list[Object]:
    """What `kubectl kustomize` makes of a folder."""
    import yaml

    done = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return [Object(folder, data) for data in yaml.safe_load_all(done.stdout)]


def _workloads(found: list[Object]) -> Iterator[Workload]:
    for each in found:
        template = each.spec["template"]
        [container] = template["spec"]["containers"]
        yield Workload(each, template["metadata"]["labels"], template["spec"], container)
