"""The options that several commands share, and the functions that process them.

Among these are the paths of inputs and outputs, the settings of the configuration, and the Spark session, which is the
one that spark-submit configures, or a new local one.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import progress_over, warn
from ragcontract.contract import defaults
from ragcontract.contract.config import Config
from ragcontract.contract.config_file import read_config
from ragcontract.contract.defaults import DEFAULTS
from ragcontract.core import bounds
from ragcontract.core.errors import InputError, OutputError
from ragcontract.evaluation.source import GoodRuns, Inputs, Source, find_inputs, folders_above
from ragcontract.files.paths import existing_files
from ragcontract.files.writing import check_outputs, goes_to_a_stream, wrong_unless_named
from ragcontract.registry import BUILT_IN
from ragcontract.report.record import Report
from ragcontract.runs.readers import open_run

Command = Callable[..., Any]
Decorate = Callable[[Command], Command]
OPTIONS = ("golden", "run", "scores", "judgments", "calibration", "baseline", "config")  # in the order of messages


def _rank(context: click.Context, option: click.Parameter, value: int | None) -> Any:
    # A callback instead of the option's type, because the type would show its bounds in the help text.
    return None if value is None else click.IntRange(1, bounds.RANK).convert(value, option, context)


def files_option(option: str, help_text: str) -> Decorate:
    """Return an option that accepts several files and globs."""
    return click.option(option, multiple=True, metavar="FILE…", help=help_text)


def out_option(option: str, default: str, what: str) -> Decorate:
    """Return an option for a file to write."""
    return click.option(option, default=default, metavar="FILE", help=f"{what} [{default}]")


TOP = 10


def top_option(help_text: str, default: int = TOP) -> Decorate:
    """Return the option for how many documents are candidates for labels."""
    shown = f"{help_text} [{default}]"
    return click.option("--top", type=int, default=default, callback=_rank, metavar="N", help=shown)


WITHOUT_RUN = click.option("--without-run", is_flag=True, help="Read no run, even if its file exists.")
NO_ANSWERS = click.option(
    "--no-answers",
    is_flag=True,
    help="Leave out of all output what the application and its documents said: answers, contexts, tool calls.",
)
REPEATS = click.option("--repeats", is_flag=True, help="Accept several rows per query in a run, and average them.")


def clock() -> datetime:
    """Return the current time for reports and baselines."""
    return datetime.now(UTC)


def refuse_empty(paths: Mapping[str, Sequence[str | None]]) -> None:
    """Raise InputError if an option has an empty path: ``--config "$UNSET"`` does not mean "no limits"."""
    if empty := [option for option, values in paths.items() if "" in values]:
        raise InputError(
            [f"{option}: is given an empty path; name a file, or leave the option out" for option in empty]
        )


def refuse_links_away(unnamed: Mapping[str, str | None]) -> None:
    """Raise InputError if files that no option named are links that lead out of the repository.

    ``unnamed`` has these files by the option that could name them. Whoever brings files into the repository could
    otherwise have any file read, and quoted in a message. Without a repository, the current folder counts.
    """
    links = {option: path for option, path in unnamed.items() if path and os.path.islink(path)}  # noqa: PTH114 (Path.is_symlink raises if a name is too long)
    if not links:
        return
    here = repository_root(Path()) or Path.cwd()
    if away := [
        f"{path}: is a symbolic link that leads out of {here}, and nobody named it; remove it, or name it with {option}"
        for option, path in links.items()
        if not Path(os.path.realpath(path)).is_relative_to(here)
    ]:
        raise InputError(away)


INPUTS: dict[str, Decorate] = {
    "golden": files_option("--golden", f"Golden queries; several files and globs form one set. [{defaults.GOLDEN}]"),
    "run": files_option(
        "--run", f"What the retriever returned; several files and globs form one run. [{defaults.RUN}]"
    ),
    "scores": files_option(
        "--scores",
        "Scores and checks that other tools computed for the queries of the run; several files and globs. [none]",
    ),
    "judgments": files_option(
        "--judgments",
        "What a judge said, from `rag-contract judge`; several files and globs. Nothing is asked. "
        f"[{defaults.JUDGMENTS}, if it exists and the contract needs it]",
    ),
    "calibration": click.option(
        "--calibration",
        metavar="FILE",
        help="How well the judge agrees with people, from `rag-contract judge calibrate`. "
        f"[{defaults.CALIBRATION}, if it exists and the contract needs it]",
    ),
    "baseline": files_option(
        "--baseline",
        f"A file written by `rag-contract baseline`, or a known-good run (.jsonl). [{defaults.BASELINE}, if it exists]",
    ),
    "config": click.option(
        "--config",
        metavar="FILE",
        help=f"The configuration: k, limits, rules, waivers. [{defaults.CONFIG}, if it exists]",
    ),
    "k": click.option(
        "--k", type=int, callback=_rank, metavar="N", help="The cut-off: how many results count. [the config's k, or 5]"
    ),
    "tag": click.option(
        "--tag",
        "tags",
        multiple=True,
        metavar="TAG…",
        help="Check only the queries with this tag, and only its own limits; several tags add up. "
        "[all queries and limits]",
    ),
    "repeats": REPEATS,
    "engine": click.option(
        "--engine",
        type=click.Choice(["local", "spark"]),
        default="local",
        help="Where runs are read and scored: on this machine or by Spark. [local]",
    ),
}


def takes(*options: str | Decorate) -> Decorate:
    """Return a decorator of a command that has these options, the usual ones by their names.

    What they name is the command's argument ``inputs``.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def own(**values: Any) -> Any:
            return command(inputs=Inputs.named(**{name: values.pop(name) for name in names}), **values)

        params: list[click.Parameter] = own.__dict__.setdefault("__click_params__", [])
        others = len(params)
        for option in reversed(options):
            (INPUTS[option] if isinstance(option, str) else option)(own)
        names = {param.name or "" for param in params[others:]} & {*Inputs.__struct_fields__}
        return own

    return decorate


def repository_root(folder: Path) -> Path | None:
    """Return the root of the git repository that a folder is in, or None.

    In a worktree or a submodule, ``.git`` is a file that names the repository's own folder.
    """
    here = folder.resolve()
    return next((folder for folder in (here, *here.parents) if _is_repository(folder / ".git")), None)


def _is_repository(git: Path) -> bool:
    with suppress(OSError):  # a folder that may not be read
        return git.is_file() or os.path.lexists(git / "HEAD")
    return False


def lacks_contract() -> bool:
    """Return whether no file of a contract is in the current folder, nor above it in its repository."""
    return defaults.lacks_contract(Path(), folders_above(Path()))


def find_files(named: Inputs) -> Inputs:
    """Return inputs with default files for those that no option names.

    Raises InputError if a path is empty, if there is no contract, or if a default file is a link that leads out of the
    repository.
    """
    refuse_empty({f"--{name}": named.paths(name) for name in OPTIONS})
    inputs = find_inputs(named, above=folders_above(Path()))
    refuse_links_away({f"--{name}": inputs.paths(name)[0] for name in DEFAULTS if name in inputs.unnamed})
    return inputs


@contextmanager
def opened(inputs: Inputs, engine: str = "local", *, good_runs: bool = False) -> Iterator[Inputs]:
    """Yield the inputs with run and baseline opened, locally (with a progress bar for large files) or on Spark.

    With ``good_runs``, run files of which each has all queries are several runs.
    """
    if engine == "spark":
        with on_spark(inputs.paths("run"), inputs.paths("baseline")) as (run, baseline):
            yield replace(inputs, run=run, baseline=baseline)
        return
    with progress_over(inputs.large) as progress:
        inputs = replace(inputs, progress=progress)
        several = GoodRuns(open_run(inputs.paths("run"), progress)) if good_runs else None
        yield replace(inputs, run=several or inputs.run)


def refuse_run(run: Collection[str], *, without_run: bool) -> None:
    """Raise a usage error if a run is named and is not to be read."""
    if run and without_run:
        raise click.UsageError("--run names what --without-run leaves out; give one of them")


def refuse_outputs(outputs: Mapping[str, str], inputs: Sequence[str], pages: Collection[str] = ()) -> None:
    """Raise OutputError if a file cannot be written, is one of the inputs, or is a link that nobody named.

    ``outputs`` has the paths by the names of the parameters that could name them, ``inputs`` are paths and globs.
    ``pages`` are parameters of pages, whose text would act on a terminal or a CI runner.
    """
    wrong = _links(outputs)
    wrong |= {
        name: f"{path}: is a standard stream, where the text of a page could act as commands; name a file"
        for name, path in outputs.items()
        if name in pages and goes_to_a_stream(path)
    }
    rest = [path for name, path in outputs.items() if name not in wrong]
    if problems := [*wrong.values(), *check_outputs(rest, existing_files(inputs)[0])]:
        raise OutputError(problems)


def refuse_links(outputs: Mapping[str, str]) -> None:
    """Raise OutputError if a file to write is a link that nobody named; ``outputs`` as in :func:`refuse_outputs`."""
    if links := _links(outputs):
        raise OutputError(list(links.values()))


def _links(outputs: Mapping[str, str]) -> dict[str, str]:
    """Return the problems of outputs whose option is not given, by the names of their parameters."""
    source = click.get_current_context().get_parameter_source
    unnamed = [name for name in outputs if source(name) is not click.core.ParameterSource.COMMANDLINE]
    return {
        name: f"{outputs[name]}: {why}; remove it, or name it with --{name.replace('_', '-')} to write where it leads"
        for name in unnamed
        if (why := wrong_unless_named(outputs[name]))
    }


def measure(inputs: Inputs, engine: str = "local") -> Report:
    """Score a run and compare it with the baseline, without a verdict; prints the warnings."""
    with opened(inputs, engine) as sources:
        report = pipeline.check(replace(sources, gates=False), now=clock()).report
    warn(report.warnings)
    return report


def configured(config: str | None) -> Config:
    """Return the configuration of a file, or of the default file if it exists; raises InputError."""
    inputs = find_inputs(Inputs.named(config=config), above=folders_above(Path()))
    refuse_links_away({"--config": None if config else inputs.config})
    read = read_config(inputs.config, BUILT_IN, others=inputs.other_configs)
    read.problems.raise_if_any()
    warn(read.problems.warnings)
    return read.config


INSTALL = "install it: pip install 'rag-contract[spark]'"


@contextmanager
def on_spark(run: Sequence[str], baseline: Sequence[str]) -> Iterator[tuple[Source, Source | None]]:
    """Yield the sources of the run and the baseline in the active Spark session or a new one.

    A new session is stopped at the end. Raises :class:`InputError` if none can be started.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        from ragcontract.spark import source_of
    except ImportError as error:
        raise InputError([f"--engine spark: needs pyspark; {INSTALL}"]) from error
    was_there = SparkSession.getActiveSession() is not None
    try:
        session = SparkSession.builder.getOrCreate()
    except (PySparkException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError([f"--engine spark: Spark does not start ({reason}); is Java installed?"]) from error
    try:
        yield source_of(session, run), source_of(session, baseline, may_be_stored=True) if baseline else None
    finally:
        if not was_there:
            session.stop()
