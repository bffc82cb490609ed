"""The options of commands that ask a judge."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, get_args

import click

from ragcontract.cli.console import warn
from ragcontract.cli.options import Command, Decorate
from ragcontract.core.errors import InputError
from ragcontract.core.judge_settings import JudgeSettings
from ragcontract.judge.endpoint import OLLAMA_PORT, URL, Api, Endpoint, find_endpoint
from ragcontract.judge.judge_options import USUAL, JudgeOptions
from ragcontract.judge.judging_run import JudgingSettings
from ragcontract.judge.judging_session import Progress
from ragcontract.runs.judged_texts import Confirm


def _number(name: str, help_text: str, *, whole: bool = True, default: float | None = None) -> Decorate:
    return click.option(name, type=int if whole else float, default=default, metavar="N", help=help_text)


def _usual(name: str, help_text: str) -> Decorate:
    """Return an option that is the same as in Python if it is not given."""
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
        help=f"How it is spoken to. [ollama at port {OLLAMA_PORT}, else openai]",
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
    _usual("--max-calls", "At most so many calls."),
    _number("--max-tokens", "At most so many tokens, sent and received. [no limit]"),
    _number("--max-usd", "At most so much money; needs the prices. [no limit]", whole=False),
    _number("--price-in", "USD for a million tokens sent. [unknown]", whole=False),
    _number("--price-out", "USD for a million tokens received. [unknown]", whole=False),
    click.option("--deadline", metavar="TIME", help="Ask nothing after so long, such as 20m. [no limit]"),
    _usual("--concurrency", "Calls at the same time; fewer after a 429."),
    _usual("--timeout", "Seconds of silence until a call is given up."),
    _usual("--connect-timeout", "Seconds until a connection is."),
    _usual("--retries", "Further attempts where a call may succeed later."),
    _usual("--max-context", "The longest context that Ollama is asked for, in tokens."),
    _usual("--max-reply", "The longest reply, in tokens; once twice that, if one is cut off."),
    click.option("--dry-run", is_flag=True, help="Say what would be asked and what it costs, and stop."),
)


def judge_options(*, votes: bool) -> Decorate:
    """Return the options of a command that asks a judge; ``votes`` for those whose items are judged several times."""

    def decorate(command: Command) -> Command:
        for option in reversed((*_OF_ENDPOINT, *(_OF_VOTES if votes else ()), *_OF_CALLS)):
            command = option(command)
        return command

    return decorate


def given_judge(given: Mapping[str, Any], configured: JudgeSettings) -> tuple[JudgeOptions, Endpoint]:
    """Return the options and the endpoint; raises InputError with everything that is wrong with both.

    What is not given is as configured. The configuration says nothing of the endpoint.
    """
    names = JudgeOptions.__struct_fields__
    of_config = {name: getattr(configured, name) for name in ("model", "votes", "confirm", "max_age_days")}
    given = {**given, **{name: value for name, value in of_config.items() if given.get(name) is None}}
    named = {name: value for name, value in given.items() if name in names and value is not None}
    options = JudgeOptions(**{"model": "", **named})
    problems = [f"--{name.replace('_', '-')}: {problem}" for name, problem in options.wrong()]
    endpoint = None
    try:
        endpoint = find_endpoint(given["judge_url"], given["judge_api"], os.environ)
    except InputError as error:
        problems += error.problems
    if problems or endpoint is None:
        raise InputError(problems)
    warn(endpoint.warnings)
    return options, endpoint


def judging_settings(options: JudgeOptions, endpoint: Endpoint, path: str) -> JudgingSettings:
    """Return how cases are judged, with what is kept beside a path."""
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
def progress_shown() -> Iterator[Callable[[Progress], None]]:
    """Show a bar on a terminal; nothing in a pipe."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=0, label="judging", file=stream, show_pos=True) as bar:

        def show(progress: Progress) -> None:
            bar.length = progress.total
            bar.label = f"judging, {progress.unjudged:,} without a verdict" if progress.unjudged else "judging"
            bar.update(progress.done - bar.pos)

        yield show
