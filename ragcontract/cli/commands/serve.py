"""``rag-contract serve``: the team service, until it is asked to stop."""

import gc
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from ragcontract.cli.console import say, share_done
from ragcontract.cli.options import clock
from ragcontract.cli.service_options import db_option, of_service, projects_option, runs_dir_option
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode
from ragcontract.core.lines import Line

SERVE: Line[Callable[..., None]] = Line(home="ragcontract.service.serving:serve")
DEMO: Line[Callable[..., None]] = Line(home="ragcontract.service.demo.demo_database:serve_demo")


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
@projects_option()
@click.option(
    "--keep-runs",
    type=click.IntRange(0, bounds.SERVICE_RUNS),
    default=bounds.KEEP_RUNS,
    metavar="N",
    help=f"How many runs of a project are kept; 0 for all. [{bounds.KEEP_RUNS}]",
)
@click.option(
    "--workers",
    type=click.IntRange(0, bounds.SERVICE_WORKERS),
    default=1,
    metavar="N",
    help="How many processes make the runs of mounted projects; 0 for none. [1]",
)
@runs_dir_option
@click.option("--demo", is_flag=True, help="Serve four invented projects with 90 days of runs. Nothing is kept.")
@click.pass_context
def command(
    context: click.Context,
    *,
    host: str,
    port: int,
    db: str,
    allowed_hosts: Sequence[str],
    forwarded_allow_ips: str,
    projects: Path | None,
    keep_runs: int,
    workers: int,
    runs_dir: Path | None,
    demo: bool,
) -> int:
    """Serve the history of all projects to CI and to people.

    An SQLite file is created, or migrated, first. Postgres is migrated by `service migrate`. SIGTERM and Ctrl-C end it
    when the requests at work are answered, after 10 seconds at most.
    """
    if demo and (projects or context.get_parameter_source("db") is click.core.ParameterSource.COMMANDLINE):
        option = "--projects" if projects else "--db"
        raise click.UsageError(f"--demo has projects and a database of its own; leave out {option}")

    def when_ready(url: str, link: str | None) -> None:
        say(f"The team service answers at {url}\n")
        if link:
            say(f"Log in as admin within {bounds.LINK_SECONDS // 60} minutes: {link}\n")
        if demo:
            say("This is a demo: nothing in it is kept when it ends.\n")

    of_all = {
        "host": host,
        "port": port,
        "allowed_hosts": allowed_hosts,
        "forwarded_allow_ips": forwarded_allow_ips,
        "when_ready": when_ready,
    }
    gc.enable()  # it is off for commands that end soon
    if demo:
        of_service(DEMO)(**of_all, now=clock(), progress=share_done("checking 90 days of runs"))
    else:
        of_mounted = {"projects": projects, "workers": workers, "runs_dir": runs_dir}
        of_service(SERVE)(**of_all, **of_mounted, db=db, keep_runs=keep_runs)
    return ExitCode.PASS
