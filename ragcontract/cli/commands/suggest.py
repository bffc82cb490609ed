"""``rag-contract suggest``: limits that known-good runs would pass."""

from collections.abc import Iterator, Mapping, Sequence

import click
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import progress_over, say, warn
from ragcontract.cli.options import CONFIG, GOLDEN, REPEATS, K, files_option, find_paths
from ragcontract.contract import defaults
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.numbers import count, fixed
from ragcontract.evaluation.scored import Scored
from ragcontract.files.opening import resolve
from ragcontract.files.problems import Diagnostics
from ragcontract.metrics.formulas import MetricAtK
from ragcontract.reports.terminal import aligned
from ragcontract.statistics.detectable import Detectable, detectable, round_up

GATED = ("mrr", "recall")
Suggestions = Mapping[MetricAtK, Detectable]


@click.command("suggest")
@GOLDEN
@files_option("--run", f"Known-good runs of the same questions; each file is a separate run. [{defaults.RUN}]")
@CONFIG
@K
@REPEATS
def command(golden: Sequence[str], run: Sequence[str], config: str | None, k: int | None, *, repeats: bool) -> int:
    """Propose limits from known-good runs.

    Shows how much each metric varies by chance and which drop this golden set can detect, and prints a configuration to
    start from. Several runs of one retriever show how much its own results vary.
    """
    paths = find_paths(golden, run, config, repeats=repeats)
    scored = list(_scored(paths, k))
    first = scored[0]
    queries = [query for query in first.golden.queries.values() if query.answerable]
    if not queries:
        raise InputError([f"{first.golden.files[0].path}: no golden query has relevant documents, so there is no mean"])
    weights = [query.weight for query in queries]
    found = {}
    for column, metric in enumerate(first.metrics):
        columns = [[one.run.scores[query.id].values[column] for query in queries] for one in scored]
        found[metric] = detectable(columns, weights)
    say(render(found, queries=len(queries), runs=len(scored)))
    return ExitCode.PASS


def _scored(paths: pipeline.Paths, k: int | None) -> Iterator[Scored]:
    diagnostics = Diagnostics()
    files = resolve(paths.run, diagnostics)
    diagnostics.raise_problems()
    warnings: dict[str, None] = {}
    with progress_over([*list(paths.golden) * len(files), *files]) as progress:
        for file in files:
            of_one = replace(paths, run=[file], baseline=None)
            scored, _, more = pipeline.good_run(of_one, k=k, progress=progress)
            warnings |= dict.fromkeys(more)
            yield scored
    warn(list(warnings))


def render(found: Suggestions, *, queries: int, runs: int) -> str:
    """Render the table, what it means, and a configuration to start from."""
    cutoffs = sorted({metric.k for metric in found}, reverse=True)
    at_largest = {metric: one for metric, one in found.items() if metric.k == cutoffs[0]}
    parts = [_table(found), _in_words(at_largest, queries, runs), _config(at_largest, cutoffs)]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _table(found: Suggestions) -> Iterator[str]:
    cells = [["", "mean", "other queries", "noise up to", "found 4 times in 5"]]
    for metric, one in found.items():
        spread = f"{fixed(max(0.0, one.mean - one.resampled), 4)} or more"
        cells.append([metric.label, fixed(one.mean, 4), spread, fixed(one.noise, 4), fixed(one.found, 4)])
    yield from aligned(cells)


def _in_words(found: Suggestions, queries: int, runs: int) -> Iterator[str]:
    for metric, one in found.items():
        noise = f"{metric.label}: with {count(queries, 'query')} a drop under {round_up(one.noise)} is noise"
        if one.found < one.mean:
            yield f"{noise}; one of {round_up(one.found)} is found 4 times in 5"
        else:
            yield f"{noise}; no drop is sure to be found, so add queries"
    if runs == 1:
        yield "One run cannot show how far the retriever moves on its own; if it does, give several good runs."


def _config(found: Suggestions, k: Sequence[int]) -> Iterator[str]:
    gated = {metric.metric.name: one for metric, one in found.items() if metric.metric.name in GATED}
    yield f"k: {k[0] if len(k) == 1 else list(k)}"
    yield "fail_on:  # two metrics are enough to start with: every limit more makes the others less sharp"
    yield "  mode: significant"
    for name, one in gated.items():
        if 0 < one.drop_limit < 1:
            yield f"  {name}_drop_gt: {one.drop_limit}  # with mode: strict, {round_up(one.noise)}"
    yield "minimums:"
    for name, one in gated.items():
        yield f"  {name}_at_k: {one.minimum}"
