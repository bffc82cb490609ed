"""A server over HTTP on this machine, for stand-ins of services."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class QuietHandler(BaseHTTPRequestHandler):
    """Keeps the test's output clean."""

    def log_message(self, *_: Any) -> None:
        pass


class QuietServer(ThreadingHTTPServer):
    """Does not print what a client that hung up causes: some do on purpose."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class LocalServer:
    """Serves while a ``with`` block runs; ``stop`` is set at its end, for answers that wait or drip."""

    def __init__(
        self, handler: type[BaseHTTPRequestHandler], server: type[ThreadingHTTPServer] = QuietServer, port: int = 0
    ) -> None:
        self.stop = threading.Event()
        self._server = server(("127.0.0.1", port), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.002}, daemon=True)

    @property
    def origin(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Answer nobody any more; may be called before the block ends."""
        self.stop.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
