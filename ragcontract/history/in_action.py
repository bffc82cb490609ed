"""The history of a job of the action: which events read it, and which record; recording comes last.

What goes wrong while a check is recorded is a warning. It changes neither the verdict nor the exit code.
"""

import hashlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import encodable, printable, visible
from ragcontract.evaluation.source import ENTRY
from ragcontract.github.context import Context, GitHubError, text_at, within
from ragcontract.github.delivery import World, attempt, outputs
from ragcontract.github.files import in_container, outside, owned_like_workspace, unsafe_output
from ragcontract.github.pull_request import connect
from ragcontract.github.runner_output import annotation
from ragcontract.github.settings import ActionSettings
from ragcontract.history.commits import Commits, reachable_by_api
from ragcontract.history.entry import Recorded, results_path
from ragcontract.history.folder import Folder
from ragcontract.history.interface import Store
from ragcontract.history.lookup import Here, Lookup, look_up
from ragcontract.history.past import Past
from ragcontract.history.recorder import new_entry, refuse_part
from ragcontract.history.stores import BRANCH_STORE, is_branch_name
from ragcontract.pipeline import Outcome

if TYPE_CHECKING:
    from ragcontract.github.http import Client

BRANCH = "branch"  # the input history: a branch of the repository; anything else is a folder
READING_SHARE = 1 / 3  # of github-timeout, so that time is left for the comment
ON_BRANCHES = {"push", "schedule", "workflow_dispatch"}
ON_CHANGES = {"pull_request", "merge_group"}
HEADS = "refs/heads/"


class Role(Struct, frozen=True, kw_only=True):
    """What a job does with the history."""

    branch: str | None  # whose entries it reads; None if it reads none
    records: bool = False
    is_change: bool = False  # a pull request, or what a merge queue merges


def role_of(context: Context, settings: ActionSettings) -> Role:
    """Return what a job does with the history, by its event."""
    ref_branch = context.ref.removeprefix(HEADS) if context.ref.startswith(HEADS) else None
    if context.event_name == "pull_request":
        return Role(branch=text_at(context.event, "pull_request", "base", "ref") or None, is_change=True)
    if context.event_name == "merge_group":
        base = text_at(context.event, "merge_group", "base_ref").removeprefix(HEADS)
        return Role(branch=base or None, is_change=True)
    if context.event_name not in ON_BRANCHES or ref_branch is None:
        return Role(branch=None)
    # A scheduled workflow runs on the default branch, and its event need not name it.
    default = text_at(context.event, "repository", "default_branch")
    if context.event_name == "schedule":
        default = ref_branch
    wanted = {"default-branch": ref_branch == default, "any-branch": True, "never": False}
    return Role(branch=default or None, records=wanted[settings.history_record])


class JobHistory(Struct, frozen=True, kw_only=True):
    """The history of one job."""

    context: Context
    settings: ActionSettings
    world: World
    role: Role

    @property
    def records(self) -> bool:
        return self.role.records

    def look_up(self, entry: str | None) -> Lookup | None:
        """Read what the check needs, in a part of ``github-timeout``; ``entry`` names its baseline, if it is one.

        Returns None if the event reads no history. Raises :class:`InputError` if the check cannot do without it.
        """
        if problems := self._problems():
            raise InputError(problems)
        if self.role.branch is None:
            if entry:
                event = visible(self.context.event_name)
                raise InputError([f"{ENTRY}{entry}: the event {event} has no branch whose history could be read"])
            return None
        seconds = self.settings.github_timeout * READING_SHARE
        try:
            return within(seconds, partial(self._look_up, entry, seconds))
        except (GitHubError, InputError) as error:
            problem = error if isinstance(error, InputError) else InputError([f"history: {error}"])
            if entry:
                raise problem from error
            return Lookup(branch=self.role.branch, notes=(f"Trend not shown: {problem.problems[0]}",))

    def _look_up(self, entry: str | None, seconds: float) -> Lookup:
        commit = self.context.sha
        here = Here(
            branch=self.role.branch,
            is_pull_request=self.role.is_change,
            run_id=self.context.run[0] or None,
            commits=lambda: reachable_by_api(self._client(seconds), commit),
            tip=self._tip,
        )
        return look_up(Past(self._store(seconds), encodable(self.settings.name)), entry, here)

    def _tip(self, commits: Commits) -> str | None:
        """Return the newest commit of the branch whose entries are read; None if it is not known."""
        if self.context.event_name == "merge_group":
            return text_at(self.context.event, "merge_group", "base_sha") or None
        if self.role.is_change:  # GitHub's merge of the base branch, which is the first parent, and the change
            parents = commits.parents.get(commits.newest, ())
            return parents[0] if len(parents) > 1 else None
        return commits.newest if self.context.ref == f"{HEADS}{self.role.branch}" else None

    def record(self, outcome: Outcome | None, *, accepted: bool, spent: float) -> None:
        """Record a check, if this event does, in what is left of ``github-timeout``, of which ``spent`` are gone."""
        if outcome is None or not self.records:
            return
        seconds = self.settings.github_timeout - spent
        try:
            refuse_part(outcome.report)
        except InputError as error:
            self.world.stdout.write(printable(f"Not recorded: {error}.\n"))
            return
        try:
            entry = within(max(seconds, 0), partial(self._record, outcome, accepted=accepted, seconds=seconds))
        except Exception as error:  # noqa: BLE001 (whatever goes wrong, the verdict does not depend on it)
            self.world.stdout.write(annotation("warning", f"This run could not be recorded: {error}"))
            return
        attempt(self.world, "The output history-entry", lambda: outputs(self.context, {"history-entry": entry}))

    def _record(self, outcome: Outcome, *, accepted: bool, seconds: float) -> str:
        report, context = outcome.report, self.context
        digest = hashlib.sha256(msgspec.json.encode(report)).hexdigest()
        run_id, attempt_number = context.run
        origin = Recorded(
            repository=context.repository or None,
            commit=context.sha or None,
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
            report_sha256=digest,
            accepted=accepted,
            private=self.settings.inputs.no_answers,
        )
        store = self._store(seconds)
        paths = [new.path, *([results_path(new.entry.results.sha256)] if new.entry.results else []), "README.md"]
        with owned_like_workspace([f"{store.name}/{path}" for path in paths], context):
            added = store.add(new)
        done = "Recorded" if added == "added" else "Recorded already"
        self.world.stdout.write(printable(f"{done}: {new.path} in {visible(store.name)}\n"))
        return new.entry.id

    def _problems(self) -> list[str]:
        settings, context = self.settings, self.context
        if settings.history == BRANCH:
            if is_branch_name(settings.history_branch):
                return []
            return [f"input history-branch: {settings.history_branch!r} cannot be a branch with a history"]
        path = self._folder()
        unsafe = [*outside([path], context), *filter(None, [unsafe_output(path, context)])]
        if not unsafe and Path(path).is_file():
            unsafe = [f"{path}: is a file; name a folder, or branch"]
        return [f"input history: {problem}" for problem in unsafe]

    def _folder(self) -> str:
        folder = in_container(self.settings.working_directory, self.context)
        return str(Path(folder) / in_container(self.settings.history, self.context))

    def _store(self, seconds: float) -> Store:
        if self.settings.history != BRANCH:
            return Folder(self._folder())
        branch, repository = self.settings.history_branch, self.context.repository
        return BRANCH_STORE.load()(self._client(seconds), repository=repository, branch=branch, name=f"branch {branch}")

    def _client(self, seconds: float) -> "Client":
        return connect(self.context, self.world.session, self.world.timing, seconds=seconds)


def history_of_job(context: Context, settings: ActionSettings, world: World) -> JobHistory:
    """Return the history of a job."""
    return JobHistory(context=context, settings=settings, world=world, role=role_of(context, settings))
