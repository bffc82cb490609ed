"""``rag-contract service``: what the operator of the team service does beside serving."""

import gc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from ragcontract.cli.console import say
from ragcontract.cli.service_options import db_option, of_service, projects_option, runs_dir_option
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode
from ragcontract.core.lines import Line

MIGRATE: Line[Callable[[str], str]] = Line(home="ragcontract.service.commands:migrated")
BACKUP: Line[Callable[[str, Path], None]] = Line(home="ragcontract.service.commands:back_up")
CHECK: Line[Callable[[str], list[str]]] = Line(home="ragcontract.service.commands:problems_of")
ADDED_USER: Line[Callable[[str, str, str], str]] = Line(home="ragcontract.service.commands:added_user")
NEW_LINK: Line[Callable[[str, str], str]] = Line(home="ragcontract.service.commands:new_link")
ADDED_KEY: Line[Callable[..., Any]] = Line(home="ragcontract.service.commands:added_key")
WORK: Line[Callable[..., None]] = Line(home="ragcontract.service.workers.worker:work_alone")
ROLES = ("viewer", "editor", "admin")
SCOPES = ("read", "ingest", "record", "run")


def _checked_url(_context: click.Context, _option: click.Parameter, url: str) -> str:
    if not url.startswith(("https://", "http://")):
        raise click.BadParameter(f"{url!r} is not an address such as https://rag.example.com")
    return url


url_option = click.option(
    "--url",
    callback=_checked_url,
    default="http://127.0.0.1:8000",
    metavar="URL",
    help="The address at which browsers reach the service. [http://127.0.0.1:8000]",
)


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


@command.group("user")
def user() -> None:
    """Add people, who log in with a link that works once."""


@user.command("add")
@click.argument("name", metavar="NAME")
@click.option("--role", required=True, type=click.Choice(ROLES), help="What the user may do.")
@url_option
@db_option
def add_user(*, name: str, role: str, url: str, db: str) -> int:
    """Add a user, and print a link that logs the user in."""
    _say_link(url, of_service(ADDED_USER)(db, name, role))
    return ExitCode.PASS


@user.command("link")
@click.argument("name", metavar="NAME")
@url_option
@db_option
def link(*, name: str, url: str, db: str) -> int:
    """Print another link for a user. The one before is no longer valid."""
    _say_link(url, of_service(NEW_LINK)(db, name))
    return ExitCode.PASS


@command.group("token")
def token() -> None:
    """Make keys for CI and other programs."""


@token.command("add")
@click.argument("name", metavar="NAME")
@click.option(
    "--scope",
    "scopes",
    required=True,
    multiple=True,
    type=click.Choice(SCOPES),
    help="What the key may do; repeatable.",
)
@click.option("--project", metavar="CONTRACT", help="The only project that the key may see. [all]")
@click.option(
    "--expires", type=click.IntRange(1, bounds.KEY_DAYS), metavar="DAYS", help="For how many days it is valid. [always]"
)
@db_option
def add_token(*, name: str, scopes: Sequence[str], project: str | None, expires: int | None, db: str) -> int:
    """Make a key, and print it. It is not shown again.

    A project that does not exist is created. It is the contract of that name (`name` in ragcontract.yml), or has that
    slug.
    """
    added = of_service(ADDED_KEY)(db, name, scopes, project, expires)
    if added.is_new_project:
        say(f"created project {added.slug}\n", err=True)
    say(f"{added.text}\n")
    return ExitCode.PASS


def _say_link(url: str, secret: str) -> None:
    say(f"{url.rstrip('/')}/login?link={secret}\n")
    say(f"The link works once, within {bounds.LINK_SECONDS // 60} minutes.\n", err=True)


@command.command("work")
@db_option
@projects_option(required=True)
@runs_dir_option
def work(*, db: str, projects: Path, runs_dir: Path | None) -> int:
    """Make the runs of mounted projects, until SIGTERM or Ctrl-C.

    On further machines, with Postgres and the same projects. What it works on is given back at the end.
    """
    gc.enable()  # it is off for commands that end soon
    of_service(WORK)(db=db, projects=projects, runs_dir=runs_dir)
    return ExitCode.PASS
