"""``rag-contract unjudged``: lists what to judge first, so that the verdict does not rest on missing labels."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import say, say_json, warn
from ragcontract.cli.options import (
    BASELINE,
    CONFIG,
    GOLDEN,
    REPEATS,
    RUN,
    SCORES,
    TAG,
    K,
    clock,
    find_paths,
    sources_of,
    top_option,
)
from ragcontract.contract import defaults
from ragcontract.contract.defaults import InputPaths
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.ids import as_id
from ragcontract.core.run import row_type
from ragcontract.core.text import visible
from ragcontract.labelling.first_results import FirstResults
from ragcontract.labelling.labels import Candidate
from ragcontract.labelling.pool import candidates_of
from ragcontract.labelling.unjudged_pairs import UnjudgedPair, UnjudgedPairs, unjudged_pairs
from ragcontract.labelling.unjudged_text import json_lines, lines_to_tick, summary, table
from ragcontract.reports.terminal import aligned

TOP_PAIRS = 20
IDS, TEXTS = frozenset[str](), frozenset({"results.text"})


@click.command("unjudged")
@GOLDEN
@RUN
@SCORES
@BASELINE
@CONFIG
@K
@TAG
@REPEATS
@top_option("How many pairs of query and document to list.", TOP_PAIRS)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "checklist", "jsonl"]),
    default="table",
    help="A table, lines to tick for `label --ticked`, or JSON lines. [table]",
)
def command(
    *,
    golden: Sequence[str],
    run: Sequence[str],
    scores: Sequence[str],
    baseline: Sequence[str],
    config: str | None,
    k: int | None,
    tags: Sequence[str],
    repeats: bool,
    top: int,
    form: str,
) -> int:
    """List the documents that nobody has judged.

    These are documents in the top k that have no label, and were not in the top k of the baseline when the labels of
    their query were written. First come those that are likely to bring a broken limit closest. With
    `--format checklist`, the list is a file to tick, and `label --ticked` writes what is decided into the golden file.
    Gives no verdict.
    """
    paths = find_paths(golden, run, config, baseline, scores)
    with sources_of(paths) as sources:
        request = sources.request(paths, k=k, repeats=repeats, tags=tags)
        # Labels of documents change nothing that a judge says of texts, so this needs no judgments.
        outcome = pipeline.check(replace(request, awaits_baseline=True, replays=False), now=clock())
        found = unjudged_pairs(outcome.evaluation, outcome.decision.gates, _first_ids(outcome), top)
        texts = _texts(outcome, found.pairs)
    warn(outcome.report.warnings)
    _print(found, outcome, texts, paths, form)
    return ExitCode.PASS


def _first_ids(outcome: pipeline.Outcome) -> Mapping[str, bytes]:
    """Return the results of each query of the run as far as they count; it is read once more for that."""
    files = outcome.evaluation.run.files
    if pipes := [file.path for file in files if Path(file.path).is_fifo()]:
        raise InputError([f"{pipes[0]}: is a pipe, and the run is read more than once; give a file"])
    found = FirstResults(outcome.evaluation)
    for row in outcome.run.rows(row_type(IDS, results_required=False)):
        found.note(as_id(row.query_id), row.doc_ids)
    return found.result()


def _texts(outcome: pipeline.Outcome, pairs: Sequence[UnjudgedPair]) -> dict[tuple[str, str], Candidate]:
    """Return scores and texts of the documents that are listed, as the run has them."""
    wanted: dict[str, set[str]] = {}
    for pair in pairs:
        wanted.setdefault(pair.query_id, set()).add(pair.doc_id)
    found: dict[tuple[str, str], Candidate] = {}
    for row in outcome.run.rows(row_type(TEXTS, results_required=False)) if wanted else ():
        query_id = as_id(row.query_id)
        if query_id in wanted:
            for doc_id, candidate in candidates_of(row, len(row.results)).items():
                if doc_id in wanted[query_id]:
                    found.setdefault((query_id, doc_id), candidate)
    return found


def _print(
    found: UnjudgedPairs,
    outcome: pipeline.Outcome,
    texts: Mapping[tuple[str, str], Candidate],
    paths: InputPaths,
    form: str,
) -> None:
    queries, lines = outcome.evaluation.contract.queries, summary(found)
    said = "".join(f"{line}\n" for line in lines)
    if form == "table":
        shown = "".join(f"{line}\n" for line in aligned(table(found, texts)))
        say(f"{shown}\n{said}" if found.pairs else said)
    elif form == "jsonl":
        say_json("".join(json_lines(found, queries, texts)))
        say(said, err=True)
    else:
        say("".join(lines_to_tick(found, queries, texts, _options(paths))))


def _options(paths: InputPaths) -> str:
    """Return the options with which `label` finds the same files."""
    golden = "" if list(paths.golden) == [defaults.GOLDEN] else f" --golden {visible(' '.join(paths.golden))}"
    config = "" if paths.config in {None, defaults.CONFIG, defaults.CONFIG_ALIAS} else f" --config {paths.config}"
    return golden + visible(config)
