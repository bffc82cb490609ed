"""What a judging says at its end: what it cost, how many items were judged, and why the others were not."""

from collections.abc import Collection, Sequence

from ragcontract.cli.console import say, warn
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.numbers import count, fixed, percent
from ragcontract.core.text import visible
from ragcontract.judge.calibration_run import CalibrationOutcome
from ragcontract.judge.expected_cost import Expected
from ragcontract.judge.judging_run import JudgingOutcome
from ragcontract.judge.judging_session import Judged, Lacking
from ragcontract.judge.spending import Budget, Spent
from ragcontract.runs.calibration import Calibration
from ragcontract.runs.judged_texts import Task
from ragcontract.statistics.judge_trust import why_not

REPLAYS = "`check --judgments` replays the judgments that there are"
WANTED: dict[Task, str] = {
    "attribution": "reference_claims (`claims` writes them)",
    "criteria": "criteria",
    "confirmation": "forbidden_claims, forbidden_elements or must_not_contain",
}
MEANING = {
    "unsure": "the replies were not valid, or the votes do not agree",
    "compromised": "the judge failed its controls",
    "failed": "there was no reply",
}


def say_cost(spent: Spent, cached: int | None = None) -> None:
    """Say what calls have cost."""
    sent_again = f" ({spent.retried:,} sent again)" if spent.retried else ""
    tokens = f"{spent.tokens_in:,} tokens in, {spent.tokens_out:,} out"
    estimated = f" (estimated for {count(spent.estimated, 'call')})" if spent.estimated else ""
    usd = "" if spent.usd is None else f", {spent.usd:,.4f} USD"
    known = "" if cached is None else f", {cached:,} cached"
    say(f"{count(spent.calls, 'call')}{sent_again}{known}, {tokens}{estimated}{usd}\n")


def finished(outcome: JudgingOutcome, path: str) -> int:
    """Say how a judging ended; raises InputError if a verdict lacks, or KeyboardInterrupt."""
    judged = outcome.judged
    wanted = len(judged.wanted)
    had = judged.statuses.get("ok", 0)
    if outcome.spent.calls or not (judged.error or judged.unjudged):
        say_cost(outcome.spent, judged.cached)
    warn(_varying(outcome.dropped))
    if isinstance(judged.error, KeyboardInterrupt):
        say(
            f"interrupted: {had:,} of {count(wanted, 'item')} are judged; the same command asks for the others\n",
            err=True,
        )
        raise judged.error
    if judged.unjudged:
        what = f"{path}: {judged.unjudged:,} of {wanted:,} items"
        raise InputError(_lacking(judged, what, f"; {REPLAYS}"))
    if wanted:
        say(f"judged {count(wanted, 'item')} in {visible(path)}\n")
    else:
        say(f"nothing to judge; wrote {visible(path)}\n")
    return ExitCode.PASS


def _varying(dropped: Collection[str]) -> list[str]:
    """Return a warning if the endpoint does not take what makes replies the same each time."""
    lacks = " and no ".join(name for name in ("temperature", "seed") if name in dropped)
    return [f"the endpoint takes no {lacks}: verdicts vary more from one call to the next"] if lacks else []


def calibrated(outcome: CalibrationOutcome, path: str) -> int:
    """Say what a calibration is worth; raises InputError if there is none, or KeyboardInterrupt."""
    last = outcome.passes[-1]
    if outcome.spent.calls or outcome.file is not None:
        say_cost(outcome.spent)
    if isinstance(last.error, KeyboardInterrupt):
        say("interrupted; the same command goes on\n", err=True)
        raise last.error
    if outcome.file is None:
        raise InputError(_lacking(last, f"{path}: is not written: {last.unjudged:,} of {len(last.wanted):,} labels"))
    for one in outcome.file.calibrations:
        say(_worth(one))
        reasons = why_not(one, one.task, fingerprints=[one.fingerprint], now=one.at)
        warn([f"{one.task}: gates on this judge would not count: {reason}" for reason in reasons])
    say(f"wrote {visible(path)}\n")
    return ExitCode.PASS


def _worth(one: Calibration) -> str:
    """Return what a calibration says, as a line."""
    kappa = "no kappa" if one.kappa is None else f"kappa {fixed(one.kappa, 2)} (at least {fixed(one.kappa_low, 2)})"
    rates = [
        f"{said} {percent(rate)} (at least {percent(low)})"
        for said, rate, low in (("yes", one.tpr, one.tpr_low), ("no", one.tnr, one.tnr_low))
        if rate is not None and low is not None
    ]
    again = "" if one.self_agreement is None else f", agrees with itself on {percent(one.self_agreement)}"
    lacks = f", {one.unjudged:,} without a verdict" if one.unjudged else ""
    right = f"; right where people say {' and '.join(rates)}" if rates else ""
    return f"{one.task}: {count(one.n, 'label')}{lacks}, {kappa}{right}{again}\n"


def _lacking(judged: Judged, what: str, more: str = "") -> list[str]:
    """Return why verdicts lack, as sentences: first what ended it all, since that is what there is to do about it."""
    problems = [f"{what} have no verdict; the same command asks again{more}"]
    if judged.over is not None:
        problems.insert(0, f"{judged.over.kind}: {judged.over}")
    for status, number in judged.statuses.items():
        if status != "ok":
            problems.append(f"{status}: {number:,}, because {MEANING[status]}, such as: {judged.reasons[status]}")
    return problems


def say_expected(to_ask: Lacking, expected: Expected, budget: Budget, votes: int, *, passes: int = 1) -> None:
    """Say what a judging would ask, and what that costs at least."""
    times = f" (each label {passes} times)" if passes > 1 else ""
    items = len(to_ask.wanted) - len(to_ask.cached)
    most = f"; up to {votes * expected.calls:,} with further votes" if votes > 1 else ""
    lines = [
        f"items      {len(to_ask.wanted):,}{times}; {len(to_ask.cached):,} are known",
        f"to judge   {items:,}",
        f"calls      {expected.calls:,}{most}",
        f"tokens     about {expected.tokens_in:,} in, at most {expected.most_out:,} out, without further votes",
    ]
    if budget.price_in is not None or budget.price_out is not None:
        lines.append(
            f"cost       at most {budget.usd(expected.tokens_in, expected.most_out):,.4f} USD, without further votes"
        )
    say("".join(f"{line}\n" for line in lines))


def nothing_to_judge(golden: Sequence[str], tasks: Collection[Task]) -> InputError:
    """Return the error of a contract in which nothing is to be judged at these tasks."""
    names = ", ".join(map(visible, golden))
    *others, last = [wanted for task, wanted in WANTED.items() if task in tasks]
    wanted = f"{', '.join(others)}, or {last}" if others else last
    return InputError([f"{names}: no golden query with a row in the run has anything to judge: {wanted}"])
