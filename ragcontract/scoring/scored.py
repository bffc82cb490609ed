"""What reading and scoring come to: both sides scored under the same golden set and cut-off."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from ragcontract.inputs.config import LoadedConfig
from ragcontract.inputs.golden import Golden
from ragcontract.model import Accepted, GoldenQuery, Latency, Noise, QueryScore, SourceFile
from ragcontract.numbers import SAME
from ragcontract.scoring.aggregate import Comparison, means
from ragcontract.scoring.duplicates import Duplicates
from ragcontract.scoring.metrics import Gain, MetricAtK
from ragcontract.scoring.ranking import RankBy, score_query, score_rows
from ragcontract.scoring.significance import Weights, noise


class ScoredRun(Struct, frozen=True, kw_only=True):
    """The run's scores by query id. ``missing`` queries had no row (they are scored 0), ``unknown`` rows no query.

    ``unmeasured`` counts the rows without a latency.
    """

    scores: dict[str, QueryScore]
    versions: dict[str, list[str]]
    files: list[SourceFile]
    missing: list[str]
    unknown: list[str]
    latency: Latency | None = None
    unmeasured: int = 0
    duplicates: Duplicates


class ScoredBaseline(Struct, frozen=True, kw_only=True):
    """The baseline's scores by query id, of the queries that can be compared; see ``BaselineInput`` for the rest."""

    scores: dict[str, QueryScore]
    versions: dict[str, list[str]]
    files: list[SourceFile]
    queries: int
    created_at: str | None
    k: list[int] | None
    new: list[str]
    changed: list[str]
    gone: list[str]
    accepted: Sequence[Accepted] = ()
    latency: Latency | None = None


class Scored(Struct, frozen=True, kw_only=True):
    """All that a verdict rests on."""

    golden: Golden
    metrics: list[MetricAtK]
    run: ScoredRun
    baseline: ScoredBaseline | None
    config: LoadedConfig

    @property
    def k(self) -> int:
        """The largest cut-off: the one of rules and gates that name none."""
        return max(metric.k for metric in self.metrics)


class Retrieval(Protocol):
    """Rows of ``(query_id, doc_ids)`` and what is known of where they come from, complete once iterated."""

    @property
    def created_at(self) -> str | None: ...  # noqa: D102

    @property
    def k(self) -> list[int] | None: ...  # noqa: D102

    @property
    def accepted(self) -> Sequence[Accepted]: ...  # noqa: D102

    @property
    def questions(self) -> Mapping[str, str]: ...  # noqa: D102

    @property
    def files(self) -> list[SourceFile]: ...  # noqa: D102

    @property
    def versions(self) -> dict[str, list[str]]: ...  # noqa: D102

    @property
    def latency(self) -> Latency | None: ...  # noqa: D102

    @property
    def unmeasured(self) -> int: ...  # noqa: D102

    def __iter__(self) -> Iterator[tuple[str, list[str]]]: ...  # noqa: D105


def score_run(
    rows: Retrieval,
    golden: Mapping[str, GoldenQuery],
    metrics: Sequence[MetricAtK],
    rank_by: RankBy,
    gain: Gain = "linear",
) -> ScoredRun:
    """Score a run; golden queries without a row count as having retrieved nothing."""
    duplicates = Duplicates(k=max(metric.k for metric in metrics))
    scores, unknown = score_rows(rows, golden, metrics, rank_by, gain, duplicates=duplicates)
    missing = [query_id for query_id in golden if query_id not in scores]
    scores |= {query_id: score_query(golden[query_id], [], metrics) for query_id in missing}
    return ScoredRun(
        scores=scores,
        versions=rows.versions,
        files=rows.files,
        missing=missing,
        unknown=unknown,
        latency=rows.latency,
        unmeasured=rows.unmeasured,
        duplicates=duplicates,
    )


def score_baseline(
    rows: Retrieval,
    golden: Mapping[str, GoldenQuery],
    metrics: Sequence[MetricAtK],
    rank_by: RankBy,
    gain: Gain = "linear",
) -> ScoredBaseline:
    """Score a baseline under today's golden set; a query whose question changed is not compared."""
    scores, gone = score_rows(rows, golden, metrics, rank_by, gain)
    changed = [query.id for query in golden.values() if rows.questions.get(query.id, query.query) != query.query]
    queries = len(scores) + len(gone)
    new = [query_id for query_id in golden if query_id not in scores]
    for query_id in changed:
        del scores[query_id]
    return ScoredBaseline(
        scores=scores,
        versions=rows.versions,
        files=rows.files,
        queries=queries,
        created_at=rows.created_at,
        k=rows.k,
        new=new,
        changed=changed,
        gone=gone,
        accepted=rows.accepted,
        latency=rows.latency,
    )


def compare(scored: Scored, queries: Iterable[GoldenQuery]) -> dict[str, Comparison]:
    """Average each metric over ``queries``, and on either side over those that both have, asked with the same words."""
    queries = list(queries)
    current = means(queries, scored.run.scores, scored.metrics)
    if scored.baseline is None:
        return {key: Comparison(current=value) for key, value in current.items()}
    shared = [query for query in queries if query.id in scored.baseline.scores]
    all_shared = len(shared) == len(queries)
    current_shared = current if all_shared else means(shared, scored.run.scores, scored.metrics)
    baseline = means(shared, scored.baseline.scores, scored.metrics)
    return {
        key: Comparison(current=value, current_shared=current_shared[key], baseline=baseline[key])
        for key, value in current.items()
    }


def noise_of(scored: Scored, queries: Iterable[GoldenQuery], columns: Iterable[int] | None = None) -> dict[str, Noise]:
    """Compare both sides query by query; of each metric that moved, how sure its change is.

    Only of the metrics in those ``columns``, where given.
    """
    if scored.baseline is None:
        return {}
    before, now = scored.baseline.scores, scored.run.scores
    shared = [query for query in queries if query.answerable and query.id in before]
    pairs = [(query.weight, before[query.id].values, now[query.id].values) for query in shared]
    moved = [pair for pair in pairs if pair[1] != pair[2]]  # few, as a rule: the rest is about them alone
    weights = Weights.of([query.weight for query in shared])
    found = {}
    for column in range(len(scored.metrics)) if columns is None else columns:
        metric = scored.metrics[column]
        differences = [(weight, new[column] - old[column]) for weight, old, new in moved]
        if any(difference for _, difference in differences):
            found[metric.key] = noise([change for change in differences if abs(change[1]) > SAME], weights)
    return found
