"""A stand-in for the command ``gh``: what the release workflow asks of GitHub, answered from a bare repository.

``python -m tests.github.gh BARE api repos/o/r/git/refs …`` does what ``gh api repos/o/r/git/refs …`` does.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

AUTHOR = {"GIT_AUTHOR_NAME": "gh", "GIT_AUTHOR_EMAIL": "gh@example.com"}
COMMITTER = {"GIT_COMMITTER_NAME": "gh", "GIT_COMMITTER_EMAIL": "gh@example.com"}


class Repository:
    """The part of GitHub's API that makes commits, tags and releases. What git refuses ends the command."""

    def __init__(self, bare: Path) -> None:
        self._bare = bare
        self._routes: list[tuple[str, str, Callable[..., Any]]] = [
            ("GET", r"git/matching-refs/(.+)", self._matching),
            ("GET", r"git/ref/(.+)", lambda ref: {"object": {"sha": self._known(f"refs/{ref}")}}),
            ("GET", r"git/commits/(\w+)", lambda sha: {"tree": {"sha": self._known(f"{sha}^{{tree}}")}}),
            ("GET", r"compare/(.+)\.\.\.(\w+)", self._compare),
            ("POST", r"git/trees", self._make_tree),
            ("POST", r"git/commits", self._make_commit),
            ("POST", r"git/refs", lambda *, ref, sha: self._git("update-ref", ref, sha, "0" * 40)),
            ("PATCH", r"git/refs/(.+)", self._move),
        ]

    def answer(self, method: str, path: str, fields: dict[str, Any]) -> Any:
        """Return what GitHub's API answers to a call."""
        for wanted, route, do in self._routes:
            if wanted == method and (match := re.fullmatch(f"repos/[^/]+/[^/]+/{route}", path)):
                return do(*match.groups(), **fields)
        sys.exit(f"gh: {method} {path}: Not Found (HTTP 404)")

    def release(self, tag: str, notes: Path, files: Sequence[Path]) -> None:
        """Keep a release's notes and the names of its files in a file of the repository."""
        self._known(f"refs/tags/{tag}")
        if missing := [str(path) for path in files if not path.is_file()]:
            sys.exit(f"gh: no such files: {missing}")
        kept = {"notes": notes.read_text("utf-8"), "files": [path.name for path in files]}
        (self._bare / f"release-{tag}.json").write_text(json.dumps(kept))

    def _git(self, *argv: str, text: str = "", index: str = "index") -> str:
        environ = {**os.environ, **AUTHOR, **COMMITTER, "GIT_INDEX_FILE": index}
        command = ["git", "--git-dir", str(self._bare), *argv]
        done = subprocess.run(command, env=environ, input=text.encode(), capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"gh: {' '.join(argv)}: {done.stderr.decode().strip()}")
        return done.stdout.decode().strip()

    def _known(self, name: str) -> str:
        return self._git("rev-parse", "--verify", name)

    def _matching(self, start: str) -> Any:
        refs = self._git("for-each-ref", "--format=%(refname)").split()
        return [{"ref": ref} for ref in refs if ref.startswith(f"refs/{start}")]

    def _compare(self, branch: str, sha: str) -> Any:
        """Say where a commit is, seen from a branch."""
        counts = self._git("rev-list", "--left-right", "--count", f"refs/heads/{branch}...{sha}").split()
        places = {
            (False, False): "identical",
            (True, False): "behind",
            (False, True): "ahead",
            (True, True): "diverged",
        }
        return {"status": places[counts[0] != "0", counts[1] != "0"]}

    def _make_tree(self, *, base_tree: str, tree: list[dict[str, str]]) -> Any:
        with TemporaryDirectory() as folder:
            index = f"{folder}/index"
            self._git("read-tree", base_tree, index=index)
            for entry in tree:
                blob = self._git("hash-object", "-w", "--stdin", text=entry["content"])
                place = f"{entry['mode']},{blob},{entry['path']}"
                self._git("update-index", "--add", "--cacheinfo", place, index=index)
            return {"sha": self._git("write-tree", index=index)}

    def _make_commit(self, *, message: str, tree: str, parents: list[str]) -> Any:
        after = [word for parent in parents for word in ("-p", parent)]
        return {"sha": self._git("commit-tree", tree, *after, "-m", message)}

    def _move(self, ref: str, *, sha: str, force: bool = False) -> None:
        """Move a tag that exists; to a commit that is not after it only by force."""
        if not force:
            self._git("merge-base", "--is-ancestor", f"refs/{ref}", sha)
        self._git("update-ref", f"refs/{ref}", sha, self._known(f"refs/{ref}"))


def main(argv: Sequence[str]) -> None:
    """Answer one call of ``gh api``, ``gh run list`` (the tests of any commit passed) or ``gh release create``."""
    parser = argparse.ArgumentParser(prog="gh", allow_abbrev=False)
    parser.add_argument("words", nargs="*")
    for name in ("method", "input", "jq", "repo", "title", "workflow", "commit", "event", "status", "json"):
        parser.add_argument(f"--{name}")
    for name in ("raw-field", "field"):
        parser.add_argument(f"--{name}", action="append", default=[])
    for name in ("paginate", "silent", "verify-tag", "prerelease"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--notes-file", type=Path)
    options = parser.parse_intermixed_args(argv)
    bare, command, *words = options.words
    repository = Repository(Path(bare))
    if command == "release":
        _, tag, *files = words
        repository.release(tag, options.notes_file, [Path(name) for name in files])
        return
    fields: dict[str, Any] = json.load(sys.stdin) if options.input else {}
    fields |= dict(field.split("=", 1) for field in options.raw_field)
    fields |= {name: json.loads(value) for name, value in (field.split("=", 1) for field in options.field)}
    method = options.method or ("POST" if fields else "GET")
    answer = [{"databaseId": 1}] if command == "run" else repository.answer(method, words[0], fields)
    if options.jq:
        subprocess.run(["jq", "--raw-output", options.jq], input=json.dumps(answer).encode(), check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
