"""The files that recorded answers depend on, by digest.

The files are the modules that were imported, and the watched files. An answer of an earlier recording is reused only if
none of them has changed. All modules count except the standard library, installed packages and virtual environments.
"""

import functools
import glob
import hashlib
import os
import stat
import struct
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count, mebibytes
from ragcontract.core.safe_text import shorten
from ragcontract.files.git import git
from ragcontract.files.paths import existing_files
from ragcontract.net.secrets import PLACEHOLDER

INSTALLED = frozenset(["site-packages", "dist-packages"])
# Our own modules are not listed: a journal has the version of rag-contract.
KNOWN = (*{sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}, str(Path(__file__).parents[1]))
GAP = 1.0  # s
STARTED = time.time()  # it is not known when earlier imports of this process happened
# By module name: the object that a reload replaces, and the digest of the file that was imported.
_IMPORTED: dict[str, tuple[object, str | None]] = {}


class Source(Struct, frozen=True, kw_only=True):
    """A file that answers depend on."""

    file: str  # relative to the folder in which recording began
    module: str | None = None  # that was imported from the file; None for a watched file
    # None if it is not known which version was used: the file could not be read, or was changed while it was in use.
    sha256: str | None

    @property
    def is_of_unknown_version(self) -> bool:
        """Whether it is a watched file that some answers may not have been made with."""
        return self.module is None and self.sha256 is None

    def __str__(self) -> str:
        return f"the module {self.module} ({self.file})" if self.module else self.file


class Sources:
    """Finds the files that one recording depends on. Only one thread may ask for them."""

    def __init__(self, folder: Path, watched: Sequence[str] = ()) -> None:
        """Note what is imported already, before any code of the target is.

        Raises InputError if watched files cannot be read.
        """
        self._folder = folder.absolute()
        self._began = time.time()
        self._before = {name: _identity(module) for name, module in sys.modules.copy().items()}
        self._seen: dict[str, object] = {}
        self._added: SimpleQueue[Source] = SimpleQueue()
        # The target may leave the folder; a path that is there is no pattern, even if it has brackets.
        here = glob.escape(str(self._folder))
        self._patterns = [os.path.join(here, path) for path in watched if not os.path.lexists(path)]  # noqa: PTH118
        self._watched = dict(self._read(watched))
        for file, (_, digest) in self._watched.items():
            self._added.put(Source(file=file, sha256=digest))
        self._files = set(self._watched)
        self._modules = 0
        self._next = 0.0

    @property
    def watched(self) -> frozenset[str]:
        return frozenset(self._watched)

    @property
    def files(self) -> list[Path]:
        """The files that were found so far."""
        return [self._folder / file for file in sorted(self._files)]

    def of_another_checkout(self) -> list[str]:
        """Return the files of another repository that the repository of the current folder has, too.

        Python imports from another checkout of the same project where that is the one that is installed.
        """
        here, tops = _top(self._folder), {}
        files = []
        for file in sorted(self._files):
            path = (self._folder / file).resolve()
            if here is None or path.is_relative_to(here):
                continue
            if path.parent not in tops:
                tops[path.parent] = _top(path.parent)
            top = tops[path.parent]
            if top is not None and (here / path.relative_to(top)).is_file():
                files.append(file)
        return files

    def add(self, sources: Iterable[Source]) -> None:
        """Add the sources of another process; any thread may call it."""
        for source in sources:
            self._added.put(source)

    def new(self) -> list[Source]:
        """Return the sources that were not returned before, or have changed since.

        It may be called for every answer: it looks for replaced modules and changed files once a second.
        """
        sources = []
        while not self._added.empty():
            sources.append(self._added.get())
        is_time = time.monotonic() >= self._next
        if is_time or len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            sources += self._imported()
        if is_time:
            sources += self._changed()
            self._next = time.monotonic() + GAP
        self._files.update(source.file for source in sources)
        return sources

    def last(self, outputs: Iterable[str | os.PathLike[str]] = ()) -> list[Source]:
        """Look once more, at the end of a recording, also for new files that watched patterns match.

        It is not known which answers such a file was there for. ``outputs``, which we write, do not count.
        """
        self._next = 0.0
        ours = {os.path.realpath(output) for output in outputs}
        there = [path for path in existing_files(self._patterns)[0] if os.path.realpath(path) not in ours]
        names = [name for name in map(self._name, there) if name not in self._watched]
        return [*self.new(), *(Source(file=name, sha256=None) for name in names)]

    def differences(self, recorded: Iterable[Source]) -> Iterator[str]:
        """Yield how the files differ from those of an earlier recording."""
        files = set()
        for source in recorded:
            files.add(source.file)
            if source.sha256 is None:
                yield f"{source} was changed while it was in use, or could not be read"
            elif (now := _digest(self._folder / source.file)) != source.sha256:
                yield f"{source} {'has changed' if now else 'cannot be read any more'}"
        yield from (f"{file} is new" for file in sorted(self.watched - files))

    def _read(self, patterns: Sequence[str]) -> Iterator[tuple[str, tuple[object, str]]]:
        paths, problems = existing_files(patterns)
        if len(paths) > bounds.WATCHED:
            raise InputError([f"--watch: names {len(paths):,} files; at most {bounds.WATCHED:,} are watched"])
        wrong = [f"--watch: {problem}" for problem in problems]
        for path in paths:
            state = _state(Path(path))
            if (digest := _digest(Path(path))) is not None:
                yield self._name(path), (state, digest)
            else:
                wrong.append(f"--watch: {path}: cannot be read, or is larger than {mebibytes(bounds.SOURCE)}")
        if wrong:
            raise InputError(wrong)

    def _changed(self) -> Iterator[Source]:
        for file, (state, digest) in [*self._watched.items()]:
            path = self._folder / file
            if (now := _state(path)) != state:
                self._watched[file] = (now, digest)
                if (other := _digest(path)) != digest:
                    yield Source(file=file, sha256=other)

    def _imported(self) -> Iterator[Source]:
        for name, module in sys.modules.copy().items():
            identity = _identity(module)
            if self._seen.get(name) is identity:
                continue
            self._seen[name] = identity
            file = _fields(module).get("__file__")
            if isinstance(file, str) and not _is_installed(file):
                path = self._folder / file
                if _IMPORTED.get(name, (None,))[0] is not identity:
                    _IMPORTED[name] = (identity, _digest(path, self._since(name, identity, path)))
                yield Source(file=self._name(path), module=name, sha256=_IMPORTED[name][1])

    def _since(self, name: str, identity: object, path: Path) -> float | None:
        """Return the time after which a change of a module's file makes its digest unknown; None if no change does."""
        if self._before.get(name) is not identity:
            return self._began
        return None if _is_compiled(identity, path) else STARTED

    def _name(self, path: str | Path) -> str:
        absolute = self._folder / path
        try:
            return os.path.relpath(absolute, self._folder)
        except ValueError:  # another drive of Windows
            return str(absolute)


def other_checkout(sources: Sources) -> Iterator[str]:
    """Yield a warning if modules were imported from another checkout of the project than the one that is recorded."""
    if files := sources.of_another_checkout():
        names = ", ".join(shorten(file, bounds.NAME) for file in files[: bounds.NAMES])
        advice = "install each checkout in an environment of its own, and record with that"
        yield f"{count(len(files), 'file')} of another checkout of this repository used, such as {names}; {advice}"


def _top(folder: Path) -> Path | None:
    """Return the folder of the repository that has a folder; None if there is none."""
    inside = folder.resolve()
    return next((above for above in (inside, *inside.parents) if os.path.lexists(above / ".git")), None)


def _fields(module: object) -> Mapping[str, Any]:
    """Return the attributes of an entry of ``sys.modules``, without loading a module that is loaded on first use."""
    try:
        fields: Mapping[str, Any] = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}
    return fields


def _identity(module: object) -> object:
    return _fields(module).get("__spec__") or module


def _is_compiled(spec: object, path: Path) -> bool:
    """Return whether Python's compiled file of a module was made from the current source."""
    try:
        header = Path(spec.cached).read_bytes()[4:16]  # type: ignore[attr-defined]
        source = path.stat()
    except (AttributeError, TypeError, OSError):
        return False
    return header == struct.pack("<III", 0, int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF)


def _is_installed(file: str) -> bool:
    on_path = frozenset(sys.path)
    return any(_is_of_an_environment(Path(name(file)).parent, on_path) for name in (os.path.abspath, os.path.realpath))


@functools.lru_cache(maxsize=4096)  # a thousand modules lie in a hundred folders
def _is_of_an_environment(folder: Path, on_path: frozenset[str]) -> bool:
    """Return whether a folder is one of Python's, or of installed packages."""
    if not INSTALLED.isdisjoint(folder.parts) or any(map(folder.is_relative_to, KNOWN)):
        return True
    # A project may lie in the folder of its environment; Python then imports from that folder.
    return any((above / "pyvenv.cfg").is_file() and str(above) not in on_path for above in (folder, *folder.parents))


def _digest(path: Path, since: float | None = None) -> str | None:
    """Return the digest of a file; None if it cannot be read, or has changed after ``since``."""
    archive = next((folder for folder in path.parents if folder.is_file()), path)  # of a module in a zip file
    try:
        state = archive.stat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > bounds.SOURCE:
            return None
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        state = archive.stat()  # after reading: a change in between counts
    except OSError:
        return None
    return None if since is not None and max(state.st_mtime, state.st_ctime) >= since else digest


def _state(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def refuse_changed_by_others(path: str, data: bytes, environ: Mapping[str, str]) -> None:
    """Raise InputError if a target file uses secrets and a pull request may have changed it.

    A workflow for ``pull_request_target`` has the base branch's secrets, and may have checked out the pull request's
    files. Such a file must be the same as the base branch's.
    """
    if environ.get("GITHUB_EVENT_NAME") != "pull_request_target" or not PLACEHOLDER.search(
        data.decode(errors="replace")
    ):
        return
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 (a link must not be followed)
    # The event's commit is the base branch's; a branch may have been fetched instead.
    base = environ.get("GITHUB_BASE_REF", "")
    commits = [environ.get("GITHUB_SHA", ""), f"refs/remotes/origin/{base}" if base else ""]
    stored = [git(Path(folder), "cat-file", "blob", f"{commit}:./{name}") for commit in commits if commit]
    if not any(blob == data for blob in stored):
        relation = "differs from" if any(blob is not None for blob in stored) else "cannot be compared with"
        why = "a pull request could send them anywhere; check the base branch's file out, or use `pull_request`"
        raise InputError([f"{path}: uses secrets and {relation} the base branch's file in pull_request_target: {why}"])
