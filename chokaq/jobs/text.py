"""Lengths and cuts as both stores count them: SQL Server's nvarchar counts UTF-16 code units."""


def utf16_length(text: str) -> int:
    """UTF-16 code units of `text`: characters beyond the basic plane count twice."""
    return len(text) if text.isascii() else len(text) + sum(character > "\uffff" for character in text)


def cut(text: str, limit: int) -> str:
    """`text` as a store can hold it: no NUL, no lone surrogates, at most `limit` UTF-16 code units."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    text = text.replace("\0", "")
    if utf16_length(text) <= limit:
        return text
    units = text.encode("utf-16-le")[: 2 * limit]
    # A cut through a surrogate pair leaves half a character behind: drop it.
    return units.decode("utf-16-le", "ignore")
