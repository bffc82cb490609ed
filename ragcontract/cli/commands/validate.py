"""``rag-contract validate``: reports the problems of the input files, or their content."""

from collections.abc import Sequence

import click
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import say, warn
from ragcontract.cli.options import (
    BASELINE,
    CONFIG,
    GOLDEN,
    REPEATS,
    RUN,
    TAG,
    WITHOUT_RUN,
    clock,
    find_paths,
    refuse_run,
    sources_of,
)
from ragcontract.contract.defaults import InputPaths
from ragcontract.contract.unsatisfiable import never_passing
from ragcontract.core.errors import ExitCode
from ragcontract.core.numbers import count
from ragcontract.files.problems import Problems
from ragcontract.registry import BUILT_IN


@click.command("validate")
@GOLDEN
@RUN
@BASELINE
@CONFIG
@TAG
@REPEATS
@WITHOUT_RUN
@click.option("--quiet", is_flag=True, help="Print nothing but warnings and errors.")
def command(
    *,
    golden: Sequence[str],
    run: Sequence[str],
    baseline: Sequence[str],
    config: str | None,
    tags: Sequence[str],
    repeats: bool,
    without_run: bool,
    quiet: bool,
) -> int:
    """Report what is wrong with the files, or what they contain.

    Exits 2 if `check` could not judge them. Gives no verdict. With --without-run, all files but the run are read.
    """
    refuse_run(run, without_run=without_run)
    paths = find_paths(golden, run, config, baseline)
    content = _contract(paths, tags) if without_run else _all(paths, tags, repeats=repeats)
    if not quiet:
        say(f"valid: {', '.join(content)}\n")
    return ExitCode.PASS


def _all(paths: InputPaths, tags: Sequence[str], *, repeats: bool) -> list[str]:
    """Read all files as a check does, and return what they contain; raises InputError with all problems."""
    with sources_of(paths) as sources:
        report = pipeline.check(sources.request(paths, repeats=repeats, tags=tags), now=clock()).report
    warn(report.warnings)
    inputs = report.inputs
    return _content(
        inputs.golden.queries,
        inputs.golden.answerable,
        count(inputs.run.queries, "run row"),
        inputs.baseline.queries if inputs.baseline else None,
        paths,
    )


def _contract(paths: InputPaths, tags: Sequence[str]) -> list[str]:
    """Return the same without a run, which no other file needs.

    A contract that is still being written has no baseline: limits that will need one are a warning.
    """
    with sources_of(replace(paths, run=[])) as sources:
        request = sources.request(paths, tags=tags)
        contract = pipeline.load(replace(request, baseline=request.baseline or request.run), BUILT_IN)
        baseline = sources.baseline.evaluate(contract.plan().for_baseline()) if sources.baseline else None
    problems = contract.problems + contract.limit_problems + (baseline.problems if baseline else Problems())
    problems.raise_if_any()
    warn([*problems.warnings, *never_passing(contract.queries, contract.config, contract.k)])
    if baseline is None and (later := [gate for gate in contract.gates if gate.compares]):
        first = f"{later[0].location}: {later[0].id}"
        others = f" and {count(len(later) - 1, 'other limit')}" if len(later) > 1 else ""
        warn([f"{first}{others} will need a baseline; make one with `rag-contract baseline`"])
    answerable = sum(query.answerable for query in contract.queries.values())
    return _content(len(contract.queries), answerable, "no run", baseline.queries if baseline else None, paths)


def _content(queries: int, answerable: int, run: str, baseline: int | None, paths: InputPaths) -> list[str]:
    return [
        f"{count(queries, 'golden query')} ({answerable:,} with relevant documents)",
        run,
        "no baseline" if baseline is None else f"a baseline of {count(baseline, 'query')}",
        "a config" if paths.config else "no config",
    ]
