"""Runs the service: its port, its database, its log, and how it ends."""

import errno
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

import uvicorn
from sqlalchemy import select

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.service.database import Database
from ragcontract.service.migrate import check_revision, held, migrate, opened
from ragcontract.service.tables import users
from ragcontract.service.web.app import Settings, application
from ragcontract.service.web.request_log import JsonLines, RequestLog

REASONS = {
    errno.EADDRINUSE: "another program has this port; end it, or choose another one with --port",
    errno.EACCES: "only root may have this port; choose one from 1024 on with --port",
    errno.EADDRNOTAVAIL: "this machine does not have this address; name one of its own with --host",
}
LOGGERS = ("ragcontract", "uvicorn")


def serve(
    *,
    host: str,
    port: int,
    db: str,
    allowed_hosts: Sequence[str],
    forwarded_allow_ips: str,
    projects: Path | None,
    when_ready: Callable[[str], None],
) -> None:
    """Serve until a signal asks to stop; ``when_ready`` is called with the address once it answers.

    Raises :class:`InputError` if the address, the port or the database cannot be used.
    """
    with closing(_listening(host, port)) as listener, opened(db, create=True) as database:
        if database.is_sqlite:
            migrate(database)
        with held(database):
            check_revision(database)
            address, number = listener.getsockname()[:2]
            if not ip_address(address).is_loopback and not _has_users(database):
                advice = "make one with `rag-contract service user add NAME --role admin`"
                raise InputError([f"--host {host}: others could reach a service that has no user yet; {advice}"])
            settings = Settings(allowed_hosts=(*Settings().allowed_hosts, *allowed_hosts), projects=projects)
            config = uvicorn.Config(
                RequestLog(application(database, settings)),
                http="h11",
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
            shown = f"[{address}]" if ":" in address else address
            with _logging(), suppress(KeyboardInterrupt):  # the signal that has ended it, once more
                _Server(config, lambda: when_ready(f"http://{shown}:{number}")).run(sockets=[listener])


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
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise InputError([f"--host {host}: is not an address of this machine"]) from error
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()  # two that are bound are not refused before that
    except OSError as error:
        listener.close()
        reason = REASONS.get(error.errno or 0, error.strerror)
        raise InputError([f"{host}:{port}: {reason}"]) from error
    return listener


def _has_users(database: Database) -> bool:
    with database.read() as connection:
        return connection.execute(select(users.c.id).where(users.c.disabled_at.is_(None))).first() is not None


@contextmanager
def _logging() -> Iterator[None]:
    """Log to standard error, a line of JSON each, until the block ends."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
