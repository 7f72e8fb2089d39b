"""Payloads: a job to ASCII JSON text and back.

ASCII (`\\uXXXX` for the rest, surrogate pairs beyond the basic plane), since the stores keep payloads in `varchar`. Decoding is
typed and tolerant of fields it does not know, so that an old child can run what a newer client enqueued.
"""

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping, Set
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any

import msgspec

from chokaq.lifecycle.errors import PayloadError

_encoder = msgspec.json.Encoder()
_strict = json.JSONEncoder(allow_nan=False)
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_UNENCODABLE = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError)


def escape_non_ascii(text: str) -> str:
    """JSON text with every non-ASCII character (they stand inside strings only) as `\\uXXXX`."""
    return text if text.isascii() else _NON_ASCII.sub(lambda run: encode_basestring_ascii(run[0])[1:-1], text)


def encode(job: object) -> str:
    """ASCII JSON text of a Struct, dataclass or dict. Raises PayloadError naming the path of what JSON cannot hold."""
    try:
        data = _encoder.encode(job)
        if b"null" in data:
            # msgspec writes NaN and infinity as null: tell them from None.
            _strict.encode(msgspec.to_builtins(job, str_keys=True))
    except _UNENCODABLE as error:
        path, problem = _find_fault(job) or ("$", str(error))
        raise PayloadError(f"{type(job).__name__} cannot be written as JSON: {problem} (at {path})") from error
    return data.decode("ascii") if data.isascii() else escape_non_ascii(data.decode())


@lru_cache(maxsize=4_096)
def decoder(contract: Any) -> Callable[[str], Any]:
    """The typed decoder of a contract. Raises TypeError when msgspec cannot decode one of its field types."""
    return msgspec.json.Decoder(contract).decode


def decode(contract: Any, payload: str, type_key: str) -> Any:
    """The job in `payload`. Raises PayloadError naming the type key, the contract and the path of what does not fit."""
    try:
        return decoder(contract)(payload)
    except Exception as error:
        # Whatever a contract's own __post_init__ raises, the payload is what it did not like.
        name = getattr(contract, "__name__", str(contract))
        raise PayloadError(f"the payload of {type_key} does not fit {name}: {error}") from error


def convert(contract: Any, value: object, type_key: str) -> Any:
    """A job of type `contract` out of plain data (a dict). Raises PayloadError naming the path of what does not fit."""
    try:
        return msgspec.convert(value, contract)
    except Exception as error:
        name = getattr(contract, "__name__", str(contract))
        raise PayloadError(f"the payload given for {type_key} does not fit {name}: {error}") from error


def _find_fault(value: object, path: str = "$", depth: int = 0) -> tuple[str, str] | None:
    """The first part of `value` that JSON cannot hold, as (path, what is wrong with it)."""
    if depth > 200:
        return path, "it is nested too deeply, or contains itself"
    if isinstance(value, float):
        return None if math.isfinite(value) else (path, f"{value} is not a JSON number")
    if isinstance(value, str):
        return (path, "the text holds half of a surrogate pair") if _has_surrogate(value) else None
    for name, part in _parts(value):
        if fault := _find_fault(part, path + name, depth + 1):
            return fault
    try:
        _encoder.encode(value)
    except _UNENCODABLE as error:
        return path, str(error)
    return None


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _parts(value: object) -> list[tuple[str, object]]:
    """The named parts of a container; none for a leaf."""
    if isinstance(value, Mapping):
        return [(f".{key}", part) for key, part in value.items()]
    if isinstance(value, list | tuple | Set):
        return [(f"[{index}]", part) for index, part in enumerate(value)]
    if isinstance(value, msgspec.Struct):
        return [(f".{name}", getattr(value, name, None)) for name in value.__struct_fields__]
    if dataclasses.is_dataclass(value):
        return [(f".{field.name}", getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    return []
