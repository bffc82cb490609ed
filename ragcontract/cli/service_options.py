"""What the commands of the team service share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ragcontract.core.errors import InputError
from ragcontract.core.lines import Line

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
SERVICE = "ragcontract.service"
INSTALL = 'install it: pip install "rag-contract[service]"'
db_option = click.option(
    "--db",
    envvar="RAG_CONTRACT_DB",
    default="service.db",
    metavar="URL",
    help="The database: a file, or postgresql://USER@HOST/NAME. [RAG_CONTRACT_DB, or service.db]",
)

runs_dir_option = click.option(
    "--runs-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where workers keep the files of runs that are not over. [beside the SQLite file, or rag-contract-runs]",
)


def projects_option(*, required: bool = False) -> "Callable[[F], F]":
    """Return the option for the folder of mounted projects."""
    return click.option(
        "--projects",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        required=required,
        metavar="DIR",
        help="A folder with a folder for each project that the service runs itself.",
    )


def of_service(line: Line[T]) -> T:
    """Import a part of the service, which is an extra; raises InputError where it is not installed."""
    try:
        return line.load()
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ragcontract") and error.name != SERVICE:  # which the action's image lacks
            raise
        raise InputError([f"the team service is not installed here: {error.name} is missing; {INSTALL}"]) from error
