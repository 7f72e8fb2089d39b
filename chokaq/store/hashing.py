"""The hash by which a store tells whether two enqueues carry the same payload."""

from hashlib import blake2b


def payload_hash(payload: str | bytes) -> str:
    """32 hexadecimal digits over the exact payload bytes (UTF-8 of a text)."""
    data = payload.encode("utf-8", "surrogatepass") if isinstance(payload, str) else payload
    return blake2b(data, digest_size=16).hexdigest()
