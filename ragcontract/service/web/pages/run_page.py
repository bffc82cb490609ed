"""The pages of a run, which say why it failed, and what changed since the last pass."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Redirect, Template
from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, RowMapping

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.gate import NOUNS, written
from ragcontract.core.metric import loss
from ragcontract.core.numbers import SAME
from ragcontract.core.safe_text import visible
from ragcontract.decision.gate_report import KINDS, WORST_FIRST
from ragcontract.history.choose_baseline import LAST_PASS
from ragcontract.history.entry import Entry, EntryGate
from ragcontract.history.interface import ConflictError
from ragcontract.report.headline import VERDICTS
from ragcontract.report.html import page as report_page
from ragcontract.report.json_report import refusing_inconsistent
from ragcontract.service.audit import actor_of
from ragcontract.service.database import Database, index_key
from ragcontract.service.projects_and_runs import broken_rules, log_of, place_in_queue, project_branch
from ragcontract.service.run_diff import RunDiff, entry_of, last_pass, recorded_entry, run_before
from ragcontract.service.trends import known_flaky
from ragcontract.service.web.authentication import READ
from ragcontract.service.web.login import SEE_OTHER
from ragcontract.service.web.pages.page_frame import address, environment, require_project_row, shown_page
from ragcontract.service.web.parameters import Asker, Background, By, Db, Number, require_run
from ragcontract.service.web.request_limits import expensive
from ragcontract.service.web.run_requests import RUN, cancel_run
from ragcontract.service.web.runs import diff_of, other_run, stored_report
from ragcontract.service.workers.run_queue import LEASE, last_beat, time_of

_GITHUB_JOB = re.compile(r"(https://[!-~]+)/actions/runs/[0-9]+", re.ASCII)
UNENDED = frozenset({"queued", "running"})
LAST_LINES = 20
QUIET = 30_000  # milliseconds without a word of the worker, from which on its silence is worth a word
RANK: dict[str, int] = {status: place for place, status in enumerate(WORST_FIRST)}


class ShownReport(Struct, frozen=True, kw_only=True):
    """The parts of a report's page, rendered."""

    heading: Markup
    contents: Markup
    notes: list[str]
    sections: Markup
    data: Markup  # of the script


class BrokenQuery(NamedTuple):
    """A query that is broken, and the rules that it breaks, if they are known."""

    id: str
    rules: Sequence[str]


class MovedMetric(NamedTuple):
    """The mean of a metric in two runs."""

    label: str
    before: float
    now: float
    worse: bool


class SincePass(Struct, frozen=True, kw_only=True):
    """What changed in a run since the last pass, by what was recorded of both."""

    run: RowMapping
    lost: list[BrokenQuery]  # that were not broken
    failing: list[BrokenQuery]  # that were broken, but tolerated
    won: list[BrokenQuery]  # that are not broken any more
    is_whole: bool  # False if the entries do not list all broken queries
    metrics: list[MovedMetric]
    inputs: list[str]  # that are not the same
    commits: str | None  # the address of the list of commits in between, on GitHub


class ShownGate(NamedTuple):
    """A limit, as it was that day."""

    metric: str
    tag: str | None
    limit: str
    now: float | None
    before: float | None
    status: str
    waived: str | None


@get("/runs/{number:int}", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def run_page(request: Request[Any, Any, Any], principal: Asker, database: Db, number: Number) -> Template:
    """Show a run."""
    with database.read() as connection:
        run = require_run(connection, principal, number)
        row = require_project_row(connection, principal, run["project"])
        view = {"project": row, "run": run, "cancelled_by": _cancelled_by(connection, run)}
        log = log_of(connection, number) or ""
        if run["state"] in UNENDED:
            unended = _unended(connection, run, log)
            return shown_page("unended_run.html", principal, **view, **unended, may_run=RUN.admits(principal))
        project = row["number"]
        entry = recorded_entry(run)
        rules = broken_rules(connection, number)
        passed = last_pass(connection, project, run)
        since = _since(connection, entry, rules, passed) if entry and passed else None
        flaky = known_flaky(connection, project)
        branch = project_branch(connection, project)
    report, unreadable = _shown_report(database, run)
    above = {each.id for each in (*since.lost, *since.failing)} if since else set()
    page = shown_page(
        "run.html",
        principal,
        **view,
        report=report,
        unreadable=unreadable,
        entry=entry,
        words=VERDICTS.get(run["verdict"], "no verdict" if run["state"] == "failed" else run["state"]),
        branch=branch,
        since=since,
        most=bounds.SERVICE_QUERIES,
        broken=[each for each in _broken(entry, rules) if each.id not in above] if entry else [],
        flaky=flaky,
        gates=[*shown_gates(entry)] if entry else [],
        problems=[*filter(None, (run["problem"] or "").split("\n"))],
        last_lines="" if run["verdict"] else _shown_log(log, LAST_LINES),
        log=_shown_log(log),
    )
    if "hx-request" in request.headers:  # it was open while the run was at work
        page.headers["HX-Refresh"] = "true"
    return page


def _shown_report(database: Database, run: RowMapping) -> tuple[ShownReport | None, str]:
    """Return the report of a run, if it has one, and why it cannot be shown."""
    if run["report"] is None:
        return None, ""
    try:
        return _report(database, run["report"]), ""
    except InputError as error:
        return None, error.problems[0]


@post("/runs/{number:int}/cancel", access=RUN, page=True, include_in_schema=False, sync_to_thread=True)
def cancel_here(principal: Asker, database: Db, author: By, number: Number) -> Redirect:
    """Cancel a run, unless it is over, which its page then shows."""
    with suppress(ConflictError):
        cancel_run(database, principal, author, number)
    return Redirect(address("runs", number), status_code=SEE_OTHER)


def _unended(connection: Connection, run: RowMapping, log: str) -> dict[str, Any]:
    """Return what is shown of a run that waits or is at work, besides what its row has."""
    now, beat = time_of(connection), last_beat(connection)
    heard = None if run["lease_until"] is None else run["lease_until"] - LEASE
    return {
        "now": now,
        "place": place_in_queue(connection, run) if run["state"] == "queued" else 0,
        "has_workers": beat is not None and beat > now - LEASE,
        "silence": now - heard if heard is not None and now - heard > QUIET else None,
        "is_lost": run["lease_until"] is not None and run["lease_until"] <= now,
        "last_lines": _shown_log(log, LAST_LINES),
    }


def _cancelled_by(connection: Connection, run: RowMapping) -> str | None:
    return None if run["cancel"] is None else actor_of(connection, "run.cancel", f"run:{run['id']}", run["cancel"])


def _shown_log(log: str, last: int = 0) -> str:
    """Return the last lines of what a run has printed, or all of them, with control characters made visible."""
    return "\n".join(visible(line.rstrip("\r")) for line in log.rstrip("\n").split("\n")[-last:])


@expensive  # rendering a thousand queries takes a fifth of a second, and a report never changes
def _report(database: Database, sha256: str) -> ShownReport | None:
    """Return the parts of a report's page; None if it has no verdict."""
    report = stored_report(database, sha256)
    if report is None:
        return None
    with refusing_inconsistent("report.json"):
        view = report_page.view_of(report)
        parts = {name: _rendered(f"{name}.html", view) for name in ("heading", "contents", "sections")}
    # In the data, everything that could end its element is escaped.
    return ShownReport(notes=view["notes"], data=Markup(view["data"]), **parts)  # noqa: S704


def _rendered(template: str, view: Mapping[str, Any]) -> Markup:
    return Markup(environment().get_template(template).render(view))  # noqa: S704 (the template escapes)


def _since(connection: Connection, entry: Entry, rules: Mapping[str, Sequence[str]], passed: RowMapping) -> SincePass:
    """Return what changed since the last pass. It is computed from the entries, so it takes no time."""
    before = entry_of(passed)
    was_broken, tolerated, is_broken = before.broken_ids, frozenset(before.tolerated), entry.broken_ids
    rules_before = broken_rules(connection, passed["id"])
    return SincePass(
        run=passed,
        lost=[each for each in _broken(entry, rules) if each.id not in was_broken],
        failing=[each for each in _named(entry.failed, rules) if each.id in tolerated],
        won=[each for each in _broken(before, rules_before) if each.id not in is_broken],
        is_whole=entry.lists_all_broken and before.lists_all_broken,
        metrics=[*_moved(before, entry)],
        inputs=[*_changed_inputs(before, entry)],
        commits=_commits_between(before, entry),
    )


def _broken(entry: Entry, rules: Mapping[str, Sequence[str]]) -> Iterator[BrokenQuery]:
    """Yield the broken queries of a run, those that fail first."""
    return _named((*entry.failed, *entry.tolerated), rules)


def _named(query_ids: Iterable[str], rules: Mapping[str, Sequence[str]]) -> Iterator[BrokenQuery]:
    return (BrokenQuery(query_id, rules.get(index_key(query_id), ())) for query_id in dict.fromkeys(query_ids))


def _moved(before: Entry, now: Entry) -> Iterator[MovedMetric]:
    """Yield the metrics with a limit whose means differ."""
    for key, metric in now.metrics.items():
        was, value = before.metrics[key].value if key in before.metrics else None, metric.value
        if metric.status != "none" and was is not None and value is not None and abs(value - was) > SAME:
            yield MovedMetric(metric.label, was, value, loss(metric.better, was, value) > 0)


def _changed_inputs(before: Entry, now: Entry) -> Iterator[str]:
    if before.inputs.golden.sha256 != now.inputs.golden.sha256:
        yield "the golden queries"
    if before.inputs.config != now.inputs.config:
        yield "the configuration"


def _commits_between(before: Entry, now: Entry) -> str | None:
    """Return where GitHub lists the commits between two runs; the address of the CI job says in which repository."""
    job = _GITHUB_JOB.fullmatch(now.source.run_url or "")
    return f"{job[1]}/compare/{before.commit}...{now.commit}" if job and before.commit and now.commit else None


def shown_gates(entry: Entry) -> Iterator[ShownGate]:
    """Yield the limits of that day, those that do not hold first."""
    for gate in sorted(entry.gates, key=lambda gate: RANK.get(gate.status, len(RANK)))[: bounds.ROWS]:
        metric = entry.metrics.get(gate.metric or "")
        label = metric.label if metric else gate.metric or gate.id
        yield ShownGate(label, gate.tag, _limit(gate), gate.now, gate.before, gate.status, gate.waived)


def _limit(gate: EntryGate) -> str:
    """Return a limit in words; the kind may be that of another version."""
    unit, kind, relative = KINDS.get(gate.kind, ("points", None, False))  # type: ignore[call-overload]
    words = NOUNS[kind] if kind else gate.kind
    limit = written(gate.limit, unit, relative=relative) if isinstance(gate.limit, float) else gate.limit or ""
    return f"{words} {limit}"


@get("/runs/{number:int}/compare/{other:str}", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def compare_page(principal: Asker, database: Db, trends: Background, number: Number, other: FromPath[str]) -> Template:
    """Show what changed in a run since another one: its id, or `last-pass`."""
    with database.read() as connection:
        run = require_run(connection, principal, number)
        row = require_project_row(connection, principal, run["project"])
        project = row["number"]
        against = other_run(connection, principal, run, other)
        passed = against if other == LAST_PASS else last_pass(connection, project, run)
        before = run_before(connection, project, run)
        choices = {"the last pass": passed, "the run before it": before}
        if passed and before and passed["id"] == before["id"]:
            choices = {"the last pass, which is the run before it": passed}
        branch = project_branch(connection, project)
    made, problem = None, ""
    if against is not None:
        try:
            made = diff_of(database, principal, (against, run), trends.folder)
        except ConflictError as error:
            problem = error.problems[0]
    most = bounds.SERVICE_DIFF_QUERIES
    return shown_page(
        "compare.html",
        principal,
        project=row,
        run=run,
        against=against,
        branch=branch,
        choices={words: each for words, each in choices.items() if each},
        problem=problem,
        diff=made,
        most=most,
        **(_view_of(made) if made else {}),
    )


def _view_of(diff: RunDiff) -> dict[str, Any]:
    """Return what the report's template shows of a comparison, in which the runs have short names."""
    runs = [replace(run, label=label) for run, label in zip(diff.comparison.runs, ("before", "now"), strict=True)]
    return report_page.view_of_comparison(replace(diff.comparison, runs=runs))


ROUTES = (run_page, cancel_here, compare_page)
