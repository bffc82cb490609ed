"""The text of a comment: which parts go first where there is no room, and the foot."""

import functools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from ragcontract.core.run import RunRow
from ragcontract.github.context import Context
from ragcontract.github.runner_output import LEVELS, fitting, foot, when_checked
from ragcontract.report.markdown import Layout, render
from ragcontract.report.record import Report
from ragcontract.runs.baseline_file import StoredHead
from ragcontract.runs.readers import RunEvent
from tests.records import NOW as REPORTED
from tests.records import Rows, query, report
from tests.report.page import Page

NOW = datetime(2026, 1, 12, 3, 4, tzinfo=UTC)
RUN = {
    "GITHUB_REPOSITORY": "octo/app",
    "GITHUB_RUN_ID": "100",
    "GITHUB_RUN_NUMBER": "10",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_SHA": "5ca1ab1e" * 5,
}
QUERIES = 150


@functools.cache
def large() -> Report:
    """150 broken queries, each worse than in the baseline, with tags, warnings and a trend."""
    queries = [query(f"q{number}", "A", must_rank_at_most=1, tags=(f"t{number}",)) for number in range(QUERIES)]
    ids = [one.id for one in queries]
    made = report(queries, {key: ["x"] for key in ids}, {key: ["A"] for key in ids}, warnings=["odd"] * 9)
    trend = {"values": [1.0, 0.5], "ids": ["20260701T000000Z-a-1-1", "20260702T000000Z-b-2-1"], "now": 0.0}
    history = {"branch": "main", "entries": 2, "metrics": {"mrr_at_5": trend}}
    return msgspec.convert(msgspec.to_builtins(made) | {"history": history}, Report)


def in_detail(detail: Layout) -> str:
    return render(large(), layout=detail)


def fitted(max_bytes: int) -> str:
    body = fitting(in_detail, max_bytes)
    assert len(body.encode()) <= max_bytes
    return body


def size(**detail: Any) -> int:
    return len(in_detail(Layout(**{"trend": False} | detail)).encode())


def test_with_room_all_is_there() -> None:
    assert fitted(10**6) == in_detail(Layout())


def test_the_trend_goes_first_and_all_else_stays() -> None:
    whole = in_detail(Layout())
    [line] = [line for line in whole.splitlines() if ", last 2 runs" in line]
    assert fitted(len(whole.encode()) - 1) == whole.replace(f"{line}\n\n", "")


def test_of_what_was_retrieved_most_lists_go_first_and_the_other_sections_stay() -> None:
    whole, body = Page(in_detail(Layout())), Page(fitted(size() - 1))
    assert (len(whole.retrieved), len(body.retrieved)) == (100, 20)
    assert (body.tables, body.tags.count("details")) == (whole.tables, whole.tags.count("details"))
    assert "… and 130 more broken queries." in body.text


def test_what_is_folded_goes_next_and_every_broken_query_that_was_there_stays() -> None:
    body = fitted(size(retrieved=0) - 1)
    assert "<details>" not in body
    assert Page(body).broken == Page(in_detail(Layout())).broken


def test_then_the_less_bad_of_the_broken_queries_go_and_are_counted() -> None:
    body = fitted(size(folds=False) - 1)
    assert len(Page(body).broken) == 50
    assert "… and 100 more broken queries, in `report.json`." in body
    assert Page(body).broken == Page(in_detail(Layout())).broken[:50]


def test_in_the_end_the_metric_table_is_alone() -> None:
    body = fitted(size(folds=False, rows=0))
    assert [table[0][0] for table in Page(body).tables] == ["Metric"]
    assert "… and 150 more broken queries, in `report.json`." in body


def test_every_level_is_whole_and_smaller_than_the_one_before() -> None:
    sizes = []
    for level in LEVELS:
        body = in_detail(level)
        Page(body)  # fails where a fold, a table or a code is not closed
        sizes.append(len(body.encode()))
    assert sizes == sorted(set(sizes), reverse=True)


@pytest.mark.parametrize("fitting_from", range(len(LEVELS) + 1))
def test_the_first_layout_that_fits_is_found_in_few_tries(fitting_from: int) -> None:
    rendered = []

    def noted(detail: Layout) -> str:
        rendered.append(LEVELS.index(detail))
        return "a" * (100 - rendered[-1])

    most = len(noted(LEVELS[fitting_from])) if fitting_from < len(LEVELS) else 0
    rendered.clear()
    assert len(fitting(noted, most)) == (most or 100 - len(LEVELS) + 1)
    assert rendered[0] == 0
    assert len(rendered) == len(set(rendered)) <= 5


def test_bytes_count_and_not_characters() -> None:
    def wide(detail: Layout) -> str:
        return "✅" * (200 if detail.folds else 10)

    assert fitting(wide, 300) == "✅" * 10


def test_where_nothing_fits_the_barest_is_what_there_is() -> None:
    assert fitting(in_detail, 1) == in_detail(LEVELS[-1])


def context(event: dict[str, Any] | None = None, **environ: str) -> Context:
    return msgspec.structs.replace(Context.from_environ(RUN | environ), event=event or {})


def test_the_foot_has_the_time_the_run_and_the_commit() -> None:
    assert foot(context(), when_checked(None, NOW)) == (
        "\n<sub>Checked 2026-01-12 03:04 UTC · [run 10](https://github.com/octo/app/actions/runs/100)"
        f" · commit {'5ca1ab1e' * 5}</sub>\n"
    )


def test_the_foot_names_the_pull_requests_own_commit_and_not_the_merge_of_it() -> None:
    head = "b" * 40
    assert f"commit {head}<" in foot(context({"pull_request": {"head": {"sha": head}}}), "x")


def test_the_foot_names_a_second_attempt() -> None:
    assert "[run 10, attempt 2](" in foot(context(GITHUB_RUN_ATTEMPT="2"), "x")


def test_without_a_run_the_foot_has_the_time_only() -> None:
    assert foot(Context.from_environ({}), when_checked(None, NOW)) == "\n<sub>Checked 2026-01-12 03:04 UTC</sub>\n"


class Dated(Rows, frozen=True, kw_only=True):
    """A stored baseline that was made when it says so."""

    created_at: str

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[RunEvent]:
        for event in super().events(rows, with_metrics=with_metrics):
            is_head = isinstance(event, StoredHead)
            yield msgspec.structs.replace(event, created_at=self.created_at) if is_head else event


def with_baseline_of(created_at: str | None) -> Report:
    docs, questions = {"q": ["A"]}, {"q": "What about q?"}
    before = (
        Rows(docs=docs, name="baseline.jsonl")
        if created_at is None
        else Dated(docs=docs, name="baseline.json", questions=questions, created_at=created_at)
    )
    made = report([query("q", "A")], docs, before)
    assert made.inputs.baseline
    assert made.inputs.baseline.shared == 1
    return made


@pytest.mark.parametrize(
    ("created_at", "reported"),
    [
        ((REPORTED - timedelta(days=10)).isoformat(), "baseline made 10 days ago"),
        ((REPORTED - timedelta(hours=25)).isoformat(), "baseline made 1 day ago"),
        ((REPORTED - timedelta(hours=23)).isoformat(), "baseline made today"),
        ((REPORTED + timedelta(days=3)).isoformat(), "baseline made today"),
        ("2026-01-01T00:00:00", "baseline made 2026-01-01T00:"),
        ("long ago, @octocat", "baseline made long ago, @&#8203;octocat"),
    ],
)
def test_the_time_comes_with_how_old_the_baseline_is_by_the_report(created_at: str, reported: str) -> None:
    assert reported in when_checked(with_baseline_of(created_at), NOW).replace(":&#8203;", ":").replace("\\-", "-")


def test_a_baseline_without_a_date_has_no_age() -> None:
    assert "baseline" not in when_checked(with_baseline_of(None), NOW)
