"""What reading and scoring come to: both sides scored under the same golden set and cut-off."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from ragcontract.contract.config import LoadedConfig
from ragcontract.contract.golden_file import Golden
from ragcontract.evaluation.duplicates import Duplicates
from ragcontract.files.problems import Diagnostics
from ragcontract.metrics.formulas import MetricAtK
from ragcontract.metrics.ranking import Scorer, score_rows
from ragcontract.model import Accepted, GoldenQuery, Latency, QueryScore, SourceFile
from ragcontract.statistics.aggregate import Group, groups_of

LISTED = 10_000  # ids of no golden query, of which a log may have any number


class ScoredRun(Struct, frozen=True, kw_only=True):
    """The run's scores by query id. ``missing`` queries had no row (they are scored 0), ``unknown`` rows no query.

    ``unmeasured`` counts the rows without a latency. Of ``unknown`` ids the first are named, and ``more_unknown``
    counts the other rows (of a cluster's run: ids). Where a cluster's queries have several rows, ``rows`` counts them,
    since they stand in no order.
    """

    scores: dict[str, QueryScore]
    versions: dict[str, list[str]]
    files: list[SourceFile]
    missing: list[str]
    unknown: list[str]
    more_unknown: int = 0
    rows: dict[str, int] = {}
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
    """All that a verdict rests on; ``groups`` count the queries that fared alike on both sides."""

    golden: Golden
    metrics: list[MetricAtK]
    run: ScoredRun
    baseline: ScoredBaseline | None
    config: LoadedConfig
    groups: list[Group]

    @classmethod
    def of(
        cls,
        golden: Golden,
        run: ScoredRun,
        baseline: ScoredBaseline | None,
        config: LoadedConfig,
        metrics: list[MetricAtK],
    ) -> "Scored":
        """Bring both sides together."""
        queries = list(golden.queries.values())
        groups = groups_of(queries, run.scores, baseline.scores if baseline else None)
        return cls(golden=golden, metrics=metrics, run=run, baseline=baseline, config=config, groups=groups)

    @property
    def k(self) -> int:
        """The largest cut-off: the one of rules and gates that name none."""
        return max(metric.k for metric in self.metrics)


class Elsewhere(Protocol):
    """Scores runs that are not on this machine; what is wrong with their rows is told to the diagnostics."""

    def score_run(  # noqa: D102
        self, golden: Mapping[str, GoldenQuery], scorer: Scorer, k: int, diagnostics: Diagnostics
    ) -> ScoredRun: ...

    def score_baseline(  # noqa: D102
        self, golden: Mapping[str, GoldenQuery], scorer: Scorer, k: int, diagnostics: Diagnostics
    ) -> ScoredBaseline | None: ...


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


def score_run(rows: Retrieval, golden: Mapping[str, GoldenQuery], scorer: Scorer, k: int) -> ScoredRun:
    """Score a run; golden queries without a row count as having retrieved nothing. ``k`` is the largest cut-off."""
    duplicates = Duplicates(k=k)
    scores, unknown, more_unknown = score_rows(rows, golden, scorer, duplicates=duplicates, listed=LISTED)
    missing = [query_id for query_id in golden if query_id not in scores]
    scores |= {query_id: scorer.score(golden[query_id], ()) for query_id in missing}
    return ScoredRun(
        scores=scores,
        versions=rows.versions,
        files=rows.files,
        missing=missing,
        unknown=unknown,
        more_unknown=more_unknown,
        latency=rows.latency,
        unmeasured=rows.unmeasured,
        duplicates=duplicates,
    )


def score_baseline(rows: Retrieval, golden: Mapping[str, GoldenQuery], scorer: Scorer) -> ScoredBaseline:
    """Score a baseline under today's golden set; a query whose question changed is not compared."""
    scores, gone, _ = score_rows(rows, golden, scorer)
    asked = rows.questions
    changed = (
        [query.id for query in golden.values() if asked.get(query.id, query.query) != query.query] if asked else []
    )
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
