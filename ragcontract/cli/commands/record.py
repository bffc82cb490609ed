"""``rag-contract record``: asks a system every golden query and writes what it did as a run."""

import gc
import os
from collections.abc import Mapping
from typing import Any, get_args

import click
from msgspec.structs import replace

from ragcontract.cli.console import say, warn
from ragcontract.cli.options import Decorate, find_files, out_option, refuse_outputs, takes
from ragcontract.contract import defaults
from ragcontract.contract.config_file import read_config
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError, before_users_code
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import shorten, visible
from ragcontract.evaluation.source import Inputs
from ragcontract.files.paths import AnchoredPath
from ragcontract.net.pool import Stop
from ragcontract.record.adapters.framework import redacting
from ragcontract.record.record_options import (
    TOP,
    OnFailure,
    RecordOptions,
    RecordSettings,
    settled,
    wrong_numbers,
)
from ragcontract.record.recording import Recording, RecordingPlan, planned, record
from ragcontract.record.recording_journal import begin
from ragcontract.record.target import Target, read_target
from ragcontract.record.watching import Format, WatchOptions, watchers
from ragcontract.registry import BUILT_IN

# Options that have another name in Python; messages about their values begin with a name of the user.
NAMES = {"versions": "set", "secrets": "secret", "watch_files": "watch"}
SHOWN = ("stream_answer_chars", "progress_every_seconds")


def _several(option: str, name: str, metavar: str, help_text: str) -> Decorate:
    return click.option(option, name, multiple=True, metavar=f"{metavar}…", help=help_text)


@click.command("record")
@click.argument("target")
@takes("golden", out_option("--out", defaults.RUN, "Where to write the run: .jsonl, .jsonl.gz or .parquet."), "config")
@click.option(
    "--top", type=int, metavar="N", help=f"How many results to ask for. [the config's largest k, at least {TOP}]"
)
@click.option(
    "--concurrency", type=int, metavar="N", help="Calls at the same time. [1 for Python, 4 for commands, 8 for HTTP]"
)
@click.option("--rate", metavar="N/s|N/min", help="The most calls per second or minute. [no limit]")
@click.option("--timeout", type=float, default=30, metavar="S", help="Seconds to wait for an answer. [30]")
@click.option("--connect-timeout", type=float, default=10, metavar="S", help="Seconds to wait for a connection. [10]")
@click.option("--retries", type=int, default=2, metavar="N", help="Further attempts if a call may succeed later. [2]")
@click.option("--repeats", type=int, default=1, metavar="N", help="Ask everything N times, round by round. [1]")
@click.option("--warmup", type=int, default=0, metavar="N", help="Ask N questions first that do not count. [0]")
@_several("--tag", "tags", "TAG", "Ask only the questions with this tag; several add up. [all questions]")
@_several("--query", "queries", "ID", "Ask only the question with this id; several add up. [all questions]")
@click.option("--limit", type=int, metavar="N", help="Ask only the first N of these questions. [all]")
@click.option(
    "--on-failure",
    type=click.Choice(get_args(OnFailure)),
    default="stop",
    help="If questions fail: write no run, leave them out of it, or keep what was retrieved where only the answer "
    "failed and leave out the others. [stop]",
)
@click.option("--fresh", is_flag=True, help="Ask everything again, and drop the journal of an earlier recording.")
@_several(
    "--watch",
    "watch_files",
    "GLOB",
    "Files that answers depend on, such as prompts. If one changes, answers of an earlier recording are not reused; "
    "imported modules are watched anyway. [none]",
)
@click.option(
    "--set", "versions", multiple=True, metavar="NAME=VALUE", help="A version, such as index_version=7; repeatable."
)
@click.option(
    "--doc-id",
    metavar="EXPR",
    help="Where a result names its document: JMESPath over id, chunk_id, metadata and text.",
)
@_several(
    "--secret",
    "secrets",
    "NAME",
    "An environment variable that the target may use as ${secret:NAME}; repeatable. [none]",
)
@click.option("--offline", is_flag=True, help="Download nothing to prepare the target.")
@click.option("--isolate", is_flag=True, help="Run Python code in a process of its own, which can be stopped.")
@click.option("--stream-out", metavar="FILE", help="Write each event to this file while recording. [none]")
@click.option(
    "--stream-format", type=click.Choice(get_args(Format)), default="jsonl", help="JSON lines or RFC 7464. [jsonl]"
)
@click.option(
    "--stream-answer-chars",
    type=int,
    default=0,
    metavar="N",
    help="How many characters of each answer to write there. [0]",
)
@click.option(
    "--progress-every-seconds",
    type=float,
    default=10,
    metavar="S",
    help="Seconds between lines of progress; 0 for none. [10]",
)
@click.option("--details", metavar="FILE", help="Write facts about the recording as JSON. [none]")
@click.option("--plan", is_flag=True, help="Print what would be asked, and stop.")
def command(target: str, *, inputs: Inputs, **values: Any) -> int:
    """Ask a system every golden query and write what it did as a run.

    TARGET is module:attribute, file.py:attribute, or a YAML file that describes a service, a command or an index. The
    attribute is a function, a class or an object. This command runs that code; `check` never does.

    A journal beside the run keeps the answers. If a recording ends early, run the same command again: it continues
    where it stopped. Exits 0 if the run is written, 2 if it is not, 130 if it was interrupted, never 1.
    """
    gc.enable()  # other commands are short; users' code may make garbage for hours
    inputs = find_files(inputs)
    asked = _record_options(values, inputs)
    secrets = asked.known(os.environ)
    outputs = {name: values[name] for name in ("out", "details", "stream_out") if values[name] is not None}
    refuse_outputs(outputs, inputs.all)
    watched = WatchOptions(
        every=values["progress_every_seconds"],
        stream=_anchored(values["stream_out"]),
        form=values["stream_format"],
        answer_chars=values["stream_answer_chars"],
        details=_anchored(values["details"]),
    )
    with redacting(secrets):
        settings = settled(asked, *filter(None, (watched.details, watched.stream)))
    if settings.journal is not None and not values["plan"]:
        begin(settings.journal)
    before_users_code()
    with redacting(secrets):
        surroundings = asked.surroundings(os.environ, settings.sources)
        system = read_target(target, replace(surroundings, say=lambda text: warn([text])))
    if values["plan"]:
        _say_plan(planned(settings, system), settings, system)
        return ExitCode.PASS
    watching = watchers(watched, system, settings.commit, secrets, lambda warning: warn([warning]))
    with redacting(secrets), watching as watch:
        recording = record(settings, system, stop=Stop(), watch=watch, secrets=secrets)
    with redacting(secrets):
        return _finished(recording, settings)


def _record_options(values: Mapping[str, Any], inputs: Inputs) -> RecordOptions:
    """Return the options; raises InputError with all problems."""
    options = {name: values[name] for name in RecordOptions.__struct_fields__ if name in values}
    options["top"] = (
        values["top"] if values["top"] is not None else max(TOP, *read_config(inputs.config, BUILT_IN).cutoffs)
    )
    versions = dict(pair.split("=", 1) for pair in values["versions"] if "=" in pair)
    asked = RecordOptions(**{**options, "golden": inputs.golden, "versions": versions})
    wrong = [*asked.wrong(os.environ), *wrong_numbers({name: values[name] for name in SHOWN})]
    problems = [f"--{NAMES.get(name, name.replace('_', '-') + ':')} {problem}" for name, problem in wrong]
    if odd := [pair for pair in values["versions"] if "=" not in pair]:
        problems.append(f"--set: expected NAME=VALUE, such as index_version=7, found {shorten(odd[0], bounds.NAME)!r}")
    if problems:
        raise InputError(problems)
    return asked


def _anchored(typed: str | None) -> AnchoredPath | None:
    return None if typed is None else AnchoredPath(typed)


def _say_plan(plan: RecordingPlan, settings: RecordSettings, target: Target) -> None:
    options = settings.options
    calls = options.concurrency or target.system.concurrency
    part = f" of {plan.of:,}" if plan.questions < plan.of else ""
    rounds = f" × {options.repeats}" if options.repeats > 1 else ""
    kept = f"; {plan.kept:,} are in {settings.journal}" if plan.kept else ""
    rate = f", at most {options.calls_per_second:g} a second" if options.calls_per_second else ""
    lines = [
        f"target     {target.name}",
        f"questions  {plan.questions:,}{part}{rounds}{kept}",
        f"to ask     {plan.answers - plan.kept:,}",
        f"calls      {calls} at a time{rate}, {options.timeout:g} s each, {count(options.retries, 'retry')}",
        f"results    {options.top}",
        f"run        {settings.out}",
    ]
    say("".join(f"{visible(line)}\n" for line in lines))


def _finished(recording: Recording, settings: RecordSettings) -> int:
    """Print how a recording ended; raises the error that ended it early."""
    warn(recording.warnings)
    details = recording.details
    answers = details["done"] - sum(details["failures"].values())
    if isinstance(recording.error, KeyboardInterrupt):
        had = f"{answers:,} of {count(details['wanted'], 'answer')} are in {settings.journal}"
        say(f"interrupted: {visible(had)}; the same command asks for the others\n", err=True)
    if recording.error is not None:
        raise recording.error
    retried = details["answered_after_retries"]
    after = f", {retried:,} of them after retries" if retried else ""
    how = "; check it with --repeats" if settings.options.repeats > 1 else ""
    say(f"recorded {count(answers, 'answer')} in {visible(str(settings.out))}{after}{how}\n")
    return ExitCode.PASS
