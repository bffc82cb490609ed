"""What the commands of the team service share."""

from typing import TypeVar

import click

from ragcontract.core.errors import InputError
from ragcontract.core.lines import Line

T = TypeVar("T")
SERVICE = "ragcontract.service"
INSTALL = 'install it: pip install "rag-contract[service]"'
db_option = click.option(
    "--db",
    envvar="RAG_CONTRACT_DB",
    default="service.db",
    metavar="URL",
    help="The database: a file, or postgresql://USER@HOST/NAME. [RAG_CONTRACT_DB, or service.db]",
)


def of_service(line: Line[T]) -> T:
    """Import a part of the service, which is an extra; raises InputError where it is not installed."""
    try:
        return line.load()
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ragcontract") and error.name != SERVICE:  # which the action's image lacks
            raise
        raise InputError([f"the team service is not installed here: {error.name} is missing; {INSTALL}"]) from error
