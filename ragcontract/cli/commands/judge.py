"""``rag-contract judge``: asks a model about texts, and keeps its judgments in a file that ``check`` replays.

Its subcommands ``calibrate`` and ``label`` measure how often people agree with the model.
"""

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ragcontract.cli.console import progress_over, say, warn
from ragcontract.cli.interactive import Keyboard
from ragcontract.cli.judge_label_screen import LabelSession
from ragcontract.cli.judge_options import (
    calibrated,
    finished,
    judge_from,
    judge_options,
    judging_settings,
    nothing_to_judge,
    progress_shown,
    say_expected,
)
from ragcontract.cli.options import (
    REPEATS,
    configured,
    files_option,
    find_files,
    out_option,
    refuse_empty,
    refuse_links_away,
    refuse_outputs,
    takes,
)
from ragcontract.contract.config_file import read_config
from ragcontract.contract.defaults import CALIBRATION, JUDGMENTS
from ragcontract.core import bounds
from ragcontract.core.config_sections import Task
from ragcontract.core.errors import ExitCode, InputError, OutputError
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import visible
from ragcontract.evaluation.source import Inputs
from ragcontract.judge.calibration_run import (
    PASSES,
    LabelsFile,
    calibrate,
    expected_calibration,
    read_labels,
)
from ragcontract.judge.calibration_run import sample as draw
from ragcontract.judge.judging_run import expected_judging, judge_cases
from ragcontract.judge.run_cases import TASKS, read_cases
from ragcontract.judgments.calibration import read_calibration
from ragcontract.registry import BUILT_IN

LABELS = "labels.jsonl"
TASK = click.option(
    "--task", "tasks", multiple=True, type=click.Choice(TASKS), help="Judge only this; may be repeated. [everything]"
)


@click.group("judge", invoke_without_command=True)
@takes("golden", "run", "config", "k")
@out_option("--judgments", JUDGMENTS, "The file with the judgments, which are reused.")
@judge_options(votes=True)
@click.option(
    "--max-age-days",
    type=float,
    metavar="N",
    help="Reuse judgments that are not older. [the config's judge.max_age_days, or 7]",
)
@click.option("--refresh", is_flag=True, help="Ask again about items that have a judgment.")
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG…", help="Judge only the queries with this tag. [all queries]"
)
@TASK
@REPEATS
@click.pass_context
def command(context: click.Context, /, **options: Any) -> int | None:
    """Ask a model what only a reader can tell.

    It is asked whether what was retrieved supports the claims of references (attribution), whether answers really say
    what forbidden_claims, forbidden_elements and must_not_contain found in them (confirmation), and whether they meet
    the criteria of golden queries (criteria).

    The judgments are kept in a file, which `check` replays without a model, and which this command reuses. What is
    asked goes to the address of --judge-url or of the environment, with the key in RAG_CONTRACT_JUDGE_KEY (for OpenAI
    itself, also OPENAI_API_KEY): no file can change either. If it ends early, the same command goes on where it ended.

    Exits 0 if there is a verdict on everything, 2 if not, 130 if it was interrupted, never 1.
    """
    return None if context.invoked_subcommand else _judge(**options)


def _judge(*, inputs: Inputs, judgments: str, **values: Any) -> int:
    gc.enable()  # other commands are short
    inputs = find_files(inputs)
    read = read_config(inputs.config, BUILT_IN, k=inputs.k, others=inputs.other_configs)
    read.problems.raise_if_any()
    options, endpoint = judge_from(values, read.config.judge)
    refuse_outputs({"judgments": judgments}, inputs.all)
    if problem := _cannot_keep(Path(judgments)):
        raise OutputError([f"{judgments}: {problem}"])
    tasks = values["tasks"] or TASKS
    with progress_over(inputs.large) as progress:
        run_cases = read_cases(
            inputs.golden,
            inputs.paths("run"),
            read,
            tags=values["tags"],
            tasks=tasks,
            repeats=values["repeats"],
            progress=progress,
        )
    warn(run_cases.warnings)
    if not run_cases.cases and not run_cases.can_be_flagged:
        raise nothing_to_judge(inputs.golden, tasks)
    judging = judging_settings(options, endpoint, judgments)
    if values["dry_run"]:
        say_expected(*expected_judging(run_cases.cases, judging), options.budget, options.votes)
        return ExitCode.PASS
    with progress_shown() as watch:
        outcome = judge_cases(run_cases.cases, judging, watch=watch)
    return finished(outcome, judgments)


def _cannot_keep(judgments: Path) -> str:
    """Return the reason why a file cannot hold judgments; empty if it can."""
    if judgments.exists():
        return "" if judgments.is_file() else "is not a file, so it cannot hold judgments"
    if judgments.parent.is_dir():
        return ""
    why = "and everything would be judged, and paid for, as if for the first time"
    return f"there is no folder {judgments.parent}, {why}; make the folder, or name another one"


@command.command("calibrate")
@files_option("--labels", "What people say of single items; several files and globs. [labels.jsonl]")
@out_option("--out", CALIBRATION, "Where to write the calibration.")
@takes("config")
@judge_options(votes=True)
@click.option("--once", is_flag=True, help="Judge once, without measuring how often it agrees with itself. [twice]")
def calibrate_command(
    *, inputs: Inputs, labels: Sequence[str], out: str, once: bool, dry_run: bool, **values: Any
) -> int:
    """Measure how often the judge agrees with people.

    The labels are judged as `judge` judges anything, twice, and what comes out is compared with what people say. Gates
    on judgments count only with such a calibration of the same judge. Judgments are not reused.

    Exits 0 if the calibration is written, 2 if not, 130 if it was interrupted, never 1.
    """
    gc.enable()
    refuse_empty({"--labels": labels, "--out": [out], "--config": [inputs.config]})
    options, endpoint = judge_from(values, configured(inputs.config).judge)
    named = labels or [LABELS]
    refuse_links_away({"--labels": None if labels else LABELS})
    refuse_outputs({"out": out}, named)
    _refuse_other_files(out)
    labelled = read_labels(named)
    warn(labelled.warnings)
    judging = judging_settings(options, endpoint, out)
    passes = 1 if once else PASSES
    if dry_run:
        expected = expected_calibration(labelled, judging, passes=passes)
        say_expected(*expected, options.budget, options.votes, passes=passes)
        return ExitCode.PASS
    with progress_shown() as watch:
        outcome = calibrate(labelled, judging, passes=passes, watch=watch)
    return calibrated(outcome, out)


def _refuse_other_files(out: str) -> None:
    """Raise OutputError if a file that is not a calibration, such as the contract, would be overwritten."""
    if not Path(out).is_file() or not Path(out).stat().st_size:
        return
    try:
        read_calibration(out)
    except InputError as error:
        why = f"{out}: exists already, and is not a calibration; write to another file, or remove it"
        raise OutputError([why]) from error


@command.command("label")
@takes("golden", "run", "config", "k")
@click.option("--labels", default=LABELS, metavar="FILE", help=f"Where the labels are, and are added. [{LABELS}]")
@click.option("--sample", type=int, default=100, metavar="N", help="How many items to ask about. [100]")
@click.option("--seed", type=int, default=0, metavar="N", help="Another seed draws other items. [0]")
@TASK
@click.option("--labeler", metavar="NAME", help="Who you are; written beside each label. [nobody]")
def label_command(
    *, inputs: Inputs, labels: str, sample: int, seed: int, tasks: Sequence[Task], labeler: str | None
) -> int:
    """Label a sample of what is judged, for `judge calibrate`.

    Shows what is judged with the texts to judge it by, and asks what a judge is asked. The sample is random, whatever a
    judge said, and you do not see what it said. Every answer is saved at once and can be taken back, and only what is
    not labelled is asked, so it can be interrupted at any time.
    """
    refuse_empty({"--labels": [labels]})
    if not 1 <= sample <= bounds.LABEL_SAMPLE:
        raise InputError([f"--sample: expected a whole number from 1 to {bounds.LABEL_SAMPLE:,}, found {sample}"])
    refuse_outputs({"labels": labels}, [])
    inputs = find_files(inputs)
    config_file = read_config(inputs.config, BUILT_IN, k=inputs.k, others=inputs.other_configs)
    run_cases = read_cases(inputs.golden, inputs.paths("run"), config_file, tasks=tasks or TASKS, repeats=True)
    file = LabelsFile(labels)
    session = LabelSession(draw(run_cases.cases, file, size=sample, seed=seed), file, labeler)
    try:
        with Keyboard(sys.stdin) as keyboard:
            session.run(keyboard)
    finally:
        say(f"{count(session.added, 'label')} added; {visible(labels)} has {len(file):,}\n")
    return ExitCode.PASS
