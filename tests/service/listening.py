"""A server of any application, with the connections that `rag-contract serve` has."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn
from litestar.types import ASGIApp

from ragcontract.service.serving import configuration


async def refuses(_scope: object, _receive: object, send: Any) -> None:
    """Answer at once, whatever the body is."""
    await send({"type": "http.response.start", "status": 403, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


@contextmanager
def listening(app: ASGIApp) -> Iterator[tuple[uvicorn.Server, tuple[str, int]]]:
    """Serve until the block ends; return the server and its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = configuration(app, "127.0.0.1")
        config.lifespan = "off"
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: server.started)
        try:
            yield server, listener.getsockname()
        finally:
            server.should_exit = True
            thread.join()


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds, and fail if it never does."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it never holds"
        time.sleep(0.01)
