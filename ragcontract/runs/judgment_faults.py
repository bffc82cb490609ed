"""What a judgment cannot be: one that contradicts itself was edited by hand, or cut, and is none."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, get_args

import msgspec

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.text import shorten, visible
from ragcontract.runs.judged_texts import (
    WITHOUT,
    Confirmed,
    Verdict,
    asked_how,
    is_failure,
    is_proven_by_context,
    settled,
)

if TYPE_CHECKING:
    from ragcontract.runs.judgments import Judgment

AHEAD = timedelta(days=1)  # how much the clocks of two machines may differ


def judgment_faults(judgment: "Judgment", now: datetime | None = None) -> Iterator[tuple[str, str]]:
    """Yield the fields that contradict others, or the clock if it is given, with why."""
    verdict, words = judgment.verdict, judgment.task == "confirmation"
    expected = f"one of {', '.join(map(repr, get_args(Confirmed)))}" if words else "true or false"
    if judgment.status == "ok" and verdict is None:
        yield "verdict", f"expected {expected}, because the status is 'ok', found null"
    if judgment.status != "ok" and verdict is not None:
        yield "verdict", f"expected null, because the status is {judgment.status!r}, found {shown(verdict)}"
    wrong = [("verdict", verdict), *((f"votes[{at}]", vote) for at, vote in enumerate(judgment.votes))]
    wrong = [(field, one) for field, one in wrong if one is not None and isinstance(one, bool) == words]
    for field, one in wrong:
        if one is not None:
            yield field, f"expected {expected}, because the task is {judgment.task!r}, found {shown(one)}"
    if not wrong:
        yield from _of_votes(judgment)
    if judgment.status == "ok" and verdict is not None and not is_failure(verdict):
        if not judgment.quote:
            yield "quote", "expected the words that prove the verdict, found none"
        if judgment.context is None and is_proven_by_context(judgment.task, verdict):
            yield "context", "expected the rank of the text that proves the verdict, found none"
    if fault := _of_fingerprint(judgment):
        yield "fingerprint", fault
    if now is not None and judgment.at - now > AHEAD:
        yield "at", f"is in the future ({judgment.at:%Y-%m-%d}); is the clock right?"


def _of_fingerprint(judgment: "Judgment") -> str | None:
    """Return what is wrong with a fingerprint that is not that of the model that replied, asked as the judge was."""
    found, expected = judgment.fingerprint, (judgment.model or judgment.judge.model) + asked_how(judgment.judge)
    if found == expected or found.startswith(f"{expected}{WITHOUT}"):
        return None
    both = (repr(shorten(visible(one), bounds.FINGERPRINT // 4)) for one in (expected, found))
    return "expected {}, as its judge and model have it, found {}".format(*both)


def _of_votes(judgment: "Judgment") -> Iterator[tuple[str, str]]:
    verdict, votes, judge = judgment.verdict, judgment.votes, judgment.judge
    if not judge.votes % 2:
        yield "judge.votes", f"expected an odd number, found {judge.votes}"
    if len(votes) > judge.votes:
        yield "votes", f"expected at most {count(judge.votes, 'vote')}, as the judge has, found {len(votes)}"
        return
    if not votes:
        # Only what needs no judge can be known without a vote: what was not retrieved, or not answered, fails.
        if judgment.status == "ok" and verdict is not None and not is_failure(verdict):
            yield "votes", f"expected votes for the verdict {shown(verdict)}, found none"
        return
    made = settled(votes, judge.votes, judge.confirm)
    if any(settled(votes[:cast], judge.votes, judge.confirm) is not None for cast in range(1, len(votes))):
        yield "votes", f"{msgspec.json.encode(votes).decode()} goes on after the verdict was settled"
    if made != verdict and (made is None or verdict is None or judgment.status == "ok"):
        listed, how = msgspec.json.encode(votes).decode(), f"{count(judge.votes, 'vote')}, confirm: {judge.confirm}"
        makes = "no verdict" if made is None else f"the verdict {shown(made)}"
        yield "votes", f"{listed} makes {makes} ({how}), and the verdict is {shown(verdict)}"


def shown(verdict: Verdict | None) -> str:
    """Return a verdict as messages have it."""
    return repr(verdict) if isinstance(verdict, str) else msgspec.json.encode(verdict).decode()
