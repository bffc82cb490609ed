"""Says whether the service is there, and whether it works."""

import logging
from collections.abc import Iterator

from litestar import get
from sqlalchemy.exc import SQLAlchemyError

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.service.access import OPEN
from ragcontract.service.database import Database
from ragcontract.service.migrate import check_revision
from ragcontract.service.web.authentication import Db
from ragcontract.service.web.problem_details import ProblemError

log = logging.getLogger(__name__)


@get("/healthz", access=OPEN, sync_to_thread=False)
def healthz() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "ok"}


@get("/readyz", access=OPEN, sync_to_thread=True)
def readyz(database: Db) -> dict[str, str]:
    """Say whether the database answers, has the tables of this version, and keeps up with what is written."""
    if problems := list(_problems(database)):
        raise ProblemError(503, "the service cannot work now", problems, retry_after=1)
    return {"status": "ok"}


def _problems(database: Database) -> Iterator[str]:
    try:
        check_revision(database)
    except InputError as error:
        yield from error.problems
    except SQLAlchemyError as error:
        log.warning("not ready: %s", error)
        yield "the database does not answer"
    if database.waiting >= bounds.SERVICE_WRITES_WAITING:
        yield f"{database.waiting} writes wait, as many as may"


ROUTES = (healthz, readyz)
