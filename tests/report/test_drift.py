"""What else changed between the baseline and the run."""

from datetime import timedelta

import click
import pytest

from ragcontract.core.phrase import render as said
from ragcontract.report.headline import drift
from ragcontract.report.markdown import render
from ragcontract.report.record import Report
from ragcontract.report.terminal import check_text
from tests.records import NOW, Rows, query, report

ONE = [query("q", "A")]


def versions(old: dict[str, list[str]], new: dict[str, list[str]], *, moved: bool = True) -> Report:
    before = Rows(docs={"q": ["A"]}, name="base.jsonl", versions=old)
    return report(ONE, Rows(docs={"q": ["x", "A"] if moved else ["A"]}, name="run.jsonl", versions=new), before)


def disagreeing(values: str) -> list[str]:
    """Return what is said of a run whose rows have one letter each as the version of their index."""
    queries = [query(f"q{number}", "A") for number in range(len(values))]
    rows = Rows(docs={one.id: ["A"] for one in queries}, name="r", versions={"index_version": list(values)})
    return [said(phrase) for phrase in drift(report(queries, rows))]


def test_versions_that_changed_are_named_and_not_called_a_cause() -> None:
    old = {"embedding_model": ["e5-small"], "index_version": ["1"], "chunking_version": ["c"]}
    new = {"embedding_model": ["e5-large"], "index_version": ["2"], "chunking_version": ["c"]}
    steps = "embedding model e5-small → e5-large, index version 1 → 2"
    assert [said(phrase) for phrase in drift(versions(old, new))] == [f"Changed since the baseline: {steps}"]
    assert [said(phrase) for phrase in drift(versions(old, new, moved=False))] == [
        f"Changed since the baseline: {steps}"
    ]
    assert [said(phrase) for phrase in drift(versions(old, old))] == []


def test_rows_of_one_run_that_disagree_are_reported() -> None:
    assert disagreeing("abcde") == ["The run's rows disagree about the index version: a, b, c, 2 more"]


def with_baseline(age: timedelta, max_age: int | None, k: list[int] | None = None) -> list[str]:
    before = Rows(docs={"q": ["A"]}, name="baseline.json", created_at=(NOW - age).isoformat(), k=k)
    return [said(phrase) for phrase in drift(report(ONE, {"q": ["A"]}, before, {"max_baseline_age": max_age}))]


@pytest.mark.parametrize(
    ("days", "max_age", "reported"), [(30, 30, False), (31, 30, True), (31, None, False), (-1, 1, False)]
)
def test_an_old_baseline_is_reported_where_the_config_says_what_is_old(
    days: int, max_age: int | None, reported: bool
) -> None:
    found = with_baseline(timedelta(days=days), max_age)
    assert bool(found) == reported
    assert all(note.startswith("The baseline is 31 days old, more than max_baseline_age allows") for note in found)


@pytest.mark.parametrize(
    ("created_at", "why"),
    [
        (None, "a run does not say when it was made"),
        ("yesterday", "created_at is 'yesterday', which is not a date with a time zone"),
        ("2026-06-30T12:00:00", "created_at is '2026-06-30T12:00:00', which is not a date with a time zone"),
    ],
)
def test_an_age_that_is_limited_and_not_known_is_warned_about(created_at: str | None, why: str) -> None:
    before = Rows(docs={"q": ["A"]}, name="b.json", created_at=created_at)
    said = [f"b.json: its age is not known, so max_baseline_age has no effect ({why})"]
    assert report(ONE, {"q": ["A"]}, before, {"max_baseline_age": 9}).warnings == said
    assert report(ONE, {"q": ["A"]}, before, {}).warnings == []
    dated = Rows(docs={"q": ["A"]}, name="b.json", created_at=NOW.isoformat())
    assert report(ONE, {"q": ["A"]}, dated, {"max_baseline_age": 9}).warnings == []


def test_a_baseline_of_another_k_is_reported() -> None:
    assert with_baseline(timedelta(), None, [10]) == ["The baseline was made with k = 10 and is compared here at k = 5"]
    assert with_baseline(timedelta(), None, [3]) == ["The baseline was made with k = 3 and is compared here at k = 5"]
    assert with_baseline(timedelta(), None, [1, 5]) == []


def test_the_largest_limit_on_the_age_is_never_reached() -> None:
    assert with_baseline(timedelta(days=700_000), 1_000_000_000) == []


def test_some_hours_over_the_limit_are_over_it() -> None:
    assert len(with_baseline(timedelta(days=30, hours=1), 30)) == 1


def test_of_four_values_that_rows_disagree_about_one_is_counted() -> None:
    [three], [four] = disagreeing("abc"), disagreeing("abcd")
    assert (three[-7:], four[-6:]) == ("a, b, c", "1 more")


def test_it_stands_before_the_numbers_and_is_escaped() -> None:
    what = versions({"embedding_model": ["<b>"]}, {"embedding_model": ["@x\x1b|"]})
    markdown = render(what)
    note = "\n- Changed since the baseline: embedding model `<b>` → <code>&#64;<!-- -->x&#92;x1b&#124;</code>\n"
    assert markdown.index(note) < markdown.index("| Metric")
    assert "Changed since the baseline: embedding model <b> → @x\\x1b|\nMRR@5" in click.unstyle(check_text(what))
