"""Says whether the service is there, and whether it works."""

from litestar import get

from ragcontract.service.access import OPEN
from ragcontract.service.web.authentication import Db


@get("/healthz", access=OPEN, sync_to_thread=False)
def healthz() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "ok"}


@get("/readyz", access=OPEN, sync_to_thread=True)
def readyz(database: Db) -> dict[str, str]:
    """Say whether the database answers."""
    with database.read():
        return {"status": "ok"}


ROUTES = (healthz, readyz)
