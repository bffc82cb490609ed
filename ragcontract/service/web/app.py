"""Puts the service together: its routes, with those about the service itself, and what stands before all of them."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from http import HTTPStatus
from mimetypes import guess_type
from pathlib import Path
from typing import Any, Protocol

import msgspec
from litestar import Litestar, Request, Response, Router, get
from litestar.di import NamedDependency, Provide
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, Reference, SecurityScheme
from litestar.params import FromPath
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.template import TemplateConfig
from litestar.types import ControllerRouterHandler, LifeSpanReceive, LifeSpanScope, LifeSpanSend, Scope
from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.version import __version__
from ragcontract.service.alert_delivery import AlertDelivery, Webhook
from ragcontract.service.database import Database, now_ms
from ragcontract.service.migrate import check_revision
from ragcontract.service.mounted import mounted_projects, write_mounted
from ragcontract.service.playground.playground import Playground
from ragcontract.service.production.drift_watch import DriftWatch
from ragcontract.service.production.incoming import Interactions
from ragcontract.service.production.interaction_writer import InteractionWriter
from ragcontract.service.production.project_settings import SettingsOfProjects
from ragcontract.service.retention import Retention
from ragcontract.service.trends import Trends
from ragcontract.service.web import (
    administration,
    candidate_routes,
    entries,
    interaction_routes,
    login,
    playground_routes,
    production_routes,
    projects,
    run_requests,
    runs,
)
from ragcontract.service.web.authentication import (
    OPEN,
    READING,
    SECURE_COOKIE,
    SIGNED_IN,
    LoginNeededError,
    author_of,
    guard,
    principal_of,
)
from ragcontract.service.web.interaction_routes import Ingestion
from ragcontract.service.web.middleware import Front
from ragcontract.service.web.monitoring import Monitoring, metrics
from ragcontract.service.web.pages import (
    alert_page,
    candidate_page,
    key_pages,
    overview,
    playground_page,
    production_page,
    project,
    query_pages,
    run_list,
    run_page,
    settings_page,
    user_pages,
)
from ragcontract.service.web.pages.page_frame import environment, static_files
from ragcontract.service.web.pages.problem_page import answer
from ragcontract.service.web.parameters import API, Db
from ragcontract.service.web.problem_details import MEDIA_TYPE, Problem, ProblemError
from ragcontract.service.web.request_limits import CheckedRequest
from ragcontract.service.workers.run_queue import last_beat, time_of
from ragcontract.service.workers.schedule import Schedule
from ragcontract.service.workers.worker import Place
from ragcontract.service.workers.worker_processes import WorkerProcesses

log = logging.getLogger(__name__)
_STATIC_SECONDS = 3_600
EVERYWHERE = (400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503)
CHANGING = (409,)  # further ones of what is not only read
ALSO = {"ask_playground": (504,)}  # further ones of a route
BODIES = {"add_interactions": Interactions}  # of routes that read them by themselves
REFERENCE = "#/components/schemas/{name}"


class Settings(Struct, frozen=True, kw_only=True):
    """What the operator chose."""

    allowed_hosts: Sequence[str] = ("localhost", "127.0.0.1", "[::1]")
    projects: Path | None = None  # has a folder for each project that the service runs itself
    keep_runs: int = bounds.KEEP_RUNS  # of each project, unless its project.yml says another number; 0 for all
    webhook: Webhook | None = None  # where alerts go
    workers: int = 0  # that this process starts, if projects are mounted
    place: Place | None = None  # where they work


@get("/healthz", access=OPEN, sync_to_thread=False)
def healthz() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "ok"}


@get("/readyz", access=OPEN, sync_to_thread=True)
def readyz(database: Db, needs_worker: NamedDependency[bool], ingestion: NamedDependency[Ingestion]) -> dict[str, str]:
    """Say whether the database answers, has the tables of this version, and keeps up, and whether a worker lives."""
    problems = [*_problems(database, needs_worker=needs_worker)]
    if ingestion.writer.waiting >= bounds.INGESTED_WAITING:
        problems.append(f"{ingestion.writer.waiting} requests with interactions wait, as many as may")
    if problems:
        raise ProblemError(503, "the service cannot work now", problems, retry_after=1)
    return {"status": "ok"}


def _problems(database: Database, *, needs_worker: bool) -> Iterator[str]:
    try:
        check_revision(database)
        if needs_worker:
            with database.read() as connection:
                heard, now = last_beat(connection), time_of(connection)
            if heard is None:
                yield "no worker has started yet"
            elif now - heard > bounds.LEASE_SECONDS * 1_000:
                yield f"no worker was heard of for {(now - heard) // 1_000:,} s"
    except InputError as error:
        yield from error.problems
    except SQLAlchemyError as error:
        log.warning("not ready: %s", error)
        yield "the database does not answer"
    if database.waiting >= bounds.SERVICE_WRITES_WAITING:
        yield f"{database.waiting} writes wait, as many as may"


def _openapi_config() -> OpenAPIConfig:
    """Return the settings of openapi.json. Litestar's own routes to it are closed; :func:`openapi` serves it whole."""
    schemes: dict[str, SecurityScheme | Reference] = {
        "key": SecurityScheme(type="http", scheme="bearer", description="A key, such as rc_1a2b3c4d_…"),
        "session": SecurityScheme(
            type="apiKey", name=SECURE_COOKIE, security_scheme_in="cookie", description="The session of a browser."
        ),
    }
    return OpenAPIConfig(
        title="rag-contract",
        version=__version__,
        path=f"{API}/openapi",
        render_plugins=[JsonRenderPlugin()],
        use_handler_docstrings=True,
        operation_id_creator=lambda handler, _method, _path: handler.handler_name,  # which clients name methods by
        security=[{"key": []}, {"session": []}],
        components=Components(security_schemes=schemes),
    )


@get("/openapi.json", access=SIGNED_IN, include_in_schema=False, sync_to_thread=True)
def openapi(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Return the description of all routes and answers, with the problems that each may answer."""
    schema = request.app.openapi_schema.to_schema()
    kinds = Problem, *BODIES.values()
    _, named = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
    schema["components"]["schemas"] |= named
    content = {MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format(name=Problem.__name__)}}}
    for item in schema["paths"].values():
        for method, operation in item.items():
            further = () if method.upper() in READING else CHANGING
            statuses = sorted((*EVERYWHERE, *further, *ALSO.get(operation["operationId"], ())))
            if kind := BODIES.get(operation["operationId"]):
                sent = {"schema": {"$ref": REFERENCE.format(name=kind.__name__)}}
                operation["requestBody"] = {"content": {"application/json": sent}, "required": True}
            problems = {f"{each}": {"description": HTTPStatus(each).phrase, "content": content} for each in statuses}
            operation["responses"] |= problems
    return Response(msgspec.json.encode(schema), media_type="application/json")


@get("/static/{name:str}", access=OPEN, include_in_schema=False, sync_to_thread=False)
def static_file(name: FromPath[str]) -> Response[bytes]:
    """Return a file that pages need. No name of a request becomes a path."""
    files = static_files()
    if name not in files:
        raise ProblemError(404, "there is no such file")
    return Response(
        files[name],
        media_type=guess_type(name)[0],
        headers={"Cache-Control": f"max-age={_STATIC_SECONDS}"},
    )


ROUTES: Sequence[ControllerRouterHandler] = (
    *projects.ROUTES,
    *entries.ROUTES,
    *runs.ROUTES,
    *run_requests.ROUTES,
    *administration.ROUTES,
    *playground_routes.ROUTES,
    *interaction_routes.ROUTES,
    *candidate_routes.ROUTES,
    *production_routes.ROUTES,
    openapi,
)
PAGES: Sequence[ControllerRouterHandler] = (
    healthz,
    readyz,
    metrics,
    static_file,
    *login.ROUTES,
    *overview.ROUTES,
    *project.ROUTES,
    *query_pages.ROUTES,
    *run_list.ROUTES,
    *run_page.ROUTES,
    *settings_page.ROUTES,
    *user_pages.ROUTES,
    *key_pages.ROUTES,
    *alert_page.ROUTES,
    *playground_page.ROUTES,
    *candidate_page.ROUTES,
    *production_page.ROUTES,
)


def enough_threads() -> None:
    """Let requests that only read go on while others wait to write; by default, there is a thread or two a core."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(bounds.SERVICE_THREADS, "request"))


PARTS = (  # of an application
    *("database", "trends", "monitoring", "needs_worker", "mounts", "targets", "delivery", "ingestion"),
)


@cache
def routes() -> Litestar:
    """Return all routes, which take a tenth of a second to make and are the same for every service in the process."""
    return Litestar(
        route_handlers=[
            Router(path=API, route_handlers=ROUTES),
            # In a router, because the application prepares a path with two handlers twice, which breaks the first.
            Router(path="/", route_handlers=PAGES),
        ],
        dependencies={
            **{name: _part(name) for name in PARTS},
            "principal": Provide(principal_of, sync_to_thread=False),
            "author": Provide(author_of, sync_to_thread=False),
        },
        guards=[guard],
        exception_handlers={Exception: answer, LoginNeededError: login.to_login},
        openapi_config=_openapi_config(),
        request_class=CheckedRequest,
        request_max_body_size=bounds.BLOB,  # the front has the limits of each request
        template_config=TemplateConfig(instance=JinjaTemplateEngine.from_environment(environment())),
        logging_config=None,
        debug=False,
    )


def _part(name: str) -> Provide:
    """Return what gives a route a part of the service that answers."""

    def part(request: Request[Any, Any, Any]) -> Any:
        return getattr(request.state.service, name)

    return Provide(part, sync_to_thread=False)


class _Thread(Protocol):
    """What goes on in the background."""

    def start(self) -> None: ...

    def close(self) -> None: ...


class Application:
    """The service as an ASGI application: the routes, what stands before them, and its threads."""

    def __init__(self, database: Database, settings: Settings) -> None:
        """Raise :class:`~ragcontract.core.errors.InputError` if anything is wrong with the mounted projects."""
        mounted = mounted_projects(settings.projects) if settings.projects is not None else []
        if mounted:
            database.write(partial(write_mounted, mounted=mounted, now=now_ms()))
        self.database = database
        self.monitoring = Monitoring()
        self.trends = Trends(database, settings.projects, self.monitoring.errors_of("trends"))
        can_run = any(project.can_run for project in mounted)
        self.needs_worker = can_run and settings.workers > 0
        self.mounts = settings.projects
        self.targets = Playground()
        failed = self.monitoring.errors_of
        self.delivery = AlertDelivery(database, settings.webhook, failed("alerts"))
        writer = InteractionWriter(database, failed("interactions"))
        projects, large = SettingsOfProjects(database, settings.projects), asyncio.Semaphore(bounds.SERVICE_COMPUTING)
        self.ingestion = Ingestion(projects, writer, self.monitoring, large)
        self._threads: list[_Thread] = [
            self.trends,
            writer,
            Retention(database, settings.keep_runs, self.trends, failed("retention")),
            Schedule(database, settings.projects, failed("schedule")),
            DriftWatch(database, settings.projects, failed("drift")),
            self.targets,
            self.delivery,
        ]
        if settings.workers and settings.place:
            self._threads.append(WorkerProcesses(database, settings.place, settings.workers, failed("workers")))
        self._front = Front(routes().asgi_handler, database, settings.allowed_hosts, self.monitoring)
        self.rates = self._front.rates

    async def __call__(self, scope: Scope | LifeSpanScope, receive: Any, send: Any) -> None:
        """Answer a request; or start the threads, and end them when the server is asked to stop."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        scope["app"] = scope["litestar_app"] = routes()
        scope["state"] = {"service": self}
        await self._front(scope, receive, send)

    async def _live(self, receive: LifeSpanReceive, send: LifeSpanSend) -> None:
        await receive()
        enough_threads()
        for thread in self._threads:
            thread.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for thread in reversed(self._threads):
            thread.close()
        await send({"type": "lifespan.shutdown.complete"})
