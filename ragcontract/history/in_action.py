"""The history of a job of the action: which events read it, and which record; recording comes last.

What goes wrong while a check is recorded is a warning. It changes neither the verdict nor the exit code.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import printable, visible
from ragcontract.evaluation.source import entry_ref
from ragcontract.github.context import SERVICE_KEY, Context, GitHubError, text_at, within
from ragcontract.github.delivery import World, attempt, outputs
from ragcontract.github.files import for_next_step, in_container, outside, owned_like_workspace, unsafe_output
from ragcontract.github.pull_request import connect
from ragcontract.github.runner_output import annotation
from ragcontract.github.settings import ActionSettings
from ragcontract.history.commits import CheckContext, Commits, reachable_by_api
from ragcontract.history.contract_entries import entries_of
from ragcontract.history.entry import NewEntry, Origin, is_commit, results_path
from ragcontract.history.folder import Folder
from ragcontract.history.for_check import HistoryFacts, facts_of
from ragcontract.history.interface import Store
from ragcontract.history.new_entry import new_entry, part_of
from ragcontract.history.open_store import (
    BRANCH_STORE,
    SERVICE_STORE,
    is_branch_name,
    is_folder,
    is_service,
    like_an_address,
)
from ragcontract.history.service_files import with_files
from ragcontract.pipeline import Outcome
from ragcontract.report.json_report import file_of

if TYPE_CHECKING:
    from ragcontract.github.http import Client

BRANCH = "branch"  # the input history: a branch of the repository; anything else is a team service or a folder
NO_KEY = f"the step has no {SERVICE_KEY}: set it under `env`, from a secret; a pull request from a fork has no secrets"
READING_PART = 3  # the part of github-timeout that reading may take, so that time is left for the comment
ON_BRANCHES = {"push", "schedule", "workflow_dispatch"}
HEADS = "refs/heads/"

T = TypeVar("T")


class Role(Struct, frozen=True, kw_only=True):
    """The part of a job in the history: what it reads and whether it records."""

    branch: str | None  # whose entries it reads; None if it reads none
    records: bool = False
    is_change: bool = False  # a pull request, or what a merge queue merges


class JobHistory(Struct, kw_only=True):
    """The history of one job."""

    context: Context
    settings: ActionSettings
    world: World
    spent: float = 0.0  # seconds of ``github-timeout`` that reading took

    @property
    def role(self) -> Role:
        """The part of the job, by its event."""
        event, ref = self.context.event, self.context.ref
        if self.context.event_name == "pull_request":
            return Role(branch=text_at(event, "pull_request", "base", "ref") or None, is_change=True)
        if self.context.event_name == "merge_group":
            base = text_at(event, "merge_group", "base_ref").removeprefix(HEADS)
            return Role(branch=base or None, is_change=True)
        if self.context.event_name not in ON_BRANCHES or not ref.startswith(HEADS):
            return Role(branch=None)
        branch = ref.removeprefix(HEADS)
        # A scheduled workflow runs on the default branch, and its event need not name it.
        is_scheduled = self.context.event_name == "schedule"
        default = branch if is_scheduled else text_at(event, "repository", "default_branch")
        wanted = {"default-branch": branch == default, "any-branch": True, "never": False}
        return Role(branch=default or None, records=wanted[self.settings.history_record])

    @property
    def in_branch(self) -> bool:
        """Whether the history is in a branch on GitHub."""
        return self.settings.history == BRANCH

    @property
    def in_service(self) -> bool:
        """Whether the history is in a team service."""
        return is_service(self.settings.history)

    @property
    def is_remote(self) -> bool:
        """Whether the history is not in a folder."""
        return self.in_branch or self.in_service

    def facts(self, entry: str | None) -> HistoryFacts | None:
        """Read what the check needs, in a part of ``github-timeout``; ``entry`` names its baseline, if it is one.

        Returns None if the event reads no history. Raises :class:`InputError` if the check cannot do without it.
        """
        if problems := self._problems():
            raise InputError(problems)
        if self.role.branch is None:
            if entry:
                event = visible(self.context.event_name)
                which = f"the event {event} does not name a branch whose history could be read"
                raise InputError([f"{entry_ref(visible(entry))}: {which}"])
            return None
        seconds = max(self.settings.github_timeout // READING_PART, 1)
        try:
            # A folder is read as the other files are; its commits are still asked for.
            with self._reading():
                return self._limited(seconds, partial(self._facts, entry, seconds), asks=self.is_remote or bool(entry))
        except Exception as error:
            if entry:
                raise
            # The verdict does not depend on it, whatever goes wrong.
            problem = error if isinstance(error, InputError) else InputError([f"history: {_named(error)}"])
            return HistoryFacts.not_read(self.role.branch, problem)

    def _facts(self, entry: str | None, seconds: float) -> HistoryFacts:
        connected = self._connected(seconds)
        context = CheckContext(
            branch=self.role.branch,
            is_pull_request=self.role.is_change,
            run_id=self.context.run[0] or None,
            commits=cache(lambda: reachable_by_api(connected(), self.context.sha)),
            tip=self._tip,
        )
        store = self._store(connected, seconds)
        facts = facts_of(entries_of(store, self.settings.name), entry, context)
        return replace(facts, limited=partial(self._read_later, connected, store, seconds))

    def _read_later(self, connected: "Callable[[], Client]", store: Store, seconds: float, read: Callable[[], T]) -> T:
        """Read what is only needed when the run is evaluated, in as much time again; raises :class:`InputError`."""
        with self._reading():
            connected().http.allow(seconds)  # which is asked for commits, wherever the history is
            if isinstance(store, SERVICE_STORE.load()):
                store.allow(seconds)
            return self._limited(seconds, read, asks=True)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Count the time that reading takes, and turn an error of GitHub into :class:`InputError`."""
        started = self.world.timing.monotonic()
        try:
            yield
        except GitHubError as error:
            raise InputError([f"history: {error}"]) from error
        finally:
            self.spent += self.world.timing.monotonic() - started

    def _tip(self, commits: Commits) -> str | None:
        """Return the newest commit of the branch whose entries are read; None if it is not known."""
        if self.context.event_name == "merge_group":
            return text_at(self.context.event, "merge_group", "base_sha") or None
        if self.role.is_change:
            return commits.base_of_merge
        return commits.newest if self.context.ref == f"{HEADS}{self.role.branch}" else None

    def left(self, settings: ActionSettings) -> ActionSettings:
        """Return the settings with the time that reading has left for the comment."""
        return replace(settings, github_timeout=max(1, settings.github_timeout - int(self.spent)))

    def record(self, outcome: Outcome | None, *, accepted: bool, spent: float) -> None:
        """Record a check in what is left of ``github-timeout``; ``outcome`` is None if it is not to be recorded.

        ``spent`` is how many seconds of it the comment took.
        """
        if outcome is None:
            return
        if part := part_of(outcome.report):
            self.world.stdout.write(printable(f"Not recorded: the check {part}.\n"))
            return
        timeout = self.settings.github_timeout
        seconds = timeout - int(self.spent + spent)
        if self.is_remote and seconds < 1:
            self._not_recorded(f"nothing is left of the {timeout} seconds of github-timeout")
            return
        try:
            new = self._new_entry(outcome, accepted=accepted)
            add = partial(self._add, new, self._store(self._connected(seconds), seconds))
            done = self._limited(seconds, add, asks=self.is_remote)
        except Exception as error:  # noqa: BLE001 (whatever goes wrong, the verdict does not depend on it)
            self._not_recorded(_named(error))
        else:
            about = (f"Recorded, but {why}" for why in new.left_out)
            self.world.stdout.write("".join(annotation("warning", text) for text in about) + printable(done))
            attempt(
                self.world, "The output history-entry", lambda: outputs(self.context, {"history-entry": new.entry.id})
            )

    def _not_recorded(self, problem: str) -> None:
        self.world.stdout.write(annotation("warning", f"This run could not be recorded: {problem}"))

    def _new_entry(self, outcome: Outcome, *, accepted: bool) -> NewEntry:
        report, context = outcome.report, self.context
        run_id, attempt_number = context.run
        origin = Origin(
            repository=context.repository or None,
            commit=context.sha if context.sha and is_commit(context.sha) else None,
            branch=context.ref.removeprefix(HEADS),
            run_url=context.run_url or None,
            event=context.event_name,
            run_id=run_id or None,
            run_attempt=attempt_number or 1,
        )
        new = new_entry(
            report,
            outcome.evaluation,
            origin,
            report_sha256=hashlib.sha256(msgspec.json.encode(report)).hexdigest(),
            accepted=accepted,
            private=self.settings.inputs.no_answers,
            default_branch=origin.branch == self.role.branch,
        )
        with_its_files = self.in_service and not self.settings.inputs.no_answers
        return with_files(new, report, b"".join(file_of(outcome))) if with_its_files else new

    def _add(self, new: NewEntry, store: Store) -> str:
        """Add an entry to the store, and return a line for the log."""
        where = store.name if self.is_remote else for_next_step(store.name, self.context)
        with owned_like_workspace([] if self.is_remote else self._new_files(new), self.context):
            added = store.add(new)
        return f"{'Recorded' if added == 'added' else 'Recorded already'}: {new.path} in {visible(where)}\n"

    def _new_files(self, new: NewEntry) -> list[str]:
        """Return the files that a folder gets with an entry, without any that something in the folder leads elsewhere.

        What is there already keeps its owner.
        """
        results = [results_path(new.entry.results.sha256)] if new.entry.results else []
        paths = [str(Path(self._folder()) / path) for path in (new.path, *results, *new.badge, "README.md")]
        return [path for path in paths if not os.path.lexists(path) and not unsafe_output(path, self.context)]

    def _problems(self) -> list[str]:
        settings, context = self.settings, self.context
        if self.in_branch:
            if settings.history_branch == self.role.branch:
                return [f"input history-branch: {settings.history_branch} is a branch of the code; name another one"]
            if is_branch_name(settings.history_branch):
                return []
            return [f"input history-branch: {settings.history_branch!r} is not a valid name for a history branch"]
        if self.in_service:
            try:
                SERVICE_STORE.load().address(settings.history)
            except InputError as error:
                return [f"input history: {problem}" for problem in error.problems]
            return []
        if not is_folder(settings.history):  # an address may have a password
            return ["input history: expected branch, the path of a folder, or https://… of a team service"]
        is_branch = "is the name of the branch; write branch, or name a folder"
        named = f"{settings.history} {is_branch}" if settings.history == settings.history_branch else ""
        if problem := named or like_an_address(settings.history):
            return [f"input history: {problem}"]
        path = self._folder()
        unsafe = [*outside([path], context), *filter(None, [unsafe_output(path, context)])]
        if not unsafe and os.path.isfile(path):  # noqa: PTH113 (pathlib raises if a name is too long)
            unsafe = [f"{path}: is a file; name a folder, or branch"]
        return [f"input history: {problem}" for problem in unsafe[:1]]

    def _folder(self) -> str:
        folder = in_container(self.settings.working_directory, self.context)
        return str(Path(folder) / in_container(self.settings.history, self.context))

    def _store(self, connected: "Callable[[], Client]", seconds: float) -> Store:
        if self.in_service:
            name, key = self.settings.history, self.context.service_key.value
            if not key:
                raise InputError([f"history: {NO_KEY}"])
            return SERVICE_STORE.load()(name, key, seconds=seconds, timing=self.world.timing)
        if not self.in_branch:
            return Folder(self._folder())
        branch, repository = self.settings.history_branch, self.context.repository
        return BRANCH_STORE.load()(connected(), repository=repository, branch=branch, name=f"branch {branch}")

    def _limited(self, seconds: float, call: Callable[[], T], *, asks: bool) -> T:
        """Call what may ask others, which takes at most ``seconds`` even where they never answer."""
        who = "the team service" if self.in_service else "GitHub"
        return within(seconds, call, who=who) if asks else call()

    def _connected(self, seconds: float) -> "Callable[[], Client]":
        """Return what makes a client for GitHub, the first time; all its calls take at most ``seconds`` together."""
        return cache(partial(connect, self.context, self.world.session, self.world.timing, seconds=seconds))


def _named(error: Exception) -> str:
    """Return what an error says, with its kind if it is none that this program foresees."""
    return f"{error}" if isinstance(error, GitHubError | InputError) else f"{type(error).__name__}: {error}"
