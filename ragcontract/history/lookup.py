"""What a check takes from a history: its baseline, and since when broken queries are broken on the branch."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count, more
from ragcontract.core.run import RunRow
from ragcontract.evaluation.source import ENTRY, Inputs, Local
from ragcontract.history.commits import Commits
from ragcontract.history.entry import NO_COMMIT, Entry
from ragcontract.history.past import LAST, LAST_PASS, Chosen, NoEntryFitsError, Past, choose, is_own, named
from ragcontract.pipeline import Outcome
from ragcontract.report.history_report import BrokenSince, HistoryBaseline, HistoryReport
from ragcontract.report.record import QueryReport
from ragcontract.runs.baseline_file import StoredEvent, document_events


class Here(Struct, frozen=True, kw_only=True):
    """The check that asks a history."""

    branch: str | None  # whose entries are read; None for the only one that entries have
    is_pull_request: bool = False
    run_id: int | None = None  # the workflow run
    commits: Callable[[], Commits]  # those before the checked one, which is the first
    tip: Callable[[Commits], str | None] = lambda commits: commits.newest  # the newest one of the branch itself


class EntryRows(Struct, frozen=True, kw_only=True):
    """The run of an entry, which is read as a stored baseline."""

    chosen: Chosen

    def events(self, rows: type[RunRow], *, with_metrics: bool = False) -> Iterator[StoredEvent]:  # noqa: ARG002
        return document_events(self.chosen.document, self.chosen.path, with_metrics=with_metrics)


class Lookup(Struct, frozen=True, kw_only=True):
    """What a history says of one contract."""

    past: Past | None = None  # None if it could not be read
    branch: str | None = None
    newest: tuple[Entry, ...] = ()  # of the branch
    chosen: Chosen | None = None
    behind: int | None = None  # how many newer commits the branch has than the chosen entry
    awaits: bool = False  # nothing is recorded yet, or nothing that passed, so nothing can be compared
    notes: tuple[str, ...] = ()

    def with_baseline(self, inputs: Inputs) -> Inputs:
        """Return the inputs with the chosen entry as the baseline."""
        if self.chosen:
            return replace(inputs, baseline=Local(EntryRows(chosen=self.chosen)))
        return replace(inputs, awaits_baseline=True) if self.awaits else inputs

    def noted(self, outcome: Outcome) -> Outcome:
        """Return the outcome of a check with what the history says in its report."""
        report = outcome.report
        history = HistoryReport(
            branch=self.branch,
            entries=len(self.newest),
            baseline=self._baseline(),
            broken_since=broken_since(self.newest, report.queries),
            notes=list(self.notes),
        )
        warnings = [*report.warnings, *self._left_out(outcome), *(self.past.warnings() if self.past else ())]
        return replace(outcome, report=replace(report, history=history, warnings=warnings))

    def _baseline(self) -> HistoryBaseline | None:
        if self.chosen is None:
            return None
        entry = self.chosen.entry
        commit = entry.source.commit or NO_COMMIT
        return HistoryBaseline(id=entry.id, commit=commit, named=self.chosen.named, behind=self.behind)

    def _left_out(self, outcome: Outcome) -> Iterator[str]:
        """Yield a warning with the limits that need a baseline, where there is none yet."""
        gates = [gate.id for gate in outcome.evaluation.contract.config_file.gates if gate.needs_baseline]
        if not self.awaits or not gates or self.past is None:
            return
        shown = ", ".join(gates[: bounds.NAMES]) + more(len(gates), bounds.NAMES, form=" and {}")
        limits = f"{count(len(gates), 'limit')} on changes {'is' if len(gates) == 1 else 'are'} left out: {shown}"
        contract = named(self.past.contract)
        why = f"no run of {contract} has passed" if self.newest else f"nothing is recorded for {contract}"
        yield f"history: {why} yet, so {limits}"


def look_up(past: Past, name: str | None, here: Here) -> Lookup:
    """Read what a check needs; ``name`` is that of the entry that is its baseline, if any.

    If nothing in the check depends on it, a history that cannot be read is only noted. Otherwise, raises
    :class:`InputError`.
    """
    if name is None:
        try:
            branch = past.branch(here.branch)
            return Lookup(past=past, branch=branch, newest=_of_branch(past.newest, branch, here.run_id))
        except InputError as error:
            return not_read(here.branch, error)
    if not past.has_any(here.run_id):
        if here.is_pull_request or name not in {LAST_PASS, LAST}:
            nothing = f"history has no entries of {named(past.contract)}: record the base branch first"
            raise InputError([f"{ENTRY}{name}: {nothing}"])
        return Lookup(past=past, branch=here.branch, awaits=True)
    branch, commits = past.branch(here.branch), here.commits()
    newest = _of_branch(past.newest, branch, here.run_id)
    try:
        chosen = choose(past, name, branch, commits, here.run_id)
    except NoEntryFitsError:
        # Otherwise, a branch whose first run fails could never pass: without a verdict, nothing is recorded.
        if here.is_pull_request or name != LAST_PASS or past.may_have_passed(branch):
            raise
        return Lookup(past=past, branch=branch, newest=newest, awaits=True)
    return Lookup(past=past, branch=branch, newest=newest, chosen=chosen, behind=_behind(chosen, commits, here))


def not_read(branch: str | None, error: InputError) -> Lookup:
    """Return what is known of a history that cannot be read and is not needed: why."""
    return Lookup(branch=branch, notes=(f"Trend not shown: {error.problems[0]}",))


def _of_branch(entries: Iterable[Entry], branch: str | None, own_run: int | None) -> tuple[Entry, ...]:
    """Return the entries of the branch, without those of this workflow run, which is not in its own past."""
    return tuple(entry for entry in entries if entry.source.branch == branch and not is_own(entry, own_run))


def _behind(chosen: Chosen, commits: Commits, here: Here) -> int | None:
    """Return how many commits the branch has after the chosen entry's; the commit that is checked does not count."""
    tip, commit = here.tip(commits), chosen.entry.source.commit
    steps = commits.first_parents_since(tip, commit) if tip and commit else None
    if steps is None:
        return None
    return max(steps - (tip == commits.newest), 0)


def broken_since(newest: Sequence[Entry], queries: Sequence[QueryReport]) -> dict[str, BrokenSince]:
    """Return since when broken queries are broken in the entries, which are the newest first; others are left out."""
    broken_in: list[frozenset[str]] = [frozenset((*entry.failed, *entry.tolerated)) for entry in newest]
    since: dict[str, BrokenSince] = {}
    for query in queries:
        runs = 0
        while query.status != "pass" and runs < len(newest) and query.id in broken_in[runs]:
            runs += 1
        if runs:
            first = newest[runs - 1]
            commit = first.source.commit or NO_COMMIT
            since[query.id] = BrokenSince(commit=commit, at=first.created_at, or_before=runs == len(newest))
    return since
