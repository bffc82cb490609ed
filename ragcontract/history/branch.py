"""A store of entries in a branch of a repository on GitHub, written and read through its API.

Many jobs write the branch at the same time. Each of them looks at the head of the branch, and asks for one commit on
top of exactly this head. GitHub refuses it if another job was faster; the job then pauses for a random time and starts
again. A job whose answer was lost finds its own entry when it looks again.

Names of files and folders in GitHub's answers are only used where they have the form that this program gives to them,
and paths are computed from them.
"""

import random
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha1
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.github.context import GitHubError, at, text_at
from ragcontract.github.http import RATE_LIMITED, Client
from ragcontract.history.entry import (
    EntryId,
    NewEntry,
    entry_path,
    folder_of,
    is_commit,
    is_digest,
    is_folder_name,
    is_month,
    newest_first,
    results_path,
    short_commit,
)
from ragcontract.history.interface import README, Added, differs, refuse_shared_run
from ragcontract.net.pacing import JITTER

STALE = "STALE_DATA"  # the type of GraphQL's error for a head that has moved
EXISTS = 422  # the status for a branch that exists already, and for other requests that GitHub does not accept
READING = "; reading it needs `permissions: contents: read`"
WRITING = "; the recording job needs `permissions: contents: write`"
COMMIT = """
mutation($input: CreateCommitOnBranchInput!) {
  createCommitOnBranch(input: $input) { commit { oid } }
}
"""
# Fields of trees and files
FOLDERS = "... on Tree { entries { name object { ... on Tree { entries { name oid type } } } } }"
FILES = "... on Tree { entries { name oid } }"
FILES_WITH_SIZES = "... on Tree { entries { name oid type size } }"
TEXT = "... on Blob { isBinary isTruncated text }"


class _File(Struct, frozen=True, kw_only=True):
    """An entry's file in the branch."""

    oid: str
    size: int  # bytes


class _Snapshot(Struct, frozen=True, kw_only=True):
    """What is read at one head of the branch; the files of months and the result sets are added as they are read."""

    head: str | None  # None without the branch
    months: dict[str, list[str]]  # by contract, the newest first
    files: dict[tuple[str, str], dict[EntryId, _File]]  # by contract and month


class _Head(Struct, frozen=True, kw_only=True):
    """The branch before a commit: its head, and what it has of the new entry's folder."""

    oid: str
    files: dict[str, str]  # names of entries and the ids of their contents
    has_results: bool


class Branch:
    """Keeps entries in the branch of a repository (``owner/name``), on GitHub.

    What is read is from the head that the branch had at the first read after this object was made, or last wrote.
    """

    def __init__(
        self, client: Client, *, repository: str, branch: str, name: str, chance: random.Random = JITTER
    ) -> None:
        self.name = name
        self._client = client
        self._repository = repository
        self._branch = branch
        self._ref = f"refs/heads/{branch}"
        self._chance = chance
        self._snapshot: _Snapshot | None = None
        self._result_files: dict[str, str] | None = None  # by digest, the ids of their contents

    # Reading

    def contracts(self) -> list[str]:
        with self._explained(READING):
            return sorted(self._read_snapshot().months)

    def months(self, contract: str) -> list[str]:
        with self._explained(READING):
            return self._read_snapshot().months.get(contract, [])

    def ids(self, contract: str, months: Sequence[str]) -> list[EntryId]:
        with self._explained(READING):
            return newest_first(self._files_of(contract, months))

    def read(self, contract: str, ids: Sequence[EntryId]) -> dict[str, bytes]:
        with self._explained(READING):
            known = self._files_of(contract, sorted({entry_id.month for entry_id in ids}))
            files = {entry_id.id: known[entry_id] for entry_id in ids if entry_id in known}
            # Larger ones are not fetched: it is enough that they are seen to be too large.
            contents = {entry: bytes(bounds.ENTRY + 1) for entry, file in files.items() if file.size > bounds.ENTRY}
            for part in _parts({entry: file for entry, file in files.items() if entry not in contents}):
                contents |= self._texts_of(contract, part)
        return {entry: contents[entry] for entry in files}

    def results(self, sha256: str) -> bytes | None:
        with self._explained(READING):
            oid = self._results_by_digest().get(sha256)
            return None if oid is None else self._client.blob(oid)

    def result_sets(self) -> set[str]:
        with self._explained(READING):
            return set(self._results_by_digest())

    def _read_snapshot(self) -> _Snapshot:
        if self._snapshot is None:
            head, (contracts,) = self._objects({f"{self._ref}:entries": FOLDERS})
            months = {}
            for folder in _entries(contracts):
                names = {name for month in _entries(folder, "object") if is_month(name := _name_of_folder(month))}
                if head and names and is_folder_name(contract := text_at(folder, "name")):
                    months[contract] = sorted(names, reverse=True)
            self._snapshot = _Snapshot(head=head, months=months, files={})
        return self._snapshot

    def _files_of(self, contract: str, months: Sequence[str]) -> dict[EntryId, _File]:
        """Return the files of entries in these months."""
        snapshot = self._read_snapshot()
        known = [month for month in dict.fromkeys(months) if month in snapshot.months.get(contract, ())]
        unread = iter([month for month in known if (contract, month) not in snapshot.files])
        while part := list(islice(unread, bounds.MONTHS_AT_ONCE)):
            paths = [f"{snapshot.head}:entries/{contract}/{month}" for month in part]
            _, folders = self._objects(dict.fromkeys(paths, FILES_WITH_SIZES))
            for month, folder in zip(part, folders, strict=True):
                snapshot.files[contract, month] = _files_in(folder, month)
        return {entry_id: file for month in known for entry_id, file in snapshot.files[contract, month].items()}

    def _texts_of(self, contract: str, files: Mapping[str, _File]) -> dict[str, bytes]:
        """Return the contents of entries by id; those that GraphQL does not have as whole texts are read singly."""
        head = self._read_snapshot().head
        paths = [f"{head}:{entry_path(contract, entry)}" for entry in files]
        _, blobs = self._objects(dict.fromkeys(paths, TEXT))
        contents = {}
        for (entry, file), blob in zip(files.items(), blobs, strict=True):
            text = at(blob, "text")
            if isinstance(text, str) and at(blob, "isTruncated") is False and at(blob, "isBinary") is not True:
                contents[entry] = text.encode(errors="surrogatepass")[: bounds.ENTRY + 1]
            else:
                contents[entry] = self._client.blob(file.oid)[: bounds.ENTRY + 1]
        return contents

    def _results_by_digest(self) -> dict[str, str]:
        if self._result_files is None:
            self._result_files = self._list_results()[1]
        return self._result_files

    def _list_results(self) -> tuple[str | None, dict[str, str]]:
        """Return the head of the branch, and the ids of the contents of its result sets by digest."""
        head, (results,) = self._objects({f"{self._ref}:results": FOLDERS})
        files = {}
        for folder in _entries(results):
            for file in _entries(folder, "object"):
                digest = text_at(file, "name").removesuffix(".jsonl")
                path = f"results/{text_at(folder, 'name')}/{text_at(file, 'name')}"
                if is_digest(digest) and path == results_path(digest) and _is_file(file):
                    files[digest] = text_at(file, "oid")
        return head, files

    # Writing

    def add(self, new: NewEntry) -> Added:
        with self._explained(WRITING):
            sent = False  # a commit, whose answer may have been lost
            attempt = -1
            while True:
                attempt += 1
                head = self._look(new)
                if head is None:
                    self._create_branch()
                    failure = GitHubError(f"the branch {self._branch} was created, but GitHub does not show it")
                    self._client.http.wait(self._pause(attempt), failure)
                    continue
                is_there = self._is_there(new, head.files)
                badge = {} if is_there else new.badge_beside(head.files)
                additions = {} if is_there else {new.path: new.content, **badge}
                if new.results is not None and new.entry.results is not None and not head.has_results:
                    additions[results_path(new.entry.results.sha256)] = new.results
                try:
                    if not additions or self._commit(head.oid, _headline(new), attempt, additions=additions):
                        return "exists" if is_there and not sent else "added"
                except GitHubError as failure:
                    if not badge or failure.denied or failure.kind in {"", STALE, RATE_LIMITED}:
                        raise
                    new = replace(new, badge={})  # a rule may forbid such files; the entry counts more
                sent = sent or not is_there

    def delete_results(self, digests: Collection[str]) -> None:
        with self._explained(WRITING):
            expected = self._snapshot.head if self._snapshot else None
            part: list[str] = []
            attempt = 0
            while True:
                head, files = self._list_results()
                # Only files that are there: GitHub refuses a commit that deletes others.
                paths = [results_path(digest) for digest in sorted(files.keys() & set(digests))]
                if expected not in {None, head} and (not part or set(part) & set(paths)):
                    # Somebody else moved the head: an entry that was recorded meanwhile may have one of these.
                    raise InputError([f"{self.name}: changed meanwhile; run the command again"])
                if head is None or not paths:
                    return
                expected, part = head, paths[: bounds.DELETED_AT_ONCE]
                done = self._commit(head, f"Delete {len(part)} result sets [skip ci]", attempt, deletions=part)
                attempt = 0 if done else attempt + 1

    def _look(self, new: NewEntry) -> _Head | None:
        """Return the branch as it is before an entry is added; None if there is no branch."""
        path = results_path(new.entry.results.sha256) if new.entry.results else "results"
        folder = new.path.rpartition("/")[0]
        head, (month, results) = self._objects({f"{self._ref}:{folder}": FILES, f"{self._ref}:{path}": "oid"})
        files = {text_at(file, "name"): text_at(file, "oid") for file in _entries(month)}
        return _Head(oid=head, files=files, has_results=results is not None) if head else None

    def _is_there(self, new: NewEntry, files: Mapping[str, str]) -> bool:
        """Return whether the same entry is there; raises ConflictError if another has its path or is of its run."""
        name = new.path.rpartition("/")[2]
        if name not in files:
            refuse_shared_run(new, files)
            return False
        if files[name] != blob_id(new.content):
            raise differs(new.path)
        return True

    def _create_branch(self) -> None:
        """Create the branch with one commit, which has no parents; another job may do so at the same time."""
        message = "Begin the history of rag-contract [skip ci]"
        try:
            self._client.create_branch(self._branch, {"README.md": README}, message)
        except GitHubError as failure:
            if failure.status != EXISTS or "already exists" not in str(failure):
                raise

    def _commit(
        self,
        head: str,
        headline: str,
        attempt: int,
        *,
        additions: Mapping[str, bytes] | None = None,
        deletions: Sequence[str] = (),
    ) -> bool:
        """Ask for a commit on top of ``head``; returns False, after a pause, if the caller has to look again.

        It is sent only once: by the time of a second try, the head would have moved, or the commit been made.
        """
        changes = {
            "additions": [
                {"path": path, "contents": b64encode(content).decode()} for path, content in (additions or {}).items()
            ],
            "deletions": [{"path": path} for path in deletions],
        }
        self._snapshot = self._result_files = None
        branch = {"repositoryNameWithOwner": self._repository, "branchName": self._branch}
        commit = {"branch": branch, "expectedHeadOid": head, "message": {"headline": headline}, "fileChanges": changes}
        try:
            self._client.graphql(COMMIT, {"input": commit}, tries=1)
        except GitHubError as failure:
            if failure.kind != STALE and failure.retry_after is None:
                raise
            limited = failure.retry_after if failure.kind == RATE_LIMITED else None
            self._client.http.wait(self._pause(attempt) if limited is None else limited, failure)
            return False
        return True

    def _pause(self, attempt: int) -> float:
        """Return how many seconds to wait; ``attempt`` counts from 0. Jobs that met must not meet again."""
        return self._chance.uniform(0, min(bounds.BRANCH_FIRST_PAUSE * 2.0 ** min(attempt, 30), bounds.BRANCH_PAUSE))

    # Both

    def _objects(self, fields: Mapping[str, str]) -> tuple[str | None, list[Any]]:
        """Return the head of the branch, and objects with the fields that are named for each expression of git.

        The head is None if there is no branch, and so is an object that does not exist.
        """
        aliases = {f"a{number}": expression for number, expression in enumerate(fields)}
        types = "".join(f", ${alias}: String!" for alias in aliases)
        objects = (f"{alias}: object(expression: ${alias}) {{ {fields[path]} }}" for alias, path in aliases.items())
        asked = f"ref(qualifiedName: $ref) {{ target {{ oid }} }} {' '.join(objects)}"
        repository = f"repository(owner: $owner, name: $name) {{ {asked} }}"
        query = f"query($owner: String!, $name: String!, $ref: String!{types}) {{ {repository} }}"
        owner, _, name = self._repository.partition("/")
        answer = self._client.graphql(query, {"owner": owner, "name": name, "ref": self._ref, **aliases})
        head = text_at(answer, "repository", "ref", "target", "oid")
        return head if is_commit(head) else None, [at(answer, "repository", alias) for alias in aliases]

    @contextmanager
    def _explained(self, permission: str) -> Iterator[None]:
        """Turn an error of GitHub into one that names the store and, if that is missing, the permission."""
        try:
            yield
        except GitHubError as error:
            store = self.name.removesuffix(":")
            raise InputError([f"{store}: {error}{permission if error.denied else ''}"]) from error


def blob_id(content: bytes) -> str:
    """Return the id that git gives to a file's content."""
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _headline(new: NewEntry) -> str:
    commit = short_commit(new.entry.source.commit)
    return f"Record {folder_of(new.entry.contract)} {commit} {new.entry.verdict} [skip ci]"


def _entries(value: Any, *path: str) -> list[Any]:
    """Return what the tree at a path of keys has; nothing if it is not a tree."""
    entries = at(value, *path, "entries")
    return entries if isinstance(entries, list) else []


def _name_of_folder(entry: Any) -> str:
    return text_at(entry, "name") if text_at(entry, "type") == "tree" else ""


def _is_file(entry: Any) -> bool:
    return text_at(entry, "type") == "blob" and is_commit(text_at(entry, "oid"))


def _files_in(folder: Any, month: str) -> dict[EntryId, _File]:
    """Return the entries in a month's folder."""
    files = {}
    for file in _entries(folder):
        entry_id, size = EntryId.of_file(text_at(file, "name")), at(file, "size")
        if entry_id is not None and entry_id.month == month and _is_file(file) and type(size) is int:
            files[entry_id] = _File(oid=text_at(file, "oid"), size=size)
    return files


def _parts(files: Mapping[str, _File]) -> Iterator[dict[str, _File]]:
    """Divide files into parts that are read in one call each."""
    part: dict[str, _File] = {}
    size = 0
    for entry, file in files.items():
        if part and (len(part) == bounds.ENTRIES_AT_ONCE or size + file.size > bounds.TEXTS_AT_ONCE):
            yield part
            part, size = {}, 0
        part[entry] = file
        size += file.size
    if part:
        yield part
