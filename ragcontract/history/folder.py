"""A history in a folder: for GitLab, Jenkins, a laptop, or a clone of the branch.

Any number of processes write it at once, without a lock. A file is written under a temporary name in the store's own
folder, and then linked to its name, which fails if the name is taken: so nothing that exists is replaced but badges,
and a reader sees a file whole or not at all, even if the writer is killed. Where there are no hard links (FAT, some
network drives), the temporary file is renamed after a look whether the name is free. That keeps files whole, which
creating the name itself and filling it would not; the price is that the later of two writers wins who write different
content under one name within microseconds. Names say the second, the commit and the run, so only a mistake can do that.

Content is synchronized with the disk before it gets its name, so that no file is empty after a power failure. That
takes half a millisecond for an entry and its result set of 500 kB, measured on an SSD.

Whoever can change the folder may have put anything there. Symbolic links in it are not followed, wherever they lead,
and what is not a regular file is never opened, because it could block. The folder itself may be a link, because a user
named it.
"""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.files.opening import read_problem, read_regular
from ragcontract.files.writing import beside, take_after
from ragcontract.history.entry import (
    EntryId,
    NewEntry,
    entry_path,
    is_digest,
    is_folder_name,
    is_month,
    newest_first,
    results_path,
)
from ragcontract.history.interface import README, Added, differs, refuse_shared_run

ENTRIES, RESULTS = "entries", "results"
RESULT_SET = ".jsonl"
_TEMPORARY = re.compile(r"\.rag-contract-[0-9a-f]{16}\.tmp")


class Folder:
    """A :class:`~ragcontract.history.interface.Store` in a folder. It reads as empty before anything is added.

    A month may turn out to have no entries yet: its folder is made just before its first entry.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._root = Path(name).absolute()

    def contracts(self) -> list[str]:
        return sorted(filter(is_folder_name, self._folders(ENTRIES)))

    def months(self, contract: str) -> list[str]:
        if not is_folder_name(contract):
            return []
        return sorted(filter(is_month, self._folders(ENTRIES, contract)), reverse=True)

    def ids(self, contract: str, months: Sequence[str]) -> list[EntryId]:
        names = (name for month in dict.fromkeys(months) for name in self._names(contract, month))
        return newest_first(filter(None, map(EntryId.of_file, names)))

    def _names(self, contract: str, month: str) -> list[str]:
        """Return the names of files of a month, without those that belong to another one."""
        if not (is_folder_name(contract) and is_month(month)):
            return []
        return [name for name in self._files(ENTRIES, contract, month) if name.startswith(month.replace("-", ""))]

    def read(self, contract: str, ids: Sequence[EntryId]) -> dict[str, bytes]:
        if not is_folder_name(contract):
            return {}
        folders = {month: self._folder(ENTRIES, contract, month) for month in {entry.month for entry in ids}}
        contents = (self._read(folders[entry.month], entry_path(contract, entry.id), bounds.ENTRY) for entry in ids)
        return {entry.id: content for entry, content in zip(ids, contents, strict=True) if content is not None}

    def results(self, sha256: str) -> bytes | None:
        folder = self._folder(RESULTS, sha256[:2]) if is_digest(sha256) else None
        return self._read(folder, results_path(sha256), bounds.RESULT_SET)

    def result_sets(self) -> set[str]:
        return {
            name.removesuffix(RESULT_SET)
            for folder in self._folders(RESULTS)
            for name in self._files(RESULTS, folder)
            if name.startswith(folder) and name.endswith(RESULT_SET) and is_digest(name.removesuffix(RESULT_SET))
        }

    def add(self, new: NewEntry) -> Added:
        try:
            return self._added(new)
        except OSError as error:
            raise InputError([f"{self.name}: cannot be written ({error.strerror or error})"]) from error

    def _added(self, new: NewEntry) -> Added:
        exists = self._has(new)
        if not exists:
            folder = new.path.split("/")[:-1]  # a month may have thousands of names
            refuse_shared_run(new, self._listed(folder, lambda item: item.name.endswith(new.end_of_name)))
        self._root.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(self._root / "README.md"):
            self._put("README.md", README.encode())
        if new.results is not None:  # also if the entry exists: it may have been pruned since
            self._put(results_path(hashlib.sha256(new.results).hexdigest()), new.results)
        if exists or not self._put(new.path, new.content):
            self._has(new)  # another writer may have been first
            return "exists"
        self._remove_leftovers((self._root / new.path).lstat().st_mtime)
        with suppress(OSError, InputError):
            self._put_badge(new)
        return "added"

    def _has(self, new: NewEntry) -> bool:
        """Return whether the same entry is stored; raise ConflictError if another is."""
        folder = self._folder(*new.path.split("/")[:-1])
        content = self._read(folder, new.path, len(new.content))
        if content is not None and content != new.content:
            raise differs(new.path)
        return content is not None

    def delete_results(self, digests: Collection[str]) -> None:
        for sha256 in filter(is_digest, digests):
            folder = self._folder(RESULTS, sha256[:2])
            if folder is not None:
                try:
                    (folder / f"{sha256}{RESULT_SET}").unlink(missing_ok=True)  # of a link, not what it leads to
                except OSError as error:
                    reason = error.strerror or error
                    raise InputError([f"{self._shown(results_path(sha256))}: cannot be deleted ({reason})"]) from error

    def _folder(self, *parts: str) -> Path | None:
        """Return a folder of the store; None if it is not there or is not a folder, such as a link to one."""
        folder = self._root
        try:
            if not stat.S_ISDIR(folder.stat().st_mode):
                raise InputError([f"{self.name}: is not a folder, so it cannot have a history"])
            for part in parts:
                folder /= part
                if not stat.S_ISDIR(folder.lstat().st_mode):
                    return None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError([f"{self._shown('/'.join(parts))}: {read_problem(error)}"]) from error
        return folder

    def _folders(self, *parts: str) -> list[str]:
        return self._listed(parts, lambda item: item.is_dir(follow_symlinks=False))

    def _files(self, *parts: str) -> list[str]:
        return self._listed(parts, lambda item: item.is_file(follow_symlinks=False))

    def _listed(self, parts: Sequence[str], is_wanted: Callable[[os.DirEntry[str]], bool]) -> list[str]:
        folder = self._folder(*parts)
        if folder is None:
            return []
        try:
            with os.scandir(folder) as items:
                return [item.name for item in items if is_wanted(item)]
        except FileNotFoundError:  # deleted since
            return []
        except OSError as error:
            raise InputError([f"{self._shown('/'.join(parts))}: {read_problem(error)}"]) from error

    def _read(self, folder: Path | None, path: str, limit: int) -> bytes | None:
        """Read at most ``limit`` + 1 bytes of a file in a folder; None if there is no regular file."""
        if folder is None:
            return None
        try:
            return read_regular(folder / path.rpartition("/")[2], limit)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError([f"{self._shown(path)}: {read_problem(error)}"]) from error

    def _put(self, path: str, content: bytes) -> bool:
        """Write a file that is whole as soon as it has its name; return False if the name is taken."""
        file = self._root / path
        self._make_folders(path)
        if not os.path.lexists(file):
            with self._temporary(content) as temporary:
                if _linked(temporary, file):
                    return True
        if not stat.S_ISREG(file.lstat().st_mode):
            raise InputError([f"{self._shown(path)}: is not a regular file; delete it"])
        return False

    def _put_badge(self, new: NewEntry) -> None:
        """Replace the files of the badge unless another run is newer; what is not a regular file stays."""
        names = self._files(*new.path.split("/")[:-1]) if new.badge else ()
        for path, content in new.badge_beside(names).items():
            file = self._root / path
            self._make_folders(path)
            if not os.path.lexists(file) or stat.S_ISREG(file.lstat().st_mode):
                with self._temporary(content) as temporary:
                    take_after(temporary, file)
                    temporary.replace(file)

    @contextmanager
    def _temporary(self, content: bytes) -> Iterator[Path]:
        """Write a temporary file, which is gone afterwards unless it was renamed."""
        temporary = beside(self._root / "README.md")
        try:
            with temporary.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    def _make_folders(self, path: str) -> None:
        folder = self._root
        for part in path.split("/")[:-1]:
            folder /= part
            with suppress(FileExistsError):
                folder.mkdir()
            if not stat.S_ISDIR(folder.lstat().st_mode):
                where = folder.relative_to(self._root).as_posix()
                raise InputError([f"{self._shown(where)}: is not a folder, and links are not followed; delete it"])

    def _remove_leftovers(self, now: float) -> None:
        """Remove the temporary files of killed writers; ``now`` is of the clock that gives files their times."""
        with suppress(OSError), os.scandir(self._root) as items:
            for item in items:
                if _TEMPORARY.fullmatch(item.name) and item.is_file(follow_symlinks=False):
                    age = now - item.stat(follow_symlinks=False).st_mtime
                    if age > bounds.UNFINISHED:
                        Path(item.path).unlink()

    def _shown(self, path: str) -> str:
        return f"{self.name.rstrip('/')}/{path}" if path else self.name


def _linked(temporary: Path, file: Path) -> bool:
    """Give a file its name unless that is taken; return whether it was free."""
    try:
        os.link(temporary, file)
    except FileExistsError:
        return False
    except OSError:  # there are no hard links here; any other fault is one of renaming, too
        if os.path.lexists(file):
            return False
        try:
            temporary.rename(file)
        except FileExistsError:  # Windows, which replaces nothing
            return False
    return True
