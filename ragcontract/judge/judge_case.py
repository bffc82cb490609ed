"""Judges one case: makes calls, reads replies and counts votes. Only the model does I/O.

A verdict needs a strict majority of all votes that an item may have. After an invalid reply, the model is asked once
more and is told what was wrong. After a reply that failed its controls, of which nothing counts, it is asked once more
as well. A verdict that is missing then stays missing; none is made up.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from ragcontract.core import bounds
from ragcontract.core.safe_text import shorten
from ragcontract.judge.calls import ModelCall, ReplyFault, Vote, call_on, read_reply, reply_to, writable
from ragcontract.judge.endpoint import asked_judge, fingerprint
from ragcontract.judge.interface import Clock, Dice, Model, Reply, VoteSettings
from ragcontract.judgments.items import (
    AskedJudge,
    JudgeCase,
    is_failure,
    keys_of,
    known_without_a_judge,
    sent_contexts,
    settled,
)
from ragcontract.judgments.judgments_file import Judgment
from ragcontract.judgments.replay import Evidence

NoVote: TypeAlias = Literal["unsure", "compromised", "failed"]
# The status of an item without a majority is the first of these for which a vote was withheld.
_WORST: tuple[NoVote, ...] = ("failed", "compromised", "unsure")
COMPROMISED = "The judge failed its controls: it was lazy, or did what a text told it to."


class Withheld(Struct, frozen=True, kw_only=True):
    """A vote that is missing, and why."""

    status: NoVote
    reason: str


_TIED = Withheld(status="unsure", reason="The votes do not agree.")


class ItemUsage(Struct, kw_only=True):
    """The models that replied on one item, and its share of what their replies cost."""

    models: set[str]
    dropped: set[str]  # the parameters that their endpoint refused
    tokens_in: int = 0
    tokens_out: int = 0
    calls: int = 0  # those sent again included
    retried: int = 0
    compromised: int = 0  # replies with wrong controls


class Usage:
    """Adds up the cost of replies by item."""

    def __init__(self) -> None:
        self._items: dict[int, ItemUsage] = {}

    def of(self, number: int) -> ItemUsage:
        return self._items.setdefault(number, ItemUsage(models=set(), dropped=set()))

    def add(self, numbers: Sequence[int], reply: Reply) -> None:
        """Add a reply on some items. Their shares add up to its tokens and calls."""
        for at, number in enumerate(numbers):
            item = self.of(number)
            item.models |= {writable(reply.model)} - {""}
            item.dropped |= set(reply.dropped)
            item.tokens_in = _more(item.tokens_in, _share(reply.tokens_in, at, len(numbers)))
            item.tokens_out = _more(item.tokens_out, _share(reply.tokens_out, at, len(numbers)))
            item.calls = _more(item.calls, _share(1 + reply.retried, at, len(numbers)))
            item.retried = _more(item.retried, _share(reply.retried, at, len(numbers)))

    def add_compromised(self, numbers: Sequence[int]) -> None:
        """Count a reply with wrong controls on these items."""
        for at, number in enumerate(numbers):
            self.of(number).compromised += _share(1, at, len(numbers))


def utc_now() -> datetime:
    """Return the time, in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def judge_case(
    case: JudgeCase, model: Model, settings: VoteSettings, dice: Dice, clock: Clock = utc_now
) -> list[Judgment]:
    """Return a judgment on each item of a case, in their order, whatever happens."""
    if why := known_without_a_judge(case):
        result = _Decided(Usage(), {}, [Vote(verdict=False, reason=why)] * len(case.items))
    else:
        result = _Judging(case, model, settings, dice).result()
    judge = asked_judge(case.task, settings, model)
    (keys,) = keys_of(case, [judge])
    at = clock()
    return [
        Judgment(
            key=key,
            task=case.task,
            query_id=case.query_id,
            item=case.items[number].name,
            judge=judge,
            at=at,
            **_from_replies(result, number, judge),
        )
        for number, key in enumerate(keys)
    ]


def decided(votes: Sequence[Vote | Withheld], settings: VoteSettings) -> Vote | Withheld | None:
    """Return the first vote with the verdict that the votes so far decide, or why there is none.

    Return None if another vote is needed.

    With ``confirm: failures``, the first vote decides unless it speaks against the application. Otherwise, a verdict
    needs more than half of ``settings.votes``. A withheld vote counts for neither side. No further vote is needed once
    a majority is reached, or cannot be reached.
    """
    cast = [vote.verdict if isinstance(vote, Vote) else None for vote in votes]
    verdict = settled(cast, settings.votes, settings.confirm)
    if verdict is not None:
        return next(vote for vote in votes if isinstance(vote, Vote) and vote.verdict == verdict)
    first = votes[0]
    if isinstance(first, Withheld) and (settings.votes == 1 or settings.confirm == "failures"):
        return first
    against = sum(1 for vote in cast if vote is not None and is_failure(vote))
    in_favour = sum(1 for vote in cast if vote is not None) - against
    if max(against, in_favour) + settings.votes - len(votes) > settings.votes // 2:
        return None
    withheld = {vote.status: vote for vote in reversed(votes) if isinstance(vote, Withheld)}
    return next((withheld[status] for status in _WORST if status in withheld), _TIED)


class _Decided(NamedTuple):
    """The usage, the votes and the decisions on all items of a case, by their numbers."""

    usage: Usage
    votes: Mapping[int, Sequence[Vote | Withheld]]
    decisions: Sequence[Vote | Withheld]


def _from_replies(result: _Decided, number: int, judge: AskedJudge) -> dict[str, Any]:
    """Return the fields of a judgment that come from replies."""
    used, decision = result.usage.of(number), result.decisions[number]
    return {
        "status": "ok",
        **asdict(decision),
        "votes": tuple(vote.verdict if isinstance(vote, Vote) else None for vote in result.votes.get(number, ())),
        "model": shorten(" + ".join(sorted(used.models)), bounds.JUDGE_NAME),
        "fingerprint": fingerprint(judge, used.models, used.dropped),
        "tokens_in": used.tokens_in,
        "tokens_out": used.tokens_out,
        "calls": used.calls,
        "retried": used.retried,
        "compromised": used.compromised,
    }


class _Judging:
    """Collects votes on the items of one case, by their numbers."""

    def __init__(self, case: JudgeCase, model: Model, settings: VoteSettings, dice: Dice) -> None:
        self._case, self._model, self._settings, self._dice = case, model, settings, dice
        self._evidence = Evidence(sent_contexts(case), case.response)
        self._usage = Usage()

    def result(self) -> _Decided:
        """Ask until every item is decided, and return the result."""
        votes: dict[int, list[Vote | Withheld]] = {number: [] for number in range(len(self._case.items))}
        decisions: dict[int, Vote | Withheld] = {}
        while undecided := [number for number in votes if number not in decisions]:
            asked = len(votes[undecided[0]])
            for at in range(0, len(undecided), bounds.ITEMS_A_CALL):
                for number, vote in self._poll(undecided[at : at + bounds.ITEMS_A_CALL], asked).items():
                    votes[number].append(vote)
                    if decision := decided(votes[number], self._settings):
                        decisions[number] = decision
        return _Decided(self._usage, votes, [decisions[number] for number in votes])

    def _poll(self, numbers: Sequence[int], vote: int) -> dict[int, Vote | Withheld]:
        """Return one vote on each of these items."""
        votes: dict[int, Vote | Withheld] = {}
        pending, fault = list(numbers), ""
        once_more: set[NoVote] = {"unsure", "compromised"}
        while pending:
            call = call_on(self._case, pending, self._dice, self._settings, vote=vote, fault=fault)
            of_call = self._asked(call, pending)
            votes |= of_call
            withheld = {number: of_item for number, of_item in of_call.items() if isinstance(of_item, Withheld)}
            why = next(iter(withheld.values()), None)
            if why is None or why.status not in once_more:
                break
            once_more.remove(why.status)
            pending = list(withheld)
            reasons = dict.fromkeys(of_item.reason for of_item in withheld.values())
            fault = " ".join(reasons) if why.status == "unsure" else ""
        return votes

    def _asked(self, call: ModelCall, numbers: Sequence[int]) -> dict[int, Vote | Withheld]:
        """Ask, and return a vote on each item. All votes that are withheld have the same status."""
        reply = reply_to(call.ask, self._model)
        if isinstance(reply, str):
            return _withheld_judgment(numbers, "failed", reply)
        self._usage.add(numbers, reply)
        try:
            read = read_reply(call, reply, self._evidence)
        except ReplyFault as error:
            return _withheld_judgment(numbers, "unsure", f"The last reply {error}.")
        if read.compromised:
            self._usage.add_compromised(numbers)
            return _withheld_judgment(numbers, "compromised", COMPROMISED)
        faults = {number: Withheld(status="unsure", reason=why) for number, why in read.faults.items()}
        return {**read.votes, **faults}


def _share(total: int, at: int, of: int) -> int:
    return total * (at + 1) // of - total * at // of


def _more(before: int, more: int) -> int:
    """Add tokens or calls, within bounds whatever an endpoint claims."""
    return min(max(0, before + more), bounds.JUDGED_TOKENS)


def _withheld_judgment(numbers: Sequence[int], status: NoVote, reason: str) -> dict[int, Vote | Withheld]:
    return dict.fromkeys(numbers, Withheld(status=status, reason=reason))
