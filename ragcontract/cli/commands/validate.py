"""``rag-contract validate``: reports the problems of the input files, or their content."""

from collections.abc import Sequence

import click

from ragcontract import pipeline
from ragcontract.cli.console import say, warn
from ragcontract.cli.options import BASELINE, CONFIG, GOLDEN, REPEATS, RUN, TAG, clock, find_paths, sources_of
from ragcontract.core.errors import ExitCode
from ragcontract.core.numbers import count


@click.command("validate")
@GOLDEN
@RUN
@BASELINE
@CONFIG
@TAG
@REPEATS
@click.option("--quiet", is_flag=True, help="Print nothing but warnings and errors.")
def command(
    *,
    golden: Sequence[str],
    run: Sequence[str],
    baseline: Sequence[str],
    config: str | None,
    tags: Sequence[str],
    repeats: bool,
    quiet: bool,
) -> int:
    """Report what is wrong with the files, or what they contain.

    Exits 2 if `check` could not judge them. Gives no verdict.
    """
    paths = find_paths(golden, run, config, baseline)
    with sources_of(paths) as sources:
        report = pipeline.check(sources.request(paths, repeats=repeats, tags=tags), now=clock()).report
    warn(report.warnings)
    if quiet:
        return ExitCode.PASS
    inputs = report.inputs
    parts = [
        f"{count(inputs.golden.queries, 'golden query')} ({inputs.golden.answerable:,} with relevant documents)",
        count(inputs.run.queries, "run row"),
        f"a baseline of {count(inputs.baseline.queries, 'query')}" if inputs.baseline else "no baseline",
        "a config" if inputs.config else "no config",
    ]
    say(f"valid: {', '.join(parts)}\n")
    return ExitCode.PASS
