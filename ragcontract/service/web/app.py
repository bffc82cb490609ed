"""Puts the service together: its routes, and what stands before all of them."""

from collections.abc import Sequence

from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.di import Provide
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.types import ControllerRouterHandler
from msgspec import Struct

from ragcontract.core.version import __version__
from ragcontract.service.database import Database
from ragcontract.service.trends import Trends
from ragcontract.service.web import entries, health, metrics, projects, runs
from ragcontract.service.web.authentication import Authentication, guard, principal_of
from ragcontract.service.web.problem_details import HANDLERS

API = "/api/v1"
ROUTES: Sequence[ControllerRouterHandler] = (*projects.ROUTES, *entries.ROUTES, *runs.ROUTES, *metrics.ROUTES)


class Settings(Struct, frozen=True, kw_only=True):
    """What the operator chose."""

    allowed_hosts: Sequence[str] = ("localhost", "127.0.0.1", "[::1]")
    projects: str | None = None  # the folder of the mounted projects


def application(database: Database, settings: Settings) -> Litestar:
    """Return the service as an ASGI application."""
    trends = Trends(database, settings.projects)
    return Litestar(
        route_handlers=[Router(path=API, route_handlers=[*ROUTES]), *health.ROUTES],
        dependencies={
            "database": Provide(lambda: database, sync_to_thread=False),
            "settings": Provide(lambda: settings, sync_to_thread=False),
            "trends": Provide(lambda: trends, sync_to_thread=False),
            "principal": Provide(principal_of, sync_to_thread=False),
        },
        middleware=[Authentication],
        guards=[guard],
        exception_handlers=HANDLERS,
        openapi_config=OpenAPIConfig(
            title="rag-contract", version=__version__, path=f"{API}/openapi", render_plugins=[JsonRenderPlugin()]
        ),
        on_startup=[trends.start],
        on_shutdown=[trends.close],
        state=State({"database": database, "settings": settings}),
        logging_config=None,
        debug=False,
    )
