"""Finds an ODBC driver for SQL Server, and says clearly what to install when there is none."""

import os
import platform
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import cast

from chokaq.store.errors import StoreMisconfigured

REGISTERED = "ODBC Driver 18 for SQL Server"
WAY_OUT = "install Microsoft's system package msodbcsql18 or `pip install 'chokaq[odbc]'`, or name a driver in database.odbc_driver"
_UNIX_ODBC = "libodbc2 libodbcinst2 libgssapi-krb5-2"


@cache
def load_pyodbc() -> ModuleType:
    """The pyodbc module, pooling off. Raises StoreMisconfigured when unixODBC is missing.

    Imported late: the embedded store must work where no ODBC library is installed.
    """
    try:
        import pyodbc
    except ImportError as error:
        raise StoreMisconfigured(
            f"SQL Server needs the unixODBC library, which is missing here ({error}): install the system packages "
            f"{_UNIX_ODBC} (Debian names), or use sqlite:///path in database.url"
        ) from error
    # A pooled handle would outlive its connection, and no handle may exist before a fork.
    pyodbc.pooling = False
    return cast(ModuleType, pyodbc)


def find_driver(setting: str | None) -> str:
    """What to write as `Driver=`: a registered name or a file. Raises StoreMisconfigured with the way out.

    Order: the explicit setting; the registered ODBC Driver 18; the driver inside the package mssql-python-odbc; FreeTDS.
    """
    if setting:
        return _explicit(setting)
    registered = list(load_pyodbc().drivers())
    if REGISTERED in registered:
        return REGISTERED
    packaged = packaged_driver()
    if packaged is not None:
        return str(packaged)
    for name in registered:
        if "freetds" in name.lower():
            return str(name)
    found = ", ".join(registered) or "none"
    raise StoreMisconfigured(f"no ODBC driver for SQL Server was found (registered: {found}): {WAY_OUT}")


def packaged_driver() -> Path | None:
    """The driver file that the package mssql-python-odbc brings for this system, or None."""
    spec = find_spec("mssql_python_odbc")
    if spec is None or spec.origin is None:
        return None
    libraries = Path(spec.origin).parent / "libs" / "linux"
    machine = {"amd64": "x86_64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
    for system in _systems():
        found = sorted((libraries / system / machine / "lib").glob("libmsodbcsql-*.so*"))
        if found:
            return found[-1]
    return None


def is_freetds(driver: str) -> bool:
    """True for FreeTDS, which spells some connection keywords its own way."""
    name = driver.lower()
    return "freetds" in name or "libtdsodbc" in name


def _explicit(setting: str) -> str:
    if "/" in setting:
        if not Path(setting).is_file():
            raise StoreMisconfigured(f"database.odbc_driver: there is no file {setting}: {WAY_OUT}")
        return setting
    registered = list(load_pyodbc().drivers())
    if setting not in registered:
        found = ", ".join(registered) or "none"
        raise StoreMisconfigured(
            f"database.odbc_driver: {setting!r} is not registered (registered: {found}): {WAY_OUT}"
        )
    return setting


def _systems() -> list[str]:
    """The folders of the package to look in, the one of this system first."""
    order = ["debian_ubuntu", "rhel", "suse"]
    if Path("/etc/alpine-release").exists():
        return ["alpine"]
    if Path("/etc/SuSE-release").exists() or "suse" in _os_id():
        order.sort(key=lambda name: name != "suse")
    elif not Path("/etc/debian_version").exists() and os.name == "posix":
        order.sort(key=lambda name: name != "rhel")
    return order


def _os_id() -> str:
    try:
        return Path("/etc/os-release").read_text(encoding="utf-8").lower()
    except OSError:
        return ""
