"""The service as a server on this machine, for its clients."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import uvicorn
from msgspec import Struct

from ragcontract.history.service_store import ServiceStore
from ragcontract.net.pacing import Timing
from ragcontract.service.accounts import create_key
from ragcontract.service.database import Database
from ragcontract.service.web.app import Settings, application


class Running(Struct, frozen=True, kw_only=True):
    """A server, with the key of a machine that may read and record."""

    url: str
    key: str

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables with which a command uses it."""
        return {"RAG_CONTRACT_HISTORY": self.url, "RAG_CONTRACT_TOKEN": self.key}

    def store(self) -> ServiceStore:
        """Return the store of a client."""
        return ServiceStore(self.url, self.key, seconds=60, timing=Timing())


@contextmanager
def running(database: Database) -> Iterator[Running]:
    """Serve what a database has, until the block ends."""
    settings = Settings(allowed_hosts=("127.0.0.1",))
    server = uvicorn.Server(uvicorn.Config(application(database, settings), port=0, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    key = database.write(lambda connection: create_key(connection, name="ci", now=0, scopes=("read", "record")))
    try:
        yield Running(url=f"http://127.0.0.1:{port}", key=key.text)
    finally:
        server.should_exit = True
        thread.join()
