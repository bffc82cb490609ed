"""The service as uvicorn serves it, for a real browser; and a page of another site."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import uvicorn

from ragcontract.service.database import Database
from ragcontract.service.web.app import Settings, application


@contextmanager
def served(database: Database) -> Iterator[str]:
    """Serve on a free port; return the address at localhost."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(application(database, Settings()), log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield f"http://localhost:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def page_of_another_site(html: str) -> Iterator[int]:
    """Serve a page at any path; return the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: object) -> None:
            pass

    # With threads: a browser opens connections before it needs them.
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
