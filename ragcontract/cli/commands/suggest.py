"""``rag-contract suggest``: proposes limits from known-good runs.

It also advises on labels if these runs do not find every relevant document, as the rule must_include demands.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.console import progress_over, say, warn
from ragcontract.cli.options import clock, files_option, find_files, takes
from ragcontract.contract import defaults
from ragcontract.contract.config import enforced
from ragcontract.contract.config_file import ConfigFile
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.gate import Kind, every_run_keeps
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Direction, Metric
from ragcontract.core.numbers import as_written, count, fixed, more
from ragcontract.core.safe_text import shorten, visible
from ragcontract.decision.evaluated import Evaluation
from ragcontract.evaluation.source import Inputs
from ragcontract.files.paths import existing_files
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.report.terminal import aligned
from ragcontract.rules.ranks import MustInclude
from ragcontract.statistics.significance import ALPHA, fewest_changed
from ragcontract.statistics.suggested_limits import Suggested, round_up, suggested

Suggestions = Mapping[Metric, Suggested]
BOUNDS: dict[str, Direction] = {"minimums": "higher", "maximums": "lower"}
KINDS: dict[Direction, Kind] = {"higher": "minimum", "lower": "maximum"}
NO_CONFIG = ConfigFile()


@click.command("suggest")
@takes(
    "golden",
    files_option("--run", f"Known-good runs of the same questions; each file is a separate run. [{defaults.RUN}]"),
    "scores",
    "judgments",
    "config",
    "k",
    "repeats",
)
def command(*, inputs: Inputs) -> int:
    """Propose limits from known-good runs.

    Prints a configuration to start from, and what it promises. Several runs of the same retriever show how much its own
    results vary: give three or more, if they do.
    """
    inputs = find_files(inputs)
    evaluations = list(good_runs(inputs))
    suggested_limits = suggestions(evaluations)
    say(
        render(
            suggested_limits,
            files=inputs.paths("run"),
            judgments=() if "judgments" in inputs.unnamed else inputs.judgments,
            config_file=evaluations[0].contract.config_file,
        )
    )
    if advice := list(label_advice(evaluations)):
        say("\n" + "\n".join(advice) + "\n")
    return ExitCode.PASS


def good_runs(inputs: Inputs, *, registry: Registry = BUILT_IN) -> Iterator[Evaluation]:
    """Yield the evaluation of each run file, without limits; prints the warnings at the end.

    Raises :class:`InputError` at the end, with the problems of all files.
    """
    files, wrong = existing_files(inputs.paths("run"))
    if not files:
        pipeline.load(inputs)  # without labels, no run is of use yet, and that is what to say
    if inputs.scores and len(files) > 1:
        raise click.UsageError("--scores is about one run; give one --run, or export the scores in the rows of each")
    problems, more = dict.fromkeys(map(str, wrong)), 0
    warnings: dict[str, None] = {}
    with progress_over([*list(inputs.golden) * len(files), *files]) as progress:
        measured = replace(inputs, decides=False, store=True, progress=progress)
        for file in files:
            try:
                outcome = pipeline.check(replace(measured, run=[file]), now=clock(), registry=registry)
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


def suggestions(evaluations: Sequence[Evaluation]) -> dict[Metric, Suggested]:
    """Return the suggested limits by metric; raises InputError if no query has relevant documents."""
    first = evaluations[0].contract
    columns: dict[Metric, tuple[list[list[float]], list[float]]] = {}
    for number, family in enumerate((first.ranking, *first.families)):
        rows = zip(*[evaluation.run.values(number, first.queries) for evaluation in evaluations], strict=True)
        measured = [
            (query.weight, [values or () for values in row])
            for query, row in zip(first.queries.values(), rows, strict=True)
            if all(row)
        ]
        weights = [weight for weight, _ in measured]
        for column, metric in enumerate(family.metrics if measured else ()):
            runs = [[row[run][column] for _, row in measured] for run in range(len(evaluations))]
            columns[metric] = runs, weights
    if not columns:
        raise InputError([f"{first.golden.files[0].path}: no golden query has relevant documents, so there is no mean"])
    limits = len(_limited(columns))
    return {metric: suggested(*measured, metric, limits=limits) for metric, measured in columns.items()}


def _limited(metrics: Iterable[Metric]) -> list[Metric]:
    """Return the metrics that get limits: those at the largest cut-off, and those without one."""
    metrics = list(metrics)
    largest = max((metric.k for metric in metrics if metric.k is not None), default=None)
    return [metric for metric in metrics if metric.suggested and metric.k in {None, largest}]


def render(
    suggestions: Suggestions,
    *,
    files: Sequence[str],
    judgments: Sequence[str] = (),
    config_file: ConfigFile = NO_CONFIG,
) -> str:
    """Render the table, what the limits promise, and a configuration to start from, or to add to the existing one.

    ``files`` are the run files, and ``judgments`` the judgments files, as they were named on the command line.
    """
    limited = {metric: suggestions[metric] for metric in _limited(suggestions)}
    parts = [_table(suggestions), _explained(limited, files, judgments), _config(suggestions, limited, config_file)]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _table(suggestions: Suggestions) -> Iterator[str]:
    cells = [["", "mean", "from run to run", "other questions"]]
    for metric, proposal in suggestions.items():
        deviation = "unknown" if proposal.deviation is None else f"± {fixed(proposal.deviation, 4)}"
        bound = f"{as_written(proposal.bound)} or {'more' if metric.better == 'higher' else 'less'}"
        cells.append([metric.label, fixed(proposal.mean, 4), deviation, bound])
    yield from aligned(cells)


def _explained(limited: Suggestions, files: Sequence[str], judgments: Sequence[str]) -> Iterator[str]:
    """Yield what the limits promise, and what to store as the baseline for them."""
    first = next(iter(limited.values()), None)
    if first and first.runs == 1:
        yield "One run cannot show how much the retriever's own results vary. So the limits are for mode: significant,"
        yield "in which a change must also be shown to be real. If results vary, give three or more good runs."
        yield from _of_one_run(limited)
    elif first:
        if any(of.limit is not None for of in limited.values()):
            runs = f"With these {first.runs} runs as the baseline"
            yield f"{runs}, at most 1 in 20 equally good runs breaks any of the limits:"
        yield from _of_several(limited)
    yield from _of_bounds(limited)
    if judged := [metric.label for metric in limited if metric.task]:
        yield f"{' and '.join(judged)}: a limit counts only with a calibration (rag-contract judge calibrate)"
    named = [*(("--run", file) for file in files), *(("--judgments", file) for file in judgments)]
    store = " ".join(f"{option} {visible(shlex.quote(file))}" for option, file in named)
    yield f"Store the baseline: rag-contract baseline {store}"


def _of_one_run(limited: Suggestions) -> Iterator[str]:
    fewest = fewest_changed(ALPHA)
    for metric, proposal in limited.items():
        change, queries = _change(metric), count(proposal.queries, "query")
        if proposal.limit is None:
            yield f"{metric.label}: {queries} cannot carry a limit on a {change}; add queries"
        else:
            limit = f"{metric.label}: {change} of {proposal.limit}"
            yield f"{limit}, the loss of {fewest} of {queries}; a loss of fewer could be chance"


def _of_several(limited: Suggestions) -> Iterator[str]:
    for metric, proposal in limited.items():
        change = _change(metric)
        limit = f"{metric.label}: {change} of {proposal.limit}"
        if proposal.limit is None or proposal.detectable is None:
            of = f"{count(proposal.runs, 'run')} of {count(proposal.queries, 'query')}"
            yield f"{metric.label}: {of} cannot tell a {change} from chance; give more good runs, or add queries"
        elif proposal.deviation:
            yield f"{limit}; a real one of {round_up(proposal.detectable)} breaks it 4 times in 5"
        else:
            yield f"{limit}, the loss of one query, because these runs do not differ"


def _of_bounds(limited: Suggestions) -> Iterator[str]:
    for metric, proposal in limited.items():
        if not _is_limit(metric, proposal):
            queries = count(proposal.queries, "query")
            yield f"{metric.label}: {queries} cannot carry a {KINDS[metric.better]}; add queries"


def _config(suggestions: Suggestions, limited: Suggestions, config_file: ConfigFile) -> Iterator[str]:
    """Yield the configuration to paste at the end of the existing one, with a comment on keys that exist there."""
    k = sorted({metric.k for metric in suggestions if metric.k is not None}, reverse=True)
    has_k = not k or (config_file.locations.of("k") and config_file.config.cutoffs == tuple(k))
    keys = {"k": not has_k, "fail_on": True} | {name: any(_of(limited, better)) for name, better in BOUNDS.items()}
    there = [f"{name} ({where})" for name in keys if keys[name] and (where := config_file.locations.of(name))]
    if there:
        yield f"# exists already, so change it there: {', '.join(there)}"
    if not has_k:
        yield f"k: {k[0] if len(k) == 1 else list(k)}"
    several = any(proposal.runs > 1 for proposal in suggestions.values())
    yield "fail_on:"
    yield f"  mode: {'strict' if several else 'significant'}"
    for metric, proposal in limited.items():
        if proposal.limit is not None:
            yield f"  {_name(metric).removesuffix('_at_k')}_{_change(metric)}_gt: {proposal.limit}"
    for section, better in BOUNDS.items():
        bounds = [f"  {_name(metric)}: {proposal.bound}" for metric, proposal in _of(limited, better)]
        yield from [f"{section}:", *bounds] if bounds else []


def _change(metric: Metric) -> str:
    return "drop" if metric.better == "higher" else "rise"


def _of(suggestions: Suggestions, better: Direction) -> list[tuple[Metric, Suggested]]:
    return [
        (metric, proposal)
        for metric, proposal in suggestions.items()
        if metric.better == better and _is_limit(metric, proposal)
    ]


def _is_limit(metric: Metric, proposal: Suggested) -> bool:
    """Return whether a run can miss the minimum, or the maximum."""
    return not every_run_keeps(KINDS[metric.better], proposal.bound, metric.scale)


def _name(metric: Metric) -> str:
    return (*metric.aliases, metric.key)[0]


def label_advice(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Yield advice where known-good runs find some, but not all, relevant documents of a query in the top k."""
    contract = evaluations[0].contract
    if not enforced(contract.config, MustInclude):
        return
    several = [
        query for query in contract.queries.values() if len(query.relevant_doc_ids) > 1 and not query.must_include_any
    ]
    partly = [query for query in several if all(_finds_some(query, evaluation) for evaluation in evaluations)]
    if not partly:
        return
    ids = [shorten(visible(query.id), bounds.TERMINAL_QUESTION) for query in partly[: bounds.LISTED]]
    others = more(len(partly), len(ids), form=" and {}")
    runs = "this run" if len(evaluations) == 1 else "each of these runs"
    yield (
        f"must_include: of {count(len(several), 'query')} with several relevant documents, {runs} finds only some of "
        f"them for {len(partly):,}: {', '.join(ids)}{others}"
    )
    yield 'If one of them is enough for an answer, write "must_include_any": true into these golden rows.'
    if 2 * len(partly) > len(several):
        yield (
            "If the labels list all that is relevant, rather than what must be found, turn the rule off "
            "(per_query: enforce_must_include: false) and limit Recall instead."
        )


def _finds_some(query: GoldenQuery, evaluation: Evaluation) -> bool:
    """Return whether some, but not all, relevant documents are in the top k."""
    in_top = [rank is not None and rank <= evaluation.contract.k for rank in evaluation.run.scores[query.id].ranks]
    return any(in_top) and not all(in_top)
