"""The rows of a run and a baseline, folded under the same golden set."""

from collections.abc import Iterator, Mapping, Sequence

import pytest
from msgspec.structs import replace

from ragcontract.contract.config_file import ConfigFile
from ragcontract.contract.resolve import resolve
from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.metric import Family, Metric, MetricSettings, Missing, Scale, SwitchedOn
from ragcontract.core.run import Result, RunRow, SourceFile, Values
from ragcontract.decision.gates import observe
from ragcontract.decision.input_problems import input_problems
from ragcontract.evaluation.observations import UnknownQueries
from ragcontract.evaluation.plan import Plan, plan_for
from ragcontract.evaluation.side import Side, evaluate_side
from ragcontract.files.problems import Batch, FileRead
from ragcontract.registry import BUILT_IN, Registry
from ragcontract.runs.baseline_file import ComparedQuery, MeasuredQuery, StoredBatch, StoredHead, Tool
from ragcontract.runs.readers import RunEvent
from ragcontract.statistics.means import Comparison
from tests.records import NOW, Rows, evaluate, golden_of, query
from tests.work import work


def plan_of(*queries: GoldenQuery, registry: Registry = BUILT_IN, repeats: bool = False) -> Plan:
    golden = golden_of(queries)
    return plan_for(resolve(golden, ConfigFile(), registry, has_baseline=False), repeats=repeats)


def rows(*ids: tuple[str, Sequence[str]]) -> Batch[RunRow]:
    found = [
        RunRow(query_id=query_id, results=[Result(doc_id=doc_id) for doc_id in doc_ids]) for query_id, doc_ids in ids
    ]
    return Batch("run.jsonl", 1, found)


def test_both_sides_are_scored_under_the_same_golden_set() -> None:
    queries = [query("same", "A"), query("new", "A"), query("reworded", "A"), query("missing", "A")]
    run = {"same": ["A"], "new": ["A"], "reworded": ["A"], "unknown": ["A"]}
    before = Rows(
        docs={"same": ["x", "A"], "reworded": ["A"], "gone": ["A"]},
        name="baseline.json",
        questions={"same": "What about same?", "reworded": "Another question?", "gone": "?"},
    )
    evaluation = evaluate(queries, run, before)
    assert evaluation.run.rows.missing == ("missing",)
    assert evaluation.run.scores["missing"].values == (0.0,) * 6
    assert evaluation.run.observed(UnknownQueries).listed == ("unknown",)
    baseline = evaluation.baseline
    assert baseline is not None
    assert (baseline.rows.missing, baseline.rows.changed, baseline.observed(UnknownQueries).listed) == (
        ("new", "missing"),
        ("reworded",),
        ("gone",),
    )
    assert list(baseline.scores) == ["same"]


def test_either_side_is_averaged_over_the_queries_that_both_have() -> None:
    queries = [query("same", "A"), query("new", "A"), query("reworded", "A"), query("apart", "A")]
    run = {"same": ["x", "A"], "new": ["A"], "reworded": ["A"], "apart": ["A"]}
    before = Rows(
        docs={"same": ["A"], "reworded": ["A"], "apart": ["x"]}, name="b", questions={"reworded": "Another question?"}
    )

    def mrr(*some: GoldenQuery) -> Comparison:
        evaluation = evaluate(some, {one.id: run[one.id] for one in some}, before)
        return evaluation.aggregates.comparisons["mrr_at_5"]

    assert mrr(*queries[:3]) == Comparison(current=2.5 / 3, current_shared=0.5, baseline=1.0)
    assert mrr(*queries).baseline == 0.5
    assert mrr(queries[1]) == Comparison(current=1.0)
    assert evaluate(queries[:1], run).aggregates.comparisons["mrr_at_5"] == Comparison(current=0.5)


def test_the_cut_off_is_the_configs() -> None:
    evaluation = evaluate([query("q1", "A")], {"q1": ["x", "A"]}, {"q1": ["A"]}, {"k": 1})
    assert evaluation.contract.k == 1
    assert evaluation.run.scores["q1"].values == (0.0,) * 6
    assert evaluation.baseline is not None
    assert evaluation.baseline.scores["q1"].values == (1.0,) * 6


def test_both_sides_are_counted_the_same_way() -> None:
    config = {"k": 2, "rank_by": "documents"}
    evaluation = evaluate([query("q1", "A")], {"q1": ["x", "x", "A"]}, {"q1": ["x", "x", "x", "A"]}, config)
    assert evaluation.baseline is not None
    assert evaluation.run.scores["q1"].ranks == evaluation.baseline.scores["q1"].ranks == (2,)


def test_rows_without_a_golden_query_are_named() -> None:
    side = evaluate_side(plan_of(query("q1", "A")), [rows(("q9", "A"), ("q1", "xA"), ("q8", ""), ("q9", ""))])
    assert list(side.scores) == ["q1"]
    assert side.scores["q1"].ranks == (2,)
    assert (side.observed(UnknownQueries).listed, side.observed(UnknownQueries).more) == (("q9", "q8"), 0)


def test_of_many_rows_without_a_golden_query_the_first_are_named_and_the_others_counted() -> None:
    batch = rows(*((f"q{number % (bounds.UNKNOWN + 2)}", "A") for number in range(2 * bounds.UNKNOWN + 7)))
    side = evaluate_side(plan_of(query("q", "A")), [batch])
    assert side.observed(UnknownQueries).listed == tuple(f"q{number}" for number in range(bounds.UNKNOWN))
    assert side.observed(UnknownQueries).more == 4  # the last two, twice each
    baseline = evaluate_side(plan_of(query("q", "A")).for_baseline(), [batch])
    assert (len(baseline.observed(UnknownQueries).listed), baseline.observed(UnknownQueries).more) == (
        bounds.UNKNOWN + 2,
        0,
    )


def test_a_second_row_of_a_query_is_a_problem_unless_rows_repeat() -> None:
    batch = rows(("q1", "A"), ("q1", "xA"))
    side = evaluate_side(plan_of(query("q1", "A")), [FileRead(SourceFile(path="run.jsonl", sha256="")), batch])
    (problem,) = side.problems.problems
    assert problem.startswith("run.jsonl:2: query_id: duplicate id 'q1', first defined at ")
    repeated = evaluate_side(plan_of(query("q1", "A"), repeats=True), [batch])
    assert not repeated.problems
    assert repeated.scores["q1"].values[0] == 0.75
    assert [one.values[0] for one in repeated.scores["q1"].repeats] == [1.0, 0.5]


class Answered:
    """A toy family that reads the response: its length (lower is better), and whether there is one in time."""

    needs = frozenset({"response", "latency_ms"})
    metrics = (
        Metric(key="length", label="Length", better="lower", scale=Scale(0, 100), fingerprint="v1"),
        Metric(key="in_time", label="In time"),
    )

    def __init__(self, *, from_ids: bool = False) -> None:
        self.from_ids = from_ids
        self.switch = SwitchedOn.ALWAYS

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        if not query.answerable:
            return ()
        if not isinstance(row.response, str):
            return Missing("has no response")
        return float(len(row.response)), float((row.latency_ms or 0) < 10)


class Longest:
    """A toy family that needs nothing but the ids of documents: how many there are, of ten."""

    needs = frozenset({"results"})
    from_ids = True
    switch = SwitchedOn.ALWAYS
    metrics = (Metric(key="results", label="Results", better="lower", scale=Scale(0, 10), fingerprint="v1"),)

    def values(self, query: GoldenQuery, row: RunRow) -> Values:  # noqa: ARG002
        return (float(len(row.results)),)


def answered(_settings: MetricSettings) -> Iterator[Family]:
    yield Answered()


def longest(_settings: MetricSettings) -> Iterator[Family]:
    yield Longest()


WITH_ANSWERS = replace(BUILT_IN, metrics=(*BUILT_IN.metrics, Line(home=answered, always=True)))
WITH_LENGTHS = replace(BUILT_IN, metrics=(*BUILT_IN.metrics, Line(home=longest, always=True)))
ASKED = (query("q1", "A"), query("q2", "A"), query("none"))


def said(*responses: tuple[str, str | None]) -> Batch[RunRow]:
    found = [RunRow(query_id=query_id, results=[], response=response) for query_id, response in responses]
    return Batch("run.jsonl", 1, found)


def columns(side: Side) -> list[Values | None]:
    return side.values(1, ["q1", "q2", "none"])


def test_values_of_other_families_are_in_a_column_of_their_own() -> None:
    plan = plan_of(*ASKED, registry=WITH_ANSWERS)
    side = evaluate_side(plan, [said(("q1", "yes"), ("q2", "maybe"), ("none", None))])
    assert columns(side) == [(3.0, 1.0), (5.0, 1.0), ()]
    assert side.values(0, ["none", "q1"]) == [(), (0.0,) * 6]
    assert not side.problems
    assert plan.needs == {"results", "response", "latency_ms"}


def test_a_row_that_lacks_what_a_metric_needs_is_a_problem() -> None:
    side = evaluate_side(plan_of(*ASKED, registry=WITH_ANSWERS), [said(("q1", "yes"), ("q2", None), ("none", None))])
    assert side.problems.problems == ('run.jsonl:2: query "q2" has no response',)


def test_a_value_outside_of_its_scale_is_a_problem() -> None:
    side = evaluate_side(plan_of(*ASKED, registry=WITH_ANSWERS), [said(("q1", "x" * 101), ("q2", "x" * 100))])
    assert side.problems.problems == ('run.jsonl:1: query "q1" length is 101.0, outside of its scale from 0 to 100',)


def test_a_missing_query_has_the_worst_of_each_metric_in_a_run_and_none_in_a_baseline() -> None:
    plan = plan_of(*ASKED, registry=WITH_ANSWERS)
    assert columns(evaluate_side(plan, [said(("q1", "yes"))]))[1] == (100.0, 0.0)
    assert columns(evaluate_side(plan.for_baseline(), [said(("q1", "yes"))]))[1] is None


def test_values_of_rows_that_repeat_are_averaged() -> None:
    plan = plan_of(*ASKED, registry=WITH_ANSWERS, repeats=True)
    side = evaluate_side(plan, [said(("q1", "yes"), ("q1", "maybe"), ("q2", "no"), ("q1", ""))])
    assert columns(side)[:2] == [(8 / 3, 1.0), (2.0, 1.0)]
    assert side.columns[0].rows("q1") == [(3.0, 1.0), (5.0, 1.0), (0.0, 1.0)]


def test_many_rows_of_a_query_are_averaged_once() -> None:
    plan = plan_of(*ASKED, registry=WITH_ANSWERS, repeats=True)

    def evaluated(rows: int) -> None:
        side = evaluate_side(plan, [said(*[("q1", "yes")] * rows)])
        assert columns(side)[0] == (3.0, 1.0)

    assert work(lambda: evaluated(400)) < 3 * work(lambda: evaluated(200))


def test_a_first_row_with_a_problem_leaves_the_others_to_be_read() -> None:
    plan = plan_of(*ASKED, registry=WITH_ANSWERS, repeats=True)
    side = evaluate_side(plan, [said(("q1", None), ("q1", "maybe"), ("q2", "no"), ("q1", None))])
    assert side.problems.problems == (
        'run.jsonl:1: query "q1" has no response',
        'run.jsonl:4: query "q1" has no response',
    )


class Stored(Rows, frozen=True, kw_only=True):
    """A stored baseline with metrics, and what computed them."""

    metrics: Mapping[str, Mapping[str, float | None]] = {}
    fingerprints: Mapping[str, str] = {}

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[RunEvent]:  # noqa: ARG002
        yield FileRead(SourceFile(path=self.name, sha256=""))
        yield StoredHead(
            format_version=1,
            created_at=NOW.isoformat(),
            created_by=Tool(name="rag-contract", version="1"),
            golden_sha256="",
            k=[5],
            versions={},
            metrics={},
            tags={},
            fingerprints=dict(self.fingerprints),
        )
        yield StoredBatch([self._query(query_id, with_metrics=with_metrics) for query_id in self.docs])

    def _query(self, query_id: str, *, with_metrics: bool) -> ComparedQuery:
        asked = self.questions.get(query_id, f"What about {query_id}?")
        doc_ids: list[str | int] = list(self.docs[query_id])
        if not with_metrics:
            return ComparedQuery(id=query_id, query=asked, doc_ids=doc_ids)
        return MeasuredQuery(id=query_id, query=asked, doc_ids=doc_ids, metrics=dict(self.metrics.get(query_id, {})))


DOCS = {"q1": ["A"], "q2": ["A"]}
THEN = {"q1": {"length": 4.0, "in_time": 1.0}, "q2": {"length": 2.0, "in_time": 1.0}}


def stored(fingerprints: Mapping[str, str], metrics: Mapping[str, Mapping[str, float | None]] = THEN) -> Stored:
    return Stored(docs=DOCS, name="baseline.json", metrics=metrics, fingerprints=fingerprints)


def baseline_of(reader: Stored, registry: Registry = WITH_ANSWERS) -> Side:
    plan = plan_of(*ASKED, registry=registry).for_baseline()
    with_metrics = any(not family.from_ids for family in plan.families)
    return evaluate_side(plan, reader.events(plan.row_type, with_metrics=with_metrics))


def test_stored_metrics_that_cannot_be_computed_again_are_compared() -> None:
    side = baseline_of(stored({"length": "v1"}))
    assert columns(side) == [(4.0, 1.0), (2.0, 1.0), None]
    assert side.stored
    assert side.stored.incomparable == frozenset()


@pytest.mark.parametrize("fingerprints", [{"length": "v0"}, {}, {"length": "v1", "in_time": "v1"}])
def test_a_metric_that_something_else_computed_is_not_comparable(fingerprints: dict[str, str]) -> None:
    wrong = {"in_time"} if "in_time" in fingerprints else {"length"}
    side = baseline_of(stored(fingerprints))
    assert side.stored
    assert side.stored.incomparable == wrong


def test_a_query_without_all_stored_metrics_of_a_family_has_none() -> None:
    side = baseline_of(stored({"length": "v1"}, {"q1": {"length": 4.0}, "q2": {"length": 4.0, "in_time": None}}))
    assert columns(side) == [(), (), None]


def test_a_query_that_was_asked_otherwise_has_no_values() -> None:
    reader = replace(stored({"length": "v1"}), questions={"q1": "Another question?"})
    side = baseline_of(reader)
    assert side.rows.changed == ("q1",)
    assert columns(side) == [None, (2.0, 1.0), None]


def test_metrics_that_ids_are_enough_for_are_computed_again_and_need_no_fingerprint() -> None:
    side = baseline_of(replace(stored({}), docs={"q1": ["A", "B"], "q2": []}), WITH_LENGTHS)
    assert columns(side) == [(2.0,), (0.0,), None]
    assert side.stored
    assert side.stored.incomparable == frozenset()


def answers(fingerprint: str, config: dict[str, object]) -> list[str]:
    """Return the problems of limits on metrics that a baseline stored with this fingerprint."""

    class Said(Rows, frozen=True, kw_only=True):
        def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[RunEvent]:  # noqa: ARG002
            yield FileRead(SourceFile(path=self.name, sha256=""))
            yield said(("q1", "yes"), ("q2", "maybe"), ("none", None))

    reader = stored({"length": fingerprint})
    evaluation = evaluate(ASKED, Said(docs={}, name="run.jsonl"), reader, config, registry=WITH_ANSWERS)
    (amount, *_) = [observe(gate, evaluation).amount for gate in evaluation.contract.gates]
    assert (amount is None) == (fingerprint != "v1")
    return list(input_problems(evaluation).problems)


def test_a_change_of_a_metric_that_something_else_computed_is_refused_and_a_bound_is_not() -> None:
    config: dict[str, object] = {
        "fail_on": {"length_rise_gt": 1, "in_time_drop_gt": 1},
        "maximums": {"length": 1},
    }
    assert answers("v1", config) == []
    (problem,) = answers("v0", config)
    reason = "the baseline's Length was computed in another way (v0, and now v1); recreate it from its run, with "
    assert problem.startswith(f"ragcontract.yml:7: fail_on.length_rise_gt cannot be judged: {reason}")
