"""What the replies on each item of a case were: which model gave them, and their share of calls and tokens."""

from collections.abc import Sequence

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.judge.interface import Reply
from ragcontract.judge.reply_json import writable


class ItemUsage(Struct, kw_only=True):
    """The models that replied on one item, what they did not take, and its share of what they cost.

    ``calls`` has those of ``retried``; ``compromised`` are replies with wrong controls.
    """

    models: set[str]
    dropped: set[str]
    tokens_in: int = 0
    tokens_out: int = 0
    calls: int = 0
    retried: int = 0
    compromised: int = 0


class Usage:
    """Adds up replies, each by the items that it was about."""

    def __init__(self) -> None:
        """Start without replies."""
        self._items: dict[int, ItemUsage] = {}

    def of(self, number: int) -> ItemUsage:
        """Return what the replies on an item were."""
        return self._items.setdefault(number, ItemUsage(models=set(), dropped=set()))

    def add(self, numbers: Sequence[int], reply: Reply) -> None:
        """Add a reply; the shares of its tokens add up to them."""
        for at, number in enumerate(numbers):
            item = self.of(number)
            item.models |= {writable(reply.model)} - {""}
            item.dropped |= set(reply.dropped)
            item.tokens_in = _more(item.tokens_in, _share(reply.tokens_in, at, len(numbers)))
            item.tokens_out = _more(item.tokens_out, _share(reply.tokens_out, at, len(numbers)))
            item.calls = _more(item.calls, _share(1 + reply.retried, at, len(numbers)))
            item.retried = _more(item.retried, _share(reply.retried, at, len(numbers)))

    def add_compromised(self, numbers: Sequence[int]) -> None:
        """Count a reply on these items of which nothing counts."""
        for at, number in enumerate(numbers):
            self.of(number).compromised += _share(1, at, len(numbers))


def _share(total: int, at: int, of: int) -> int:
    return total * (at + 1) // of - total * at // of


def _more(before: int, more: int) -> int:
    """Add tokens, whatever an endpoint says that they were, or calls."""
    return min(max(0, before + more), bounds.JUDGED_TOKENS)
