"""What is held of broken queries, so that reports can list what was retrieved: no more than that."""

import os
from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.rule import RankRule, Violation
from ragcontract.core.run import SAID, ListedResult, QueryScore, Result, RunRow, SourceFile
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side, evaluate_side
from ragcontract.evaluation.source import Local, evaluate_sides
from ragcontract.files.problems import Batch, FileRead
from ragcontract.registry import BUILT_IN
from ragcontract.runs.baseline_file import ComparedQuery, StoredBatch
from ragcontract.runs.readers import RunEvent
from tests.evaluation.test_evaluate import plan_of, rows
from tests.records import Rows, query
from tests.toys import REGISTRY, MustSay

HEAD = [*Rows(docs={}, name="baseline.json", k=[5]).events(RunRow)][1]


class Given:
    """A reader of events that are given, which counts how often it is read."""

    def __init__(self, events: Sequence[RunEvent]) -> None:
        self._events, self.read = events, 0

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[RunEvent]:  # noqa: ARG002
        self.read += 1
        yield from self._events


def held(side: Side | None) -> dict[str, list[str]]:
    assert side is not None
    return {query_id: [one.doc_id for one in results] for query_id, results in side.listed.retrieved.items()}


def test_only_the_results_of_broken_queries_are_held() -> None:
    plan = plan_of(query("fine", "A"), query("lost", "A"), query("low", "A", must_rank_at_most=1))
    side = evaluate_side(plan, [rows(("fine", ["A"]), ("lost", ["x"]), ("low", ["y", "A"]))])
    assert held(side) == {"lost": ["x"], "low": ["y", "A"]}


def test_scores_and_chunks_are_held_where_the_run_has_them_and_no_more_than_the_top_k() -> None:
    results = [
        Result(doc_id=7, score=0.5, chunk_id=3),
        Result(doc_id="x", score=nan),
        *[Result(doc_id="y")] * 9,
    ]
    side = evaluate_side(plan_of(query("q", "A")), [Batch("run.jsonl", 1, [RunRow(query_id="q", results=results)])])
    assert side.listed.retrieved["q"][:2] == (
        ListedResult(doc_id="7", score=0.5, chunk_id="3"),
        ListedResult(doc_id="x"),
    )
    assert len(side.listed.retrieved["q"]) == 5


def test_where_ranks_count_documents_each_is_listed_once() -> None:
    plan = plan_of(query("q", "A"))
    plan.ranking.by_document = True
    assert held(evaluate_side(plan, [rows(("q", ["x", "x", "x", "y", "z"]))])) == {"q": ["x", "y", "z"]}


def test_a_query_without_a_row_retrieved_nothing() -> None:
    assert held(evaluate_side(plan_of(query("q", "A"), query("p", "A")), [rows(("p", ["A"]))])) == {"q": []}


def test_of_several_rows_the_first_that_breaks_a_rule_is_held() -> None:
    plan = plan_of(query("q", "A"), repeats=True)
    assert held(evaluate_side(plan, [rows(("q", ["A"]), ("q", ["x"]), ("q", ["y"]))])) == {"q": ["x"]}


def test_a_row_that_breaks_a_rule_of_rows_is_held() -> None:
    asked = replace(query("q", "A"), rules=(MustSay(phrase="yes"),))
    row = plan_of(asked, registry=REGISTRY).row_type(query_id="q", results=[Result(doc_id="A")], response="no")
    plan = replace(plan_of(asked, registry=REGISTRY), families=())
    assert held(evaluate_side(plan, [Batch("run.jsonl", 1, [row])])) == {"q": ["A"]}


class NeverFirst(RankRule, frozen=True, kw_only=True, gc=False, tag="never_first"):
    """A rule that clean ranks can break, for all queries."""

    in_rows: ClassVar[bool] = False

    @classmethod
    def of(cls, query: GoldenQuery, settings: object) -> "Sequence[NeverFirst]":  # noqa: ARG003 (the seam's)
        """Apply to every query."""
        return [cls()]

    def violations(self, query: GoldenQuery, score: QueryScore) -> "Sequence[Violation]":  # type: ignore[override]  # noqa: ARG002
        """Return one if the document is the first."""
        return [Violation(rule="never_first", expected=("x",), actual=("y",))] if score.ranks == (1,) else []


def test_a_rule_without_the_shortcut_is_asked_about_every_row() -> None:
    plan = plan_of(
        query("q", "A"),
        registry=replace(BUILT_IN, rules=(*BUILT_IN.rules, Line(names=("never_first",), home=NeverFirst, always=True))),
    )
    assert held(evaluate_side(plan, [rows(("q", ["A"]))])) == {"q": ["A"]}


def test_a_baseline_holds_the_queries_that_are_broken_in_the_run_and_no_others() -> None:
    plan = plan_of(query("q", "A"), query("p", "A"), repeats=True)
    lost = Given([rows(("q", ["x"]), ("p", ["A"]))])
    before = Given([rows(("q", ["A", "x"]), ("p", ["y"]), ("q", ["z"]))])
    _, baseline = evaluate_sides(plan, Local(lost), Local(before))
    assert held(baseline) == {"q": ["A", "x"]}
    batch = StoredBatch(
        [ComparedQuery(id=one, query=f"What about {one}?", doc_ids=[1, "x"], repeats=[["z"]]) for one in ("q", "p")]
    )
    _, stored = evaluate_sides(plan, Local(lost), Local(Given([HEAD, batch])))
    assert held(stored) == {"q": ["1", "x"]}
    assert before.read == 2


def test_a_baseline_is_read_once_where_the_run_breaks_nothing() -> None:
    before = Given([rows(("q", ["A"]))])
    evaluate_sides(plan_of(query("q", "A")), Local(Given([rows(("q", ["A"]))])), Local(before))
    assert before.read == 1


def test_of_a_baseline_that_is_a_pipe_nothing_is_listed(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "base.jsonl")
    before = Given([rows(("q", ["A"])), FileRead(SourceFile(path=str(pipe), sha256=""))])
    _, baseline = evaluate_sides(plan_of(query("q", "A")), Local(Given([rows(("q", ["x"]))])), Local(before))
    assert (held(baseline), before.read) == ({}, 1)


def test_nothing_is_held_where_nothing_is_judged() -> None:
    plan = replace(plan_of(query("q", "A")), rank_rules=())
    assert evaluate_side(plan, [rows(("q", ["x"]))]).listed.retrieved == {}


def said_row(plan: Plan, query_id: str, said: str, *doc_ids: str) -> RunRow:
    """Return a row as it is read from a file for this plan."""
    fields = {"query_id": query_id, "results": [{"doc_id": one} for one in doc_ids], "response": said}
    return msgspec.json.decode(msgspec.json.encode(fields), type=plan.row_type)


def plan_of_answers(*ids: str) -> Plan:
    asked = [replace(query(one, "A"), rules=(MustSay(phrase="yes"),)) for one in ids]
    return replace(plan_of(*asked, registry=REGISTRY), families=())


def test_what_was_said_is_held_for_broken_queries_and_no_others() -> None:
    plan = plan_of_answers("fine", "wrong", "lost")
    rows = [said_row(plan, "fine", "yes", "A"), said_row(plan, "wrong", "no", "A"), said_row(plan, "lost", "yes", "x")]
    said = evaluate_side(plan, [Batch("run.jsonl", 1, rows)]).listed.said
    assert {name: one.response for name, one in said.items()} == {"wrong": "no", "lost": "yes"}


def test_a_baseline_holds_what_was_said_for_the_queries_that_are_broken_in_the_run() -> None:
    plan = plan_of_answers("q", "p").for_baseline(["q"])
    rows = Batch("run.jsonl", 1, [said_row(plan, "q", "yes", "A"), said_row(plan, "p", "no", "A")])
    listed = Local(Given([rows])).listed(plan)
    assert {name: one.response for name, one in listed.said.items()} == {"q": "yes"}


def test_a_contract_of_documents_only_neither_reads_nor_holds_what_was_said() -> None:
    plan = plan_of(query("q", "A"))
    assert plan.row_type.unparsed == frozenset()
    assert SAID & set(plan.row_type.__struct_fields__) == {"error"}  # after which results mean nothing
    assert evaluate_side(plan, [Batch("run.jsonl", 1, [said_row(plan, "q", "no", "x")])]).listed.said == {}


def test_nothing_that_was_said_is_held_where_it_must_not_be_shown() -> None:
    plan = replace(plan_of_answers("q"), texts=False)
    assert evaluate_side(plan, [Batch("run.jsonl", 1, [said_row(plan, "q", "no", "x")])]).listed.said == {}


def test_queries_beyond_the_room_for_texts_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SAID_TEXTS", 5)
    plan = plan_of_answers("a", "b", "c", "d")
    rows = [said_row(plan, one, said, "A") for one, said in (("a", "no"), ("b", "no!"), ("c", "no"), ("d", ""))]
    side = evaluate_side(plan, [Batch("run.jsonl", 1, rows)])
    assert list(side.listed.said) == ["a", "b"]
    assert list(side.listed.retrieved) == ["a", "b", "c", "d"]
