"""Imports the application object that `app: package.module:attribute` names, or says clearly why it cannot."""

import importlib
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from chokaq.config.errors import ConfigError, Problem

_OWN = str(Path(__file__).parent.parent) + os.sep
"""The place of an error is where the application made it, not where chokaq noticed."""


def load_app(spec: str, folder: Path | None = None) -> Any:
    """The object that `package.module:attribute` names.

    `folder` (else that of $CHOKAQ_CONFIG) and the working directory are searched first. Raises ConfigError: one problem,
    path `app`, when the module cannot be imported, has no such attribute, or the attribute is no ChokaQ object.
    """
    module_name, _, attribute = spec.partition(":")
    if not module_name or not attribute:
        raise _error(f"must be package.module:attribute, got {spec!r}")
    _extend_path(folder)
    module = _import(module_name)
    found: Any = module
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise _error(f"the module {module_name} has no attribute {attribute!r}{_offer(module)}") from None
    if not hasattr(found, "registry") or not hasattr(found, "enqueue"):
        kind = type(found).__name__
        raise _error(f"{spec} is of type {kind}, not a ChokaQ application{_offer(module)}")
    return found


def _extend_path(folder: Path | None) -> None:
    if folder is None and os.environ.get("CHOKAQ_CONFIG"):
        folder = Path(os.environ["CHOKAQ_CONFIG"]).absolute().parent
    for place in (Path.cwd(), folder):
        if place is not None and str(place) not in sys.path:
            sys.path.insert(0, str(place))


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            message = (
                f"there is no module {error.name} (looked beside the YAML file, in {Path.cwd()}, and on PYTHONPATH); "
                "correct `app:`, start chokaq where the module is, or install it"
            )
            raise _error(message) from None
        raise _failed(name, error) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - importing runs the application's code: anything may come out
        raise _failed(name, error) from None


def _failed(name: str, error: BaseException) -> ConfigError:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", _OWN)) and "importlib" not in frame.filename
    ]
    if isinstance(error, SyntaxError) and error.filename:
        place = f" ({error.filename}, line {error.lineno})"
    else:
        place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return _error(f"importing {name} failed: {type(error).__name__}: {' '.join((text or '').split())}{place}")


def _offer(module: ModuleType) -> str:
    names = [
        name for name, value in vars(module).items() if hasattr(value, "registry") and hasattr(value, "enqueue_sync")
    ]
    return f"; ChokaQ objects there: {', '.join(names)}" if names else ""


def _error(message: str) -> ConfigError:
    return ConfigError([Problem("app", message)])
