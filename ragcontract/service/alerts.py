"""Alerts: what people should hear of at once. Each is a row, written in the transaction of what happened, once.

A project that is broken raises an alert when it begins to be, and when it passes again, not with every run.
:mod:`ragcontract.service.alert_delivery` sends them.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select

from ragcontract.core import bounds
from ragcontract.core.numbers import digits_for, fixed, more
from ragcontract.core.safe_text import clipped_line
from ragcontract.history.entry import short_commit
from ragcontract.service.database import DAY, Rows, index_key, insert_if_new
from ragcontract.service.production.drift import Alarm
from ragcontract.service.projects_and_runs import NEWEST, project_branch
from ragcontract.service.tables import alerts, projects, runs

log = logging.getLogger(__name__)
Kind = Literal["run_blocked", "run_failed", "run_passed", "change_point", "drift", "worker_lost", "test"]
OF_STATE: dict[str, Kind] = {"blocked": "run_blocked", "failed": "run_failed", "completed": "run_passed"}
HOUR = DAY // 24
# A change point moves by a few runs while further runs come: one that is so near to an alert is the same.
NEAR_RUNS, NEAR_TIME = 10, 3 * DAY
NEAR_DAYS = 3  # an alarm of a monitor that begins so near to an alerted one is the same: late interactions move it


class AlertedMetric(Struct, frozen=True, kw_only=True):
    """A metric that is worse since a run."""

    metric: str
    label: str
    before: float
    after: float


class Payload(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is stored of an alert besides its columns; texts are as they were, and shown only with escapes."""

    summary: str
    project: str | None = None  # the slug
    title: str = ""  # what people call the project
    run: int | None = None
    run_at: int | None = None
    commit: str | None = None
    branch: str | None = None
    attempt: int | None = None
    metrics: Sequence[AlertedMetric] = ()
    monitor: str | None = None  # of production
    day: int | None = None  # on which its alarm began
    problem: str | None = None  # why the last try to deliver it has failed
    failed_at: int | None = None  # when that was


def raise_alert(
    connection: Connection, kind: Kind, dedupe: str, payload: Payload, *, project_id: int | None, now: int
) -> bool:
    """Store an alert in the transaction of what happened; return False if there is one with this ``dedupe``.

    It is also not stored while too many alerts of the project wait.
    """
    of_project = alerts.c.project_id.is_not_distinct_from(project_id), is_waiting(now)
    waiting = connection.execute(select(func.count()).select_from(alerts).where(*of_project)).scalar_one()
    if waiting >= bounds.ALERTS_WAITING:
        log.warning("an alert of project %s is left out, because %s of them wait", project_id, waiting)
        return False
    row = {"project_id": project_id, "dedupe": index_key(dedupe), "kind": kind, "payload": encoded(payload)}
    return insert_if_new(connection, alerts, row | {"created_at": now, "next_try_at": now})


def encoded(payload: Payload) -> str:
    """Return what the table has of a payload."""
    return msgspec.json.encode(payload).decode()


def payload_of(text: str) -> Payload:
    """Return a payload of the table."""
    return msgspec.json.decode(text, type=Payload)


def is_waiting(now: int) -> "ColumnElement[bool]":
    """Return the condition that an alert is to be delivered: it was not, and was not given up."""
    return and_(alerts.c.delivered_at.is_(None), alerts.c.created_at >= now - bounds.ALERT_DAYS * DAY)


def expired_alert(now: int) -> "ColumnElement[bool]":
    """Return the condition that an alert is no longer kept."""
    first_beyond = select(alerts.c.id).order_by(alerts.c.id.desc()).offset(bounds.ALERTS_STORED).limit(1)
    return or_(alerts.c.created_at < now - bounds.ALERT_ROW_DAYS * DAY, alerts.c.id <= first_beyond.scalar_subquery())


def alerts_below(connection: Connection, number: int, limit: int) -> Rows:
    """Return alerts with their projects whose ids are smaller, the newest first."""
    columns = *alerts.c, projects.c.slug, projects.c.name
    of_projects = select(*columns).outerjoin(projects, projects.c.id == alerts.c.project_id)
    rows = of_projects.where(alerts.c.id < number).order_by(alerts.c.id.desc()).limit(limit)
    return connection.execute(rows).mappings().all()


def alert_of_run(connection: Connection, run_id: int, now: int) -> bool:
    """Raise an alert of a run that has ended, in the same transaction, if its project is broken or passes again.

    The runs of the service are a row of their own, and those of the project's branch that CI sends another one. Only
    the newest of a row counts, and only if it is new: a history that is copied brings thousands of old ones. A run that
    is broken raises an alert if it is the first since a pass, or the first with a verdict after others without any.
    """
    (run,) = connection.execute(_runs().where(runs.c.id == run_id))
    ended_at = run.created_at if run.finished_at is None else run.finished_at
    if run.state not in OF_STATE or ended_at < now - bounds.ALERT_RUN_HOURS * HOUR or _is_accepted(connection, run):
        return False
    branch = project_branch(connection, run.project_id)
    if run.origin == "ci" and run.branch != branch:
        return False
    others = connection.execute(_others(run)).all()
    if others and (others[0].created_at, others[0].id) > (run.created_at, run.id):
        return False
    before = {*_states_since_pass(connection, others)}
    is_news = {"blocked": "blocked" not in before, "failed": not before, "completed": bool(before)}
    if not is_news[run.state]:
        return False
    kind = OF_STATE[run.state]
    payload = Payload(
        summary=_summary(run),
        project=run.slug,
        title=_title(run),
        run=run.id,
        run_at=run.created_at,
        commit=run.commit_sha,
        branch=run.branch,
    )
    return raise_alert(connection, kind, f"{kind}:{run.id}", payload, project_id=run.project_id, now=now)


def alert_of_lost_worker(connection: Connection, run_id: int, attempt: int, now: int) -> bool:
    """Raise an alert of a run whose worker is gone, where its lease has expired; once an attempt."""
    (run,) = connection.execute(_runs().where(runs.c.id == run_id))
    payload = Payload(
        summary=f"a worker was lost during attempt {attempt} of run {run.id}",
        project=run.slug,
        title=_title(run),
        run=run.id,
        attempt=attempt,
    )
    dedupe = f"worker_lost:{run.id}:{attempt}"
    return raise_alert(connection, "worker_lost", dedupe, payload, project_id=run.project_id, now=now)


def alert_of_drift(connection: Connection, project_id: int, alarm: Alarm, now: int) -> bool:
    """Raise an alert of a monitor's alarm, in the transaction that stores its day."""
    of_days = {step: _dedupe(project_id, alarm, alarm.day + step * DAY) for step in range(-NEAR_DAYS, NEAR_DAYS + 1)}
    if connection.execute(select(alerts.c.id).where(alerts.c.dedupe.in_([*of_days.values()])).limit(1)).first():
        return False
    (project,) = connection.execute(select(projects.c.slug, projects.c.name).where(projects.c.id == project_id))
    payload = Payload(
        summary=alarm.sentence,
        project=project.slug,
        title=_title(project),
        monitor=alarm.monitor,
        day=alarm.day,
    )
    return raise_alert(connection, "drift", of_days[0], payload, project_id=project_id, now=now)


def _dedupe(project_id: int, alarm: Alarm, day: int) -> str:
    return index_key(f"drift:{project_id}:{alarm.monitor}:{alarm.direction}:{day}")


def alert_of_test(connection: Connection, now: int) -> bool:
    """Raise an alert that shows whether alerts arrive."""
    payload = Payload(summary="a test of the team service: alerts arrive here")
    return raise_alert(connection, "test", f"test:{now}", payload, project_id=None, now=now)


def _runs() -> Any:
    columns = runs.c.id, runs.c.project_id, runs.c.origin, runs.c.state, runs.c.branch, runs.c.commit_sha
    more_columns = runs.c.summary, runs.c.problem, runs.c.created_at, runs.c.finished_at
    return select(*columns, *more_columns, projects.c.slug, projects.c.name).join(projects)


def _others(run: "Row[Any]") -> Any:
    """Return the query for the ended runs of the same row, the newest first."""
    same = [runs.c.project_id == run.project_id, runs.c.origin == run.origin, runs.c.id != run.id]
    if run.origin == "ci":
        same.append(runs.c.branch.is_not_distinct_from(run.branch))
    ended = select(runs.c.id, runs.c.state, runs.c.created_at).where(*same, runs.c.state.in_(OF_STATE))
    return ended.order_by(*NEWEST).limit(bounds.SERVICE_RUNS_BEFORE)


def _states_since_pass(connection: Connection, newest_first: "Sequence[Row[Any]]") -> Iterator[str]:
    """Yield the states of the runs since the last pass; a broken contract that a label accepted is none of them."""
    for run in newest_first:
        if run.state == "completed":
            return
        if not _is_accepted(connection, run):
            yield run.state


class _Accepted(Struct):
    accepted: bool = False


def _is_accepted(connection: Connection, run: "Row[Any]") -> bool:
    if run.state != "blocked":
        return False
    entry = connection.execute(select(runs.c.entry).where(runs.c.id == run.id)).scalar()
    return entry is not None and msgspec.json.decode(entry, type=_Accepted).accepted


def _title(row: Any) -> str:
    """Return what people call a project."""
    return clipped_line(row.name or row.slug, bounds.HTML_NAME)


def _summary(run: "Row[Any]") -> str:
    says = {
        "blocked": "the contract is broken",
        "failed": "a run ended without a verdict",
        "completed": "the contract holds again",
    }
    summary = (run.summary or "").removeprefix(f"{run.slug}: ")
    reason = (run.problem or "").partition("\n")[0] if run.state == "failed" else summary  # more is on the run's page
    detail = clipped_line(reason, bounds.HTML_TEXT)
    commit = f" at {short_commit(run.commit_sha)}" if run.commit_sha else ""
    return f"{says[run.state]}{commit}{f': {detail}' if detail else ''}"


class Loss(NamedTuple):
    """A metric that is worse since a run, most of which was not made up for."""

    run: int
    at: int
    commit: str | None
    metric: AlertedMetric


def alert_of_losses(
    connection: Connection, project_id: int, order: Sequence[tuple[int, int]], losses: Iterable[Loss], now: int
) -> None:
    """Raise an alert of each run since which metrics are worse, in the transaction that stores the trend.

    ``order`` has the ids and times of the trend's runs, the oldest first. Only changes in the last days of runs count,
    and only while there are runs: a history that is copied has many. A metric that an alert near the run has is known.
    """
    newest = order[-1][1] if order else 0
    if newest < now - bounds.ALERT_RUN_HOURS * HOUR:
        return
    recent = [loss for loss in losses if loss.at >= newest - bounds.ALERT_CHANGE_DAYS * DAY]
    if not recent:
        return
    places = {run: place for place, (run, _) in enumerate(order)}
    known = _known_losses(connection, project_id)
    new = [loss for loss in recent if not any(_is_near(loss, *each, places) for each in known)]
    columns = projects.c.slug, projects.c.name
    (project,) = connection.execute(select(*columns).where(projects.c.id == project_id))
    for run, of_run in groupby(sorted(new, key=lambda loss: places[loss.run]), lambda loss: loss.run):
        since = [*of_run]
        metrics = [loss.metric for loss in since]
        payload = Payload(
            summary=f"{_worse(metrics)} since {_since(run, since[0].commit)}",
            project=project.slug,
            title=_title(project),
            run=run,
            run_at=since[0].at,
            commit=since[0].commit,
            metrics=metrics,
        )
        dedupe = f"change_point:{run}:{' '.join(metric.metric for metric in metrics)}"
        raise_alert(connection, "change_point", dedupe, payload, project_id=project_id, now=now)


def _known_losses(connection: Connection, project_id: int) -> list[tuple[str, int, int]]:
    """Return the metrics, runs and times of the project's alerts of change points."""
    of_project = alerts.c.project_id == project_id, alerts.c.kind == "change_point"
    payloads = map(payload_of, connection.execute(select(alerts.c.payload).where(*of_project)).scalars())
    return [(metric.metric, each.run or 0, each.run_at or 0) for each in payloads for metric in each.metrics]


def _is_near(loss: Loss, metric: str, run: int, at: int, places: dict[int, int]) -> bool:
    if loss.metric.metric != metric:
        return False
    near_in_order = run in places and abs(places[run] - places[loss.run]) <= NEAR_RUNS
    return near_in_order or abs(at - loss.at) <= NEAR_TIME


def _worse(metrics: Sequence[AlertedMetric]) -> str:
    shown = [_change(metric) for metric in metrics[: bounds.NAMES]]
    verb = "is" if len(metrics) == 1 else "are"
    return f"{', '.join(shown)}{more(len(metrics), len(shown))} {verb} worse"


def _change(metric: AlertedMetric) -> str:
    digits = digits_for([(metric.before, metric.after)])
    label = clipped_line(metric.label, bounds.HTML_NAME)
    return f"{label} ({fixed(metric.before, digits)} → {fixed(metric.after, digits)})"


def _since(run: int, commit: str | None) -> str:
    return f"commit {short_commit(commit)}" if commit else f"run {run}"
