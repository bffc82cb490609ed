"""Puts the service together: its routes, and what stands before all of them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import Litestar, Router
from litestar.datastructures import CacheControlHeader, State
from litestar.di import Provide
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.static_files import create_static_files_router
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
from ragcontract.service.web.limits import CheckedRequest
from ragcontract.service.web.problem_details import HANDLERS

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


class Settings(Struct, frozen=True, kw_only=True):
    """What the operator chose."""

    allowed_hosts: Sequence[str] = ("localhost", "127.0.0.1", "[::1]")
    projects: Path | None = None  # has a folder for each project that the service runs itself


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
    static = create_static_files_router(
        path="/static",
        directories=[_HERE / "static"],
        cache_control=CacheControlHeader(max_age=_STATIC_SECONDS),
        opt={"access": OPEN},
    )
    app = Litestar(
        route_handlers=[
            Router(path=API, route_handlers=[*ROUTES]),
            # In a router, because the application prepares a path with two handlers twice, which breaks the first.
            Router(path="/", route_handlers=[*health.ROUTES, *PAGES]),
            static,
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
        on_startup=[trends.start],
        on_shutdown=[trends.close],
        state=State({"database": database, "settings": settings}),
        logging_config=None,
        debug=False,
    )
    front = Front(app.asgi_handler, database, settings.allowed_hosts)
    app.asgi_handler = front
    app.state["rates"] = front.rates
    return app
