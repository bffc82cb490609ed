"""``rag-contract compare``: several runs over one golden set, side by side."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import progress_over, say, say_json, warn
from ragcontract.cli.history_options import contract_option, history_named, history_options, run_named
from ragcontract.cli.options import clock, find_files, refuse_outputs, takes
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode
from ragcontract.decision.evaluated import judged, plan_of
from ragcontract.evaluation.source import Inputs, Local, is_entry
from ragcontract.files.writing import goes_to_stdout, write_files
from ragcontract.report import comparison, markdown, terminal
from ragcontract.report.comparison import RunComparison, compared_runs, compared_under, comparison_of
from ragcontract.report.html import page
from ragcontract.report.terminal import without_colours
from ragcontract.runs.readers import open_baseline

if TYPE_CHECKING:
    from ragcontract.history.for_check import HistoryOfCheck

Content = bytes | Iterable[bytes]


FORMATS: dict[str, Callable[[RunComparison], Content]] = {
    "text": lambda made: without_colours(terminal.page(compared_runs(made, "terminal"))).encode(),
    "md": lambda made: markdown.page(compared_runs(made, "markdown")).encode(),
    "html": page.render_comparison,
    "json": comparison.render,
}


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@takes("golden", "judgments", "config", "k", "repeats")
@history_options
@contract_option
@click.option("--tag", metavar="TAG", help="Compare only the golden queries with this tag.")
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="text", help="The output format. [text]")
@click.option("--out", metavar="FILE", help="Where to write it. [standard output; html needs a file]")
def command(
    *,
    inputs: Inputs,
    history: str | None,
    branch: str | None,
    contract: str | None,
    runs: Sequence[str],
    tag: str | None,
    form: str,
    out: str | None,
) -> int:
    """Compare several runs over one golden set.

    Each RUN is a run, a quoted glob of its files, a baseline.json, or an entry of a history, as history:last-pass.
    Shows the mean of each metric with its 95 % interval, the change since the first run with the queries that got
    better and worse, and the queries that the runs disagree about most. Gives no verdict.
    """
    if not 1 < len(runs) <= bounds.COMPARED_RUNS:
        raise click.UsageError(
            f"name from 2 to {bounds.COMPARED_RUNS} runs, found {len(runs)}; `rag-contract score` is for one"
        )
    if form == "html" and not out:
        raise click.UsageError("--format html needs --out FILE")
    named = replace(inputs, run=runs, tags=[] if tag is None else [tag], decides=False)
    inputs = find_files(named)
    refuse_outputs({"out": out} if out else {}, inputs.all, pages={"out"} if form == "html" else ())
    with progress_over([*inputs.golden, *runs]) as progress:
        made = _compared(replace(inputs, progress=progress), history_named(history, branch, contract))
    warn(made.warnings)
    if out:
        write_files({out: FORMATS[form](made)})
        say(terminal.page(compared_runs(made, "terminal")), err=goes_to_stdout(out))
    elif form == "json":
        say_json(b"".join(comparison.render(made)).decode())
    else:
        say(
            (terminal if form == "text" else markdown).page(
                compared_runs(made, "terminal" if form == "text" else "markdown")
            )
        )
    return ExitCode.PASS


def _compared(inputs: Inputs, history: "HistoryOfCheck | None") -> RunComparison:
    """Read and score all runs; raises :class:`InputError` with the problems of all of them."""
    sources = [
        run_named(path, history) if is_entry(path) else Local(open_baseline([path], inputs.progress))
        for path in inputs.paths("run")
    ]
    contract, judge = judged(pipeline.load(inputs).without_diagnostics(), inputs, clock())
    plan = plan_of(contract, inputs, judge)
    runs = compared_under(contract, plan, [source.evaluate(plan) for source in sources], judge)
    return comparison_of(runs.evaluations, inputs.paths("run"), warnings=runs.warnings, now=clock())
