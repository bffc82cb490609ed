"""The comparison of several runs: its records, how they are built, and its page.

The records are those of ``rag-contract compare --format json``; ``rag-contract schema comparison`` prints their schema.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Direction, Metric, Scale
from ragcontract.core.numbers import SAME, beginning, count, fixed, more, signed
from ragcontract.core.phrase import Name
from ragcontract.core.run import SourceFile, ranks_by_id
from ragcontract.core.safe_text import clipped, encodable, visible
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import named
from ragcontract.decision.input_problems import input_problems
from ragcontract.decision.run_notes import likely_mistakes, run_notes
from ragcontract.evaluation.aggregates import aggregate
from ragcontract.evaluation.observations import Versions
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.files.problems import Collector, Problems
from ragcontract.files.writing import document
from ragcontract.report.blocks import Block, Fold, Form, Heading, Items, Lines, Note, Parts, Table, Text
from ragcontract.report.build import TOOL
from ragcontract.report.headline import as_warning
from ragcontract.report.parts import shown_files
from ragcontract.runs.baseline_file import Tool
from ragcontract.statistics.sign_flips import Change
from ragcontract.statistics.significance import Z_95, change_bounds, mean_interval

if TYPE_CHECKING:
    from ragcontract.judgments.check import JudgeFiles

Interval = tuple[float, float]
DIGITS = 4
METHOD = (
    "95 % intervals. The mean of other queries of the same kind would be in the interval of a mean. The interval of a "
    "change is computed from the differences query by query."
)


class ComparedMetric(Struct, frozen=True, kw_only=True):
    """A metric."""

    label: str
    k: Annotated[int | None, Meta(description="Its cut-off; null if it has none.")]
    better: Direction
    scale: Scale


class AgainstFirst(Struct, frozen=True, kw_only=True):
    """The change of a mean since the first run: paired, query by query."""

    delta: float
    interval: Annotated[Interval | None, Meta(description="The 95 % interval of the change; null if nothing changed.")]
    wins: Annotated[int, Meta(description="How many queries are better than in the first run.")]
    ties: int
    losses: Annotated[int, Meta(description="How many queries are worse than in the first run.")]


class RunMean(Struct, frozen=True, kw_only=True):
    """The mean of a metric in one run, with its 95 % interval; null without a query that has the metric."""

    mean: float | None
    interval: Interval | None
    against_first: Annotated[AgainstFirst | None, Meta(description="Null for the first run.")]


class ComparedRun(Struct, frozen=True, kw_only=True):
    """One of the runs."""

    label: Annotated[str, Meta(description="A name that no other run has.")]
    files: list[SourceFile]
    queries: int
    missing: Annotated[list[str], Meta(description="Golden queries without a row, which score 0.")]
    versions: dict[str, list[str]]
    metrics: dict[str, RunMean]
    notes: Annotated[
        list[str],
        Meta(
            description="Sentences that explain its metrics: ids written in another form, fewer results than k, "
            "distances."
        ),
    ] = []


class Disagreement(Struct, frozen=True, kw_only=True):
    """A query that the runs disagree about; the lists have one item for each run."""

    id: str
    location: str
    query: str
    metrics: dict[str, list[float | None]]
    ranks: Annotated[
        list[dict[str, int | None]],
        Meta(description="The rank of every relevant document; null if it was not retrieved."),
    ]


class RunComparison(Struct, frozen=True, kw_only=True):
    """Several runs over one golden set, version 1, to which keys are only added."""

    schema_version: Literal[1] = 1
    tool: Tool
    created_at: str
    k: list[int]
    golden: list[SourceFile]
    config: list[SourceFile]
    tag: Annotated[str | None, Meta(description="The tag of the compared queries; null for all queries.")]
    queries: Annotated[int, Meta(description="How many queries are compared.")]
    metrics: dict[str, ComparedMetric]
    runs: list[ComparedRun]
    disagreements: Annotated[
        list[Disagreement],
        Meta(
            description="At most 50 queries: those with the largest spread of the first metric at the largest cut-off, "
            "then of the next one."
        ),
    ]
    more_disagreements: Annotated[int, Meta(description="How many further queries the runs disagree about.")]
    warnings: list[str]


def render(made: RunComparison) -> Iterator[bytes]:
    """Encode the comparison as JSON, one query per line."""
    return document(made, {"disagreements": made.disagreements})


class ComparedRuns(Struct, frozen=True, kw_only=True):
    """Runs that were evaluated under one contract."""

    evaluations: Sequence[Evaluation]
    warnings: Sequence[str]


def compared_under(
    contract: Contract, plan: Plan, sides: Sequence[Side], judge: "JudgeFiles | None" = None
) -> ComparedRuns:
    """Average scored runs; raises :class:`~ragcontract.core.errors.InputError` with the problems of all of them.

    ``sides`` are the runs as they were evaluated with the ``plan``.
    """
    evaluations: list[Evaluation] = []
    problems = contract.problems + (judge.problems if judge else Problems())
    for side in sides:
        first = sides[0] if evaluations else None
        aggregates = aggregate(plan, side, first)
        problems += side.problems + _about_questions(side)
        problems += input_problems(Evaluation(contract=contract, run=side, baseline=None, aggregates=aggregates))
        evaluations.append(Evaluation(contract=contract, run=side, baseline=first, aggregates=aggregates))
    _without_repeats(problems).raise_if_any()
    return ComparedRuns(evaluations=evaluations, warnings=list(dict.fromkeys(problems.warnings)))


def _about_questions(side: Side) -> Problems:
    """Return a problem if a stored baseline has other questions with the ids of golden queries."""
    problems = Collector()
    if side.rows.changed:
        problems.problem(
            side.name, f"has another question for {named(side.rows.changed)}; recreate it with `rag-contract baseline`"
        )
    return problems.collected()


def _without_repeats(problems: Problems) -> Problems:
    """Return each problem and warning once, because those of the contract are repeated for each run."""
    return Problems(
        problems=tuple(dict.fromkeys(problems.problems)),
        more=problems.more,
        warnings=tuple(dict.fromkeys(problems.warnings)),
    )


def comparison_of(
    evaluations: Sequence[Evaluation],
    names: Sequence[str],
    *,
    warnings: Sequence[str],
    now: datetime,
) -> RunComparison:
    """Compare runs. Each evaluation but the first has the first run as its baseline. ``names`` are their paths."""
    contract = evaluations[0].contract
    differing = disagreements(evaluations)
    labels = distinct_labels(list(map(encodable, names)))
    return RunComparison(
        tool=TOOL,
        created_at=now.isoformat(timespec="seconds"),
        k=sorted(contract.config_file.cutoffs),
        golden=shown_files(contract.golden.files),
        config=shown_files(contract.config_file.files),
        tag=contract.scope.tags[0] if contract.scope else None,
        queries=len(contract.queries),
        metrics={
            metric.key: ComparedMetric(label=metric.label, k=metric.k, better=metric.better, scale=metric.scale)
            for metric in contract.metrics
        },
        runs=[_run(evaluation, label) for evaluation, label in zip(evaluations, labels, strict=True)],
        disagreements=differing[: bounds.DISAGREEMENTS],
        more_disagreements=max(0, len(differing) - bounds.DISAGREEMENTS),
        warnings=[encodable(warning) for warning in warnings],
    )


def distinct_labels(paths: Sequence[str]) -> list[str]:
    """Return the shortest names that distinguish the runs: without suffix, without folder, or the whole path.

    A path that occurs several times gets a number.
    """
    names = [PurePath(path).name for path in paths]
    for labels in ([name.partition(".")[0] for name in names], names, list(paths)):
        if len({*labels}) == len(labels) and all(labels):
            return labels
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def _run(evaluation: Evaluation, label: str) -> ComparedRun:
    run, aggregates = evaluation.run, evaluation.aggregates
    metrics: dict[str, RunMean] = {}
    for family in aggregates.families:
        groups = [group for group in family.groups if group.now]
        changes = family.changes(None, family.keys)
        for column, metric in enumerate(family.metrics):
            values = [(group.weight, group.now[column], group.count) for group in groups]
            compared = aggregates.comparisons[metric.key]
            metrics[metric.key] = RunMean(
                mean=compared.current,
                interval=mean_interval(values, metric.scale),
                against_first=None
                if evaluation.baseline is None or compared.delta is None
                else _against_first(compared.delta, changes[metric.key]),
            )
    return ComparedRun(
        label=label,
        files=shown_files(run.files),
        queries=run.queries,
        missing=list(run.rows.missing),
        versions=run.observed(Versions),
        metrics=metrics,
        notes=list(_notes(evaluation)),
    )


def _notes(evaluation: Evaluation) -> Iterator[str]:
    """Yield sentences that explain the metrics of a run, without a comparison with the first run."""
    alone = msgspec.structs.replace(evaluation, baseline=None)
    yield from map(as_warning, likely_mistakes(alone))
    yield from run_notes(alone)


def _against_first(delta: float, change: Change) -> AgainstFirst:
    """Return the change with its 95 % interval, of which each end is wrong in 2.5 % of samples."""
    interval = None
    if change.changed:
        low, high = change_bounds(change, Z_95, Z_95)
        interval = (low, high) if change.better == "lower" else (0.0 - high, 0.0 - low)
    return AgainstFirst(
        delta=delta if interval else 0.0,
        interval=interval,
        wins=change.wins,
        ties=change.ties,
        losses=change.losses,
    )


def disagreements(evaluations: Sequence[Evaluation]) -> list[Disagreement]:
    """Return the queries whose metrics differ between runs, those with the largest spread first."""
    contract = evaluations[0].contract
    largest = contract.metrics_at_largest_k
    spreads: list[tuple[list[float], GoldenQuery]] = []
    for query in contract.queries.values():
        scores = [evaluation.run.scores[query.id] for evaluation in evaluations]
        if not contract.families and all(score is scores[0] or score == scores[0] for score in scores):
            continue
        spread = list(_spreads(evaluations, query, largest))
        if max(spread, default=0.0) > SAME:
            spreads.append((spread, query))
    spreads.sort(key=lambda item: [-size for size in item[0]])
    return [_disagreement(evaluations, query) for _, query in spreads]


def _spreads(evaluations: Sequence[Evaluation], query: GoldenQuery, metrics: Sequence[Metric]) -> Iterator[float]:
    by_run = [next(evaluation.metrics(evaluation.run, [query.id])) for evaluation in evaluations]
    for metric in metrics:
        values = [value for of_run in by_run if (value := of_run.get(metric.key)) is not None]
        yield max(values) - min(values) if values else 0.0


def _disagreement(evaluations: Sequence[Evaluation], query: GoldenQuery) -> Disagreement:
    by_run = [next(evaluation.metrics(evaluation.run, [query.id])) for evaluation in evaluations]
    return Disagreement(
        id=query.id,
        location=encodable(str(query.location)),
        query=query.query,
        metrics={key: [of_run[key] for of_run in by_run] for key in by_run[0]},
        ranks=[
            ranks_by_id(query.relevant_doc_ids, evaluation.run.scores[query.id].ranks) for evaluation in evaluations
        ],
    )


def title(made: RunComparison) -> str:
    """Return the title, as ``3 runs over 32 queries, k = 5``, without the tag, which outputs quote differently."""
    k = ", ".join(map(str, made.k))
    return f"{count(len(made.runs), 'run')} over {count(made.queries, 'query')}, k = {k}"


def labels(made: RunComparison) -> list[str]:
    """Return the names of the runs with control characters visible, shortened on the left: paths end differently."""
    texts = [visible(run.label) for run in made.runs]
    return [text if len(text) <= bounds.RUN_LABEL else "…" + text[1 - bounds.RUN_LABEL :] for text in texts]


def notes(made: RunComparison) -> list[tuple[str, str]]:
    """Return the label of a run and a sentence that explains its metrics, for each sentence, shortened."""
    labelled = zip(labels(made), made.runs, strict=True)
    return [(label, clipped(note, bounds.MARKDOWN_LINE)) for label, run in labelled for note in run.notes]


def compared_runs(made: RunComparison, form: Form) -> Iterator[Block]:
    """Yield the means of all runs, and where the runs disagree."""
    about: Parts = (title(made), *(() if made.tag is None else (", tag ", Name(made.tag))))
    first, disagreements = labels(made)[0], disagreements_of(made, form)
    explained: list[Block] = [
        Items([(Name(label), ": ", Text(note, "note")) for label, note in notes(made)]),
        Note(METHOD),
    ]
    if form == "terminal":
        yield Note((about, f"; changes are since {first}"))
        rows: list[list[Parts]] = [
            [Text("" if number else metric.label, "label"), *row[1:]]
            for metric, table in mean_tables(made)
            for number, row in enumerate(table)
        ]
        yield Table(
            ["", "", "mean", "95 % interval", "change", "95 % interval", "better / same / worse"], "l" * 7, rows
        )
        yield from explained
        ranked = "; the ranks of their relevant documents" if made.disagreements else ""
        yield Fold((disagreements.title, ranked), disagreements.blocks)
        return
    yield Heading(about, 1)
    yield Note(("Changes are since ", Name(first), "."))
    yield Note("Below a mean or a change is its interval, then how many queries are better / the same / worse.")
    for metric, table in mean_tables(made):  # one for all of them would be too wide for a phone
        body: list[list[Parts]] = [[Text(row.label, "run"), Lines(row[2:4]), Lines(row[4:])] for row in table]
        yield Table([Text(metric.label, "label"), "Mean", "Change"], "lrr", body)
    yield from (*explained, Heading(disagreements.title))
    yield Note("The ranks of their relevant documents:" if made.disagreements else "")
    yield from disagreements.blocks


class MeanRow(NamedTuple):
    """The mean of a metric in one run, and its change since the first run, as text; empty where there is none."""

    numbers: RunMean  # the same, unrounded
    label: str
    mean: str
    interval: str
    change: str = ""
    change_interval: str = ""
    counts: str = ""


def mean_tables(made: RunComparison) -> Iterator[tuple[ComparedMetric, list[MeanRow]]]:
    """Yield each metric at the largest cut-off, if any run has its mean, with a row for each run."""
    runs = list(zip(labels(made), made.runs, strict=True))
    for key, metric in made.metrics.items():
        if metric.k in {None, max(made.k)} and any(run.metrics[key].mean is not None for _, run in runs):
            yield metric, [_row(label, run.metrics[key]) for label, run in runs]


def _row(label: str, numbers: RunMean) -> MeanRow:
    mean, interval = fixed(numbers.mean, DIGITS), " to ".join(fixed(end, DIGITS) for end in numbers.interval or ())
    change = numbers.against_first
    if change is None:
        return MeanRow(numbers, label, mean, interval)
    ends = " to ".join(signed(end, DIGITS) for end in change.interval or ()) or "nothing changed"
    counts = f"{change.wins:,} / {change.ties:,} / {change.losses:,}"
    return MeanRow(numbers, label, mean, interval, signed(change.delta, DIGITS), ends, counts)


def disagreements_of(made: RunComparison, form: Form) -> Fold:
    """Return the queries that the runs disagree about, with the ranks of their relevant documents."""
    number = len(made.disagreements) + made.more_disagreements
    order = ", largest difference first" if number > 1 else ""
    rows: list[list[Parts]] = []
    for item in made.disagreements:
        numbers = [beginning([str(rank or "–") for rank in ranks.values()], bounds.LISTED) for ranks in item.ranks]
        question = Text(item.query, "question")
        is_wide = form == "terminal"
        rows.append(
            [Name(item.id), *numbers, question] if is_wide else [Lines([Text(item.id, "name"), question]), *numbers]
        )
    names = labels(made)
    head: list[Parts] = ["", *names, ""] if form == "terminal" else ["Query", *(Text(name, "run") for name in names)]
    title = (
        f"{count(number, 'query')} that the runs disagree about{order}"
        if number
        else "The runs agree about every query"
    )
    rest = Note(more(made.more_disagreements, 0, "query", "… and {}."))
    return Fold(title, [*([Table(head, "l" * len(head), rows)] if rows else []), rest])
