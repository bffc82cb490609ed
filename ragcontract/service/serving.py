"""Runs the service: its port, its database, its log, and how it ends."""

import asyncio
import errno
import gc
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from ipaddress import ip_address
from pathlib import Path

import uvicorn
from litestar.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.service.accounts import has_users
from ragcontract.service.alert_delivery import webhook_of
from ragcontract.service.database import Database, now_ms
from ragcontract.service.json_log import log_json
from ragcontract.service.logging_in import first_admin
from ragcontract.service.migrate import check_revision, held, prepared
from ragcontract.service.web.app import Application, Settings
from ragcontract.service.workers.worker import place_of

REASONS = {
    errno.EADDRINUSE: "another program has this port; end it, or choose another one with --port",
    errno.EACCES: "only root may have this port; choose one from 1024 on with --port",
    errno.EADDRNOTAVAIL: "this machine does not have this address; name one of its own with --host",
}

HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (where a browser reaches what listens at all addresses)


def serve(
    *,
    host: str,
    port: int,
    db: str,
    allowed_hosts: Sequence[str],
    forwarded_allow_ips: str,
    projects: Path | None,
    keep_runs: int,
    workers: int = 0,
    runs_dir: Path | None = None,
    when_ready: Callable[[str, str | None], None],
    fill: Callable[[Database], None] | None = None,
) -> None:
    """Serve until a signal asks to stop.

    ``when_ready`` is called once it answers: with its address, and with a link that logs the first user in on this
    machine, if nobody has logged in yet. ``fill`` is called before, and puts something into the new database of a demo.
    Raises :class:`InputError` if the address, the port or the database cannot be used.
    """
    webhook = None if fill else webhook_of(os.environ)  # a demo has no news
    with closing(_listening(host, port)) as listener, prepared(db, create=True) as database, held(database):
        check_revision(database)  # which another one may have migrated since
        _refuse_strangers(listener, database, is_demo=fill is not None)
        if fill:
            fill(database)
        hosts = (*Settings().allowed_hosts, *allowed_hosts)
        place = place_of(db, projects, runs_dir) if projects and workers else None
        settings = Settings(
            allowed_hosts=hosts,
            projects=projects,
            keep_runs=keep_runs,
            workers=workers,
            place=place,
            webhook=webhook,
        )
        log_json()
        config = configuration(Application(database, settings), forwarded_allow_ips)
        address, port = listener.getsockname()[:2]
        secret = database.write(lambda connection: first_admin(connection, now_ms()))
        link = f"{_url(HERE.get(address, address), port)}/login?link={secret}" if secret else None
        server = _Server(config, lambda: when_ready(_url(address, port), link))
        # What is there now stays. Looking through it again and again for garbage would hold up requests for 50 ms.
        gc.collect()
        gc.freeze()
        with suppress(KeyboardInterrupt):  # the signal that has ended it, once more
            server.run(sockets=[listener])


def configuration(app: ASGIApp, forwarded_allow_ips: str) -> uvicorn.Config:
    """Return how the server treats connections; ``forwarded_allow_ips`` are the proxies that it believes."""
    return uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        lifespan="on",
        server_header=False,
        access_log=False,
        log_config=None,
        proxy_headers=True,
        forwarded_allow_ips=forwarded_allow_ips,
        h11_max_incomplete_event_size=bounds.SERVICE_HEADERS,
        timeout_graceful_shutdown=bounds.SERVICE_LAST_REQUESTS,
    )


class _Connection(H11Protocol):
    """A connection that is closed when its client does nothing for long, though the server would wait for it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.made_at = self.loop.time()
        self._seen: tuple[object, int] = (None, 0)
        self._next_look = self.loop.call_later(bounds.CONNECTION_SECONDS, self._look)
        if len(self.connections) > bounds.SERVICE_CONNECTIONS:
            others = [each for each in self.connections if isinstance(each, _Connection)]
            min(others, key=lambda each: (each.is_at_work, each.made_at)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._next_look.cancel()
        super().connection_lost(exc)

    @property
    def is_at_work(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _look(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        seen = (self.cycle, unsent)
        if seen == self._seen and (unsent or not self.is_at_work):
            self.transport.abort()
            return
        self._seen = seen
        self._next_look = self.loop.call_later(bounds.CONNECTION_SECONDS, self._look)


class _Server(uvicorn.Server):
    """Says when it answers."""

    def __init__(self, config: uvicorn.Config, when_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._when_ready = when_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._when_ready()


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise InputError([f"--host {host}: is not an address of this machine"]) from error
    # With the protocol, each part of an answer is sent at once; else the body waits 40 ms for the client's receipt.
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()  # two that are bound are not refused before that
    except OSError as error:
        listener.close()
        reason = REASONS.get(error.errno or 0, error.strerror)
        raise InputError([f"{host}:{port}: {reason}"]) from error
    return listener


def _url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def _refuse_strangers(listener: socket.socket, database: Database, *, is_demo: bool) -> None:
    host = listener.getsockname()[0]
    if ip_address(host).is_loopback:
        return
    if is_demo:
        raise InputError([f"--host {host}: others could reach the demo, which is for this machine alone"])
    with database.read() as connection:
        is_safe = has_users(connection)
    if not is_safe:
        advice = "make one in this database with `rag-contract service user add NAME --role admin`"
        raise InputError([f"--host {host}: others could reach a service that has no user yet; {advice}"])
