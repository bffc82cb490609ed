"""``rag-contract history``: records checks, shows the records, and says whether a commit passed."""

import os
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import click
import msgspec

from ragcontract.cli.commands.check import load_plugins
from ragcontract.cli.console import say, say_json, warn
from ragcontract.cli.history_options import branch_option, contract_option, history_option
from ragcontract.cli.options import clock, refuse_outputs
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import visible
from ragcontract.files.writing import goes_to_stdout, write_files
from ragcontract.github.context import GitHubError
from ragcontract.history.consult import past_of
from ragcontract.history.copying import copy, prune
from ragcontract.history.entry import Entry
from ragcontract.history.from_report import entry_of_report, files_of
from ragcontract.history.interface import Store
from ragcontract.history.listing import Listing, one_run, query_history, query_runs, runs
from ragcontract.history.origin import origin_of
from ragcontract.history.past import Past, document_of, entry_named, named
from ragcontract.history.release_gate import Release, release
from ragcontract.history.stores import client_for, open_store, repository_here
from ragcontract.report import terminal
from ragcontract.report.blocks import Block

RUNS, KEPT = 20, 200
FORMAT = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="The output format. [text]"
)


@click.group("history")
def command() -> None:
    """Record checks, and look back at them.

    A history is a folder, or a branch of a GitHub repository. Each recorded check is an entry in it, which never
    changes. Its result set, a file beside it, has the documents of each query, so that the run can be a baseline.
    """


@command.command("add")
@history_option
@click.option("--branch", metavar="NAME", help="The branch that was checked. [what CI or git says]")
@click.option("--report", default="report.json", metavar="FILE", help="The report of the check. [report.json]")
@click.option("--accepted", is_flag=True, help="Record that a person accepted the broken contract.")
@click.option("--no-answers", is_flag=True, help="Store digests in place of the questions.")
@click.option(
    "--plugin", "plugins", multiple=True, metavar="MODULE:CLASS", help="As for `check`, if the contract needs it."
)
def add(
    *, history: str | None, branch: str | None, report: str, accepted: bool, no_answers: bool, plugins: Sequence[str]
) -> int:
    """Record a check that has run.

    Reads the report and the files that it names, which must not have changed since. Run it in the same folder as
    `check`. What is stored has questions, document ids and numbers, and no text of the application or of its documents.
    """
    store = _store(history)
    new = entry_of_report(
        Path(report),
        lambda judged: origin_of(os.environ, Path(), [report, *files_of(judged)], branch),
        store,
        accepted=accepted,
        private=no_answers,
        plugins=load_plugins(plugins),
    )
    if new.entry.no_results:
        warn([f"{new.path}: cannot be a baseline, because it has no result set: {new.entry.no_results}"])
    done = {"added": "recorded", "exists": "is there already:"}[store.add(new)]
    say(f"{done} {new.path}\n")
    return ExitCode.PASS


@command.command("show")
@click.argument("ref", required=False, metavar="[REF]")
@history_option
@branch_option
@contract_option
@click.option(
    "--last", type=click.IntRange(1, bounds.ENTRIES), default=RUNS, metavar="N", help=f"How many runs. [{RUNS}]"
)
@click.option("--metric", metavar="KEY", help="Show this metric, such as mrr_at_5. [those with limits]")
@click.option("--query", metavar="ID", help="Show the runs of one query, and the commit at which it broke.")
@FORMAT
@click.option("--baseline-out", metavar="FILE", help="Write the run of REF as a baseline.json.")
def show(
    *,
    ref: str | None,
    history: str | None,
    branch: str | None,
    contract: str | None,
    last: int,
    metric: str | None,
    query: str | None,
    form: str,
    baseline_out: str | None,
) -> int:
    """Show the recorded runs, newest first.

    REF is last, last-pass, a commit, or the id of an entry; then only this run is shown.
    """
    if baseline_out and not ref:
        raise click.UsageError("--baseline-out needs REF, the run to write")
    store = _store(history)
    past = past_of(store, contract)
    if ref:
        _show_run(entry_named(past, ref, branch), past, form, baseline_out)
        return ExitCode.PASS
    wanted = past.branch(branch)
    entries = (entry for entry in past.entries() if entry.source.branch == wanted)
    if query is not None:
        of_query = query_history(store, entries, query, last)
        _print(Listing(contract=past.contract, branch=wanted, query=of_query), query_runs(of_query), form)
    elif newest := [*islice(entries, last)]:
        _print(Listing(contract=past.contract, branch=wanted, entries=newest), runs(newest, metric), form)
    else:
        raise InputError([f"{store.name}: has no entries of {named(past.contract)}", *past.warnings()])
    warn([*past.warnings()])
    return ExitCode.PASS


def _show_run(entry: Entry, past: Past, form: str, baseline_out: str | None) -> None:
    if baseline_out:
        refuse_outputs({"baseline_out": baseline_out}, [])
        write_files({baseline_out: document_of(past.store, entry)})
    if baseline_out is None or not goes_to_stdout(baseline_out):
        _print(entry, one_run(entry), form)


def _print(record: Listing | Entry, blocks: Sequence[Block], form: str) -> None:
    if form == "json":
        say_json(msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n")
    else:
        say(terminal.page(blocks))


@command.command("gate")
@click.argument("commit")
@history_option
@click.option(
    "--contract",
    "contracts",
    multiple=True,
    metavar="NAME",
    help="The contracts that must have passed; repeatable. [all with a run of the last 90 days]",
)
@click.option("--status", is_flag=True, help="Also set the status rag-contract/release of the commit on GitHub.")
@FORMAT
def gate(*, commit: str, history: str | None, contracts: Sequence[str], status: bool, form: str) -> int:
    """Say whether a commit passed.

    Exits 0 if the newest run of every contract at this very commit passed, 1 if a run did not, 2 if a contract has no
    run there. A run that a label accepted did not pass, and one of changed files does not count.
    """
    outcome = release(_store(history), commit, contracts, clock())
    if form == "json":
        say_json(msgspec.json.format(msgspec.json.encode(outcome), indent=2).decode() + "\n")
    else:
        lines = (f"{visible(each.contract) or 'contract'}: {visible(each.why)}" for each in outcome.contracts)
        say("".join(f"{line}\n" for line in lines))
    if status:
        _set_status(outcome, os.environ)
    return outcome.exit_code


def _set_status(outcome: Release, environ: Mapping[str, str]) -> None:
    """Set the commit's status on GitHub; a failure is a warning, because the exit code says the same."""
    try:
        client = client_for(environ, repository_here(environ), seconds=bounds.TIMEOUT_DEFAULT)
        client.create_status(
            outcome.commit, state=outcome.state, context="rag-contract/release", description=outcome.description
        )
    except (GitHubError, InputError) as error:
        advice = "; it needs `permissions: statuses: write`" if getattr(error, "denied", False) else ""
        warn([f"--status: the status of {outcome.commit} could not be set: {error}{advice}"])


@command.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def copy_entries(*, source: str, target: str) -> int:
    """Copy the entries and result sets that another history lacks.

    FROM and TO are named as for --history.
    """
    copied = copy(_store(source), _store(target))
    warn(copied.warnings)
    entries, sets = count(copied.entries, "entry"), count(copied.result_sets, "result set")
    say(f"copied {entries} and {sets}; {copied.present:,} were there already\n")
    return ExitCode.PASS


@command.command("prune")
@history_option
@click.option(
    "--keep-results",
    type=click.IntRange(1, bounds.ENTRIES),
    default=KEPT,
    metavar="N",
    help=f"Keep the result sets of the newest N entries of each contract. [{KEPT}]",
)
def prune_results(*, history: str | None, keep_results: int) -> int:
    """Delete old result sets.

    All entries stay. A run without a result set is still shown, but cannot be a baseline.
    """
    store = _store(history)
    say(f"deleted {count(prune(store, keep_results), 'result set')} of {visible(store.name)}\n")
    return ExitCode.PASS


def _store(name: str | None) -> Store:
    if not name:
        raise click.UsageError("name the history with --history: a folder, or github: for this repository's branch")
    return open_store(name, os.environ)
