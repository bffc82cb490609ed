"""The results that one workflow run has under one name, of which its comment shows the worst."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from ragcontract.core import bounds

State = Literal["pass", "fail", "error", "unknown"]
BEST_FIRST: tuple[State | None, ...] = (None, "pass", "unknown", "error", "fail")
SEVERAL = "several"  # the contract of a result that stands for those that have no room


class Result(Struct, frozen=True):
    """The result of one check in one attempt of a workflow run.

    ``contract`` is the fingerprint of :func:`~ragcontract.github.identity.contract_of`, empty where unknown;
    ``content`` is the fingerprint of the text.
    """

    contract: str
    attempt: int
    state: State | None
    content: str

    @property
    def badness(self) -> int:
        """The rank of the state; the worst has the highest."""
        return BEST_FIRST.index(self.state)

    def says(self, other: "Result") -> bool:
        """Return whether two results are the same, whichever checks they are of."""
        return (self.state, self.content) == (other.state, other.content)

    def may_be_of(self, contract: str) -> bool:
        """Return whether this can be a result of the contract."""
        return contract != SEVERAL and self.contract in {"", contract}


def standing(results: Iterable[Result]) -> list[Result]:
    """Return the results of one workflow run that none of a later attempt has replaced.

    A result replaces the one of the same contract in an earlier attempt. If there are two, because two jobs or steps
    cannot be distinguished, nobody knows which of them it replaces, and all stay.
    """
    stand: list[Result] = []
    for result in sorted(set(results), key=lambda one: one.attempt):
        earlier = [old for old in stand if old.may_be_of(result.contract) and old.attempt < result.attempt]
        if len(earlier) == 1:
            stand.remove(earlier[0])
        stand.append(result)
    return stand


def listed(results: Iterable[Result]) -> tuple[Result, ...]:
    """Return the results that the marker of a comment lists, the worst first.

    The worst of those that have no room stands for them until the next workflow run: no result replaces it.
    """
    worst_first = sorted(results, key=lambda one: (-one.badness, one.contract, one.attempt, one.content))
    room = bounds.COMMENT_RESULTS
    if len(worst_first) <= room:
        return tuple(worst_first)
    rest = worst_first[room - 1]
    return (*worst_first[: room - 1], Result(SEVERAL, rest.attempt, rest.state, rest.content))
