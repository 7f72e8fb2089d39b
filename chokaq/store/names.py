"""What a name may be made of, checked before any SQL runs: both stores keep names as printable ASCII."""

from chokaq.store.errors import StoreRefused

MAX_NAME = 255


def check_name(field: str, value: str, *, limit: int = MAX_NAME) -> str:
    """`value`, when it is 1 … `limit` printable ASCII characters; else StoreRefused, naming the field."""
    if not value:
        raise StoreRefused(f"{field} is empty")
    if len(value) > limit:
        raise StoreRefused(f"{field} is longer than {limit} characters: {value[:40]!r}…")
    if not (value.isascii() and value.isprintable()):
        raise StoreRefused(f"{field} may hold printable ASCII characters only: {value[:80]!r}")
    return value


def check_text(field: str, value: str | None) -> str | None:
    """`value`, when a store can hold it as text: no NUL, no lone surrogate; else StoreRefused, naming the field."""
    if value is None or value.isascii():
        if value is not None and "\0" in value:
            raise StoreRefused(f"{field} contains a NUL character")
        return value
    if "\0" in value:
        raise StoreRefused(f"{field} contains a NUL character")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StoreRefused(f"{field} is not valid Unicode: {error.reason}") from None
    return value


def check_ascii(field: str, value: str | None) -> str | None:
    """`value`, when it is ASCII without NUL (payloads, headers); else StoreRefused, naming the field."""
    if value is not None and (not value.isascii() or "\0" in value):
        raise StoreRefused(f"{field} must be ASCII JSON text (escape the rest as \\uXXXX)")
    return value
