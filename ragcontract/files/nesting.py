"""A limit on how deeply JSON may be nested, the same for every version of Python.

Decoders have limits of their own, which differ between decoders, between versions of Python, and with the depth of the
stack that calls them: what one has just decoded, the next one may refuse. Below this limit, none of them does.
"""

import re
from itertools import accumulate

from ragcontract.core import bounds

_STEPS = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")  # one level down, one up, as signed bytes
_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))


class NestingError(RecursionError):
    """JSON that is nested more than ``bounds.NESTING`` levels deep."""


def check_nesting(data: bytes) -> None:
    """Raise :class:`NestingError` if a JSON document is nested too deeply.

    Does not recurse, and takes less than half of the time of decoding. Other errors are left to the decoder.
    """
    if data.count(b"[") + data.count(b"{") <= bounds.NESTING:
        return
    steps = _brackets(data).translate(_STEPS)
    if max(accumulate(memoryview(steps).cast("b")), default=0) > bounds.NESTING:
        raise NestingError(f"nested more than {bounds.NESTING} levels deep")


def _brackets(data: bytes) -> bytes:
    """Return the brackets outside of strings."""
    unescaped = data.replace(rb"\\", b"").replace(rb"\"", b"")
    quoted = unescaped.translate(None, _NO_BRACKETS).replace(b'""', b"")  # strings without brackets, nearly all
    return re.sub(rb'"[^"]*"', b"", quoted)
