"""``rag-contract validate``: what is wrong with the files, or what they contain."""

from typing import Any

import click

from ragcontract import pipeline
from ragcontract.cli.console import progress_over, say, warn
from ragcontract.cli.options import BASELINE, CONFIG, GOLDEN, REPEATS, RUN, clock, find_paths, large
from ragcontract.core.errors import ExitCode
from ragcontract.core.numbers import count


@click.command("validate")
@GOLDEN
@RUN
@BASELINE
@CONFIG
@REPEATS
def command(**files: Any) -> int:
    """Report what is wrong with the files, or what they contain.

    Exits 2 if `check` could not judge them. Gives no verdict.
    """
    paths = find_paths(**files)
    with progress_over(large(paths)) as progress:
        report = pipeline.check(paths, clock=clock, progress=progress)
    warn(report.warnings)
    inputs = report.inputs
    parts = [
        f"{count(inputs.golden.queries, 'golden query')} ({inputs.golden.answerable:,} with relevant documents)",
        count(inputs.run.queries, "run row"),
        f"a baseline of {count(inputs.baseline.queries, 'query')}" if inputs.baseline else "no baseline",
        "a config" if inputs.config else "no config",
    ]
    say(f"valid: {', '.join(parts)}\n")
    return ExitCode.PASS
