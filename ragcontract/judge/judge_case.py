"""How votes on an item become a verdict: a strict majority of all votes that it may have, or none.

What the replies on each item of a case were: which model gave them, and their share of calls and tokens.

Judging one case: calls are made of it, replies are read, votes are counted. Only the model does I/O.

A reply that is invalid is asked for once more, with what was wrong; so is one of a judge that failed its controls, of
which nothing counts. What is missing then is missing: no verdict is made up.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.safe_text import shorten
from ragcontract.judge.calls import Call, ReplyFault, Vote, call_on, read_reply, reply_to, writable
from ragcontract.judge.endpoint import asked_judge, fingerprint
from ragcontract.judge.interface import Clock, Dice, Model, Reply, Settings
from ragcontract.judgments.items import AskedJudge, Case, is_failure, keys_of, known_without_a_judge, settled
from ragcontract.judgments.judgments_file import Judgment, Status
from ragcontract.judgments.replay import evidence_of

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
    cast = [vote.verdict if isinstance(vote, Vote) else None for vote in votes]
    verdict = settled(cast, settings.votes, settings.confirm)
    if verdict is not None:
        return Decision(
            status="ok", vote=next(one for one in votes if isinstance(one, Vote) and one.verdict == verdict)
        )
    first = votes[0]
    if isinstance(first, Withheld) and (settings.votes == 1 or settings.confirm == "failures"):
        return _withheld(first)
    against = sum(1 for vote in cast if vote is not None and is_failure(vote))
    in_favour = sum(1 for vote in cast if vote is not None) - against
    if max(against, in_favour) + settings.votes - len(votes) > settings.votes // 2:
        return None
    withheld = {vote.status: vote for vote in reversed(votes) if isinstance(vote, Withheld)}
    return next((_withheld(withheld[status]) for status in _WORST if status in withheld), _TIED)


def _withheld(vote: Withheld) -> Decision:
    return Decision(status=vote.status, reason=vote.reason)


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


COMPROMISED = "The judge failed its controls: it was lazy, or did what a text told it to."


def utc_now() -> datetime:
    """Return the time, in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def judge_case(case: Case, model: Model, settings: Settings, dice: Dice, clock: Clock = utc_now) -> list[Judgment]:
    """Return the judgments on the items of a case, in their order; each item has one, whatever happens."""
    if why := known_without_a_judge(case):
        found = _Found(Usage(), {}, [Decision(status="ok", vote=Vote(verdict=False, reason=why)) for _ in case.items])
    else:
        found = _Judging(case, model, settings, dice).found()
    judge = asked_judge(case.task, settings, model)
    at = clock()
    return [
        Judgment(
            key=key,
            task=case.task,
            query_id=case.query_id,
            item=case.items[number].name,
            status=found.decisions[number].status,
            judge=judge,
            at=at,
            **_said(found, number, judge),
        )
        for number, key in enumerate(keys_of(case, judge))
    ]


class _Found(NamedTuple):
    """What there is when all items of a case are decided, by their numbers."""

    usage: Usage
    votes: Mapping[int, Sequence[Vote | Withheld]]
    decisions: Sequence[Decision]


def _said(found: _Found, number: int, judge: AskedJudge) -> dict[str, Any]:
    """Return the fields of a judgment that come from replies."""
    used, decision = found.usage.of(number), found.decisions[number]
    vote = decision.vote
    proven = {} if vote is None else {name: getattr(vote, name) for name in vote.__struct_fields__}
    return {
        "reason": decision.reason,
        **proven,
        "votes": tuple(one.verdict if isinstance(one, Vote) else None for one in found.votes.get(number, ())),
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

    def __init__(self, case: Case, model: Model, settings: Settings, dice: Dice) -> None:
        self._case, self._model, self._settings, self._dice = case, model, settings, dice
        self._evidence = evidence_of(case)
        self._usage = Usage()

    def found(self) -> _Found:
        """Ask until every item is decided."""
        votes: dict[int, list[Vote | Withheld]] = {number: [] for number in range(len(self._case.items))}
        decisions: dict[int, Decision] = {}
        while undecided := [number for number in votes if number not in decisions]:
            asked = len(votes[undecided[0]])
            for at in range(0, len(undecided), bounds.ITEMS_A_CALL):
                for number, one in self._poll(undecided[at : at + bounds.ITEMS_A_CALL], asked).items():
                    votes[number].append(one)
                    if decision := decided(votes[number], self._settings):
                        decisions[number] = decision
        return _Found(self._usage, votes, [decisions[number] for number in votes])

    def _poll(self, numbers: Sequence[int], vote: int) -> dict[int, Vote | Withheld]:
        """Return one vote on each of these items."""
        votes: dict[int, Vote | Withheld] = {}
        pending, fault = list(numbers), ""
        once_more: set[NoVote] = {"unsure", "compromised"}
        while pending:
            call = call_on(self._case, pending, self._dice, self._settings, vote=vote, fault=fault)
            found = self._asked(call, pending)
            votes |= found
            withheld = {number: one for number, one in found.items() if isinstance(one, Withheld)}
            why = next(iter(withheld.values()), None)
            if why is None or why.status not in once_more:
                break
            once_more.remove(why.status)
            pending = list(withheld)
            reasons = dict.fromkeys(one.reason for one in withheld.values())
            fault = " ".join(reasons) if why.status == "unsure" else ""
        return votes

    def _asked(self, call: Call, numbers: Sequence[int]) -> dict[int, Vote | Withheld]:
        """Ask, and return what the reply says of each item; all votes that are withheld have one status."""
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


def _withheld_judgment(numbers: Sequence[int], status: NoVote, reason: str) -> dict[int, Vote | Withheld]:
    return dict.fromkeys(numbers, Withheld(status=status, reason=reason))
