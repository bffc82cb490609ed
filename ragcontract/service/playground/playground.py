"""Asks the systems of mounted projects what somebody wants to know now, each in a process that lives on.

The process runs in the project's own Python, has none of the service's variables but the project's secrets, and is
started by the operator's files alone: nothing that somebody asks names what is run. It takes one question at a time, is
killed with its children when an answer takes too long, and ended when nobody asks for a while.
"""

import hashlib
import os
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from ragcontract.contract.defaults import GOLDEN
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.golden import GoldenQuery
from ragcontract.net.secrets import Secrets, of_environment, wrong_names
from ragcontract.record.adapters.command import HostedSystem
from ragcontract.record.adapters.process_serve import Program
from ragcontract.record.asking import Conversation
from ragcontract.record.golden_questions import Question, Selection, read_questions
from ragcontract.record.interface import CallFailed, Context, Json, Response, Surroundings
from ragcontract.record.record_options import TOP
from ragcontract.record.run_rows import Rows
from ragcontract.service.background import BackgroundJob
from ragcontract.service.database import seconds
from ragcontract.service.mounted import RECORD, MountedProject, content_of
from ragcontract.service.production.question_similarity import Questions
from ragcontract.service.project_environment import project_environ
from ragcontract.service.workers.run_guard import VARIABLE, kill_marked

FREE = "playground"  # in place of the id of a golden query
SLOW = {"read_timeout", "timeout"}
ENDED = SLOW | {"process_ended"}  # failures after which a process is gone, but not what it has started
LOOKS = 20  # for processes that nobody asks, while one of them may wait


class TargetBusyError(Exception):
    """Another question is being answered; a later try may succeed."""


class SlowAnswerError(Exception):
    """A system that has not answered in time; its process was killed."""


class Reply(Struct, frozen=True, kw_only=True):
    """What a system did for a question: the row of a run, or why there is none."""

    row: Json | None = None
    error: str | None = None
    versions: Mapping[str, str] = {}


class _Target:
    """The process of a project, which was started from files with this digest."""

    def __init__(self, project: MountedProject, digest: str, environ: Mapping[str, str]) -> None:
        """Prepare to start the process; raises InputError if the project's secrets cannot be used."""
        names = project.file.secrets
        own = project_environ(project.file, environ)
        problems = wrong_names(names, own)
        self.digest, self.is_busy, self.used_at = digest, True, seconds()
        self.secrets = Secrets({}) if problems else of_environment(names, own)
        self._mark = uuid.uuid4().hex
        python = project.file.python or sys.executable
        path = str((project.folder / RECORD).absolute())
        program = Program(
            arguments=[python, "-m", "ragcontract.service.playground.target_process", path, *names],
            folder=project.folder.absolute(),
            inherited=own | {VARIABLE: self._mark},
        )
        surroundings = Surroundings(secrets=self.secrets)
        self._system = HostedSystem(program, surroundings, ready_seconds=bounds.PLAYGROUND_SECONDS)
        self._problems = problems
        self._is_started = False

    def answer(self, question: Question, messages: Sequence[Json]) -> Reply:
        """Ask a question; all turns of a conversation, which has no messages before it.

        Raises InputError or CallFailed if there is no answer.
        """
        if self._problems:
            raise InputError(self._problems)
        if not self._is_started:
            began = seconds()
            try:
                self._system.setup()
            except InputError as error:
                if seconds() - began < bounds.PLAYGROUND_SECONDS:
                    raise
                raise SlowAnswerError(f"the system could not be started: {error.problems[0]}") from error
            self._is_started = True
        conversation, until, whole = Conversation(question, 1), seconds() + bounds.PLAYGROUND_SECONDS, None
        while whole is None:
            began = seconds()
            context = Context(
                query_id=question.id,
                top=TOP,
                messages=(*messages, *conversation.messages),
                metadata=question.metadata,
                seconds=max(0.001, until - began),
                traceparent=f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01",
            )
            response = self._system.ask(conversation.query, context)
            whole = conversation.took(response, _latency(response, (seconds() - began) * 1_000))
        row = msgspec.json.decode(Rows(None, self.secrets).encoded(question.id, whole, conversation.ms))
        versions = self.secrets.redacted(dict(self._system.versions()))
        return Reply(row={name: value for name, value in row.items() if value is not None}, versions=versions)

    def stop(self) -> None:
        """End the process with all that it started, also what has left its group."""
        self._system.teardown()
        kill_marked(self._mark)


def _latency(response: Response, measured: float) -> float:
    """Return how long a system took: what its adapter says, or what was measured."""
    own = response.latency_ms
    return float(own) if isinstance(own, int | float) and 0 <= own <= bounds.MILLISECONDS else measured


class Playground(BackgroundJob):
    """The processes of mounted projects, and the thread that ends those that nobody asks."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """Start nothing; ``environ`` is the service's environment, of which projects get little."""
        super().__init__("playground", lambda: None, again=bounds.PLAYGROUND_IDLE / LOOKS)
        self._environ = os.environ if environ is None else environ
        self._targets: dict[str, _Target] = {}
        self._questions: dict[str, Questions] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the thread and all processes."""
        super().close()
        self._end(list(self._targets))

    def questions(self, digest: str, golden: Sequence[GoldenQuery]) -> Questions:
        """Return the golden queries of the contract with a digest, to compare questions with."""
        made = self._questions.pop(digest, None) or Questions(query.query for query in golden)
        self._questions[digest] = made  # the newest at the end
        for old in [*self._questions][: -bounds.PLAYGROUND_PROCESSES]:
            self._questions.pop(old, None)
        return made

    def ask(self, project: MountedProject, question: Question, messages: Sequence[Json] = ()) -> Reply:
        """Ask the system of a project; what it does wrong is in the reply, as a sentence.

        Raises TargetBusyError or SlowAnswerError.
        """
        try:
            with self._taken(project) as target:
                return target.answer(question, messages)
        except CallFailed as failed:
            if failed.kind in SLOW:
                raise SlowAnswerError(f"the system did not answer: {failed}") from failed
            return Reply(error=f"the system failed: {failed}")
        except InputError as error:
            why = error.problems[0] if error.problems else "nothing says why"
            return Reply(error=f"the system cannot be used: {why}")

    @contextmanager
    def _taken(self, project: MountedProject) -> Iterator[_Target]:
        """Give the process of a project to who asks, and to nobody else; one that cannot be used is ended."""
        target = self._take(project)
        try:
            yield target
        except (InputError, SlowAnswerError, CallFailed) as error:
            if not isinstance(error, CallFailed) or error.kind in ENDED:
                with self._lock:
                    if self._targets.get(project.slug) is target:
                        del self._targets[project.slug]
                target.stop()
            raise
        finally:
            with self._lock:
                target.is_busy, target.used_at = False, seconds()

    def _take(self, project: MountedProject) -> _Target:
        digest = _digest(project)
        with self._lock:
            if self._ended.is_set():
                raise TargetBusyError("the service is being stopped")
            target = self._targets.get(project.slug)
            if target and target.is_busy:
                raise TargetBusyError("another question is being answered; this system is asked one at a time")
            if target and target.digest == digest:
                target.is_busy = True
                return target
            old = [self._targets.pop(project.slug)] if target else []
            if len(self._targets) >= bounds.PLAYGROUND_PROCESSES:
                idle = [slug for slug, each in self._targets.items() if not each.is_busy]
                if not idle:
                    raise TargetBusyError(f"{bounds.PLAYGROUND_PROCESSES} other systems are answering")
                old.append(self._targets.pop(min(idle, key=lambda slug: self._targets[slug].used_at)))
            made = self._targets[project.slug] = _Target(project, digest, self._environ)
        for each in old:
            each.stop()
        return made

    def _do(self) -> float:
        self.end_idle()
        return bounds.PLAYGROUND_IDLE / LOOKS

    def end_idle(self) -> None:
        """End the processes that nobody has asked for a while."""
        before = seconds() - bounds.PLAYGROUND_IDLE
        with self._lock:
            idle = [slug for slug, each in self._targets.items() if not each.is_busy and each.used_at < before]
            ended = [self._targets.pop(slug) for slug in idle]
        for each in ended:
            each.stop()

    def _end(self, slugs: Sequence[str]) -> None:
        with self._lock:
            ended = [self._targets.pop(slug) for slug in slugs if slug in self._targets]
        for each in ended:
            each.stop()


def _digest(project: MountedProject) -> str:
    """Return a digest that changes with the project's files; raises InputError if record.yml cannot be read."""
    data = content_of(project.folder, RECORD, bounds.CONFIG) or b""
    stamps = [*islice(_stamps(project.folder), bounds.PLAYGROUND_FILES)]
    return hashlib.sha256(msgspec.json.encode([project.file, data, stamps])).hexdigest()


def _stamps(folder: Path) -> Iterator[tuple[bytes, int, int]]:
    """Yield what changes when somebody edits a file: the code that a process has read is no longer that of the file."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in sorted(names):
            if name.startswith("."):
                continue
            file = Path(path, name)
            with suppress(FileNotFoundError):
                status = file.lstat()
                yield bytes(file), status.st_size, status.st_mtime_ns


def free_question(query: str) -> Question:
    """Return a question that somebody has typed."""
    return Question(id=FREE, query=query)


def golden_question(project: MountedProject, query: GoldenQuery, text: str) -> Question:
    """Return a golden query as it is recorded, or with another text in its place."""
    turns = (query.answer.turns or ()) if query.answer else ()
    question = Question(id=query.id, query=text, turns=turns)
    path = project.folder / GOLDEN
    if not path.is_file() or path.is_symlink():
        return question
    try:
        (mounted,) = read_questions([str(path)], Selection(ids=[query.id])).chosen
    except InputError:
        return question
    return msgspec.structs.replace(question, packed=mounted.packed)
