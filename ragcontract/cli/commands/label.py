"""``rag-contract label``: writes golden rows from what a person says about what a run returned."""

import os
import sys
from collections.abc import Mapping, Sequence

import click

from ragcontract.cli.console import say
from ragcontract.cli.interactive import Keyboard
from ragcontract.cli.label_screen import Interview, LabelScreen, read_sheet
from ragcontract.cli.options import (
    configured,
    files_option,
    find_files,
    refuse_empty,
    refuse_links,
    refuse_links_away,
    takes,
    top_option,
)
from ragcontract.contract import defaults
from ragcontract.contract.config import Config
from ragcontract.core.errors import ExitCode
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import visible
from ragcontract.evaluation.source import Inputs
from ragcontract.files.problems import Collector
from ragcontract.labelling.checklist import read_checklist
from ragcontract.labelling.labels import GoldenRows, Labels, read_golden_rows
from ragcontract.labelling.sheet import Sheet, read_questions


@click.command("label")
@takes(
    click.option(
        "--golden",
        multiple=True,  # an unquoted glob must not silently mean its last file
        metavar="FILE",
        help=f"The golden file to label; created if there is none. With --ticked, several. [{defaults.GOLDEN}]",
    ),
    files_option("--run", f"What the retriever returned; the documents of several runs are pooled. [{defaults.RUN}]"),
    click.option("--questions", metavar="FILE", help="More questions, one per line. [those of the golden file]"),
    top_option("How many documents of each run row to ask about."),
    click.option(
        "--ticked",
        metavar="FILE",
        help="Read the labels from a file of `unjudged` or `init --from-run` instead of asking.",
    ),
    click.option(
        "--config",
        metavar="FILE",
        help=f"The configuration, for its relevance_level and allow_fields. [{defaults.CONFIG}, if it exists]",
    ),
)
@click.pass_context
def command(context: click.Context, *, inputs: Inputs, questions: str | None, top: int, ticked: str | None) -> int:
    """Label the documents that a run returned, as relevant or not.

    Shows each question with the documents that were returned for it (id, rank, score, and the text if the row has it),
    and asks which are relevant. Each answer is saved in the golden file at once, and nothing is asked
    twice, so you can stop at any time. Rows that are not labelled stay as they are.
    """
    golden, run = inputs.golden, inputs.paths("run")
    paths = {"golden": golden, "run": run, "questions": [questions], "ticked": [ticked], "config": [inputs.config]}
    refuse_empty({f"--{name}": values for name, values in paths.items()})
    refuse_links({} if golden else {"golden": defaults.GOLDEN})
    if ticked is not None or not (run or os.path.lexists(defaults.RUN)):  # a run is enough to start from
        find_files(inputs)
    settings = configured(inputs.config)
    if ticked is not None:
        _refuse_others(context)
        return _from_ticked(golden or [defaults.GOLDEN], ticked, settings)
    if len(golden) > 1:
        raise click.UsageError("--golden: answers are written to one golden file; name one")
    path = golden[0] if golden else defaults.GOLDEN
    asked = read_questions(questions)[0] if questions is not None else []
    refuse_links_away({"--run": None if run else defaults.RUN})
    return _ask(*read_sheet(path, asked, run or [defaults.RUN], top, may_add=True, config=settings))


def _refuse_others(context: click.Context) -> None:
    for name in ("run", "questions", "top"):
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} is given, but --ticked asks nothing; leave one of them out")


def _from_ticked(golden_paths: Sequence[str], ticked: str, config: Config) -> int:
    problems = Collector()
    files: list[GoldenRows] = []
    for path in golden_paths:
        golden, of_file = read_golden_rows(path, level=config.relevance_level, allow_fields=config.allow_fields)
        problems.include(of_file)
        files.append(golden)
    labels = read_checklist(
        ticked,
        {name: query for rows in files for name, query in rows.queries.items()},
        problems,
        config.relevance_level,
    )
    problems.collected().raise_if_any()
    for golden in files:
        golden.save({name: labels_of_query for name, labels_of_query in labels.items() if name in golden.queries}, {})
    summary = f"labelled {count(len(labels), 'question')} in {', '.join(map(visible, golden_paths))}"
    say(f"{summary}\n" if labels else f"nothing is marked in {visible(ticked)}\n")
    return ExitCode.PASS


def _ask(golden: GoldenRows, sheet: Sheet) -> int:
    saved = 0

    def save(labels: Mapping[str, Labels]) -> None:
        nonlocal saved
        golden.save(labels, sheet.texts)
        saved = len(labels)

    interview = Interview(sheet.questions, save)
    try:
        with Keyboard(sys.stdin) as keyboard:
            interview.run(LabelScreen(keyboard))
    finally:
        written = f"{count(saved, 'question')} changed in {golden.path}" if saved else f"{golden.path} is as it was"
        say(f"\n{interview.decided:,} of {count(len(sheet.questions), 'question')} decided; {visible(written)}\n")
    return ExitCode.PASS
