"""Puts the service together: its routes, and what stands before all of them."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from mimetypes import guess_type
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import Litestar, Response, Router, get
from litestar.datastructures import State
from litestar.di import Provide
from litestar.params import FromPath
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.template import TemplateConfig
from litestar.types import ControllerRouterHandler
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.service.access import OPEN
from ragcontract.service.database import Database
from ragcontract.service.mounted import mounted_projects, write_mounted
from ragcontract.service.trends import Trends
from ragcontract.service.web import administration, description, entries, health, login, over_time, projects, runs
from ragcontract.service.web.authentication import LoginNeededError, author_of, guard, now_ms, principal_of
from ragcontract.service.web.front import Front
from ragcontract.service.web.problem_details import HANDLERS, ProblemError
from ragcontract.service.web.request_limits import CheckedRequest

API = "/api/v1"
ROUTES: Sequence[ControllerRouterHandler] = (
    *projects.ROUTES,
    *entries.ROUTES,
    *runs.ROUTES,
    *over_time.ROUTES,
    *administration.ROUTES,
    *description.ROUTES,
)
PAGES: Sequence[ControllerRouterHandler] = login.ROUTES
_HERE = Path(__file__).parents[1]
_STATIC_SECONDS = 3600
STATIC = {path.name: path.read_bytes() for path in (_HERE / "static").iterdir()}


class Settings(Struct, frozen=True, kw_only=True):
    """What the operator chose."""

    allowed_hosts: Sequence[str] = ("localhost", "127.0.0.1", "[::1]")
    projects: Path | None = None  # has a folder for each project that the service runs itself


@get("/static/{name:str}", access=OPEN, include_in_schema=False, sync_to_thread=False)
def static_file(name: FromPath[str]) -> Response[bytes]:
    """Return a file that pages need. No name of a request becomes a path."""
    if name not in STATIC:
        raise ProblemError(404, "there is no such file")
    return Response(
        STATIC[name],
        media_type=guess_type(name)[0],
        headers={"Cache-Control": f"max-age={_STATIC_SECONDS}"},
    )


def _enough_threads(_app: Litestar) -> None:
    """Let as many requests wait for the database as may, and others be read beside them: Python's own pool is small."""
    threads = bounds.SERVICE_WRITES_WAITING + 2 * bounds.SERVICE_READERS
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(threads, "request"))


def application(database: Database, settings: Settings) -> Litestar:
    """Return the service as an ASGI application.

    Raises :class:`~ragcontract.core.errors.InputError` if anything is wrong with the mounted projects.
    """
    if settings.projects is not None:
        mounted = mounted_projects(settings.projects)
        database.write(partial(write_mounted, mounted=mounted, now=now_ms()))
    trends = Trends(database, settings.projects)
    templates = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    app = Litestar(
        route_handlers=[
            Router(path=API, route_handlers=[*ROUTES]),
            # In a router, because the application prepares a path with two handlers twice, which breaks the first.
            Router(path="/", route_handlers=[*health.ROUTES, *PAGES, static_file]),
        ],
        dependencies={
            "database": Provide(lambda: database, sync_to_thread=False),
            "settings": Provide(lambda: settings, sync_to_thread=False),
            "trends": Provide(lambda: trends, sync_to_thread=False),
            "principal": Provide(principal_of, sync_to_thread=False),
            "author": Provide(author_of, sync_to_thread=False),
        },
        guards=[guard],
        exception_handlers={**HANDLERS, LoginNeededError: login.to_login},
        openapi_config=description.config(API),
        request_class=CheckedRequest,
        request_max_body_size=bounds.BLOB,  # the front has the limits of each request
        template_config=TemplateConfig(instance=JinjaTemplateEngine.from_environment(templates)),
        on_startup=[_enough_threads, trends.start],
        on_shutdown=[trends.close],
        state=State({"database": database, "settings": settings}),
        logging_config=None,
        debug=False,
    )
    front = Front(app.asgi_handler, database, settings.allowed_hosts)
    app.asgi_handler = front
    app.state["rates"] = front.rates
    return app
