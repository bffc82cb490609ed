"""``rag-contract suggest``: proposes limits from known-good runs."""

from collections.abc import Iterator, Mapping, Sequence

import click

from ragcontract import pipeline
from ragcontract.built_in import BUILT_IN
from ragcontract.cli.console import progress_over, say, warn
from ragcontract.cli.options import CONFIG, GOLDEN, REPEATS, SCORES, K, clock, files_option, find_paths
from ragcontract.contract import defaults
from ragcontract.contract.config_file import ConfigFile
from ragcontract.contract.defaults import InputPaths
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.metric import Direction, Metric
from ragcontract.core.numbers import count, fixed
from ragcontract.evaluation.source import Local
from ragcontract.files.patterns import existing_files
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.label_fit import label_advice
from ragcontract.registry import Registry
from ragcontract.reports.terminal import aligned
from ragcontract.runs.readers import open_run
from ragcontract.statistics.detectable import Detectable, detectable, round_up

Suggestions = Mapping[Metric, Detectable]
BOUNDS: dict[str, Direction] = {"minimums": "higher", "maximums": "lower"}
NO_CONFIG = ConfigFile()


@click.command("suggest")
@GOLDEN
@files_option("--run", f"Known-good runs of the same questions; each file is a separate run. [{defaults.RUN}]")
@SCORES
@CONFIG
@K
@REPEATS
def command(
    *,
    golden: Sequence[str],
    run: Sequence[str],
    scores: Sequence[str],
    config: str | None,
    k: int | None,
    repeats: bool,
) -> int:
    """Propose limits from known-good runs.

    Shows how much each metric varies by chance and which drop this golden set can detect, and prints a configuration to
    start from. Several runs of one retriever show how much its own results vary.
    """
    paths = find_paths(golden, run, config, scores=scores)
    evaluations = list(good_runs(paths, k, repeats=repeats))
    found = suggestions(evaluations)
    say(render(found, runs=len(evaluations), config_file=evaluations[0].contract.config_file))
    if advice := list(label_advice(evaluations)):
        say("\n" + "\n".join(advice) + "\n")
    return ExitCode.PASS


def good_runs(
    paths: InputPaths, k: int | None, *, repeats: bool = False, registry: Registry = BUILT_IN
) -> Iterator[Evaluation]:
    """Yield the evaluation of each run file, without limits; prints the warnings at the end.

    Raises :class:`InputError` at the end, with the problems of all files.
    """
    files, wrong = existing_files(paths.run)
    if paths.scores and len(files) > 1:
        raise click.UsageError("--scores is about one run; give one --run, or export the scores in the rows of each")
    problems, more = dict.fromkeys(map(str, wrong)), 0
    warnings: dict[str, None] = {}
    with progress_over([*list(paths.golden) * len(files), *files]) as progress:
        for file in files:
            request = pipeline.Request(
                golden=paths.golden,
                config=paths.config,
                run=Local(open_run([file], progress)),
                scores=paths.scores,
                k=k,
                repeats=repeats,
                judge=False,
                store=True,
                progress=progress,
            )
            try:
                outcome = pipeline.check(request, now=clock(), registry=registry)
            except InputError as error:
                problems |= dict.fromkeys(error.problems)
                warnings |= dict.fromkeys(error.warnings)
                more += error.more
                continue
            warnings |= dict.fromkeys(outcome.report.warnings)
            yield outcome.evaluation
    if problems:
        raise InputError(list(problems), more=more, warnings=list(warnings))
    warn(list(warnings))


def suggestions(evaluations: Sequence[Evaluation]) -> dict[Metric, Detectable]:
    """Return what changes of each metric are detectable; raises InputError if no query has relevant documents."""
    first = evaluations[0].contract
    found: dict[Metric, Detectable] = {}
    for number, family in enumerate((first.ranking, *first.families)):
        rows = zip(*[one.run.values(number, first.queries) for one in evaluations], strict=True)
        measured = [
            (query.weight, [values or () for values in row])
            for query, row in zip(first.queries.values(), rows, strict=True)
            if all(row)
        ]
        for column, metric in enumerate(family.metrics if measured else ()):
            columns = [[row[run][column] for _, row in measured] for run in range(len(evaluations))]
            found[metric] = detectable(columns, [weight for weight, _ in measured], metric)
    if not found:
        raise InputError([f"{first.golden.files[0].path}: no golden query has relevant documents, so there is no mean"])
    return found


def render(found: Suggestions, *, runs: int, config_file: ConfigFile = NO_CONFIG) -> str:
    """Render the table, its explanation, and a configuration to start from, or to add to the existing one."""
    cutoffs = sorted({metric.k for metric in found if metric.k is not None}, reverse=True)
    largest = {metric: one for metric, one in found.items() if metric.k in {None, *cutoffs[:1]}}
    parts = [_table(found), _explained(largest, runs), _config(largest, cutoffs, config_file)]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _table(found: Suggestions) -> Iterator[str]:
    cells = [["", "mean", "other queries", "noise up to", "found 4 times in 5"]]
    for metric, one in found.items():
        spread = f"{fixed(one.other_queries, 4)} or {'more' if metric.better == 'higher' else 'less'}"
        cells.append([metric.label, fixed(one.mean, 4), spread, fixed(one.noise, 4), fixed(one.found, 4)])
    yield from aligned(cells)


def _explained(found: Suggestions, runs: int) -> Iterator[str]:
    for metric, one in found.items():
        change = "drop" if metric.better == "higher" else "rise"
        noise = f"{metric.label}: with {count(one.queries, 'query')} a {change} under {round_up(one.noise)} is noise"
        if one.can_be_found:
            yield f"{noise}; one of {round_up(one.found)} is found 4 times in 5"
        else:
            yield f"{noise}; no {change} is sure to be found, so add queries"
    if runs == 1:
        yield "One run cannot show how much the retriever's own results vary; if they do, give several good runs."


def _config(found: Suggestions, k: Sequence[int], config_file: ConfigFile) -> Iterator[str]:
    """Yield the configuration; pasted at the end of the existing one, it repeats no key without saying so."""
    limited = {metric: one for metric, one in found.items() if metric.suggested}
    has_k = not k or (config_file.locations.of("k") and config_file.config.cutoffs == tuple(k))
    keys = {"k": not has_k, "fail_on": True} | {name: any(_of(limited, better)) for name, better in BOUNDS.items()}
    there = [f"{name} ({where})" for name in keys if keys[name] and (where := config_file.locations.of(name))]
    if there:
        yield f"# exists already, so change it there: {', '.join(there)}"
    if not has_k:
        yield f"k: {k[0] if len(k) == 1 else list(k)}"
    yield "fail_on:  # two metrics are enough to start with: every further limit makes the others less sensitive"
    yield "  mode: significant  # limits from three fifths of the noise, because a test tells the rest from chance"
    for metric, one in limited.items():
        name = _name(metric).removesuffix("_at_k")
        change = "drop" if metric.better == "higher" else "rise"
        if 0 < one.change_limit < metric.scale.high - metric.scale.low:
            yield f"  {name}_{change}_gt: {one.change_limit}  # with mode: strict, {round_up(one.noise)}"
    for section, better in BOUNDS.items():
        bounds = [f"  {_name(metric)}: {one.bound}" for metric, one in _of(limited, better)]
        yield from [f"{section}:", *bounds] if bounds else []


def _of(found: Suggestions, better: Direction) -> list[tuple[Metric, Detectable]]:
    return [(metric, one) for metric, one in found.items() if metric.better == better]


def _name(metric: Metric) -> str:
    return (*metric.aliases, metric.key)[0]
