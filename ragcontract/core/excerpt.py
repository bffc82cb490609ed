"""Short excerpts of answers, around what matters."""

from ragcontract.core import bounds
from ragcontract.core.phrase import Name


def excerpt(text: str, start: int = 0, end: int = 0) -> Name:
    """Return the part of an answer around ``text[start:end]``, with ellipses where it was cut.

    It has at most ``bounds.EXCERPT`` characters and one line; of a longer span, it is the beginning.
    """
    room = bounds.EXCERPT if len(text) <= bounds.EXCERPT else bounds.EXCERPT - 2  # for the ellipses
    length = min(max(end - start, 0), room)
    first = max(0, min(start - (room - length) // 2, len(text) - room))
    last = min(len(text), first + room)
    shown = " ".join(text[first:last].split())
    return Name(f"{'…' if first else ''}{shown}{'…' if last < len(text) else ''}", said=True, quoted=True)
