"""``rag-contract score``: the metrics of one run."""

from typing import Any

import click

from ragcontract.cli.console import say
from ragcontract.cli.options import CONFIG, ENGINE, GOLDEN, REPEATS, RUN, K, compare, find_paths
from ragcontract.core.errors import ExitCode
from ragcontract.reports import json_report, terminal


@click.command("score")
@GOLDEN
@RUN
@CONFIG
@K
@REPEATS
@ENGINE
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="The output format. [table]"
)
def command(k: int | None, engine: str, form: str, **files: Any) -> int:
    """Print the metrics of one run, overall and by tag."""
    report = compare(find_paths(**files), k, engine)
    if form == "json":
        say(json_report.render_score(report).replace("##[", r"##\u005b"))  # for runners, and still the same JSON
    else:
        say(terminal.score_text(report))
    return ExitCode.PASS
