"""``rag-contract score``: prints the metrics of one run."""

from collections.abc import Sequence

import click

from ragcontract.cli.console import say, say_json
from ragcontract.cli.options import CONFIG, ENGINE, GOLDEN, JUDGMENTS, REPEATS, RUN, SCORES, K, find_paths, measure
from ragcontract.core.errors import ExitCode
from ragcontract.report import json_report, terminal


@click.command("score")
@GOLDEN
@RUN
@SCORES
@JUDGMENTS
@CONFIG
@K
@REPEATS
@ENGINE
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="The output format. [table]"
)
def command(
    *,
    golden: Sequence[str],
    run: Sequence[str],
    scores: Sequence[str],
    judgments: Sequence[str],
    config: str | None,
    k: int | None,
    engine: str,
    form: str,
    repeats: bool,
) -> int:
    """Print the metrics of one run, overall and by tag."""
    paths = find_paths(golden, run, config, scores=scores, judgments=judgments)
    report = measure(paths, k, repeats=repeats, engine=engine)
    if form == "json":
        say_json(json_report.render_score(report))
    else:
        say(terminal.score_text(report))
    return ExitCode.PASS
