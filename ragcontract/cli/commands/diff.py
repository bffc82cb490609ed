"""``rag-contract diff``: prints how ranks changed since the baseline, as text, Markdown or JSON."""

import click

from ragcontract import pipeline
from ragcontract.cli.console import say, say_json, warn
from ragcontract.cli.history_options import contract_option, history_named, history_options, with_history
from ragcontract.cli.options import find_files, measure, takes
from ragcontract.contract import defaults
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.evaluation.source import Inputs
from ragcontract.report import markdown, rank_changes, terminal
from ragcontract.report.sections.changes import diff


@click.command("diff")
@takes("golden", "run", "scores", "judgments", "calibration", "baseline", "config", "k", "repeats")
@history_options
@contract_option
@click.option(
    "--format", "form", type=click.Choice(["text", "md", "json"]), default="text", help="The output format. [text]"
)
def command(*, inputs: Inputs, history: str | None, branch: str | None, contract: str | None, form: str) -> int:
    """Print how ranks changed since the baseline.

    Lists the worst changes first, then queries that improved, are new, have another question or are gone. For those
    that break a rule, also lists what was retrieved, before and now. Gives no verdict.

    With a history, the baseline may be an entry of it, as --baseline history:last-pass.
    """
    inputs, facts = with_history(inputs, history_named(history, branch, contract))
    inputs = find_files(inputs)
    inputs = facts.with_baseline(inputs) if facts else inputs
    if inputs.baseline is None:
        if facts and facts.no_baseline:
            raise InputError([f"there is nothing to compare with: {facts.no_baseline}"])
        pipeline.load(inputs)  # a contract without labels cannot have a baseline yet, and that is what to say
        raise click.UsageError(f"there is nothing to compare with: give --baseline, or have {defaults.BASELINE} here")
    report = measure(inputs)
    warn(facts.warnings() if facts else [])
    if form == "json":
        say_json(rank_changes.render(report))
    elif form == "md":
        say(markdown.page(diff(report, "markdown")))
    else:
        say(terminal.diff_text(report))
    return ExitCode.PASS
