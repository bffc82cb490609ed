"""``rag-contract service``: what the operator of the team service does beside serving."""

from collections.abc import Callable
from pathlib import Path

import click

from ragcontract.cli.account_commands import token, user
from ragcontract.cli.console import say
from ragcontract.cli.service_options import db_option, of_service
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode
from ragcontract.core.lines import Line

MIGRATE: Line[Callable[[str], str]] = Line(home="ragcontract.service.upkeep:migrated")
BACKUP: Line[Callable[[str, Path], None]] = Line(home="ragcontract.service.upkeep:back_up")
CHECK: Line[Callable[[str], list[str]]] = Line(home="ragcontract.service.upkeep:problems_of")


@click.group("service")
def command() -> None:
    """Look after the team service: its database, users and keys."""


@command.command("migrate")
@db_option
def migrate(*, db: str) -> int:
    """Bring the database to the version that this program needs.

    An SQLite file is created if it is missing, and copied before it changes. Several may migrate at once. `serve`
    migrates SQLite by itself.
    """
    say(f"at revision {of_service(MIGRATE)(db)}\n")
    return ExitCode.PASS


@command.command("backup")
@click.argument("file", metavar="FILE")
@db_option
def backup(*, file: str, db: str) -> int:
    """Copy an SQLite database into a new file.

    It may be served meanwhile. For Postgres, use pg_dump.
    """
    of_service(BACKUP)(db, Path(file))
    say(f"copied to {file}\n")
    return ExitCode.PASS


@command.command("check")
@db_option
def check(*, db: str) -> int:
    """Check that the database is whole.

    Checks its structure, its version, the digests of all blobs, and all entries.

    Exit codes: 0 all is as it should be, 1 it is not, 2 it cannot be read.
    """
    problems = of_service(CHECK)(db)
    say("".join(f"{problem}\n" for problem in problems[: bounds.PROBLEMS]) or "the database is whole\n")
    return ExitCode.BROKEN if problems else ExitCode.PASS


command.add_command(user)
command.add_command(token)
