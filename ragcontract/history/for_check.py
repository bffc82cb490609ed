"""What a check takes from a history: its baseline, and since when broken queries are broken on the branch."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count, more
from ragcontract.evaluation.past import Past, PastSeries, WithoutRuns
from ragcontract.evaluation.source import ENTRY_PREFIX, Inputs, Local, entry_ref
from ragcontract.history.choose_baseline import LAST, LAST_PASS, Chosen, NoEntryFitsError, choose
from ragcontract.history.ci_environment import check_context
from ragcontract.history.commits import CheckContext, Commits
from ragcontract.history.contract_entries import ContractEntries, contract_in_message, entries_of
from ragcontract.history.entry import NO_COMMIT, Entry
from ragcontract.history.interface import NotReachableError, Store
from ragcontract.history.open_store import open_store
from ragcontract.history.series import Limited, PastOfCheck, at_once
from ragcontract.history.trend import comparable, past_metrics, recorded_metrics
from ragcontract.pipeline import Outcome
from ragcontract.report.headline import summary_of
from ragcontract.report.history_report import BrokenSince, HistoryBaseline, HistoryReport
from ragcontract.report.record import QueryReport


class HistoryFacts(Struct, frozen=True, kw_only=True):
    """What a history says of one contract."""

    entries: ContractEntries | None = None  # None if it could not be read
    branch: str | None = None
    context: CheckContext | None = None  # None if it could not be read
    newest: tuple[Entry, ...] = ()  # of the branch
    chosen: Chosen | None = None
    behind: int | None = None  # how many newer commits the branch has than the chosen entry
    limited: Limited = at_once  # how further runs are read
    problem: str = ""  # why it could not be read
    no_baseline: str = ""  # why there is nothing to compare with yet, although a baseline is asked for
    notes: tuple[str, ...] = ()

    @classmethod
    def not_read(cls, branch: str | None, error: InputError) -> "HistoryFacts":
        """Return what is known of a history that cannot be read and is not needed: why."""
        return cls(branch=branch, problem=error.problems[0], notes=(f"Trend not shown: {error.problems[0]}",))

    def with_baseline(self, inputs: Inputs) -> Inputs:
        """Return the inputs with the chosen entry as the baseline, and the recorded runs for limits on levels."""
        past: Past = WithoutRuns(why=PastSeries(problem=self.problem))
        if self.entries and self.context:
            past = PastOfCheck(entries=self.entries, branch=self.branch, context=self.context, limited=self.limited)
        inputs = replace(inputs, past=past)
        if self.chosen:
            return replace(inputs, baseline=Local(self.chosen))
        return replace(inputs, awaits_baseline=True) if self.no_baseline else inputs

    def add_to_report(self, outcome: Outcome) -> Outcome:
        """Return the outcome of a check with what the history says in its report."""
        report, gates = outcome.report, self._left_out(outcome)
        runs, past = comparable(self.newest, outcome), outcome.evaluation.past or PastSeries()
        recorded = {key: of for key, of in recorded_metrics(runs, outcome).items() if key not in past.series}
        metrics = recorded | past_metrics(past, outcome)
        limits = outcome.evaluation.contract.config.history if past.series else None
        verdicts = {run.id: run.verdict for run in past.runs} | {entry.id: entry.verdict for entry in runs}
        listed = {run_id for metric in metrics.values() for run_id in metric.ids}
        history = HistoryReport(
            branch=self.branch,
            entries=len(self.newest),
            baseline=self._baseline(),
            limits_left_out=len(gates),
            broken_since=broken_since(self.newest, report.queries),
            window=limits.window if limits else None,
            since=limits.since if limits else None,
            failed=sorted(run_id for run_id in listed if verdicts[run_id] == "fail"),
            metrics=metrics,
            notes=[*self.notes, *past.notes],
        )
        warnings = [*report.warnings, *self._about_left_out(gates), *self.warnings()]
        report = replace(report, history=history, warnings=warnings)
        return replace(outcome, report=replace(report, summary_line=summary_of(report)))

    def warnings(self) -> list[str]:
        """Return what could not be read of the history."""
        return [*self.entries.warnings()] if self.entries else []

    def _baseline(self) -> HistoryBaseline | None:
        if self.chosen is None:
            return None
        entry = self.chosen.entry
        commit = entry.source.commit or NO_COMMIT
        return HistoryBaseline(id=entry.id, commit=commit, named=self.chosen.named, behind=self.behind)

    def _left_out(self, outcome: Outcome) -> list[str]:
        """Return the limits that need a baseline, where there is none yet."""
        gates = outcome.evaluation.contract.config_file.gates
        return [gate.id for gate in gates if gate.needs_baseline] if self.no_baseline else []

    def _about_left_out(self, gates: Sequence[str]) -> Iterator[str]:
        if gates:
            shown = ", ".join(gates[: bounds.NAMES]) + more(len(gates), bounds.NAMES, form=" and {}")
            limits = f"{count(len(gates), 'limit')} on changes {'is' if len(gates) == 1 else 'are'} left out: {shown}"
            yield f"history: {self.no_baseline}, so {limits}"


class HistoryOfCheck(Struct, frozen=True, kw_only=True):
    """The store that a user named, and the check that asks it."""

    open: Callable[[], Store]
    contract: str | None  # the name; None for the only one in the store
    context: CheckContext

    def facts(self, name: str | None) -> HistoryFacts:
        """Read what a check needs; ``name`` is that of the entry that is its baseline, if any."""
        try:
            store = self.open()
        except NotReachableError as error:
            if name is None:
                return HistoryFacts.not_read(self.context.branch, error)
            raise
        return facts_of(entries_of(store, self.contract), name, self.context)

    def run_named(self, path: str) -> tuple[Local, list[str]]:
        """Return the run of the entry that stands in place of a path, and warnings about the history.

        Raises :class:`InputError` if there is none.
        """
        facts = self.facts(path.removeprefix(ENTRY_PREFIX))
        if facts.chosen is None:
            raise InputError([f"{path}: {facts.no_baseline}"])
        return Local(facts.chosen), facts.warnings()


def history_of_check(
    history: str, environ: Mapping[str, str], branch: str | None, contract: str | None
) -> HistoryOfCheck:
    """Return the history that a user named, for a check in the current folder."""
    context = check_context(environ, Path(), branch)
    return HistoryOfCheck(open=partial(open_store, history, environ), contract=contract, context=context)


def facts_of(entries: ContractEntries, name: str | None, context: CheckContext) -> HistoryFacts:
    """Read what a check needs; ``name`` is that of the entry that is its baseline, if any.

    If nothing in the check depends on it, a history that cannot be read is only noted. Otherwise, raises
    :class:`InputError`. Entries of this workflow run are not in its own past.
    """
    try:
        branch = entries.branch(context.branch)
        of_branch = (entry for entry in entries.newest if entry.source.branch == branch)
        newest = tuple(entry for entry in of_branch if not entry.is_of_run(context.run_id))
    except InputError as error:
        if name is None:
            return HistoryFacts.not_read(context.branch, error)
        raise
    facts = HistoryFacts(entries=entries, branch=branch, context=context, newest=newest)
    if name is None:
        return facts
    contract = contract_in_message(entries.contract)
    if not entries.has_any(context.run_id):
        if context.is_pull_request or name not in {LAST_PASS, LAST}:
            nothing = f"history has no entries of {contract}: record the base branch first"
            raise InputError([f"{entry_ref(name)}: {nothing}"])
        return replace(facts, no_baseline=f"nothing is recorded for {contract} yet")
    commits = context.commits()
    try:
        chosen = choose(entries, name, branch, commits, context.run_id)
    except NoEntryFitsError:
        # A branch whose first run failed must still get a verdict, or no later run could be recorded.
        may_have_passed = not facts.newest or entries.may_have_passed(branch, context.run_id)
        if context.is_pull_request or name != LAST_PASS or may_have_passed:
            raise
        return replace(facts, no_baseline=f"no run of {contract} with a result set has passed yet")
    return replace(facts, chosen=chosen, behind=_behind(chosen, commits, context))


def _behind(chosen: Chosen, commits: Commits, context: CheckContext) -> int | None:
    """Return how many commits the branch has after the chosen entry's; the commit that is checked does not count."""
    tip, commit = context.tip(commits), chosen.entry.source.commit
    steps = commits.first_parents_since(tip, commit) if tip and commit else None
    if steps is None:
        return None
    return max(steps - (tip == commits.newest), 0)


def _may_break(entry: Entry, query_id: str) -> bool:
    return query_id in entry.broken_ids or not entry.lists_all_broken


def broken_since(newest: Sequence[Entry], queries: Iterable[QueryReport]) -> dict[str, BrokenSince]:
    """Return since when broken queries are broken in the entries, which are the newest first; others are left out."""
    since: dict[str, BrokenSince] = {}
    for query in queries:
        runs = 0
        while query.status != "pass" and runs < len(newest) and _may_break(newest[runs], query.id):
            runs += 1
        while runs and query.id not in newest[runs - 1].broken_ids:  # a list that is cut does not say when it broke
            runs -= 1
        if runs:
            first = newest[runs - 1]
            commit = first.source.commit or NO_COMMIT
            since[query.id] = BrokenSince(commit=commit, at=first.created_at, or_before=runs == len(newest))
    return since
