"""``rag-contract validate``: reports the problems of the input files, or their content."""

from collections.abc import Sequence
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import say, warn
from ragcontract.cli.options import WITHOUT_RUN, clock, find_files, opened, refuse_run, takes
from ragcontract.contract.resolve import Contract
from ragcontract.contract.scope import gates_within
from ragcontract.contract.warnings import never_passing
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.gate import Gate
from ragcontract.core.lines import Line
from ragcontract.core.numbers import count
from ragcontract.core.phrase import listed, render
from ragcontract.core.safe_text import visible
from ragcontract.decision.evaluated import plan_of
from ragcontract.evaluation.past import NOT_ASKED
from ragcontract.evaluation.side import Side
from ragcontract.evaluation.source import Inputs, of_judge
from ragcontract.files.problems import Collector, Problems

# Few contracts have a judge.
JUDGMENTS_FILE: Line[Any] = Line(home="ragcontract.judgments.judgments_file")
CALIBRATION_FILES: Line[Any] = Line(home="ragcontract.judgments.calibration")


@click.command("validate")
@takes("golden", "run", "scores", "judgments", "calibration", "baseline", "config", "tag", "repeats")
@WITHOUT_RUN
@click.option("--quiet", is_flag=True, help="Print nothing but warnings and errors.")
def command(*, inputs: Inputs, without_run: bool, quiet: bool) -> int:
    """Report what is wrong with the files, or what they contain.

    Exits 2 if `check` could not judge them, except that limits which need a baseline are only noted where there is none
    yet. Gives no verdict. With --without-run, all files but the run are read.
    """
    refuse_run(inputs.paths("run"), without_run=without_run)
    if without_run:
        inputs = replace(inputs, unnamed=inputs.unnamed - {"run"})
    inputs = replace(find_files(inputs), awaits_baseline=True, past=NOT_ASKED)
    content = _contract(inputs) if without_run else _all(inputs)
    if not quiet:
        say(f"valid: {', '.join(content.parts)}\n{awaiting(content.gates)}")
    return ExitCode.PASS


class _Content(Struct, frozen=True, kw_only=True):
    """What the files contain, and the gates if there is no baseline to compare with."""

    parts: list[str]
    gates: Sequence[Gate]


def _all(inputs: Inputs) -> _Content:
    """Read all files as a check does; raises InputError with all problems."""
    with opened(inputs) as sources:
        outcome = pipeline.check(sources, now=clock())
    warn(outcome.report.warnings)
    evaluation = outcome.evaluation
    return _content(evaluation.contract, count(evaluation.run.queries, "run row"), evaluation.baseline, inputs)


def _contract(inputs: Inputs) -> _Content:
    """Read all files but the run, which no other file needs; raises InputError with all problems."""
    with opened(inputs) as sources:
        contract = pipeline.load(sources)
        plan = plan_of(contract, sources)
        _, source = sources.sources()
        baseline = source.evaluate(plan.for_baseline()) if source else None
        scores = plan.scores_files.problems if plan.scores_files else Problems()
    problems = contract.problems + contract.limit_problems + scores + (baseline.problems if baseline else Problems())
    problems += _of_judge(inputs, contract)
    problems.raise_if_any()
    warn([*problems.warnings, *never_passing(contract.queries, contract.config, contract.k)])
    return _content(contract, "no run", baseline, inputs)


def _of_judge(inputs: Inputs, contract: Contract) -> Problems:
    """Return the problems of judgments and calibration; without a run, it is not known which texts they are about."""
    problems = Collector()
    inputs, unused = of_judge(inputs, needed=contract.needs_judgments)
    problems.include(unused)
    if inputs.judgments:
        problems.include(JUDGMENTS_FILE.load().read_judgments(inputs.judgments, now=clock()).problems)
    if inputs.calibration:
        try:
            CALIBRATION_FILES.load().checked_calibrations(inputs.calibration)
        except InputError as error:
            problems.include(Problems(problems=tuple(error.problems)))
    return problems.collected()


def _content(contract: Contract, run: str, baseline: Side | None, inputs: Inputs) -> _Content:
    answerable = sum(query.answerable for query in contract.queries.values())
    parts = [
        f"{count(len(contract.queries), 'golden query')} ({answerable:,} with relevant documents)",
        run,
        "no baseline" if baseline is None else f"a baseline of {count(baseline.queries, 'query')}",
        "a config" if inputs.config else "no config",
    ]
    return _Content(
        parts=parts, gates=gates_within(contract.config_file.gates, contract.scope) if baseline is None else ()
    )


def awaiting(gates: Sequence[Gate]) -> str:
    """Return a note that names the limits which need a baseline; empty if there are none."""
    limits = [gate.id for gate in gates if gate.compares]
    if not limits:
        return ""
    names = render(listed(limits, "and"), visible)
    needs = "needs a baseline: store one" if len(limits) == 1 else "need a baseline: store one"
    return f"note: {names} {needs} with `rag-contract baseline` before `check`\n"
