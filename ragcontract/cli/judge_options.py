"""The options of commands that ask a judge, and what these commands print: cost, result, and what is not judged."""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_args

import click

from ragcontract.cli.console import say, warn
from ragcontract.cli.options import Command, Decorate
from ragcontract.core.config_sections import Confirm, JudgeSettings, Task
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.numbers import count, fixed, percent
from ragcontract.core.safe_text import visible
from ragcontract.judge.calibration_run import CalibrationOutcome
from ragcontract.judge.endpoint import OLLAMA_PORT, URL, Api, Endpoint, find_endpoint
from ragcontract.judge.judging_run import USUAL, Expected, JudgeOptions, JudgingOutcome
from ragcontract.judge.judging_session import JudgingProgress, JudgingResult, JudgingSettings, Lacking
from ragcontract.judge.model_calls import Budget, Spent
from ragcontract.judgments.calibration import Calibration, why_not

REPLAYS = "`check --judgments` replays the existing judgments"
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
    """Print what calls have cost."""
    sent_again = f" ({spent.retried:,} sent again)" if spent.retried else ""
    tokens = f"{spent.tokens_in:,} tokens in, {spent.tokens_out:,} out"
    estimated = f" (estimated for {count(spent.estimated, 'call')})" if spent.estimated else ""
    usd = "" if spent.usd is None else f", {spent.usd:,.4f} USD"
    known = "" if cached is None else f", {cached:,} cached"
    say(f"{count(spent.calls, 'call')}{sent_again}{known}, {tokens}{estimated}{usd}\n")


def finished(outcome: JudgingOutcome, path: str) -> int:
    """Print how a judging ended; raises InputError if a verdict is missing, or KeyboardInterrupt."""
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
    """Return a warning if the endpoint does not take the settings that make replies the same each time."""
    lacks = " and no ".join(name for name in ("temperature", "seed") if name in dropped)
    return [f"the endpoint takes no {lacks}: verdicts vary more from one call to the next"] if lacks else []


def calibrated(outcome: CalibrationOutcome, path: str) -> int:
    """Print how far the judge can be relied on; raises InputError if there is no calibration, or KeyboardInterrupt."""
    last = outcome.passes[-1]
    if outcome.spent.calls or outcome.file is not None:
        say_cost(outcome.spent)
    if isinstance(last.error, KeyboardInterrupt):
        say("interrupted; the same command goes on\n", err=True)
        raise last.error
    if outcome.file is None:
        raise InputError(_lacking(last, f"{path}: is not written: {last.unjudged:,} of {len(last.wanted):,} labels"))
    for calibration in outcome.file.calibrations:
        say(_worth(calibration))
        task, fingerprints = calibration.task, [calibration.fingerprint]
        reasons = why_not({task: calibration}, task, fingerprints=fingerprints, now=calibration.at)
        warn([f"{task}: gates on this judge would not count: {reason}" for reason in reasons])
    say(f"wrote {visible(path)}\n")
    return ExitCode.PASS


def _worth(calibration: Calibration) -> str:
    """Return the numbers of a calibration as a line."""
    kappa = (
        "no kappa"
        if calibration.kappa is None
        else f"kappa {fixed(calibration.kappa, 2)} (at least {fixed(calibration.kappa_low, 2)})"
    )
    rates = [
        f"{label} {percent(rate)} (at least {percent(low)})"
        for label, rate, low in (
            ("yes", calibration.tpr, calibration.tpr_low),
            ("no", calibration.tnr, calibration.tnr_low),
        )
        if rate is not None and low is not None
    ]
    again = (
        "" if calibration.self_agreement is None else f", agrees with itself on {percent(calibration.self_agreement)}"
    )
    lacks = f", {calibration.unjudged:,} without a verdict" if calibration.unjudged else ""
    right = f"; right where people say {' and '.join(rates)}" if rates else ""
    return f"{calibration.task}: {count(calibration.n, 'label')}{lacks}, {kappa}{right}{again}\n"


def _lacking(judged: JudgingResult, what: str, more: str = "") -> list[str]:
    """Return sentences on why verdicts are missing; what ended the judging comes first, as it has to be fixed first."""
    problems = [f"{what} have no verdict; the same command asks again{more}"]
    if judged.over is not None:
        problems.insert(0, f"{judged.over.kind}: {judged.over}")
    for status, number in judged.statuses.items():
        if status != "ok":
            problems.append(f"{status}: {number:,}, because {MEANING[status]}, such as: {judged.reasons[status]}")
    return problems


def say_expected(to_ask: Lacking, expected: Expected, budget: Budget, votes: int, *, passes: int = 1) -> None:
    """Print what a judging would ask, and what that costs without further votes."""
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
    """Return the error of a contract that has nothing to judge for these tasks."""
    names = ", ".join(map(visible, golden))
    *others, last = [wanted for task, wanted in WANTED.items() if task in tasks]
    wanted = f"{', '.join(others)}, or {last}" if others else last
    return InputError([f"{names}: no golden query with a row in the run has anything to judge: {wanted}"])


def _number(name: str, help_text: str, *, whole: bool = True, default: float | None = None) -> Decorate:
    return click.option(name, type=int if whole else float, default=default, metavar="N", help=help_text)


def _usual(name: str, help_text: str) -> Decorate:
    """Return an option with the default of the Python API."""
    default = getattr(USUAL, name.removeprefix("--").replace("-", "_"))
    return _number(name, f"{help_text} [{default:g}]", whole=isinstance(default, int), default=default)


# In the order of the help text.
_OF_ENDPOINT = (
    click.option(
        "--model",
        metavar="NAME",
        help="The model to ask, by the name that the endpoint knows. [the config's judge.model]",
    ),
    click.option("--judge-url", metavar="URL", help=f"Where the model is. [{URL} of the environment, or OpenAI's]"),
    click.option(
        "--judge-api",
        type=click.Choice(get_args(Api)),
        help=f"The API of that address. [ollama at port {OLLAMA_PORT}, else openai]",
    ),
)
_OF_VOTES = (
    _number("--votes", f"How often an item is judged at most; odd. [the config's judge.votes, or {USUAL.votes}]"),
    click.option(
        "--confirm",
        type=click.Choice(get_args(Confirm)),
        help="What further votes are for: only verdicts against the application, or all. "
        f"[the config's judge.confirm, or {USUAL.confirm}]",
    ),
)
_OF_CALLS = (
    _usual("--max-calls", "The most calls to make."),
    _number("--max-tokens", "The most tokens, sent and received together. [no limit]"),
    _number("--max-usd", "The most money to spend; needs the prices. [no limit]", whole=False),
    _number("--price-in", "USD for a million tokens sent. [unknown]", whole=False),
    _number("--price-out", "USD for a million tokens received. [unknown]", whole=False),
    click.option("--deadline", metavar="TIME", help="Stop asking after this time, such as 20m. [no limit]"),
    _usual("--concurrency", "Calls at the same time; fewer after a 429."),
    _usual("--timeout", "Seconds of silence after which a call is given up."),
    _usual("--connect-timeout", "Seconds to wait for a connection."),
    _usual("--retries", "Further attempts if a call may succeed later."),
    _usual("--max-context", "The longest context that Ollama is asked for, in tokens."),
    _usual("--max-reply", "The longest reply, in tokens; once twice that, if one is cut off."),
    click.option("--dry-run", is_flag=True, help="Print what would be asked and what it costs, and stop."),
)


def judge_options(*, votes: bool) -> Decorate:
    """Return the options of a command that asks a judge; with ``votes``, items can be judged several times."""

    def decorate(command: Command) -> Command:
        for option in reversed((*_OF_ENDPOINT, *(_OF_VOTES if votes else ()), *_OF_CALLS)):
            command = option(command)
        return command

    return decorate


def judge_from(values: Mapping[str, Any], configured: JudgeSettings) -> tuple[JudgeOptions, Endpoint]:
    """Return the options and the endpoint; raises InputError with everything that is wrong with both.

    Options that are not set have the configured values. The configuration cannot name an endpoint.
    """
    names = JudgeOptions.__struct_fields__
    of_config = {name: getattr(configured, name) for name in ("model", "votes", "confirm", "max_age_days")}
    values = {
        **values,
        **{name: value for name, value in of_config.items() if values.get(name) is None},
    }
    named = {name: value for name, value in values.items() if name in names and value is not None}
    options = JudgeOptions(**{"model": "", **named})
    problems = [f"--{name.replace('_', '-')}: {problem}" for name, problem in options.wrong()]
    endpoint = None
    try:
        endpoint = find_endpoint(values["judge_url"], values["judge_api"], os.environ)
    except InputError as error:
        problems += error.problems
    if problems or endpoint is None:
        raise InputError(problems)
    warn(endpoint.warnings)
    return options, endpoint


def judging_settings(options: JudgeOptions, endpoint: Endpoint, path: str) -> JudgingSettings:
    """Return the settings to judge cases; the journal is kept beside ``path``."""
    return JudgingSettings(
        path=path,
        model=options.model,
        endpoint=endpoint,
        settings=options.settings,
        budget=options.budget,
        limits=options.limits,
        max_age_days=options.max_age_days,
        max_context=options.max_context,
        refresh=options.refresh,
    )


@contextmanager
def progress_shown() -> Iterator[Callable[[JudgingProgress], None]]:
    """Show a progress bar on a terminal, and nothing in a pipe."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=0, label="judging", file=stream, show_pos=True) as bar:

        def show(progress: JudgingProgress) -> None:
            bar.length = progress.total
            bar.label = f"judging, {progress.unjudged:,} without a verdict" if progress.unjudged else "judging"
            bar.update(progress.done - bar.pos)

        yield show
