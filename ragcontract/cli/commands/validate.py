"""``rag-contract validate``: reports the problems of the input files, or their content."""

from collections.abc import Sequence

import click
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import say, warn
from ragcontract.cli.options import BASELINE, CONFIG, GOLDEN, REPEATS, RUN, clock, find_paths, sources_of
from ragcontract.core.errors import ExitCode
from ragcontract.core.gate import Gate
from ragcontract.core.numbers import count
from ragcontract.core.phrase import listed, render
from ragcontract.core.text import visible


@click.command("validate")
@GOLDEN
@RUN
@BASELINE
@CONFIG
@REPEATS
def command(
    *, golden: Sequence[str], run: Sequence[str], baseline: Sequence[str], config: str | None, repeats: bool
) -> int:
    """Report what is wrong with the files, or what they contain.

    Exits 2 if `check` could not judge them, except that limits which need a baseline are only noted where there is none
    yet. Gives no verdict.
    """
    paths = find_paths(golden, run, config, baseline)
    with sources_of(paths) as sources:
        outcome = pipeline.check(replace(sources.request(paths, repeats=repeats), awaits_baseline=True), now=clock())
    warn(outcome.report.warnings)
    inputs = outcome.report.inputs
    parts = [
        f"{count(inputs.golden.queries, 'golden query')} ({inputs.golden.answerable:,} with relevant documents)",
        count(inputs.run.queries, "run row"),
        f"a baseline of {count(inputs.baseline.queries, 'query')}" if inputs.baseline else "no baseline",
        "a config" if inputs.config else "no config",
    ]
    say(f"valid: {', '.join(parts)}\n")
    if not inputs.baseline:
        say(awaiting(outcome.evaluation.contract.config_file.gates))
    return ExitCode.PASS


def awaiting(gates: Sequence[Gate]) -> str:
    """Return a note that names the limits which need a baseline; empty if there are none."""
    limits = [gate.id for gate in gates if gate.compares]
    if not limits:
        return ""
    names = render(listed(limits, "and"), visible)
    needs = "needs a baseline: store one" if len(limits) == 1 else "need a baseline: store one"
    return f"note: {names} {needs} with `rag-contract baseline` before `check`\n"
