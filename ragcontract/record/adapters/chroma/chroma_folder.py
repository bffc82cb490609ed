"""Opens what Chroma stored in a folder, from a copy: Chroma has no way to read a folder without writing to it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.nearest import nearest
from ragcontract.core.numbers import mebibytes
from ragcontract.core.text import shorten, visible
from ragcontract.files.temporary import unwritable_temporary

DATABASE = "chroma.sqlite3"


class ChromaFolder:
    """A folder of Chroma's that is open."""

    def __init__(self, folder: Path, *, in_place: bool) -> None:
        """Open a copy of a folder, or the folder itself; raises InputError if there is none, or it cannot be opened."""
        if not (folder / DATABASE).is_file():
            # Chroma would create it, and then there would be no collection in it.
            missing = f"has no {DATABASE}" if folder.is_dir() else "there is no such folder"
            raise InputError([f"chroma.path: {folder}: {missing}; it is what a persistent client of Chroma writes"])
        self._copy = None if in_place else copied(folder)
        self._client: Any = None
        try:
            with explained(f"chroma.path: {folder}: cannot be opened by the Chroma that is installed"):
                self._client = _client(self._copy or folder)
        except BaseException:
            self.close()
            raise

    def collection(self, name: str) -> Any:
        """Return a collection; raises InputError if there is none of that name."""
        with explained(f"chroma.collection: {name}: cannot be opened"):
            names = [one if isinstance(one, str) else one.name for one in self._client.list_collections()]
            if name not in names:
                near = nearest(name, names)
                there = f"did you mean {near!r}?" if near else f"there are {', '.join(sorted(names)) or 'none'}"
                shown = shorten(visible(there), bounds.FAILURE)
                raise InputError([f"chroma.collection: there is no collection {name!r}; {shown}"])
            return self._client.get_collection(name)

    def close(self) -> None:
        """Close the client and remove the copy."""
        close = getattr(self._client, "close", None)  # since 1.5
        if callable(close):
            close()
        if self._copy is not None:
            shutil.rmtree(self._copy, ignore_errors=True)


def copied(folder: Path) -> Path:
    """Return a copy of a folder, in a temporary one. Raises InputError if it is too large, or cannot be copied."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > bounds.CHROMA_COPY:
        why = f"is larger than {mebibytes(bounds.CHROMA_COPY)}, too large to copy"
        raise InputError([f"chroma.path: {folder}: {why}; with `in_place: true`, Chroma writes to the folder itself"])
    try:
        copy = Path(tempfile.mkdtemp(prefix="rag-contract-chroma-"))
    except OSError as error:
        raise unwritable_temporary(error) from error
    try:
        for path in sorted(folder.rglob("*")):
            target = copy / path.relative_to(folder)
            # Only contents: a folder that may not be written to has a copy that may be.
            if path.is_dir():
                target.mkdir()
            elif path.is_file():
                shutil.copyfile(path, target)
    except OSError as error:
        shutil.rmtree(copy, ignore_errors=True)
        raise InputError([f"chroma.path: {folder}: cannot be copied ({error.strerror or error})"]) from error
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)
        raise
    return copy


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn what Chroma raises into an InputError."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, InputError):
        raise
    except BaseException as error:  # what panics in Chroma's Rust code is no Exception
        message = shorten(visible(str(error)), bounds.FAILURE)
        raise InputError([f"{what} ({type(error).__name__}: {message})"]) from error


def _client(folder: Path) -> Any:
    try:
        import chromadb
    except ModuleNotFoundError as error:
        raise InputError(["this target needs Chroma: pip install chromadb, of the version that wrote it"]) from error
    from chromadb.config import Settings

    return chromadb.PersistentClient(str(folder.absolute()), settings=Settings(anonymized_telemetry=False))
