"""``rag-contract score``: prints the metrics of one run."""

import click
from msgspec.structs import replace

from ragcontract.cli.console import say, say_json
from ragcontract.cli.options import find_files, measure, takes
from ragcontract.core.errors import ExitCode
from ragcontract.evaluation.source import Inputs
from ragcontract.report import json_report, terminal


@click.command("score")
@takes("golden", "run", "scores", "judgments", "config", "k", "repeats", "engine")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="The output format. [table]"
)
def command(*, inputs: Inputs, engine: str, form: str) -> int:
    """Print the metrics of one run, overall and by tag."""
    report = measure(replace(find_files(inputs), decides=False), engine)
    if form == "json":
        say_json(json_report.render_score(report))
    else:
        say(terminal.score_text(report))
    return ExitCode.PASS
