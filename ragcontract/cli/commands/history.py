"""``rag-contract history``: records checks, shows the records, and says whether a commit passed."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import click
import msgspec
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.cli.commands.check import load_plugins
from ragcontract.cli.console import say, say_json, warn
from ragcontract.cli.history_options import branch_option, contract_option, history_option
from ragcontract.cli.options import clock, find_files, lacks_contract, out_option, refuse_outputs, takes
from ragcontract.core import bounds
from ragcontract.core.errors import ExitCode, InputError, OutputError
from ragcontract.core.numbers import count
from ragcontract.core.safe_text import visible
from ragcontract.decision.evaluated import judged, plan_of
from ragcontract.evaluation.source import Inputs
from ragcontract.files.git import commit_named
from ragcontract.files.paths import existing_files
from ragcontract.files.writing import goes_to_stdout, is_device, write_files
from ragcontract.github.context import GitHubError
from ragcontract.history.choose_baseline import document_of, entry_named
from ragcontract.history.commit_state import CommitState, commit_state
from ragcontract.history.contract_entries import UNNAMED, contract_in_message, entries_of, entries_of_all
from ragcontract.history.copy_and_prune import copy, prune
from ragcontract.history.entry import Entry, is_commit, is_commit_start
from ragcontract.history.entry_of_report import entry_of_report
from ragcontract.history.folder import Folder
from ragcontract.history.interface import Store
from ragcontract.history.open_store import EXPECTED, client_for, is_service, open_store, repository_here
from ragcontract.history.page_runs import Today, runs_on_page
from ragcontract.history.show import Listing, one_run, query_history, query_runs, runs, window_of
from ragcontract.history.trend_page import render, section_of
from ragcontract.report import terminal

RUNS, KEPT = 20, 200
number_option = partial(click.option, type=click.IntRange(1, bounds.ENTRIES), metavar="N")
STATUS = "rag-contract/release"
FORMAT = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="The output format. [text]"
)


@click.group("history")
def command() -> None:
    """Record checks, and look back at them.

    A history is a folder, a branch of a GitHub repository, or a team service. Each recorded check is an entry in it,
    which never changes. Its result set, a file beside it, has the documents of each query, so that the run can be a
    baseline.
    """


@command.command("add")
@history_option
@click.option("--branch", metavar="NAME", help="The branch that was checked. [what CI or git says]")
@click.option("--report", default="report.json", metavar="FILE", help="The report of the check. [report.json]")
@click.option("--accepted", is_flag=True, help="Record that a person accepted the broken contract.")
@click.option("--no-answers", is_flag=True, help="Store digests in place of the questions, and no files.")
@click.option(
    "--plugin", "plugins", multiple=True, metavar="MODULE:CLASS", help="As for `check`, if the contract needs it."
)
def add(
    *, history: str | None, branch: str | None, report: str, accepted: bool, no_answers: bool, plugins: Sequence[str]
) -> int:
    """Record a check that has run.

    Reads the report and the files that it names, which must not have changed since. Run it in the same folder as
    `check`. What is stored has questions, document ids and numbers, and no text of the application or of its documents.
    A team service also gets the report, the golden files and the config, unless --no-answers is given.
    """
    store = _store(history)
    new = entry_of_report(
        Path(report),
        store,
        os.environ,
        branch=branch,
        accepted=accepted,
        private=no_answers,
        for_service=is_service(store.name),
        plugins=load_plugins(plugins),
    )
    warn([f"{new.path}: cannot be a baseline: {why}" for why in new.entry.lacks_for_baseline()])
    warn([f"{new.path}: {why}" for why in new.left_out])
    done = {"added": "recorded", "exists": "already recorded:"}[store.add(new)]
    say(f"{done} {new.path}\n")
    return ExitCode.PASS


@command.command("show")
@click.argument("ref", required=False, metavar="[REF]")
@history_option
@branch_option
@contract_option
@number_option("--last", default=RUNS, help=f"How many runs. [{RUNS}]")
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

    With REF (last, last-pass, a commit, or the id of an entry), show only that run.
    """
    if baseline_out and not ref:
        raise click.UsageError("--baseline-out needs REF, the run to write")
    if ref and query is not None:
        raise click.UsageError("--query shows the runs of a query, and REF one run; give one of them")
    store = _store(history, exists=True)
    entries = entries_of(store, contract)
    if ref:
        _show_run(entry_named(entries, ref, branch), store, form, baseline_out)
        return ExitCode.PASS
    listing = Listing(contract=entries.contract, branch=entries.branch(branch))
    of_branch = entries.of_branch(listing.branch)
    if query is not None:
        of_query = query_history(store, of_branch, query, last)
        _print(replace(listing, query=of_query), terminal.page(query_runs(of_query)), form)
    elif newest := [*islice(of_branch, last)]:
        recent = [*newest, *islice(of_branch, max(window_of(newest[0]) - last, 0))]
        _print(replace(listing, entries=newest), terminal.page(runs(recent, last, metric)), form)
    else:
        raise InputError(
            [f"{store.name}: has no entries for {contract_in_message(entries.contract)}", *entries.warnings()]
        )
    warn([*entries.warnings()])
    return ExitCode.PASS


@command.command("page")
@history_option
@branch_option
@contract_option
@takes("golden", "config", "k")
@out_option("--out", "history.html", "Where to write the page.")
def page(*, history: str | None, branch: str | None, contract: str | None, inputs: Inputs, out: str) -> int:
    """Write a page on whether metrics got worse, since which commit, and for which queries.

    With golden files, all runs are scored again by them, so that new questions and labels do not count as changes.
    Without any, and for several contracts, the page has the recorded means.
    """
    store = _store(history, exists=True, seconds=bounds.TIMEOUT)
    every = entries_of_all(store, contract)
    is_named, today = bool(inputs.golden or inputs.config), None
    if is_named and len(every) > 1:
        raise click.UsageError("--golden and --config are those of one contract; name it with --contract")
    if is_named or (len(every) == 1 and not lacks_contract()):
        inputs = replace(find_files(inputs), awaits_baseline=True, baseline=None)
        today = _today(inputs) if is_named or existing_files(inputs.golden)[0] else None
    refuse_outputs({"out": out}, inputs.all, pages={"out"})
    sections = []
    for entries in every[: bounds.PAGE_CONTRACTS]:
        runs_read = runs_on_page(entries, entries.branch(branch), today)
        warn([*entries.warnings()])
        if runs_read.runs:
            sections.append(section_of(runs_read))
    if not sections:
        raise InputError([f"{store.name}: has no entries for {contract_in_message(every[0].contract)}"])
    if (further := len(every) - bounds.PAGE_CONTRACTS) > 0:
        warn([f"--contract names one of the {count(further, 'contract')} that are not on the page"])
    write_files({out: [render(sections, clock())]})
    say("" if goes_to_stdout(out) else f"wrote {visible(out)}\n")
    return ExitCode.PASS


def _today(inputs: Inputs) -> Today:
    """Return the contract as its files have it now."""
    loaded = pipeline.load(inputs)
    loaded.problems.raise_if_any()
    loaded, judge = judged(loaded, inputs, clock())
    return loaded, plan_of(loaded, inputs, judge)


def _show_run(entry: Entry, store: Store, form: str, baseline_out: str | None) -> None:
    if baseline_out:
        refuse_outputs({"baseline_out": baseline_out}, [])
        if os.path.lexists(baseline_out) and not is_device(baseline_out):
            raise OutputError([f"{baseline_out}: exists already; delete it, or name another file"])
        write_files({baseline_out: document_of(store, entry)})
    if baseline_out is None or not goes_to_stdout(baseline_out):
        _print(entry, terminal.page(one_run(entry)), form)


def _print(record: Listing | Entry | CommitState, text: str, form: str) -> None:
    if form == "json":
        say_json(msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n")
    else:
        say(text)


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
    if not is_commit_start(commit):
        commit = commit_named(commit) or commit  # such as HEAD
    outcome = commit_state(_store(history, exists=True), commit, contracts, clock())
    lines = [f"{visible(each.contract or UNNAMED)}: {visible(each.why)}\n" for each in outcome.contracts]
    _print(outcome, "".join(lines), form)
    if outcome.state == "error" and not contracts and len(outcome.contracts) > 1:
        warn(["all contracts of the history must have passed; name those of this repository with --contract"])
    if status:
        if not is_commit(outcome.commit):
            raise click.UsageError("--status needs the whole commit, of which no entry was found")
        _set_status(outcome, os.environ)
    return outcome.exit_code


def _set_status(outcome: CommitState, environ: Mapping[str, str]) -> None:
    """Set the commit's status on GitHub; a failure is a warning, because the exit code says the same."""
    try:
        client = client_for(environ, repository_here(environ), seconds=bounds.TIMEOUT_DEFAULT)
        client.create_status(outcome.commit, state=outcome.state, context=STATUS, description=outcome.description)
        say(f"set the status {STATUS} of {outcome.commit}: {outcome.state}\n", err=True)
    except (GitHubError, InputError) as error:
        advice = "; it needs `permissions: statuses: write`" if getattr(error, "denied", False) else ""
        warn([f"--status: the status of {outcome.commit} could not be set: {error}{advice}"])


@command.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def copy_entries(*, source: str, target: str) -> int:
    """Copy the entries and result sets that another history lacks.

    FROM and TO take the same values as --history.
    """
    copied = copy(_store(source, exists=True, seconds=bounds.TIMEOUT), _store(target, seconds=bounds.TIMEOUT))
    warn(copied.warnings)
    entries, sets = count(copied.entries, "entry"), count(copied.result_sets, "result set")
    say(f"copied {entries} and {sets}; {copied.present:,} were there already\n")
    return ExitCode.PASS


@command.command("prune")
@history_option
@number_option(
    "--keep-results", default=KEPT, help=f"Keep the result sets of the newest N entries of each contract. [{KEPT}]"
)
def prune_results(*, history: str | None, keep_results: int) -> int:
    """Delete old result sets.

    All entries stay. A run without a result set is still shown, but cannot be a baseline.
    """
    store = _store(history, exists=True, seconds=bounds.TIMEOUT)
    if is_service(store.name):
        store.delete_results(())  # which says that it does not, before everything is read
    say(f"deleted {count(prune(store, keep_results), 'result set')} from {visible(store.name)}\n")
    return ExitCode.PASS


def _store(name: str | None, *, exists: bool = False, seconds: float = bounds.TIMEOUT_DEFAULT) -> Store:
    """Open a history, for ``seconds`` if it is no folder; raises InputError if a folder must exist and does not."""
    if not name:
        raise click.UsageError(f"name the history with --history: {EXPECTED}")
    store = open_store(name, os.environ, seconds=seconds)
    if exists and isinstance(store, Folder) and not os.path.isdir(name):  # noqa: PTH112 (pathlib raises if a name is too long)
        raise InputError([f"{name}: there is no such folder"])
    return store
