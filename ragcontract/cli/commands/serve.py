"""``rag-contract serve``: the team service, until it is asked to stop."""

import gc
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from ragcontract.cli.console import say
from ragcontract.cli.service_options import db_option, of_service
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode
from ragcontract.core.lines import Line

SERVE: Line[Callable[..., None]] = Line(home="ragcontract.service.serving:serve")


@click.command("serve")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="The address to answer at. [127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, metavar="N", help="0 for any free one. [8000]")
@db_option
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="A name by which browsers and CI reach the service. [localhost]",
)
@click.option(
    "--forwarded-allow-ips",
    default="127.0.0.1",
    metavar="IP",
    help="The proxy whose word counts on who asks, and over TLS. [127.0.0.1]",
)
@click.option(
    "--projects",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="A folder with a folder for each project that the service runs itself.",
)
@click.option(
    "--keep-runs",
    type=click.IntRange(0, bounds.SERVICE_RUNS),
    default=bounds.KEEP_RUNS,
    metavar="N",
    help=f"How many runs of a project are kept; 0 for all. [{bounds.KEEP_RUNS}]",
)
def command(
    *,
    host: str,
    port: int,
    db: str,
    allowed_hosts: Sequence[str],
    forwarded_allow_ips: str,
    projects: Path | None,
    keep_runs: int,
) -> int:
    """Serve the history of all projects to CI and to people.

    An SQLite file is created, or migrated, first. Postgres is migrated by `service migrate`. SIGTERM and Ctrl-C end it
    when the requests at work are answered, after 10 seconds at most.
    """
    serve = of_service(SERVE)

    def when_ready(url: str, link: str | None) -> None:
        say(f"The team service answers at {url}\n")
        if link:
            say(f"Log in as admin within {bounds.LINK_SECONDS // 60} minutes: {link}\n")

    gc.enable()  # it is off for commands that end soon
    serve(
        host=host,
        port=port,
        db=db,
        allowed_hosts=allowed_hosts,
        forwarded_allow_ips=forwarded_allow_ips,
        projects=projects,
        keep_runs=keep_runs,
        when_ready=when_ready,
    )
    return ExitCode.PASS
