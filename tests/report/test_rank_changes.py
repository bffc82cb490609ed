"""How ranks moved since the baseline, and what is worst."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from ragcontract.report import markdown
from ragcontract.report.headline import changed_versions
from ragcontract.report.queries import broken_queries
from ragcontract.report.record import Report
from tests.records import query, report


class Moved(NamedTuple):
    """What a report in Markdown has on ranks that changed."""

    worse: list[str]  # queries
    better: list[str]
    even: int  # queries
    documents: dict[str, str]  # with their ranks before and now, by query


def in_report(made: Report) -> Moved:
    """Return the queries that got worse and better, in order, how many did neither, and their documents."""
    section = markdown.render(made).partition("<summary>Rank changes")[2].partition("</details>")[0]
    summary, _, tables = section.partition("</summary>")
    rows = {
        side: re.findall(r"<br>`([^`]+)` \| (.*) \|$", text, re.MULTILINE)
        for side, text in re.findall(r"\*\*(Worse|Better)\*\*(.*?)(?=\*\*|\Z)", tables, re.DOTALL)
    }
    even = re.search(r"(\d+) the same", summary)
    worse, better = ([query for query, _ in rows.get(side, ())] for side in ("Worse", "Better"))
    return Moved(worse, better, int(even[1]) if even else 0, dict(pair for pairs in rows.values() for pair in pairs))


def moved(before: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[str]]) -> Moved:
    """Report on queries that want A, B and C each."""
    return in_report(report([query(query_id, "A", "B", "C") for query_id in now], now, before))


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
    fixed = {"fixed": ["A"], "other": ["A"]}  # a query that changes, so that there is a section
    found = moved({"q": list(before), "other": [], "fixed": ["A"]}, {"q": list(now), **fixed})
    assert (found.worse, sorted(found.better), found.even) == (
        ["q"] * (where == "worse"),
        ["other", *["q"] * (where == "better")],
        1 + (where == "even"),
    )


def test_a_report_of_broken_queries_alone_does_not_know_how_many_are_even() -> None:
    made = report([query("q1", "A"), query("q2", "A")], {"q1": ["x"], "q2": ["x", "A"]}, {"q1": ["A"], "q2": ["A"]})
    listed = replace(made, detail="failed", queries=[one for one in made.queries if one.violations])
    assert "<summary>Rank changes: 2 worse</summary>" in markdown.render(made)
    assert "<summary>Rank changes of broken queries: 1 worse</summary>" in markdown.render(listed)


def test_a_report_that_lists_more_than_both_sides_share_has_no_even_queries() -> None:
    made = report([query("q1", "A")], {"q1": ["x"]}, {"q1": ["A"]})
    assert made.inputs.baseline is not None
    wrong = replace(made, inputs=replace(made.inputs, baseline=replace(made.inputs.baseline, shared=0)))
    assert "<summary>Rank changes: 1 worse</summary>" in markdown.render(wrong)


def test_the_worst_and_the_best_come_first() -> None:
    now = {"slipped": ["x", "A"], "lost": ["x"], "low": ["x", "x", "A"], "rose": ["x", "A"], "won": ["A"]}
    before = {"slipped": ["A"], "lost": ["A"], "low": ["x", "A"], "rose": ["x", "x", "A"], "won": ["x"]}
    assert moved(before, now)[:3] == (["lost", "slipped", "low"], ["won", "rose"], 0)


def test_queries_without_a_baseline_have_not_moved() -> None:
    assert moved({"old": ["A"]}, {"old": ["A"], "new": ["x"]})[:3] == ([], [], 1)


def test_a_rank_is_worth_its_reciprocal() -> None:
    before = {"a sixth": ["x", "A"], "a quarter": ["x", "A"], "three tenths": ["x", "A"]}
    now = {"a sixth": [*"xxA"], "a quarter": [*"xxxA"], "three tenths": [*"xxxxA"]}
    assert moved(before, now).worse == ["three tenths", "a quarter", "a sixth"]


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
    asked = [query(name, "a", forbidden_doc_ids=("x",)) for name in ("more", "came", "less", "left")]
    now = {"came": ["a", "x"], "left": ["a"], "more": [*"yyya"], "less": [*"yyya"]}
    before = {"came": ["a"], "left": ["a", "x"], "more": ["a"], "less": ["y", "a"]}
    found = in_report(report(asked, now, before))
    assert (found.worse, found.better) == (["more", "came", "less"], ["left"])
    assert found.documents["came"] == "`x` (forbidden) missing → 2"
