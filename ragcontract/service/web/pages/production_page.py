"""The page of production, which says whether production still looks like what is tested."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from math import inf
from pathlib import Path
from typing import Any, get_args

import msgspec
from litestar import Request, get, post
from litestar.params import FromQuery, URLEncodedBody
from litestar.response import Redirect, Template
from markupsafe import Markup
from msgspec import Struct
from sqlalchemy import Connection

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.metric import Scale
from ragcontract.core.safe_text import shorten
from ragcontract.report.html.charts import Chart, Line, Point
from ragcontract.service.database import DAY, now_ms
from ragcontract.service.mounted import project_file
from ragcontract.service.production.candidates import COUNTED_DAYS, counted_lately
from ragcontract.service.production.daily_rows import accept_level
from ragcontract.service.production.drift import ENOUGH, date_of
from ragcontract.service.production.interaction_list import Wanted, interactions_before, sources_of
from ragcontract.service.production.monitor_days import MonitorSeries, monitors_of
from ragcontract.service.production.monitors import false_alarms_a_month, shown_value
from ragcontract.service.web.authentication import EDIT, READ
from ragcontract.service.web.login import SEE_OTHER
from ragcontract.service.web.pages.candidate_page import FLAG_WORDS
from ragcontract.service.web.pages.page_frame import (
    address,
    environment,
    require_project_row,
    service_address,
    shown_page,
)
from ragcontract.service.web.parameters import Asker, By, Db, Mounts, Slug, Whole, position_of, require_project
from ragcontract.service.web.problem_details import ProblemError
from ragcontract.service.web.production_routes import StoredInteraction, interactions_page, start_of

WANTED = get_args(Wanted)
SCALES = {"share": Scale(0.0, 1.0), "score": Scale(-inf, inf)}
COUNTS = Scale(0.0, inf)  # and lengths, and times


class Filter(Struct, frozen=True, kw_only=True):
    """Which interactions somebody looks for, as it was typed; empty for all."""

    flag: str = ""
    source: str = ""
    day: str = ""

    @property
    def query(self) -> dict[str, str]:
        """What the address of the page says of it."""
        return {name: text for name, text in msgspec.structs.asdict(self).items() if text}

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with it."""
        if self.flag and self.flag not in WANTED:
            yield f"There is no flag {shorten(self.flag, 40)!r}: choose one of the list."
        try:
            self.start()
        except InputError:
            yield f"{shorten(self.day, 40)!r} is no day: type one such as 2026-11-24."

    def start(self) -> int | None:
        """Return when the day begins; raises InputError if it is none."""
        return start_of(self.day) if self.day else None


class ListedInteractions(Struct, frozen=True, kw_only=True):
    """A page of interactions, and where older ones begin."""

    items: Sequence[StoredInteraction]
    older: str | None
    searched: int | None  # back to this time, if the search ended before its end


class DrawnMonitor(Struct, frozen=True, kw_only=True):
    """A monitor with its chart."""

    series: MonitorSeries
    chart: Chart

    def shown(self, value: float) -> str:
        """Return a value as the axis has it."""
        return shown_value(self.series.monitor, value, unit=False)


class LevelForm(Struct, frozen=True, kw_only=True):
    """The monitor whose level is right, and the first day that has it."""

    monitor: str
    day: int


@get("/p/{slug:str}/production", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def production_page(
    *,
    request: Request[Any, Any, Any],
    principal: Asker,
    database: Db,
    mounts: Mounts,
    slug: Slug,
    flag: FromQuery[str] = "",
    source: FromQuery[str] = "",
    day: FromQuery[str] = "",
    cursor: FromQuery[str | None] = None,
) -> Template:
    """Show what monitors say, what was drawn, and what was asked."""
    wanted = Filter(flag=flag, source=source, day=day.strip())
    problems, listed, now = [*wanted.problems()], None, now_ms()
    with database.read() as connection:
        project = require_project_row(connection, principal, slug)
        number = project["number"]
        monitors = monitors_of(connection, number, bounds.MONITOR_DAYS, now)
        if not problems:
            try:
                listed = _listed(connection, number, wanted, cursor)
            except InputError:  # of the cursor
                problems = ["This address of a page of the list is damaged: start with the newest interactions."]
        view = {"counted": counted_lately(connection, number, now), "sources": sources_of(connection, number)}
    page = shown_page(
        "production.html",
        principal,
        project=project,
        monitors=monitors,
        drawn_monitors=monitors_drawn(slug, monitors, may_accept=EDIT.admits(principal)) if monitors else None,
        enough=ENOUGH,
        sampling=project_file(mounts, slug).sampling,
        is_mounted=_is_mounted(mounts, slug),
        days=COUNTED_DAYS,
        a_month=false_alarms_a_month(len(monitors)),
        flags={"flagged": "any flag", **FLAG_WORDS},
        flag_words=FLAG_WORDS,
        wanted=wanted,
        problems=problems,
        listed=listed,
        is_first=cursor is None,
        service=service_address(request),
        **view,
    )
    page.status_code = HTTPStatus.UNPROCESSABLE_ENTITY if problems else HTTPStatus.OK
    return page


def _listed(connection: Connection, project: int, wanted: Filter, cursor: str | None) -> ListedInteractions:
    search = interactions_before(
        connection,
        project,
        flag=msgspec.convert(wanted.flag or None, Wanted | None),
        source=wanted.source or None,
        day=wanted.start(),
        before=position_of(cursor, tuple[Whole, Whole]),
        limit=bounds.INTERACTIONS_PAGE,
    )
    page = interactions_page(search, bounds.INTERACTIONS_PAGE)
    return ListedInteractions(items=page.items, older=page.next, searched=search.searched and search.searched[0])


def _is_mounted(mounts: Path | None, slug: str) -> bool:
    return mounts is not None and (mounts / slug).is_dir()


@lru_cache(maxsize=bounds.REPORT_PAGES)  # twelve charts of 90 days with their tables take 100 ms
def monitors_drawn(slug: str, monitors: Sequence[MonitorSeries], *, may_accept: bool) -> Markup:
    """Return the monitors as a part of the page, with those that alarm first."""
    charts = sorted(map(drawn, monitors), key=lambda each: each.series.alarm is None)
    template = environment().get_template("monitors.html")
    rendered: Callable[..., Markup] = template.module.monitors_in  # type: ignore[attr-defined]
    return rendered(charts, address("p", slug, "production"), may_accept)


def drawn(series: MonitorSeries) -> DrawnMonitor:
    """Return a monitor with its chart, in which a day without a value is a gap."""
    by_day: Mapping[int, Any] = {day.day: day for day in series.days}
    first, last = series.days[0].day, series.last.day
    days = [first + place * DAY for place in range((last - first) // DAY + 1)]
    alarm = series.alarm
    points = [
        Point(
            value=by_day[day].value if day in by_day else None,
            when=date_of(day),
            commit=f"{by_day[day].n:,} {series.monitor.of}" if day in by_day else "",
            state="alarm" if day in by_day and by_day[day].alarm else "pass",
        )
        for day in days
    ]
    chart = Chart(
        label=series.monitor.label,
        scale=SCALES.get(series.monitor.unit, COUNTS),
        points=points,
        lines=[Line("level", series.usual_words, value) for value in series.usual or ()],
        changes={days.index(alarm.since): date_of(alarm.since)} if alarm and alarm.since in days else {},
    )
    return DrawnMonitor(series=series, chart=chart)


@post("/p/{slug:str}/production/level", access=EDIT, page=True, include_in_schema=False, sync_to_thread=True)
def accept_level_here(
    *, principal: Asker, author: By, database: Db, slug: Slug, data: URLEncodedBody[LevelForm]
) -> Redirect:
    """Accept the level of a monitor from a day on, so that it learns anew."""

    def job(connection: Connection) -> bool:
        project = require_project(connection, principal, slug)
        return accept_level(connection, project, data.monitor, data.day, author)

    if not database.write(job):
        raise ProblemError(404, "there is no such monitor, or no day of it since then")
    return Redirect(address("p", slug, "production"), status_code=SEE_OTHER)


ROUTES = (production_page, accept_level_here)
