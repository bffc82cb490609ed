"""How ranks moved since the baseline, and what is worst."""

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from ragcontract.report.headline import changed_versions
from ragcontract.report.markdown import document
from ragcontract.report.queries import broken_queries
from ragcontract.report.rank_changes import Step, rank_changes
from ragcontract.report.record import Report
from tests.records import query, report


def moved(
    before: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[str]]
) -> tuple[list[str], list[str], int | None]:
    """Return the queries that got worse and better, in order; each wants A, B and C."""
    queries = [query(query_id, "A", "B", "C") for query_id in now]
    found = rank_changes(report(queries, now, before))
    return [item.query.id for item in found.worse], [item.query.id for item in found.better], found.even


@pytest.mark.parametrize(
    ("before", "now", "where"),
    [
        ("A", "A", "even"),
        ("A", "xA", "worse"),
        ("xA", "A", "better"),
        ("A", "x", "worse"),
        ("x", "A", "better"),
        ("x", "x", "even"),
        ("AB", "BA", "even"),  # changed places
        ("ABC", "CAB", "even"),
        ("xxxxxAB", "BAxxxxx", "better"),
        ("AxB", "AxxB", "worse"),
        ("xA", "xxAxxB", "even"),  # 1/2 is 1/3 and 1/6
        ("AxxxxB", "xABC", "worse"),  # two others came up, and the first fell
    ],
)
def test_a_query_is_worse_better_or_even(before: str, now: str, where: str) -> None:
    worse, better, even = moved({"q": list(before)}, {"q": list(now)})
    assert (worse, better, even) == (["q"] * (where == "worse"), ["q"] * (where == "better"), where == "even")


def test_a_report_of_broken_queries_alone_does_not_know_how_many_are_even() -> None:
    made = report([query("q1", "A"), query("q2", "A")], {"q1": ["x"], "q2": ["x", "A"]}, {"q1": ["A"], "q2": ["A"]})
    assert rank_changes(made).even == 0
    listed = replace(made, detail="failed", queries=[one for one in made.queries if one.violations])
    assert rank_changes(listed).even is None
    assert "<summary>Rank changes: 2 worse</summary>" in document.render(made)
    assert "<summary>Rank changes of broken queries: 1 worse</summary>" in document.render(listed)


def test_a_report_that_lists_more_than_both_sides_share_has_no_even_queries() -> None:
    made = report([query("q1", "A")], {"q1": ["x"]}, {"q1": ["A"]})
    assert made.inputs.baseline is not None
    wrong = replace(made, inputs=replace(made.inputs, baseline=replace(made.inputs.baseline, shared=0)))
    assert rank_changes(wrong).even == 0


def test_the_worst_and_the_best_come_first() -> None:
    now = {"slipped": ["x", "A"], "lost": ["x"], "low": ["x", "x", "A"], "rose": ["x", "A"], "won": ["A"]}
    before = {"slipped": ["A"], "lost": ["A"], "low": ["x", "A"], "rose": ["x", "x", "A"], "won": ["x"]}
    assert moved(before, now) == (["lost", "slipped", "low"], ["won", "rose"], 0)


def test_queries_without_a_baseline_have_not_moved() -> None:
    assert moved({"old": ["A"]}, {"old": ["A"], "new": ["x"]}) == ([], [], 1)


def test_by_how_much() -> None:
    (item,) = rank_changes(report([query("q", "A")], {"q": ["x", "x", "x", "A"]}, {"q": ["x", "A"]})).worse
    assert item.change == -0.25


def worst_first(made: Report) -> list[str]:
    return [query.id for query in broken_queries(made)]


def test_forbidden_documents_are_worst_then_what_was_lost() -> None:
    queries = [
        query("slipped", "A", must_rank_at_most=1),
        query("never there", "A"),
        query("leak", "A", forbidden_doc_ids=("F",)),
        query("lost", "A"),
        query("rose, still too low", "A", must_rank_at_most=1),
        query("good", "A"),
    ]
    before = {"slipped": "A", "never there": "x", "leak": "A", "lost": "A", "rose, still too low": "xxxA", "good": "A"}
    now = {"slipped": "xA", "never there": "x", "leak": "AF", "lost": "x", "rose, still too low": "xA", "good": "A"}
    assert worst_first(report(queries, now, before)) == [
        "leak",
        "lost",
        "slipped",
        "never there",
        "rose, still too low",
    ]


def test_without_a_baseline_what_lacks_most_is_worst() -> None:
    queries = [query("low", "A", must_rank_at_most=1), query("one lost", "A"), query("two lost", "A", "B")]
    now = {"low": "xA", "two lost": "x", "one lost": "x"}
    assert worst_first(report(queries, now)) == ["two lost", "one lost", "low"]


def test_versions_that_changed() -> None:
    before = {
        "embedding_model": ["e5@1"],
        "index_version": ["1", "2"],
        "chunking_version": ["c"],
        "retriever_version": [],
    }
    now = {"embedding_model": ["e5@2"], "index_version": ["2", "1"], "retriever_version": ["r"], "other": ["o"]}
    assert changed_versions(now, before) == {"embedding_model": ("e5@1", "e5@2")}
    assert changed_versions({"index_version": ["2", "3"]}, before) == {"index_version": ("1, 2", "2, 3")}
    assert changed_versions({}, before) == {}


def test_a_forbidden_document_that_appears_is_worse_and_one_that_leaves_is_better() -> None:
    asked = [query("came", "a", forbidden_doc_ids=("x",)), query("left", "a", forbidden_doc_ids=("x",))]
    made = report(asked, {"came": ["a", "x"], "left": ["a"]}, {"came": ["a"], "left": ["a", "x"]})
    moved = rank_changes(made)
    assert [(item.query.id, item.change) for item in moved.worse] == [("came", -0.5)]
    assert [(item.query.id, item.change) for item in moved.better] == [("left", 0.5)]
    assert moved.worse[0].steps == [Step(doc_id="x", before=None, now=2, forbidden=True)]
