"""``rag-contract judge``: asks a model about texts, and keeps what it says in a file that ``check`` replays."""

import gc
from collections.abc import Sequence
from typing import Any

import click

from ragcontract.built_in import BUILT_IN
from ragcontract.cli.console import progress_over, warn
from ragcontract.cli.judge_cli_options import given_judge, judge_options, progress_shown
from ragcontract.cli.judge_summary import finished, nothing_to_judge, say_expected
from ragcontract.cli.options import CONFIG, GOLDEN, RUN, K, find_paths, out_option, refuse_outputs
from ragcontract.contract.config_file import read_config
from ragcontract.core.errors import ExitCode
from ragcontract.judge.attribution_cases import read_cases
from ragcontract.judge.judging_run import JudgingSettings, dry_run, judge_cases

JUDGMENTS = "judgments.jsonl"


@click.group("judge", invoke_without_command=True)
@GOLDEN
@RUN
@CONFIG
@K
@out_option("--judgments", JUDGMENTS, "The file with the judgments, which are reused.")
@judge_options(votes=True)
@click.option("--max-age-days", type=float, default=7, metavar="N", help="Reuse judgments that are not older. [7]")
@click.option("--refresh", is_flag=True, help="Ask again what is judged already.")
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG…", help="Judge only the queries with this tag. [all queries]"
)
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int | None:
    """Ask a model whether what was retrieved supports each claim of a reference.

    The judgments are kept in a file, which `check` replays without a model, and which this command reuses. What is
    asked goes to the address of --judge-url or of the environment, with the key in RAG_CONTRACT_JUDGE_KEY (for OpenAI
    itself, also OPENAI_API_KEY): no file can change either. If it ends early, the same command goes on where it ended.

    Exits 0 if there is a verdict on everything, 2 if not, 130 if it was interrupted, never 1.
    """
    return None if context.invoked_subcommand else _judge(**given)


def _judge(
    *, golden: Sequence[str], run: Sequence[str], config: str | None, k: int | None, judgments: str, **given: Any
) -> int:
    gc.enable()  # other commands are short
    options, endpoint = given_judge(given)
    paths = find_paths(golden, run, config)
    refuse_outputs([judgments], paths)
    cutoff = k or max(read_config(paths.config, BUILT_IN).cutoffs)
    with progress_over(paths.large) as progress:
        found = read_cases(paths.golden, paths.run, cutoff, tags=given["tags"], progress=progress)
    warn(found.warnings)
    if not found.cases:
        raise nothing_to_judge(paths.golden)
    judging = JudgingSettings(
        path=judgments,
        model=options.model,
        endpoint=endpoint,
        settings=options.settings,
        budget=options.budget,
        limits=options.limits,
        max_age_days=options.max_age_days,
        max_context=options.max_context,
        refresh=options.refresh,
    )
    if given["dry_run"]:
        say_expected(*dry_run(found.cases, judging), options.budget, options.votes)
        return ExitCode.PASS
    with progress_shown() as watch:
        outcome = judge_cases(found.cases, judging, watch=watch)
    return finished(outcome, judgments)
