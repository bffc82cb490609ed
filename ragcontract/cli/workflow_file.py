"""The workflow that ``rag-contract init`` writes, at the root of the git repository wherever the contract is.

GitHub runs only workflows in ``.github/workflows`` at the root of a repository. For a contract in a folder, the
workflow gets the folder as the working directory of all steps, and names of its own, so that two contracts of one
repository share neither a file, a required check, a concurrency group nor a comment.
"""

import itertools
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import OutputError
from ragcontract.core.safe_text import visible
from ragcontract.files.opening import READ_ERRORS, read_within

FOLDER = Path(".github", "workflows")
WORKFLOW = (FOLDER / "rag-contract.yml").as_posix()

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*")
UPLOADED = ("report.md", "report.json", "junit.xml")
NOT_TEXT = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


class WorkflowFile(Struct, frozen=True, kw_only=True):
    """A workflow that exists or is to be written, and the folder of its contract."""

    path: str  # relative to the current folder
    folder: str  # relative to the repository's root, with slashes; empty at the root and outside of a repository

    def render(self, template: str) -> str:
        """Return the workflow for this folder, made from the template for a contract at the root."""
        return for_folder(template, self.folder) if self.folder else template


def workflow_file(here: Path) -> WorkflowFile:
    """Return the workflow of the contract in the current folder ``here``: the one that exists, or the one to write.

    Raises :class:`OutputError` if a workflow cannot contain the folder's name.
    """
    root = repository_root(here)
    if root is None or root == here.resolve():
        return WorkflowFile(path=WORKFLOW, folder="")
    folder = here.resolve().relative_to(root).as_posix()
    if not folder.isprintable():
        problem = "a workflow cannot name this folder: it has characters that cannot be printed; rename the folder"
        raise OutputError([f"{visible(folder)}: {problem}"])
    others = sum(1 for _ in (root / FOLDER).glob("rag-contract*.yml"))  # no more names than these are taken
    named = itertools.islice(_names(folder), others + 2)
    existing = (path for name in named if _is_for(path := root / FOLDER / name, folder))
    free = (path for name in _names(folder) if not os.path.lexists(path := root / FOLDER / name))
    path = next(itertools.chain(existing, free))
    return WorkflowFile(path=Path(os.path.relpath(path, here.resolve())).as_posix(), folder=folder)


def repository_root(folder: Path) -> Path | None:
    """Return the root of the git repository that a folder is in, or None.

    In a worktree or a submodule, ``.git`` is a file that names the repository's own folder.
    """
    here = folder.resolve()
    return next((folder for folder in (here, *here.parents) if _is_repository(folder / ".git")), None)


def _is_repository(git: Path) -> bool:
    with suppress(OSError):  # a folder that may not be read
        return git.is_file() or os.path.lexists(git / "HEAD")
    return False


def _names(folder: str) -> Iterator[str]:
    """Yield file names to choose from: the usual one, one with the folder's name, then numbered ones."""
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", folder).strip("-.")[: bounds.FOLDER_NAME] or "folder"
    yield Path(WORKFLOW).name
    yield f"rag-contract-{slug}.yml"
    yield from (f"rag-contract-{slug}-{number}.yml" for number in itertools.count(2))


def _is_for(path: Path, folder: str) -> bool:
    """Return whether a workflow exists and is for the contract in this folder, by its working directory."""
    if not path.is_file():
        return False
    try:
        data, _ = read_within(bounds.CONFIG, str(path))
    except READ_ERRORS:
        return False
    lines = {line.partition(" #")[0].strip() for line in data.decode(errors="replace").splitlines()}
    return f"working-directory: {_scalar(folder)}" in lines


def for_folder(template: str, folder: str) -> str:
    """Return the text of a workflow whose contract is in a folder of the repository.

    Raises ValueError if the template lacks a line that has to change.
    """
    value = _scalar(folder)
    changes = (
        ("\nname: rag-contract\n", f"\nname: {_scalar(f'rag-contract {folder}')}\n"),
        (
            "    name: Check the retrieval contract\n",
            f"    name: {_scalar(f'Check the retrieval contract {folder}')}\n",
        ),
        ("    steps:\n", f"    defaults:\n      run:\n        working-directory: {value}\n    steps:\n"),
        ("-path: requirements.txt\n", f"-path: {_scalar(f'{folder}/requirements.txt')}\n"),
        ("          golden: ", f"          working-directory: {value}\n          name: {value}\n          golden: "),
        *((f"            {name}\n", f"            {_literal(folder)}/{name}\n") for name in UPLOADED),
    )
    for old, new in changes:
        if template.count(old) != 1:
            raise ValueError(f"the template has not exactly one {old!r}")
        template = template.replace(old, new)
    return template


def _scalar(text: str) -> str:
    """Return text as a value in YAML in which GitHub sees no expression; quoted unless it is a plain word."""
    is_plain = PLAIN.fullmatch(text) and text.lower() not in NOT_TEXT
    return text if is_plain else json.dumps(_literal(text), ensure_ascii=False)


def _literal(text: str) -> str:
    """Return text in which GitHub sees no expression."""
    return text.replace("${{", "${{ '${{' }}")
