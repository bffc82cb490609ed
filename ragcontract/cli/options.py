"""The options that several commands share, and what the commands do with them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import click
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import progress_over, warn
from ragcontract.contract import defaults
from ragcontract.core.errors import InputError, OutputError
from ragcontract.core.ids import MAX_RANK
from ragcontract.evaluation.scored import Elsewhere
from ragcontract.files.opening import Progress, no_progress, resolve
from ragcontract.files.problems import Diagnostics
from ragcontract.files.writing import check_outputs
from ragcontract.model import Report

Command = Callable[..., Any]
Decorate = Callable[[Command], Command]


def _rank(context: click.Context, option: click.Parameter, value: int | None) -> Any:
    # Not the option's type, which would write its limits into the help.
    return None if value is None else click.IntRange(1, MAX_RANK).convert(value, option, context)


def files_option(option: str, help_text: str) -> Decorate:
    """Make an option that takes several files and globs."""
    return click.option(option, multiple=True, metavar="FILE…", help=help_text)


def out_option(option: str, default: str, what: str) -> Decorate:
    """Make an option for a file to write."""
    return click.option(option, default=default, metavar="FILE", help=f"{what} [{default}]")


GOLDEN = files_option("--golden", f"Golden queries; several files and globs form one set. [{defaults.GOLDEN}]")
RUN = files_option("--run", f"What the retriever returned; several files and globs form one run. [{defaults.RUN}]")
BASELINE = files_option(
    "--baseline",
    f"A file written by `rag-contract baseline`, or a known-good run (.jsonl). [{defaults.BASELINE}, if it exists]",
)
CONFIG = click.option(
    "--config", metavar="FILE", help=f"The configuration: k, limits, rules, waivers. [{defaults.CONFIG}, if it exists]"
)
K = click.option(
    "--k", type=int, callback=_rank, metavar="N", help="The cut-off: how many results count. [the config's k, or 5]"
)
ENGINE = click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    help="Where runs are read and scored: on this machine or by Spark. [local]",
)
REPEATS = click.option("--repeats", is_flag=True, help="Accept several rows per query in a run, and average them.")


def clock() -> datetime:
    """Return the current time, which reports and baselines contain."""
    return datetime.now(UTC)


def refuse_empty(given: Mapping[str, Sequence[str | None]]) -> None:
    """Raise InputError if an option has an empty path: ``--config "$UNSET"`` does not mean "no limits"."""
    if empty := [option for option, values in given.items() if "" in values]:
        raise InputError(
            [f"{option}: is given an empty path; name a file, or leave the option out" for option in empty]
        )


def find_paths(
    golden: Sequence[str],
    run: Sequence[str],
    config: str | None,
    baseline: Sequence[str] | None = None,
    *,
    repeats: bool = False,
) -> pipeline.Paths:
    """Fill in the defaults; with a ``baseline`` of None, no baseline is used, even if the file exists."""
    refuse_empty({"--golden": golden, "--run": run, "--baseline": baseline or (), "--config": [config]})
    paths = defaults.find_inputs(golden=golden, run=run, baseline=baseline or (), config=config, repeats=repeats)
    return paths if baseline is not None else replace(paths, baseline=None)


def large(paths: pipeline.Paths) -> list[str]:
    """Return the files that may take long to read."""
    return [*paths.golden, *paths.run, *(paths.baseline or [])]


@contextmanager
def runs_of(engine: str, paths: pipeline.Paths) -> Iterator[tuple[Elsewhere | None, Progress]]:
    """Yield what scores the runs of ``paths`` (None for this machine), and what shows the progress of reading."""
    if engine == "spark":
        from ragcontract.cluster.session import on_spark

        with on_spark(paths) as elsewhere:
            yield elsewhere, no_progress
    else:
        with progress_over(large(paths)) as progress:
            yield None, progress


def refuse_outputs(outputs: Sequence[str], paths: pipeline.Paths) -> None:
    """Raise OutputError if a file cannot be written, or is one of the inputs."""
    if problems := check_outputs(outputs, resolve(defaults.named(paths), Diagnostics())):
        raise OutputError(problems)


def compare(paths: pipeline.Paths, k: int | None, engine: str = "local") -> Report:
    """Score and compare without judging, and print the warnings."""
    with runs_of(engine, paths) as (elsewhere, progress):
        report = pipeline.compare(paths, clock=clock, k=k, progress=progress, elsewhere=elsewhere)
    warn(report.warnings)
    return report
