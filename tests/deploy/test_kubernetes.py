"""The manifests: valid for Kubernetes, complete, without a loose end, and true to the program they run."""

import re
import shutil
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from .files import ROOT, document
from .manifests import (
    CONFIG,
    EXAMPLE,
    FOLDER,
    Object,
    Workload,
    build,
    config_text,
    kustomizations,
    objects,
    of_kind,
    reached,
    secret,
    secret_files,
    selects,
    settings_of,
    workload,
    workloads,
)

OLDEST = "1.27"
"""The oldest version these manifests are for (PodDisruptionBudget.spec.unhealthyPodEvictionPolicy)."""
OWN = [found for found in objects() if not re.search(r"(coreos\.com|keda\.sh)/", found.data["apiVersion"])]
IMAGE = "chokaq"

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@pytest.fixture(params=workloads(), ids=str)
def each(request: pytest.FixtureRequest) -> Workload:
    """Every workload, one after the other."""
    found: Workload = request.param
    return found


# ── for Kubernetes ────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
@pytest.mark.parametrize("found", OWN, ids=str)
def test_every_object_is_valid_and_has_no_unknown_field(found: Object, version: str) -> None:
    kubernetes_validate.validate(found.data, version, strict=True)


def test_an_unknown_field_would_be_found() -> None:
    [deployment] = [found for found in of_kind("Deployment") if found.name == "chokaq-worker"]
    wrong = {**deployment.data, "spec": {**deployment.spec, "replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(wrong, OLDEST, strict=True)


@pytest.mark.parametrize("path", kustomizations(), ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_kustomization_lists_every_file_of_its_folder(path: Path) -> None:
    listed = {entry for entry in document(path).get("resources", []) if entry.endswith(".yaml")}
    there = {found.name for found in path.parent.glob("*.yaml")} - {path.name, EXAMPLE}
    assert listed == there


def test_every_file_is_reached_from_the_two_folders_that_are_applied_or_is_the_other_autoscaler() -> None:
    applied = {path for top in (FOLDER, FOLDER / "schema") for path in reached(top / "kustomization.yaml")}
    left = {found.path for found in objects()} - applied
    assert left == {FOLDER / "config" / EXAMPLE, FOLDER / "components/hpa/horizontalpodautoscaler.yaml"}


@needs_kubectl
def test_kustomize_builds_what_is_applied_with_namespace_and_image() -> None:
    site = document(FOLDER / "site/kustomization.yaml")
    [image] = site["images"]
    for folder in (FOLDER, FOLDER / "schema"):
        built = build(folder)
        assert {found.data["metadata"]["namespace"] for found in built} == {site["namespace"]}
        images = {
            container["image"]
            for found in built
            if found.kind in {"Deployment", "Job"}
            for container in found.spec["template"]["spec"]["containers"]
        }
        assert images == {f"{image['newName']}:{image['newTag']}"}


@needs_kubectl
@pytest.mark.parametrize(
    ("autoscaler", "kind"), [("keda", "ScaledObject"), ("hpa", "HorizontalPodAutoscaler"), (None, None)]
)
def test_an_autoscaler_alone_says_how_many_there_are(tmp_path: Path, autoscaler: str | None, kind: str | None) -> None:
    copy = tmp_path / "kubernetes"
    shutil.copytree(FOLDER, copy)
    top = copy / "kustomization.yaml"
    wanted = f"  - components/{autoscaler}\n" if autoscaler else ""
    text = re.sub(r"  - components/keda.*\n", wanted, top.read_text())
    top.write_text(text)
    built = build(copy)
    [deployment] = [found for found in built if str(found) == "Deployment/chokaq-worker"]
    assert ("replicas" in deployment.spec) == (autoscaler is None)
    scalers = [found.kind for found in built if found.kind in {"ScaledObject", "HorizontalPodAutoscaler"}]
    assert scalers == ([kind] if kind else [])


# ── without a loose end ───────────────────────────────────────────────────────────────────────────────────────────────────
def test_names_are_unique() -> None:
    names = [str(found) for found in objects()]
    assert len(names) == len(set(names))


def test_every_image_is_the_one_that_the_site_names_with_a_version(each: Workload) -> None:
    [image] = document(FOLDER / "site/kustomization.yaml")["images"]
    assert each.container["image"] == image["name"] == IMAGE
    assert re.fullmatch(r"\d+\.\d+\.\d+", image["newTag"])


def test_every_reference_of_a_pod_leads_somewhere(each: Workload) -> None:
    existing = {str(found) for found in objects()}
    assert {f"ConfigMap/{volume['name']}" for volume in each.volume("configMap")} <= existing
    assert {f"Secret/{volume['secretName']}" for volume in each.volume("secret")} <= existing
    account = each.pod.get("serviceAccountName")
    assert account is None or f"ServiceAccount/{account}" in existing
    volumes = [volume["name"] for volume in each.pod["volumes"]]
    assert sorted(volumes) == sorted(mount["name"] for mount in each.container["volumeMounts"])
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert each.container.get(probe, {}).get("httpGet", {}).get("port", next(iter(each.ports), None)) in {
            *each.ports,
            None,
        }
    assert each.mount("config") == str(Path(each.environment["CHOKAQ_CONFIG"]).parent)
    assert Path(each.environment["CHOKAQ_CONFIG"]).name == CONFIG
    assert each.mount("credentials") == each.environment["CREDENTIALS_DIRECTORY"]
    if "run" in volumes:
        assert each.mount("run") == each.environment["XDG_RUNTIME_DIR"]


def test_the_secrets_hold_what_is_read_and_nothing_else(each: Workload) -> None:
    assert secret_files(config_text(each)) == set(secret(each))


def test_no_value_of_the_example_could_be_a_secret() -> None:
    for found in of_kind("Secret"):
        for value in found.data["stringData"].values():
            assert "not-a-real" in value or value.startswith("$argon2id$"), found


def test_selectors_find_one_workload_and_its_own_pods() -> None:
    for found in of_kind("Deployment"):
        assert selects(found.spec["selector"]) == [found.name]
    for found in of_kind("Service"):
        [name] = selects(found.spec["selector"])
        ports = workload(name).ports
        for port in found.spec["ports"]:
            assert port["targetPort"] in ports
    for found in of_kind("PodDisruptionBudget"):
        assert selects(found.spec["selector"]) == [found.name]
    for found in of_kind("NetworkPolicy"):
        [name] = selects(found.spec["podSelector"])
        for rule in found.spec.get("ingress", []):
            assert {port["port"] for port in rule["ports"]} <= set(workload(name).ports)
    for found in of_kind("HorizontalPodAutoscaler", "ScaledObject"):
        assert workload(found.spec["scaleTargetRef"]["name"])


def test_every_workload_has_a_network_policy_that_reaches_the_database(each: Workload, tmp_path: Path) -> None:
    from chokaq.store.url import DatabaseUrl

    [policy] = [found for found in of_kind("NetworkPolicy") if selects(found.spec["podSelector"]) == [each.object.name]]
    ports = {port["port"] for rule in policy.spec["egress"] for port in rule["ports"]}
    assert {53, DatabaseUrl.parse(settings_of(each, tmp_path).database.url).port} <= ports


# ── safe ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_a_pod_has_no_rights(each: Workload) -> None:
    pod, container = each.pod["securityContext"], each.container["securityContext"]
    assert pod["runAsNonRoot"] is True
    assert pod["runAsUser"] == pod["runAsGroup"] == pod["fsGroup"] >= 10_000
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert each.pod["automountServiceAccountToken"] is False
    for volume in each.volume("secret"):
        assert volume["defaultMode"] == 0o440
    for volume in each.volume("emptyDir"):
        assert "sizeLimit" in volume
    assert "memory" in each.container["resources"]["limits"]
    assert set(each.container["resources"]["requests"]) == {"cpu", "memory"}


def test_the_user_is_the_image_s(each: Workload) -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert f"USER {each.pod['securityContext']['runAsUser']}:{each.pod['securityContext']['runAsGroup']}" in text
