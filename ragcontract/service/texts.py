"""Makes texts fit for every database: Postgres stores no NUL character, and indexes only short texts."""

import hashlib

from ragcontract.core import bounds
from ragcontract.core.safe_text import encodable


def storable(text: str) -> str:
    """Return a text without NUL characters and lone surrogates, which become replacement characters."""
    return encodable(text).replace("\0", "\ufffd")


def index_key(text: str) -> str:
    """Return what stands for a text in an index: itself, or the digest of a long one."""
    stored = storable(text)
    encoded = stored.encode()
    return stored if len(encoded) <= bounds.INDEXED_TEXT else f"sha256:{hashlib.sha256(encoded).hexdigest()}"
