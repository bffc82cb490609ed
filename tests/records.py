"""The engine's records, made where they are used: a golden query, a run in memory, both scored, judged, reported."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ragcontract.contract.config import Config, LoadedConfig
from ragcontract.contract.golden_file import Golden
from ragcontract.evaluation.scored import Scored, score_baseline, score_run
from ragcontract.judging.gates import limits_set
from ragcontract.judging.verdict import judge
from ragcontract.metrics.formulas import Gain, MetricAtK, metrics_at
from ragcontract.metrics.ranking import RankBy, Scorer
from ragcontract.model import Accepted, GoldenQuery, Latency, QueryScore, Report, SourceFile
from ragcontract.reports.build import Checked, build_report
from ragcontract.reports.formats import FORMATS

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
Docs = Mapping[str, Sequence[str]]


def query(query_id: str = "q1", *relevant: str, **fields: Any) -> GoldenQuery:
    """Return a golden query that wants ``relevant`` documents, none if none is named."""
    given = {"query": f"What about {query_id}?", "location": f"golden.jsonl:{query_id}", **fields}
    return GoldenQuery(id=query_id, relevant_doc_ids=relevant, **given)


class Rows:
    """A run or a baseline in memory: document ids by query id."""

    created_at: str | None = None
    k: list[int] | None = None
    accepted: Sequence[Accepted] = ()
    unmeasured = 0

    def __init__(
        self,
        docs: Docs,
        *,
        name: str,
        versions: Mapping[str, list[str]] = {},
        questions: Mapping[str, str] = {},
        latency: Latency | None = None,
    ) -> None:
        """Take what a file would have held; ``questions`` are those that a stored baseline knows."""
        self._docs = docs
        self.questions = questions
        self.latency = latency
        self.versions = dict(versions)
        self.files = [SourceFile(path=name, sha256="ab" * 32)]

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        """Yield ``(query_id, doc_ids)``."""
        for query_id, doc_ids in self._docs.items():
            yield query_id, list(doc_ids)


def score_query(
    asked: GoldenQuery,
    doc_ids: Sequence[str],
    metrics: Sequence[MetricAtK],
    rank_by: RankBy = "results",
    gain: Gain = "linear",
) -> QueryScore:
    """Score the documents returned for one query, best first."""
    return Scorer(metrics, rank_by, gain).score(asked, doc_ids)


def score(
    queries: Sequence[GoldenQuery],
    run: Docs | Rows,
    baseline: Docs | Rows | None = None,
    config: Config | None = None,
    *,
    path: str = "golden.jsonl",
) -> Scored:
    """Score both sides as the pipeline does; every limit of a config stands in line 7 of ``ragcontract.yml``."""
    loaded = _loaded(config) if config else LoadedConfig()
    config = loaded.config
    golden = {query.id: query for query in queries}
    metrics = metrics_at(config.k)
    rows = run if isinstance(run, Rows) else Rows(run, name="run.jsonl")
    before = baseline if isinstance(baseline, Rows) or baseline is None else Rows(baseline, name="base.jsonl")
    scorer = Scorer(metrics, config.rank_by, config.gain)
    return Scored.of(
        Golden(queries=golden, files=[SourceFile(path=path, sha256="cd" * 32)]),
        score_run(rows, golden, scorer, max(metric.k for metric in metrics)),
        None if before is None else score_baseline(before, golden, scorer),
        loaded,
        metrics,
    )


def _loaded(config: Config) -> LoadedConfig:
    limits = list(limits_set(config))
    limits += [f"waivers[{number}]" for number in range(len(config.waivers))]
    file = SourceFile(path="ragcontract.yml", sha256="ef" * 32)
    return LoadedConfig(config=config, files=[file], lines=dict.fromkeys(limits, 7))


def report(
    queries: Sequence[GoldenQuery],
    run: Docs | Rows,
    baseline: Docs | Rows | None = None,
    config: Config | None = None,
    *,
    warnings: Sequence[str] = (),
    path: str = "golden.jsonl",
) -> Report:
    """Score, judge and report."""
    scored = score(queries, run, baseline, config, path=path)
    return build_report(scored, judge(scored), list(warnings), NOW)


def rendered(made: Report) -> dict[str, bytes]:
    """Return the report in all formats of files, by the name of the option that asks for it."""
    return {name: b"".join(render(Checked.of(made))) for name, render in FORMATS.items()}
