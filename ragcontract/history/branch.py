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
    results_path,
    short_commit,
)
from ragcontract.history.interface import README, Added, differs, refuse_shared_run
from ragcontract.net.pacing import JITTER

STALE = "STALE_DATA"  # the type of GraphQL's error for a head that has moved
EXISTS = 422  # the status for a branch that exists already, and for other requests that GitHub does not accept
READING = "; reading it needs `permissions: contents: read`"
WRITING = "; the recording job needs `permissions: contents: write`"
_REPOSITORY = "repository(owner: $owner, name: $name)"

LOOK = """
query($owner: String!, $name: String!, $ref: String!, $month: String!, $results: String!) {
  repository(owner: $owner, name: $name) {
    ref(qualifiedName: $ref) { target { oid } }
    month: object(expression: $month) { ... on Tree { entries { name oid } } }
    results: object(expression: $results) { oid }
  }
}
"""
CONTRACTS = """
query($owner: String!, $name: String!, $ref: String!, $entries: String!) {
  repository(owner: $owner, name: $name) {
    ref(qualifiedName: $ref) { target { oid } }
    entries: object(expression: $entries) {
      ... on Tree { entries { name type object { ... on Tree { entries { name type } } } } }
    }
  }
}
"""
RESULTS = """
query($owner: String!, $name: String!, $ref: String!, $results: String!) {
  repository(owner: $owner, name: $name) {
    ref(qualifiedName: $ref) { target { oid } }
    results: object(expression: $results) {
      ... on Tree { entries { name object { ... on Tree { entries { name oid type } } } } }
    }
  }
}
"""
COMMIT = """
mutation($input: CreateCommitOnBranchInput!) {
  createCommitOnBranch(input: $input) { commit { oid } }
}
"""
NAMES_OF_MONTH = "... on Tree { entries { name oid type size } }"
TEXT_OF_ENTRY = "... on Blob { oid isBinary isTruncated text }"


class _File(Struct, frozen=True, kw_only=True):
    """An entry's file in the branch."""

    oid: str
    size: int  # bytes


class _Snapshot(Struct, frozen=True, kw_only=True):
    """What is read at one head of the branch; the files of months and the result sets are added as they are read."""

    head: str | None  # None without the branch
    months: dict[str, list[str]]  # by contract, the newest first
    files: dict[tuple[str, str], dict[str, _File]]  # by contract and month, then by id


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
            names = [entry_id for files in self._files_of(contract, months).values() for entry_id in files]
        ids = filter(None, map(EntryId.of, names))
        return sorted(ids, key=lambda entry_id: entry_id.id, reverse=True)

    def read(self, contract: str, ids: Sequence[EntryId]) -> dict[str, bytes]:
        with self._explained(READING):
            months = self._files_of(contract, sorted({entry_id.month for entry_id in ids}))
            files = {
                entry_id.id: file
                for entry_id in ids
                if (file := months.get(entry_id.month, {}).get(entry_id.id)) is not None
            }
            # Larger ones are not fetched: it is enough that they are seen to be too large.
            contents = {entry: bytes(bounds.ENTRY + 1) for entry, file in files.items() if file.size > bounds.ENTRY}
            for part in _parts({entry: file for entry, file in files.items() if entry not in contents}):
                contents |= self._texts_of(contract, part)
        return {entry_id.id: contents[entry_id.id] for entry_id in ids if entry_id.id in contents}

    def results(self, sha256: str) -> bytes | None:
        with self._explained(READING):
            oid = self._results_by_digest().get(sha256)
            return None if oid is None else self._client.blob(oid)

    def result_sets(self) -> set[str]:
        with self._explained(READING):
            return set(self._results_by_digest())

    def _read_snapshot(self) -> _Snapshot:
        if self._snapshot is None:
            repository = self._ask(CONTRACTS, ref=self._ref, entries=f"{self._ref}:entries")
            folders = ((text_at(entry, "name"), at(entry, "object")) for entry in _entries(repository, "entries"))
            months = {
                contract: sorted(
                    {name for month in _entries(folder) if is_month(name := _name_of_folder(month))},
                    reverse=True,
                )
                for contract, folder in folders
                if is_folder_name(contract)
            }
            head = _head_in(repository)
            months = {contract: names for contract, names in months.items() if names and head}
            self._snapshot = _Snapshot(head=head, months=months, files={})
        return self._snapshot

    def _files_of(self, contract: str, months: Sequence[str]) -> dict[str, dict[str, _File]]:
        """Return the files of entries by month and id, without the months that the contract does not have."""
        snapshot = self._read_snapshot()
        known = [month for month in dict.fromkeys(months) if month in snapshot.months.get(contract, ())]
        unread = iter([month for month in known if (contract, month) not in snapshot.files])
        while part := list(islice(unread, bounds.MONTHS_AT_ONCE)):
            paths = [f"{snapshot.head}:entries/{contract}/{month}" for month in part]
            for month, folder in zip(part, self._objects(paths, NAMES_OF_MONTH), strict=True):
                snapshot.files[contract, month] = _files_in(folder, month)
        return {month: snapshot.files[contract, month] for month in known}

    def _texts_of(self, contract: str, files: Mapping[str, _File]) -> dict[str, bytes]:
        """Return the contents of entries by id; those that GraphQL does not have as whole texts are read singly."""
        head = self._read_snapshot().head
        paths = [f"{head}:{entry_path(contract, entry)}" for entry in files]
        contents = {}
        for (entry, file), blob in zip(files.items(), self._objects(paths, TEXT_OF_ENTRY), strict=True):
            text = at(blob, "text")
            if isinstance(text, str) and at(blob, "isTruncated") is False and at(blob, "isBinary") is not True:
                contents[entry] = text.encode(errors="surrogatepass")[: bounds.ENTRY + 1]
            else:
                contents[entry] = self._client.blob(file.oid)[: bounds.ENTRY + 1]
        return contents

    def _objects(self, expressions: Sequence[str], fields: str) -> list[Any]:
        """Return these fields of the objects that expressions of git name, None for those that do not exist."""
        variables = {f"a{number}": expression for number, expression in enumerate(expressions)}
        types = "".join(f", ${variable}: String!" for variable in variables)
        objects = " ".join(f"{alias}: object(expression: ${alias}) {{ {fields} }}" for alias in variables)
        query = f"query($owner: String!, $name: String!{types}) {{ {_REPOSITORY} {{ {objects} }} }}"
        repository = self._ask(query, **variables)
        return [at(repository, alias) for alias in variables]

    def _results_by_digest(self) -> dict[str, str]:
        if self._result_files is None:
            self._result_files = self._list_results()[1]
        return self._result_files

    def _list_results(self) -> tuple[str | None, dict[str, str]]:
        """Return the head of the branch, and the ids of the contents of its result sets by digest."""
        repository = self._ask(RESULTS, ref=self._ref, results=f"{self._ref}:results")
        files = {}
        for folder in _entries(repository, "results"):
            for file in _entries(folder, "object"):
                digest = text_at(file, "name").removesuffix(".jsonl")
                path = f"results/{text_at(folder, 'name')}/{text_at(file, 'name')}"
                if is_digest(digest) and path == results_path(digest) and _is_file(file):
                    files[digest] = text_at(file, "oid")
        return _head_in(repository), files

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
                    self._client.wait(self._pause(attempt), failure)
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
        results = new.entry.results
        path = "results" if results is None else results_path(results.sha256)
        folder = new.path.rpartition("/")[0]
        repository = self._ask(LOOK, ref=self._ref, month=f"{self._ref}:{folder}", results=f"{self._ref}:{path}")
        oid = _head_in(repository)
        if oid is None:
            return None
        files = {text_at(file, "name"): text_at(file, "oid") for file in _entries(repository, "month")}
        return _Head(oid=oid, files=files, has_results=at(repository, "results") is not None)

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
        tree = self._client.create_tree({"README.md": README})
        commit = self._client.create_commit("Begin the history of rag-contract [skip ci]", tree)
        try:
            self._client.create_branch(self._branch, commit)
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
            self._client.wait(self._pause(attempt) if limited is None else limited, failure)
            return False
        return True

    def _pause(self, attempt: int) -> float:
        """Return how many seconds to wait; ``attempt`` counts from 0. Jobs that met must not meet again."""
        return self._chance.uniform(0, min(bounds.BRANCH_FIRST_PAUSE * 2.0 ** min(attempt, 30), bounds.BRANCH_PAUSE))

    # Both

    def _ask(self, query: str, **variables: str) -> Any:
        owner, _, name = self._repository.partition("/")
        return at(self._client.graphql(query, {"owner": owner, "name": name, **variables}), "repository")

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


def _head_in(repository: Any) -> str | None:
    """Return the head of the branch in an answer; None if there is no branch."""
    oid = text_at(repository, "ref", "target", "oid")
    return oid if is_commit(oid) else None


def _entries(value: Any, *path: str) -> list[Any]:
    """Return what the tree at a path of keys has; nothing if it is not a tree."""
    entries = at(value, *path, "entries")
    return entries if isinstance(entries, list) else []


def _name_of_folder(entry: Any) -> str:
    return text_at(entry, "name") if text_at(entry, "type") == "tree" else ""


def _is_file(entry: Any) -> bool:
    return text_at(entry, "type") == "blob" and is_commit(text_at(entry, "oid"))


def _files_in(folder: Any, month: str) -> dict[str, _File]:
    """Return the entries in a month's folder, by id."""
    files = {}
    for file in _entries(folder):
        entry_id, size = EntryId.of_file(text_at(file, "name")), at(file, "size")
        if entry_id is not None and entry_id.month == month and _is_file(file) and type(size) is int:
            files[entry_id.id] = _File(oid=text_at(file, "oid"), size=size)
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
