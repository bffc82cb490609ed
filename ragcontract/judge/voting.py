"""How votes on an item become a verdict: a strict majority of all votes that it may have, or none."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ragcontract.judge.calls import Vote
from ragcontract.judge.interface import Settings
from ragcontract.runs.judged_texts import is_failure
from ragcontract.runs.judgments import Status

NoVote: TypeAlias = Literal["unsure", "compromised", "failed"]
# What an item is if it has no majority: the first of these that a vote was withheld for.
_WORST: tuple[NoVote, ...] = ("failed", "compromised", "unsure")


class Withheld(Struct, frozen=True, kw_only=True):
    """A vote that there is not, and why."""

    status: NoVote
    reason: str


class Decision(Struct, frozen=True, kw_only=True):
    """What comes of the votes on an item: the first vote with the verdict, or why there is none."""

    status: Status
    vote: Vote | None = None
    reason: str = ""


_TIED = Decision(status="unsure", reason="The votes do not agree.")


def decided(votes: Sequence[Vote | Withheld], settings: Settings) -> Decision | None:
    """Return what the votes so far decide; None if another one is needed.

    With ``confirm: failures``, the first vote decides unless it speaks against the application. Every other verdict
    needs more than half of ``settings.votes``, of which a withheld one counts for neither side. Nothing more is asked
    once that is reached, or cannot be.
    """
    first = votes[0]
    alone = settings.votes == 1 or settings.confirm == "failures"
    if alone and (isinstance(first, Withheld) or settings.votes == 1 or not is_failure(first.verdict)):
        return _of(first)
    needed, left = settings.votes // 2 + 1, settings.votes - len(votes)
    cast = [vote for vote in votes if isinstance(vote, Vote)]
    against = [vote for vote in cast if is_failure(vote.verdict)]
    in_favour = [vote for vote in cast if not is_failure(vote.verdict)]
    for side in (against, in_favour):
        if len(side) >= needed:
            most = Counter(vote.verdict for vote in side).most_common(1)[0][0]
            return Decision(status="ok", vote=next(vote for vote in side if vote.verdict == most))
    if max(len(against), len(in_favour)) + left >= needed:
        return None
    withheld = {vote.status: vote for vote in reversed(votes) if isinstance(vote, Withheld)}
    return next((_of(withheld[status]) for status in _WORST if status in withheld), _TIED)


def _of(vote: Vote | Withheld) -> Decision:
    if isinstance(vote, Withheld):
        return Decision(status=vote.status, reason=vote.reason)
    return Decision(status="ok", vote=vote)
