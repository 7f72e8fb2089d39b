"""Durations (`1h30m`, `500ms`, a number of seconds) and sizes (`512MB`, a number of bytes): reading and writing them."""

import math
import re

_MILLISECONDS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_BYTES = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    for _suffix in (_letter, f"{_letter}b", f"{_letter}ib"):
        _BYTES[_suffix] = 1024**_power

_NUMBER = re.compile(r"\d+(?:\.\d+)?|\.\d+")
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[wdhms])")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
_ORDER = list(_MILLISECONDS)


def parse_duration(value: object) -> float:
    """Seconds of `1h30m`, `1.5h`, `500ms`, `2d`, `90` or 90. Units: w, d, h, m, s, ms, the larger first, each once.

    Raises ValueError when it is none of these, negative, or not finite.
    """
    if isinstance(value, str):
        return _duration_of_text(value.strip().lower())
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
        return float(value)
    raise ValueError("not a duration")


def _duration_of_text(text: str) -> float:
    if _NUMBER.fullmatch(text):
        return float(text)
    position, last, total = 0, -1, 0.0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise ValueError("not a duration")
        rank = _ORDER.index(part[2])
        if rank <= last:
            raise ValueError("units go from large to small, each once")
        last = rank
        total += float(part[1]) * _MILLISECONDS[part[2]]
        position = part.end()
        while position < len(text) and text[position] == " ":
            position += 1
    if last < 0:
        raise ValueError("empty")
    return total / 1_000


def format_duration(seconds: float) -> str:
    """The shortest exact text of a duration, rounded to milliseconds: `1h30m`, `0s`, `500ms`; reads back as itself."""
    rest = round(seconds * 1_000)
    if rest == 0:
        return "0s"
    parts = []
    for unit, size in _MILLISECONDS.items():
        if unit == "w":  # 7d is what people write
            continue
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def parse_size(value: object) -> int:
    """Bytes of `512MB`, `1.5G`, `2GiB`, `4096` or 4096; a unit is a power of 1024 (KB = KiB). Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if match is None or match[2] not in _BYTES:
        raise ValueError("not a size")
    count = int(match[1]) if match[1].isdigit() else float(match[1])
    return round(count * _BYTES[match[2]])


def format_size(size: int) -> str:
    """The shortest exact text of a size: `512MB`, `1000000`; reads back as itself."""
    for unit in ("tb", "gb", "mb", "kb"):
        count, rest = divmod(size, _BYTES[unit])
        if count and not rest:
            return f"{count}{unit.upper()}"
    return str(size)
