"""Checks the runs of the demo as CI does, each against the last one that passed, so that every number is true."""

import gc
import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal

import msgspec

from ragcontract import pipeline
from ragcontract.contract.resolve import Contract
from ragcontract.evaluation.source import Inputs
from ragcontract.history.commits import CheckContext, Commits
from ragcontract.history.contract_entries import ContractEntries
from ragcontract.history.entry import Entry, EntryId, NewEntry, Origin, newest_first
from ragcontract.history.for_check import facts_of
from ragcontract.history.interface import Added
from ragcontract.history.new_entry import new_entry
from ragcontract.history.service_files import with_files
from ragcontract.report.json_report import file_of
from ragcontract.report.record import Provenance
from ragcontract.service.demo.demo_story import DemoProject, DemoRun, runs_of

MAIN = "main"


def send_entries(to: Connection, project: DemoProject, now: datetime, folder: Path) -> None:
    """Send the entries of a project until a time, the oldest first: what a process does until nobody listens.

    The files of the checks are in ``folder``, which is new.
    """
    gc.disable()  # it ends soon
    signal(SIGINT, SIG_IGN)  # who has started it ends it
    folder.mkdir()
    with to, suppress(BrokenPipeError):
        for new in map(_Checks(project, folder).entry_of, runs_of(project, now)):
            to.send(new)


class _Checks:
    """The checks of a project, in a folder with its files, and the history so far."""

    def __init__(self, project: DemoProject, folder: Path) -> None:
        self._project, self._folder = project, folder
        self._recorded = _Recorded()
        self._contracts: dict[tuple[str, bool], Contract] = {}  # by the configuration; reading it takes a while
        (folder / "golden.jsonl").write_bytes((project.folder / "golden.jsonl").read_bytes())

    def entry_of(self, run: DemoRun) -> NewEntry:
        """Check a run, and return its entry, which the history has from now on."""
        source = Origin(
            repository=self._project.repository,
            commit=run.commits[0],
            branch=run.branch,
            pull_request=run.pull_request,
            contract=self._project.slug,
            event=run.event,
            run_id=run.number,
        )
        outcome = self._checked(run, source)
        content = b"".join(file_of(outcome)).replace(f"{self._folder}/".encode(), b"")  # as in the root of a repository
        new = new_entry(
            outcome.report,
            outcome.evaluation,
            source,
            report_sha256=hashlib.sha256(content).hexdigest(),
            default_branch=run.branch == MAIN,
        )
        self._recorded.add(new)
        return with_files(new, outcome.report, content)

    def _checked(self, run: DemoRun, source: Origin) -> pipeline.Outcome:
        (self._folder / "ragcontract.yml").write_text(run.config, encoding="utf-8")
        rows = b"".join(msgspec.json.encode(row) + b"\n" for row in run.rows)
        (self._folder / "current_run.jsonl").write_bytes(rows)
        context = CheckContext(
            branch=MAIN,
            is_pull_request=run.pull_request is not None,
            run_id=run.number,
            commits=lambda: _commits(run.commits),
        )
        facts = facts_of(_Entries(self._recorded, self._project.slug, self._project.slug), "last-pass", context)
        inputs = facts.with_baseline(
            Inputs(
                golden=[str(self._folder / "golden.jsonl")],
                run=[str(self._folder / "current_run.jsonl")],
                config=str(self._folder / "ragcontract.yml"),
                keep_ids=True,
            )
        )
        key = run.config, inputs.awaits_baseline
        if key not in self._contracts:
            self._contracts[key] = pipeline.load(inputs)
        provenance = msgspec.convert(source, Provenance, from_attributes=True)
        outcome = pipeline.check(inputs, now=run.at, source=provenance, contract=self._contracts[key])
        return facts.add_to_report(outcome)


def _commits(order: Sequence[str]) -> Commits:
    return Commits(order=tuple(order), parents={sha: tuple(order[place + 1 :][:1]) for place, sha in enumerate(order)})


class _Recorded:
    """A :class:`~ragcontract.history.interface.Store` in memory, of one contract."""

    name = "the demo"

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self._results: dict[str, bytes] = {}

    def contracts(self) -> list[str]:
        return [*{entry.contract for entry in self.entries.values()}]

    def months(self, contract: str) -> list[str]:  # noqa: ARG002 (the seam's)
        return sorted({f"{key[:4]}-{key[4:6]}" for key in self.entries}, reverse=True)

    def ids(self, contract: str, months: Sequence[str]) -> list[EntryId]:  # noqa: ARG002 (the seam's)
        return newest_first(
            filter(None, (EntryId.of(key) for key in self.entries if f"{key[:4]}-{key[4:6]}" in months))
        )

    def read(self, contract: str, ids: Sequence[EntryId]) -> dict[str, bytes]:  # noqa: ARG002 (the seam's)
        return {}  # what is remembered is not decoded again

    def results(self, sha256: str) -> bytes | None:
        return self._results.get(sha256)

    def result_sets(self) -> set[str]:
        return {*self._results}

    def add(self, new: NewEntry) -> Added:
        self.entries[new.entry.id] = new.entry
        if new.entry.results and new.results is not None:
            self._results[new.entry.results.sha256] = new.results
        return "added"

    def delete_results(self, digests: Collection[str]) -> None:
        for digest in digests:
            self._results.pop(digest, None)


class _Entries(ContractEntries):
    """The entries that are remembered."""

    store: _Recorded

    def read(self, ids: Iterable[EntryId]) -> Iterator[Entry]:
        return (self.store.entries[each.id] for each in ids)
