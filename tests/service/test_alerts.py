"""What raises an alert: a branch that breaks or passes again, a loss, a lost worker; and what does not."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select

from ragcontract.core import bounds
from ragcontract.service import database_store, trends
from ragcontract.service.alerts import (
    AlertedMetric,
    Loss,
    Payload,
    alert_of_losses,
    alert_of_lost_worker,
    alert_of_run,
    raise_alert,
)
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.database_store import milliseconds
from ragcontract.service.retention import Retention
from ragcontract.service.tables import alerts, projects, runs
from ragcontract.service.trends import Trends, compute
from tests.history.entries import FIRST
from tests.history.trends import contract, ids_of, runs_of
from tests.service.alerting import alerts_of, kinds_of, record_run, waiting_alerts
from tests.service.askers import new_project
from tests.service.conftest import HOSTILE
from tests.service.served import Served
from tests.service.test_trends import contract_blob

HOUR = 3_600_000
BLOCKED, FAILED, PASSED = "run_blocked", "run_failed", "run_passed"


@pytest.mark.parametrize(
    ("verdicts", "kinds"),
    [
        (["pass", "pass"], []),
        (["fail"], [BLOCKED]),
        (["pass", "fail"], [BLOCKED]),
        (["pass", "fail", "fail", "fail"], [BLOCKED]),
        (["pass", "fail", "fail", "pass", "pass"], [BLOCKED, PASSED]),
        (["fail", "pass", "fail", "pass"], [BLOCKED, PASSED, BLOCKED, PASSED]),
        (["fail", "accepted", "fail"], [BLOCKED]),
        (["pass", "accepted", "pass"], []),
        (["pass", "accepted", "fail"], [BLOCKED]),
    ],
)
def test_a_branch_that_breaks_and_one_that_passes_again_is_news_once(
    verdicts: Sequence[str], kinds: Sequence[str], database: Database
) -> None:
    for number, verdict in enumerate(verdicts):
        fields = {"verdict": "fail", "accepted": True} if verdict == "accepted" else {"verdict": verdict}
        record_run(database, **fields, hours_ago=10 - number)
    assert kinds_of(database) == kinds


def test_an_alert_says_what_happened(database: Database) -> None:
    record_run(database, "fail", summary="docs: 3 of 17 queries broken")
    (alert,) = alerts_of(database)
    commit = alert.payload.commit or ""
    assert alert.payload.summary == f"the contract is broken at {commit[:7]}: 3 of 17 queries broken"
    with database.read() as connection:
        (number,) = connection.execute(select(runs.c.id)).scalars()
    assert (alert.payload.project, alert.payload.branch, alert.payload.run) == ("docs", "main", number)


def test_other_branches_are_no_news(database: Database) -> None:
    record_run(database, "pass", hours_ago=3)
    record_run(database, "fail", hours_ago=2, branch="feature")
    record_run(database, "fail", hours_ago=1, branch=None)
    assert kinds_of(database) == []
    record_run(database, "fail")
    assert kinds_of(database) == [BLOCKED]


def test_a_history_that_is_copied_raises_one_alert_at_most(database: Database) -> None:
    for days in (400, 30, 2, 1.1):
        record_run(database, "fail", hours_ago=24 * days)
        record_run(database, "pass", hours_ago=24 * days - 1)
    assert kinds_of(database) == []
    for hours in (5, 4, 3, 2):
        record_run(database, "fail", hours_ago=hours)
    assert kinds_of(database) == [BLOCKED]


def test_a_run_that_comes_late_changes_nothing_that_is_true_now(database: Database) -> None:
    record_run(database, "pass", hours_ago=3)
    record_run(database, "fail", hours_ago=2)
    record_run(database, "pass")
    record_run(database, "fail", hours_ago=1)
    assert kinds_of(database) == [BLOCKED, PASSED]


def test_an_entry_that_is_sent_twice_raises_one_alert(database: Database) -> None:
    for _ in range(2):
        record_run(database, "fail")
    assert kinds_of(database) == [BLOCKED]


def test_an_alert_is_undone_with_what_happened(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def alert_then_fail(*arguments: Any) -> None:
        assert alert_of_run(*arguments)
        raise ZeroDivisionError

    monkeypatch.setattr(database_store, "alert_of_run", alert_then_fail)
    with pytest.raises(ZeroDivisionError):
        record_run(database, "fail")
    assert kinds_of(database) == []


def service_runs(database: Database, states: Sequence[str]) -> list[int]:
    """Let runs of the service end, one after the other; return their ids."""
    numbers = count()

    def job(connection: Connection) -> list[int]:
        known = connection.execute(select(projects.c.id).where(projects.c.slug == "docs")).scalar()
        project, ended = known or new_project(connection, "docs"), []
        for number, state in zip(numbers, states, strict=False):
            at = now_ms() - HOUR + number * 1_000
            row = {"project_id": project, "key": f"service-{at}", "origin": "service", "state": state, "attempt": 1}
            row |= {"created_at": at, "finished_at": at, "problem": f"the target is gone {HOSTILE}\nat line 2"}
            run = connection.execute(insert(runs).values(row).returning(runs.c.id)).scalar_one()
            alert_of_run(connection, run, now_ms())
            ended.append(run)
        return ended

    return database.write(job)


@pytest.mark.parametrize(
    ("states", "kinds"),
    [
        (["completed", "failed", "failed"], [FAILED]),
        (["failed", "blocked", "failed", "blocked"], [FAILED, BLOCKED]),
        (["blocked", "failed", "completed"], [BLOCKED, PASSED]),
        (["failed", "cancelled", "completed"], [FAILED, PASSED]),
        (["running", "queued", "cancelled"], []),
    ],
)
def test_runs_of_the_service_without_a_verdict_are_news_too(
    states: Sequence[str], kinds: Sequence[str], database: Database
) -> None:
    service_runs(database, states)
    assert kinds_of(database) == kinds


def test_runs_of_ci_and_of_the_service_are_two_rows(database: Database) -> None:
    record_run(database, "pass", hours_ago=2)
    service_runs(database, ["blocked"])
    record_run(database, "pass")
    assert kinds_of(database) == [BLOCKED]


def test_the_reason_of_a_run_without_a_verdict_is_one_line_of_visible_text(database: Database) -> None:
    service_runs(database, ["failed"])
    (alert,) = alerts_of(database)
    assert alert.payload.summary.startswith("a run ended without a verdict: the target is gone <script>")
    assert "line 2" not in alert.payload.summary
    assert "\u202e" not in alert.payload.summary


def test_a_lost_worker_is_news_once_an_attempt(database: Database) -> None:
    (run,) = service_runs(database, ["running"])
    for attempt in (1, 1, 2):
        database.write(lambda connection, attempt=attempt: alert_of_lost_worker(connection, run, attempt, now_ms()))  # type: ignore[misc]
    assert [(each.kind, each.payload.attempt) for each in alerts_of(database)] == [
        ("worker_lost", 1),
        ("worker_lost", 2),
    ]
    assert alerts_of(database)[0].payload.summary == f"a worker was lost during attempt 1 of run {run}"


def lost(
    database: Database, *losses: tuple[str, int], of_runs: int = 40, hours: int = 24, ended: int = 0
) -> list[tuple[int | None, list[str]]]:
    """Store a trend in which metrics are worse since runs; return the runs and the metrics of the alerts."""
    newest = now_ms() - ended
    order = [(number, newest - (of_runs - 1 - number) * hours * HOUR) for number in range(of_runs)]
    means = {"before": 1.0, "after": 0.5}
    known = [
        Loss(run, order[run][1], None, AlertedMetric(metric=metric, label=metric.upper(), **means))
        for metric, run in losses
    ]

    def job(connection: Connection) -> None:
        project = connection.execute(select(projects.c.id)).scalar() or new_project(connection, "docs")
        alert_of_losses(connection, project, order, known, now_ms())

    database.write(job)
    return [(each.payload.run, [metric.metric for metric in each.payload.metrics]) for each in alerts_of(database)]


def test_a_loss_is_news_once_even_if_its_run_moves_by_a_few(database: Database) -> None:
    assert lost(database, ("mrr", 35)) == [(35, ["mrr"])]
    assert lost(database, ("mrr", 35)) == [(35, ["mrr"])]
    assert lost(database, ("mrr", 38)) == [(35, ["mrr"])]
    assert alerts_of(database)[0].payload.summary == "MRR (1.00 → 0.50) is worse since run 35"


def test_a_loss_far_from_an_alert_is_news(database: Database) -> None:
    lost(database, ("mrr", 28))
    assert lost(database, ("mrr", 39)) == [(28, ["mrr"]), (39, ["mrr"])]


def test_losses_since_one_run_are_one_alert_and_a_later_metric_another(database: Database) -> None:
    assert lost(database, ("mrr", 35), ("recall", 35), ("ndcg", 38)) == [(35, ["mrr", "recall"]), (38, ["ndcg"])]
    assert lost(database, ("mrr", 35), ("map", 35))[2:] == [(35, ["map"])]


def test_old_losses_are_no_news(database: Database) -> None:
    assert lost(database, ("mrr", 39 - bounds.ALERT_CHANGE_DAYS - 1)) == []
    assert lost(database, ("mrr", 39), ended=2 * DAY) == []
    assert lost(database) == []


def test_a_planted_loss_raises_an_alert_with_its_trend(
    served: Served, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    contract(tmp_path)
    ids = ids_of()
    entries = runs_of(30, losses={21: ids[:5]})
    blob = served.send_blob(contract_blob(), "golden")
    for new in entries:
        served.add(new, default_branch=True, golden=blob)
    newest = milliseconds((FIRST + timedelta(hours=12 * 29)).isoformat())
    monkeypatch.setattr(trends, "now_ms", lambda: newest + HOUR)
    database = served.database
    with database.read() as connection:
        project = connection.execute(select(projects.c.id)).scalar_one()
        run = connection.execute(select(runs.c.id).order_by(runs.c.created_at).offset(21).limit(1)).scalar_one()
    for _ in range(2):
        assert compute(database, project, None)
    (alert,) = [each for each in alerts_of(database) if each.kind == "change_point"]
    assert alert.payload.run == run
    assert "mrr_at_5" in [each.metric for each in alert.payload.metrics]
    assert "MRR@5 (1.00 → 0.84)" in alert.payload.summary


def test_alerts_that_wait_are_bounded_by_project(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "ALERTS_WAITING", 5)
    waiting_alerts(database, 9)
    waiting_alerts(database, 2, project="other")
    assert len(alerts_of(database)) == 7


def test_old_alerts_are_deleted(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting_alerts(database, 6)
    retention = Retention(database, 0, Trends(database))
    retention.delete(now_ms())
    assert len(alerts_of(database)) == 6
    monkeypatch.setattr(bounds, "ALERTS_STORED", 4)
    retention.delete(now_ms())
    assert [each.id for each in alerts_of(database)] == [3, 4, 5, 6]
    retention.delete(now_ms() + (bounds.ALERT_ROW_DAYS + 1) * DAY)
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(alerts)).scalar_one() == 0


def test_hostile_names_are_stored(database: Database) -> None:
    payload = Payload(summary=f"\0{HOSTILE}\ud800".replace("\ud800", "\ufffd"))
    database.write(
        lambda connection: raise_alert(connection, "test", f"\0{HOSTILE}", payload, project_id=None, now=now_ms())
    )
    assert [each.payload for each in alerts_of(database)] == [payload]
