"""Records of the engine, made where they are used: a golden query, a run in memory, both evaluated and reported."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.config import Locations
from ragcontract.contract.config_file import ConfigFile, config_of
from ragcontract.contract.golden_file import Golden
from ragcontract.contract.resolve import resolve
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Gain, RankBy
from ragcontract.core.phrase import Location
from ragcontract.core.rule import Rule
from ragcontract.core.run import VERSION_FIELDS, Latency, QueryScore, Result, RunRow, SourceFile
from ragcontract.decision.decide import Decision, decide
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.input_problems import input_problems
from ragcontract.evaluation.aggregates import aggregate
from ragcontract.evaluation.plan import plan_for
from ragcontract.evaluation.source import Local, evaluate_sides
from ragcontract.files.problems import Batch, FileRead, Problems
from ragcontract.metrics.ranking import Ranking
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.report.build import report_of
from ragcontract.report.formats import FORMATS
from ragcontract.report.record import Detail, QueryReport, Report
from ragcontract.runs.baseline_contract import Expected, PastContract, Replaced
from ragcontract.runs.baseline_file import Accepted, ComparedQuery, StoredBatch, StoredHead, Tool
from ragcontract.runs.readers import RunEvent

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
LINE = "ragcontract.yml:7"
Docs = Mapping[str, Sequence[str]]
Config = Mapping[str, Any]


def query(query_id: str = "q1", *relevant: str, **fields: Any) -> GoldenQuery:
    """Return a golden query that wants ``relevant`` documents, none if none is named."""
    given = {"query": f"What about {query_id}?", "location": f"golden.jsonl:{query_id}", **fields}
    given["location"] = Location.of_report(given["location"])
    return GoldenQuery(id=query_id, relevant_doc_ids=relevant, **given)


def golden_of(queries: Sequence[GoldenQuery], files: tuple[SourceFile, ...] = ()) -> Golden:
    """Return the golden set of these queries, as it is read from a file."""
    given = [one.answer for one in queries if one.answer]
    names = {name for one in given for name in one.__struct_fields__ if getattr(one, name) is not None}
    return Golden(
        queries={one.id: one for one in queries},
        files=files,
        answer_fields=dict.fromkeys(names, Location("")),
        rule_types=frozenset(type(rule) for one in queries for rule in one.rules if isinstance(rule, Rule)),
        all_documents=all(one.needs_results for one in queries),
    )


class Rows(Struct, frozen=True, kw_only=True):
    """A run or a baseline in memory: document ids by query id.

    With ``questions`` it is a stored baseline, which knows what was asked; so it is with any field that follows them.
    The rows of a run have one value each of what ``versions`` lists, in order, and the last ones the last.
    """

    docs: Docs
    name: str
    versions: Mapping[str, list[str]] = {}
    questions: Mapping[str, str] = {}
    latency: Latency | None = None
    created_at: str | None = None
    k: Sequence[int] | None = None
    accepted: Sequence[Accepted] = ()
    contract: PastContract | None = None
    replaces: Replaced | None = None
    expects: Mapping[str, Expected] = {}

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[RunEvent]:  # noqa: ARG002
        """Yield what a file would have held."""
        yield FileRead(SourceFile(path=self.name, sha256="ab" * 32))
        if self.questions or self.latency or self.created_at or self.k or self.accepted or self.contract:
            yield StoredHead(
                format_version=1,
                created_at=self.created_at or NOW.isoformat(),
                created_by=Tool(name="rag-contract", version="1"),
                golden_sha256="",
                k=list(self.k or [5]),
                versions=dict(self.versions),
                metrics={},
                tags={},
                accepted=list(self.accepted),
                latency=self.latency,
                contract=self.contract,
                replaces=self.replaces,
            )
            yield StoredBatch([self._stored(query_id, doc_ids) for query_id, doc_ids in self.docs.items()])
            return
        yield Batch(self.name, 1, [self._row(number, query_id) for number, query_id in enumerate(self.docs)])

    def _row(self, number: int, query_id: str) -> RunRow:
        given = {field: values for field, values in self.versions.items() if field in VERSION_FIELDS and values}
        versions: dict[str, Any] = {field: values[min(number, len(values) - 1)] for field, values in given.items()}
        return RunRow(query_id=query_id, results=[Result(doc_id=one) for one in self.docs[query_id]], **versions)

    def _stored(self, query_id: str, doc_ids: Sequence[str]) -> ComparedQuery:
        question = self.questions.get(query_id, f"What about {query_id}?")
        expects = self.expects.get(query_id)
        return ComparedQuery(id=query_id, query=question, doc_ids=list(doc_ids), expects=expects)


def score_query(
    asked: GoldenQuery,
    doc_ids: Sequence[str],
    k: int | Sequence[int] = 5,
    rank_by: RankBy = "results",
    gain: Gain = "linear",
) -> QueryScore:
    """Score the documents returned for one query, best first."""
    return Ranking([k] if isinstance(k, int) else k, rank_by, gain).score(asked, doc_ids)


def evaluate(
    queries: Sequence[GoldenQuery],
    run: Docs | Rows,
    baseline: Docs | Rows | None = None,
    config: Config | None = None,
    *,
    path: str = "golden.jsonl",
    registry: Registry = BUILT_IN,
) -> Evaluation:
    """Evaluate both sides as the pipeline does; every limit of a config stands in line 7 of ``ragcontract.yml``."""
    golden = golden_of(queries, files=(SourceFile(path=path, sha256="cd" * 32),))
    contract = resolve(golden, _config(config, registry), registry, has_baseline=baseline is not None)
    plan = plan_for(contract)
    rows = run if isinstance(run, Rows) else Rows(docs=run, name="run.jsonl")
    before = baseline if isinstance(baseline, Rows) or baseline is None else Rows(docs=baseline, name="base.jsonl")
    now, then = evaluate_sides(plan, Local(rows), None if before is None else Local(before))
    return Evaluation(contract=contract, run=now, baseline=then, aggregates=aggregate(plan, now, then))


def _config(config: Config | None, registry: Registry) -> ConfigFile:
    if config is None:
        return ConfigFile(config=config_of({}, registry).config)
    read = config_of(_that_is_set(config), registry, location=LINE)
    path, _, line = LINE.rpartition(":")
    locations = Locations(path=path, lines={("waivers", n): int(line) for n in range(len(read.config.waivers))})
    return replace(read, files=(SourceFile(path="ragcontract.yml", sha256="ef" * 32),), locations=locations)


def _that_is_set(config: Any) -> Any:
    """Return a configuration without the keys that have no value, which a file may not have."""
    if not isinstance(config, Mapping):
        return config
    return {name: _that_is_set(value) for name, value in config.items() if value is not None}


def report(
    queries: Sequence[GoldenQuery],
    run: Docs | Rows,
    baseline: Docs | Rows | None = None,
    config: Config | None = None,
    *,
    warnings: Sequence[str] = (),
    path: str = "golden.jsonl",
    now: datetime = NOW,
    tests_all: bool = False,
) -> Report:
    """Evaluate, judge and report; raises InputError where a limit cannot be judged."""
    return report_on(evaluate(queries, run, baseline, config, path=path), warnings, now=now, tests_all=tests_all)


def report_on(
    evaluation: Evaluation, warnings: Sequence[str] = (), *, now: datetime = NOW, tests_all: bool = False
) -> Report:
    """Judge and report; raises InputError where a limit cannot be judged."""
    missing = input_problems(evaluation)
    limits = Problems(problems=tuple(one for one in missing.problems if "cannot be judged" in one))
    (evaluation.contract.limit_problems + limits).raise_if_any()
    decision = decide(evaluation, now)
    return report_of(evaluation, decision, list(warnings), now, tests_all=tests_all)


class Made(Struct, frozen=True):
    """A report as a format wants it."""

    report: Report

    @property
    def detail(self) -> Detail:
        """What it lists."""
        return self.report.detail

    shows_answers: bool = True

    def passages(self) -> Mapping[str, Mapping[str, str]]:
        """Return no texts: there is no run."""
        return {}

    def queries(self) -> Iterator[QueryReport]:
        """Return what it lists."""
        return iter(self.report.queries)

    @property
    def decision(self) -> Decision:
        """Return none: there is no run."""
        raise NotImplementedError

    def answered(self) -> Iterator[tuple[GoldenQuery, RunRow | None]]:
        """Return no queries: there is no run."""
        return iter(())


def rendered(made: Report) -> dict[str, bytes]:
    """Return the report in all formats of files, by the name of the option that asks for it."""
    return {form.name: b"".join(form.render(Made(made))) for form in FORMATS}
