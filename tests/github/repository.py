"""The git data of a repository on the stand-in for GitHub: files, commits and branches, in memory.

The ids of files, trees and commits are those that git would give them.
"""

import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from msgspec import Struct

from tests.github.graphql_schema import RefusedError

NAME = "octo/app"
AT = "2026-11-21T20:30:00Z"
NOT_ACCESSIBLE = "Resource not accessible by integration"
Answer = tuple[int, Any]
Access = Literal["none", "read", "write"]


class Commit(Struct, frozen=True, kw_only=True):
    """A commit: its whole tree, and what is new in it compared with its first parent."""

    oid: str
    message: str
    parents: tuple[str, ...]
    files: dict[str, str]  # ids by path
    added: frozenset[str]  # paths with new content
    deleted: frozenset[str]


class Repository:
    """The repository ``octo/app``. ``branches`` has heads; ``access`` is what the token may do with contents."""

    def __init__(self) -> None:
        self.branches: dict[str, str] = {}
        self.commits: dict[str, Commit] = {}
        self.statuses: list[tuple[str, dict[str, Any]]] = []
        self.access: Access = "write"
        self.protected: set[str] = set()
        self.largest_text = 512_000  # bytes; GraphQL cuts the text of a larger file
        self._contents: dict[str, bytes] = {}
        self._trees: dict[str, dict[str, str]] = {}

    # What tests do and look at

    def commit(
        self,
        branch: str,
        additions: Mapping[str, bytes] | None = None,
        deletions: Collection[str] = (),
        message: str = "a commit",
    ) -> str:
        """Let somebody commit to a branch, which is made if it does not exist; returns the commit's id."""
        head = self.branches.get(branch)
        files = dict(self.commits[head].files) if head else {}
        files |= {path: self._store(content) for path, content in (additions or {}).items()}
        kept = {path: oid for path, oid in files.items() if path not in deletions}
        oid = self._add_commit(message, kept, (head,) if head else ())
        self.branches[branch] = oid
        return oid

    def merge(self, base: str, head: str) -> str:
        """Merge two commits, as GitHub does for a pull request; returns the id of the commit, which is on no branch."""
        files = self.commits[base].files | self.commits[head].files
        return self._add_commit("Merge", files, (base, head))

    def history(self, branch: str) -> list[Commit]:
        """Return the commits of a branch along first parents, the oldest first; none without the branch."""
        oid = self.branches.get(branch)
        found = []
        while oid:
            found.append(self.commits[oid])
            oid = next(iter(found[-1].parents), None)
        return found[::-1]

    def files(self, branch: str) -> dict[str, bytes]:
        """Return the contents of a branch's files by path."""
        head = self.branches.get(branch)
        return {path: self._contents[oid] for path, oid in self.commits[head].files.items()} if head else {}

    # REST

    def rest(self, method: str, path: str, query: Mapping[str, Sequence[str]], body: Any) -> Answer | None:
        """Answer a call; returns None if it is about something else."""
        routes: list[tuple[str, str, Callable[..., Answer]]] = [
            ("POST", "/git/trees", self._create_tree),
            ("POST", "/git/commits", self._create_commit),
            ("POST", "/git/refs", self._create_ref),
            ("POST", "/statuses/(.+)", self._create_status),
            ("GET", "/git/blobs/(.+)", self._blob),
            ("GET", "/commits()", lambda _name, _body: self._commits(query)),
        ]
        for known, route, answer in routes:
            if method == known and (match := re.fullmatch(f"/repos/{NAME}{route}", path)):
                if self.access == "none" or (method == "POST" and self.access == "read"):
                    return 403, {"message": NOT_ACCESSIBLE}
                return answer(*match.groups(), body)
        return None

    def _create_tree(self, body: Any) -> Answer:
        files = {entry["path"]: self._store(entry["content"].encode()) for entry in body["tree"]}
        oid = self._tree(files)
        entries = [
            {"path": path, "mode": "100644", "type": "blob", "sha": sha, "size": len(self._contents[sha])}
            for path, sha in files.items()
        ]
        return 201, {"sha": oid, "url": _url(f"git/trees/{oid}"), "tree": entries, "truncated": False}

    def _create_commit(self, body: Any) -> Answer:
        if body["tree"] not in self._trees or not self.commits.keys() >= set(body["parents"]):
            return 422, {"message": "Tree SHA does not exist"}
        oid = self._add_commit(body["message"], self._trees[body["tree"]], tuple(body["parents"]))
        person = {"name": "github-actions[bot]", "email": "bot@example.org", "date": AT}
        tree = {"sha": body["tree"], "url": _url(f"git/trees/{body['tree']}")}
        unsigned = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}
        about = {"node_id": "C_1", "url": _url(f"git/commits/{oid}"), "html_url": _url(f"commit/{oid}")}
        rest = {"author": person, "committer": person, "tree": tree, "verification": unsigned}
        return 201, about | rest | {"sha": oid, "message": body["message"], "parents": _parents(body["parents"])}

    def _create_ref(self, body: Any) -> Answer:
        branch = body["ref"].removeprefix("refs/heads/")
        if branch in self.branches:
            return 422, {"message": "Reference already exists"}
        if body["sha"] not in self.commits:
            return 422, {"message": "Object does not exist"}
        self.branches[branch] = body["sha"]
        target = {"type": "commit", "sha": body["sha"], "url": _url(f"git/commits/{body['sha']}")}
        return 201, {"ref": body["ref"], "node_id": "R_1", "url": _url(f"git/{body['ref']}"), "object": target}

    def _create_status(self, sha: str, body: Any) -> Answer:
        self.statuses.append((sha, body))
        rest = {"url": _url(f"statuses/{sha}"), "avatar_url": None, "id": 1, "node_id": "S_1", "target_url": None}
        return 201, rest | body | {"created_at": AT, "updated_at": AT, "creator": None}

    def _blob(self, sha: str, _body: Any) -> Answer:
        if sha not in self._contents:
            return 404, {"message": "Not Found"}
        content = self._contents[sha]
        about = {"sha": sha, "node_id": "B_1", "url": _url(f"git/blobs/{sha}"), "size": len(content)}
        encoded = b64encode(content).decode()
        lines = "".join(f"{encoded[start : start + 60]}\n" for start in range(0, len(encoded), 60))
        return 200, about | {"content": lines, "encoding": "base64"}

    def _commits(self, query: Mapping[str, Sequence[str]]) -> Answer:
        size, page = int(query["per_page"][0]), int(query.get("page", ["1"])[0])
        tip = query["sha"][0]
        if tip not in self.commits:
            return 404, {"message": f"No commit found for SHA: {tip}"}
        return 200, [_as_rest(commit) for commit in islice(self._reached(tip), (page - 1) * size, page * size)]

    def _reached(self, tip: str) -> list[Commit]:
        """Return what a commit reaches, itself first, in the order in which commits were made, newest first."""
        reached, todo = set(), [tip]
        while todo:
            oid = todo.pop()
            if oid not in reached:
                reached.add(oid)
                todo += self.commits[oid].parents
        return [commit for oid, commit in reversed(self.commits.items()) if oid in reached]

    # GraphQL

    def roots(self) -> dict[str, Any]:
        """Return the fields of queries and mutations."""
        return {"repository": self._repository, "createCommitOnBranch": self._create_commit_on_branch}

    def _repository(self, _info: Any, owner: str, name: str, **_defaults: Any) -> dict[str, Any]:
        if f"{owner}/{name}" != NAME:
            raise RefusedError("NOT_FOUND", f"Could not resolve to a Repository with the name '{owner}/{name}'.")
        return {"ref": self._ref, "object": self._object}

    def _ref(self, _info: Any, qualifiedName: str) -> dict[str, Any] | None:  # noqa: N803 (GitHub's name)
        self._refuse_unless(self.access != "none")
        head = self.branches.get(qualifiedName.removeprefix("refs/heads/"))
        return {"target": {"__typename": "Commit", "oid": head}} if head else None

    def _object(self, _info: Any, expression: str) -> dict[str, Any] | None:
        self._refuse_unless(self.access != "none")
        revision, _, path = expression.partition(":")
        commit = self.commits.get(self.branches.get(revision.removeprefix("refs/heads/"), revision))
        return None if commit is None else self._at(commit.files, path)

    def _at(self, files: Mapping[str, str], path: str) -> dict[str, Any] | None:
        """Return the file or the folder at a path; the path of the whole tree is empty."""
        if path in files:
            return self._as_blob(files[path])
        start = f"{path}/" if path else ""
        inside = {name.removeprefix(start): oid for name, oid in files.items() if name.startswith(start)}
        return self._as_tree(inside) if inside else None

    def _as_blob(self, oid: str) -> dict[str, Any]:
        content = self._contents[oid]
        try:
            text = None if b"\0" in content else content[: self.largest_text].decode()
        except UnicodeDecodeError:
            text = None
        cut = len(content) > self.largest_text
        return {
            "__typename": "Blob",
            "oid": oid,
            "byteSize": len(content),
            "isBinary": text is None,
            "isTruncated": cut,
            "text": text,
        }

    def _as_tree(self, files: Mapping[str, str]) -> dict[str, Any]:
        names = sorted({path.partition("/")[0] for path in files})
        return {"__typename": "Tree", "oid": self._tree(files), "entries": [self._entry(files, name) for name in names]}

    def _entry(self, files: Mapping[str, str], name: str) -> dict[str, Any]:
        if name in files:
            about = {"type": "blob", "mode": 0o100644, "oid": files[name], "size": len(self._contents[files[name]])}
        else:
            inside = {path: oid for path, oid in files.items() if path.startswith(f"{name}/")}
            about = {"type": "tree", "mode": 0o40000, "oid": self._tree(_within(inside, name)), "size": 0}
        return about | {"name": name, "object": lambda _info: self._at(files, name)}

    def _create_commit_on_branch(self, _info: Any, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002 (its name)
        self._refuse_unless(self.access == "write")
        branch = input["branch"]["branchName"]
        if input["branch"]["repositoryNameWithOwner"] != NAME or branch not in self.branches:
            raise RefusedError("NOT_FOUND", "No such branch")
        if branch in self.protected:
            raise RefusedError("BRANCH_PROTECTION_RULE_VIOLATION", "Changes must be made through a pull request.")
        if self.branches[branch] != input["expectedHeadOid"]:
            expected = f'Expected branch to point to "{input["expectedHeadOid"]}" but it did not.'
            raise RefusedError("STALE_DATA", f"{expected}  Pull and try again.")
        changes = input["fileChanges"]
        additions = {
            addition["path"]: b64decode(addition["contents"], validate=True) for addition in changes["additions"]
        }
        deletions = {deletion["path"] for deletion in changes["deletions"]}
        if missing := deletions - self.commits[self.branches[branch]].files.keys():
            raise RefusedError(
                "UNPROCESSABLE", f"A path was requested for deletion that does not exist: {min(missing)}"
            )
        oid = self.commit(branch, additions, deletions, input["message"]["headline"])
        return {"commit": {"oid": oid}}

    def _refuse_unless(self, allowed: bool) -> None:
        if not allowed:
            raise RefusedError("FORBIDDEN", NOT_ACCESSIBLE)

    # Git

    def _store(self, content: bytes) -> str:
        oid = _oid("blob", content)
        self._contents[oid] = content
        return oid

    def _tree(self, files: Mapping[str, str]) -> str:
        names = {path.partition("/")[0] for path in files}
        folders = {name for name in names if name not in files}
        data = b""
        for name in sorted(names, key=lambda name: f"{name}/" if name in folders else name):
            mode = "40000" if name in folders else "100644"
            oid = self._tree(_within(files, name)) if name in folders else files[name]
            data += f"{mode} {name}\0".encode() + bytes.fromhex(oid)
        tree = _oid("tree", data)
        self._trees[tree] = dict(files)
        return tree

    def _add_commit(self, message: str, files: Mapping[str, str], parents: tuple[str, ...]) -> str:
        before = self.commits[parents[0]].files if parents else {}
        lines = [f"tree {self._tree(files)}", *(f"parent {parent}" for parent in parents)]
        person = f"github-actions[bot] <bot@example.org> {1_800_000_000 + len(self.commits)} +0000"
        text = "\n".join([*lines, f"author {person}", f"committer {person}", "", message])
        oid = _oid("commit", text.encode())
        self.commits[oid] = Commit(
            oid=oid,
            message=message,
            parents=parents,
            files=dict(files),
            added=frozenset(path for path, blob in files.items() if before.get(path) != blob),
            deleted=frozenset(before.keys() - files.keys()),
        )
        return oid


def _within(files: Mapping[str, str], folder: str) -> dict[str, str]:
    return {path.removeprefix(f"{folder}/"): oid for path, oid in files.items() if path.startswith(f"{folder}/")}


def _oid(kind: str, content: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content).hexdigest()


def _url(path: str) -> str:
    return f"https://api.github.com/repos/{NAME}/{path}"


def _parents(oids: Sequence[str]) -> list[dict[str, str]]:
    return [{"sha": oid, "url": _url(f"commits/{oid}"), "html_url": _url(f"commit/{oid}")} for oid in oids]


def _as_rest(commit: Commit) -> dict[str, Any]:
    """Return a commit as a list of commits has it."""
    person = {"name": "ann", "email": "ann@example.org", "date": AT}
    unsigned = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}
    tree = {"sha": "0" * 40, "url": _url("git/trees/0")}
    git = {"url": _url("git/commits/0"), "author": person, "committer": person, "message": commit.message}
    urls = {"url": _url(f"commits/{commit.oid}"), "html_url": _url(f"commit/{commit.oid}")}
    inner = git | {"tree": tree, "comment_count": 0, "verification": unsigned}
    rest = {"node_id": "C_1", "comments_url": _url("comments"), "author": {}, "committer": {}}
    return urls | rest | {"sha": commit.oid, "commit": inner, "parents": _parents(commit.parents)}
