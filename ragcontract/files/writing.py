"""Writes files: all of them or none, and never over an input; also temporary files, files that grow, and JSON.

Each file is written under a temporary name in its folder and then renamed, so a reader never sees a partial file, and a
failure leaves the old one unchanged. If the disk is full, a file that grows is not left with half of a line. JSON that
people compare is indented, with long lists one item per line, and written in parts.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from ragcontract.core.errors import OutputError
from ragcontract.core.lines import Line
from ragcontract.core.safe_text import printable_json, printable_xml

TEMPFILE: Line[Any] = Line(home="tempfile")  # slow to import, and few commands need it
STDOUT, STDERR = 1, 2
PART = 1 << 20  # bytes that are copied at once
Content = bytes | Iterable[bytes]
Output = str | os.PathLike[str]
AnyOutput = TypeVar("AnyOutput", bound=Output)

# The items of fields that are lists, or the lists within fields that are objects.
Lists: TypeAlias = Mapping[str, "Iterable[object] | Lists"]


def write_files(contents: Mapping[AnyOutput, Content], before: Callable[[], None] = lambda: None) -> list[Path]:
    """Write all files or none, and return their paths. Content in parts is written part by part.

    Raises :class:`OutputError`. Missing folders are created, links are followed. Devices such as ``/dev/stdout`` are
    written to directly, after all files have been staged on disk. ``before`` is called when all is staged. If it
    raises, nothing is changed.
    """
    devices = [output for output in contents if is_device(output)]
    files = [output for output in contents if output not in devices]
    staged: dict[AnyOutput, _Staged] = {}
    current: Output = ""
    try:
        for output in files:
            current = output
            staged[output] = _Staged(Path(output).resolve(), contents[output])
        before()
        for output in devices:
            current = output
            _write_device(output, contents[output])
        for current, file in staged.items():  # noqa: B007 (current is used in the message below)
            file.put_in_place()
    except BaseException as error:  # also on an interrupt, remove the temporary files
        for file in reversed(staged.values()):
            file.undo()
        if isinstance(error, OSError):
            raise OutputError([f"{current}: cannot be written ({error.strerror or error})"]) from error
        raise
    for file in staged.values():
        file.forget_the_old()
    return [file.path for file in staged.values()]


class _Staged:
    """A file written under a temporary name, to be moved to its path or discarded."""

    def __init__(self, path: Path, content: Content) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._old: Path | None = None
        self._temporary = beside(path)
        self._is_in_place = False
        try:
            with self._temporary.open("xb") as file:
                take_after(self._temporary, path)
                file.writelines(_parts(content))
        except BaseException:
            self._temporary.unlink(missing_ok=True)
            raise

    def put_in_place(self) -> None:
        if self.path.exists():
            self._old = beside(self.path)
            _second_name(self.path, self._old)
        self._temporary.replace(self.path)
        self._is_in_place = True

    def undo(self) -> None:
        with suppress(OSError):
            if not self._is_in_place:
                self._temporary.unlink()
            elif self._old is None:
                self.path.unlink()
            else:
                self._old.replace(self.path)
        self.forget_the_old()

    def forget_the_old(self) -> None:
        if self._old is not None:
            with suppress(OSError):
                self._old.unlink()


def check_outputs(outputs: Iterable[Output], inputs: Iterable[Output]) -> list[str]:
    """Return the problems with the paths to write to, before any work is done."""
    problems = []
    taken = {_identity(Path(path)): "an input" for path in inputs}
    for output in outputs:
        if problem := _not_writable(output):
            problems.append(f"{str(output) or repr('')}: {problem}")
        elif use := taken.get(_identity(Path(output))):
            problems.append(f"{output}: is {use}; write to another file")
        elif os.fspath(output) != os.devnull:
            taken[_identity(Path(output))] = "another output"
    return problems


def check_existing(outputs: Iterable[str]) -> list[str]:
    """Return a problem for each file that exists already, broken links included. Devices may be written to."""
    return [
        f"{output}: exists already; use --force to overwrite it"
        for output in outputs
        if os.path.lexists(output) and not is_device(output)
    ]


def wrong_unless_named(output: str) -> str | None:
    """Return why nothing is written to a path that nobody named, such as a default; None if it may be written.

    Whoever adds files to a folder, as a pull request does, could make such a path lead to any other file. Links in its
    folders count, too. Hard links do not, because the file is replaced and the other name keeps the old content.
    """
    steps = (Path(output), *Path(output).parents)
    link = next((step for step in steps if os.path.islink(step)), None)  # noqa: PTH114 (raises where none may look)
    if link is not None:
        return f"is {'' if link == steps[0] else f'behind {link}, which is '}a symbolic link, which nobody named"
    return "is not a regular file, and nobody named it" if is_device(output) else None


def refuse_existing(outputs: Iterable[str]) -> None:
    """Raise OutputError if one of the files exists already."""
    if problems := check_existing(outputs):
        raise OutputError(problems)


def goes_to_a_stream(output: str) -> bool:
    """Return whether a path is a standard stream of this process, or the terminal itself."""
    return descriptor_of(output) in {STDOUT, STDERR} or output == "/dev/tty"


def goes_to_stdout(output: str) -> bool:
    """Return whether a path is the standard output of this process."""
    return descriptor_of(output) == STDOUT


def is_device(output: Output) -> bool:
    """Return whether a path exists and is neither a file nor a folder, or is a standard stream."""
    path = Path(output)
    return descriptor_of(output) is not None or (path.exists() and not path.is_file() and not path.is_dir())


def descriptor_of(output: Output) -> int | None:
    """Return the descriptor of this process that a path such as ``/dev/stdout`` means; None for other paths."""
    name = os.fspath(output)
    if name in {"/dev/stdout", "/dev/stderr"}:
        return STDOUT if name == "/dev/stdout" else STDERR
    match = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", name)
    return int(match[1]) if match else None


def append(path: Path, data: bytes) -> None:
    """Append data to a file, all of it or nothing; create the file if it is missing. Raises OSError."""
    is_new = not path.exists()
    with path.open("ab", buffering=0) as file:
        end = path.stat().st_size
        left = memoryview(data)
        try:
            while left:  # a disk that is nearly full takes only a part
                left = left[file.write(left) :]
        except BaseException:  # also on an interrupt
            with suppress(OSError):
                file.truncate(end)
                if is_new:
                    path.unlink()
            raise


def temporary_file() -> IO[bytes]:
    """Open a file that is gone when it is closed; raises OutputError."""
    try:
        return TEMPFILE.load().TemporaryFile()  # type: ignore[no-any-return]
    except OSError as error:
        raise unwritable_temporary(error) from error


def unwritable_temporary(error: OSError) -> OutputError:
    """Return the error for a temporary file that cannot be written."""
    return OutputError([f"a temporary file: cannot be written ({error.strerror or error}); TMPDIR says where"])


def document(record: Struct, lists: Lists) -> Iterator[bytes]:
    """Yield the record as indented JSON; ``lists`` has the items of the fields that are written one item per line."""
    yield from _object(msgspec.json.encode(record), lists, b"\n")
    yield b"\n"


def _object(json: bytes, lists: Lists, margin: bytes) -> Iterator[bytes]:
    """Yield an object, its fields indented by two blanks from the ``margin``, which begins with a line break."""
    inner = margin + b"  "
    before = b"{"
    for name, value in msgspec.json.decode(json, type=dict[str, msgspec.Raw]).items():
        yield before + inner + msgspec.json.encode(name) + b": "
        within = lists.get(name)
        if within is None:
            yield msgspec.json.format(bytes(value), indent=2).replace(b"\n", inner)  # never in a string
        elif isinstance(within, Mapping):
            yield from _object(bytes(value), within, inner)
        else:
            yield from _rows(within, inner)
        before = b","
    yield margin + b"}"


def _rows(items: Iterable[object], margin: bytes) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    before = b"[" + margin + b"  "
    for item in items:
        yield before + encode(item)
        before = b"," + margin + b"  "
    yield margin + b"]" if before.startswith(b",") else b"[]"


def beside(path: Path) -> Path:
    """Return a temporary path in the same folder."""
    # Does not contain the file's own name, which may already have the maximum length.
    return path.with_name(f".rag-contract-{os.urandom(8).hex()}.tmp")


def _second_name(path: Path, other: Path) -> None:
    """Give a file a second name, or copy it part by part where there are no hard links."""
    try:
        other.hardlink_to(path)
    except OSError:
        with path.open("rb") as source, other.open("xb") as target:
            while part := source.read(PART):
                target.write(part)
        take_after(other, path)


def take_after(new: Path, old: Path) -> None:
    """Give a new file the mode and, if permitted, the owner of the file that it replaces."""
    with suppress(FileNotFoundError):
        status = old.stat()
        with suppress(OSError, AttributeError):  # Windows has no such function
            os.chown(new, status.st_uid, status.st_gid)
        new.chmod(stat.S_IMODE(status.st_mode))


def _write_device(output: Output, content: Content) -> None:
    descriptor = descriptor_of(output)
    # Opening it by name would truncate a standard output that is redirected to a file.
    with Path(output).open("wb") if descriptor is None else os.fdopen(os.dup(descriptor), "wb") as stream:
        stream.writelines(_printable(_parts(content)))


def _printable(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield JSON or XML with everything escaped that would act on a terminal or a CI runner; other text is unchanged.

    It stays equal as JSON or XML. Reports that are plain text have nothing that acts, wherever they are written.
    """
    escape: Callable[[str], str] = str
    for number, part in enumerate(parts):
        if number == 0:
            escape = {b"{": printable_json, b"<": printable_xml}.get(part[:1], str)
        yield part if escape is str else escape(part.decode()).encode()


def _parts(content: Content) -> Iterable[bytes]:
    return [content] if isinstance(content, bytes) else content


def _not_writable(output: Output) -> str | None:
    if not str(output):
        return "is an empty path; name a file"
    if str(output).endswith(("/", os.sep)):
        return "is a folder; name a file in it"
    try:
        if (descriptor := descriptor_of(output)) is not None:
            os.fstat(descriptor)
            return None
        return _not_writable_file(Path(output).resolve())
    except RuntimeError:  # until Python 3.12; from 3.13 on, using the path raises OSError
        return "cannot be written (a link that leads to itself)"
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        return f"cannot be written ({getattr(error, 'strerror', None) or error})"


def _not_writable_file(path: Path) -> str | None:
    if path.is_dir():
        return "is a folder; name a file in it"
    if path.exists():
        if not os.access(path, os.W_OK):
            return "cannot be written (Permission denied)"
        if not path.is_file():
            return None
    folder = next(parent for parent in path.parents if parent.exists())
    if not folder.is_dir():
        return f"cannot be written: {folder} is a file, not a folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"cannot be written (Permission denied in {folder})"
    return None


def _identity(path: Path) -> tuple[int, int] | Path:
    """Identify a file by device and inode, so that links and different spellings of its path are recognized."""
    try:
        status = path.stat()
    except OSError:
        return Path(os.path.realpath(path))  # Path.resolve() refuses a link to itself
    return status.st_dev, status.st_ino
