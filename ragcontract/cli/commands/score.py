"""``rag-contract score``: prints the metrics of one run."""

import click
from msgspec.structs import replace

from ragcontract.cli.console import say, say_json
from ragcontract.cli.history_options import contract_option, history_named, history_options, run_named
from ragcontract.cli.options import find_files, measure, takes
from ragcontract.core.errors import ExitCode
from ragcontract.evaluation.source import Inputs, is_entry
from ragcontract.report import json_report, terminal


@click.command("score")
@takes("golden", "run", "scores", "judgments", "config", "k", "repeats", "engine")
@history_options
@contract_option
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="The output format. [table]"
)
def command(
    *, inputs: Inputs, history: str | None, branch: str | None, contract: str | None, engine: str, form: str
) -> int:
    """Print the metrics of one run, overall and by tag.

    With a history, the run may be an entry of it, as --run history:last.
    """
    inputs = replace(find_files(inputs), decides=False)
    if entries := [path for path in inputs.paths("run") if is_entry(path)]:
        if len(inputs.paths("run")) > 1:
            raise click.UsageError(f"{entries[0]} is a run by itself; name no other --run beside it")
        inputs = replace(inputs, run=run_named(entries[0], history_named(history, branch, contract)))
    report = measure(inputs, engine)
    if form == "json":
        say_json(json_report.render_score(report))
    else:
        say(terminal.score_text(report))
    return ExitCode.PASS
