"""Judging one case: calls are made of it, replies are read, votes are counted. Only the model does I/O.

A reply that is invalid is asked for once more, with what was wrong; so is one of a judge that failed its controls, of
which nothing counts. What is missing then is missing: no verdict is made up.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ragcontract.answers.evidence import evidence_of
from ragcontract.core import bounds
from ragcontract.core.text import shorten
from ragcontract.judge.calls import Call, Vote, call_on, read_reply, reply_to
from ragcontract.judge.interface import Clock, Dice, Model, Settings
from ragcontract.judge.judge_identity import asked_judge, fingerprint
from ragcontract.judge.reply_json import ReplyFault
from ragcontract.judge.usage import Usage
from ragcontract.judge.voting import Decision, NoVote, Withheld, decided
from ragcontract.runs.judged_texts import AskedJudge, Case, keys_of, known_without_a_judge
from ragcontract.runs.judgments import Judgment

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
            return _withheld(numbers, "failed", reply)
        self._usage.add(numbers, reply)
        try:
            read = read_reply(call, reply, self._evidence)
        except ReplyFault as error:
            return _withheld(numbers, "unsure", f"The last reply {error}.")
        if read.compromised:
            self._usage.add_compromised(numbers)
            return _withheld(numbers, "compromised", COMPROMISED)
        faults = {number: Withheld(status="unsure", reason=why) for number, why in read.faults.items()}
        return {**read.votes, **faults}


def _withheld(numbers: Sequence[int], status: NoVote, reason: str) -> dict[int, Vote | Withheld]:
    return dict.fromkeys(numbers, Withheld(status=status, reason=reason))
