"""Splits an input file into lines of bytes, regardless of their content."""

from collections.abc import Iterator

from ragcontract.core import bounds
from ragcontract.core.numbers import mebibytes
from ragcontract.files.opening import BUFFER, UTF8_BOM, InputFile

HEAD = 1024  # number of bytes examined to detect binary data
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
UTF16 = "is UTF-16 or UTF-32; save the file as UTF-8"
ZIP, PARQUET = b"PK\x03\x04", b"PAR1"


class UnreadableError(Exception):
    """The rest of the file cannot be read as lines; ``lines_on`` is the offset from the last line read."""

    def __init__(self, message: str, *, lines_on: int = 0) -> None:
        """Store the message and the offset of the line that it is about."""
        super().__init__(message)
        self.lines_on = lines_on


def lines_of(file: InputFile, expected: str) -> Iterator[bytes]:
    """Yield lines of at most ``bounds.LINE``, without byte order marks and line feeds.

    Raises :class:`UnreadableError`, with ``expected`` (such as "JSON lines") in the message, or one of ``READ_ERRORS``.
    """
    for lines in line_blocks_of(file, expected):
        for line in lines:
            yield line.removeprefix(UTF8_BOM)  # on any line: files may be concatenated


def line_blocks_of(file: InputFile, expected: str) -> Iterator[list[bytes]]:
    """Yield the lines that end in each block, without line feeds but with byte order marks.

    Raises the same errors as :func:`lines_of`.
    """
    head = file.stream.peek(HEAD)[:HEAD]
    if head.startswith(UTF16_BOMS) or _is_utf_16(head):
        raise UnreadableError(UTF16, lines_on=1)
    if head.startswith(ZIP):
        raise UnreadableError(
            f"is a ZIP archive, as Excel files are too; expected {expected}, or gzip of them", lines_on=1
        )
    if head.startswith(PARQUET):
        raise UnreadableError("is Parquet; give it a name that ends in .parquet", lines_on=1)
    if b"\0" in head:
        raise UnreadableError(f"is binary data; expected {expected} as UTF-8 text, or gzip of them", lines_on=1)
    longest = min(bounds.LINE, file.longest or bounds.LINE)
    begun: list[bytes] = []  # parts of a line that continues in the next block
    while block := file.stream.read1(BUFFER):
        begun.append(block)
        if b"\n" not in block:
            if sum(map(len, begun)) > longest:
                raise _too_long(longest)
            continue
        *lines, rest = b"".join(begun).split(b"\n")
        if len(lines[0]) > longest:
            raise _too_long(longest)
        yield lines
        begun = [rest]
    if last := b"".join(begun):
        yield [last]


def _is_utf_16(head: bytes) -> bool:
    """Return whether the first characters are UTF-16 of JSON, which is mostly ASCII, without a byte order mark."""
    return head[:2] in {b"{\0", b"\0{", b"[\0", b"\0["}


def _too_long(longest: int) -> UnreadableError:
    advice = "" if longest == bounds.LINE else ", which is too much for a gzip file of its size; give it unpacked"
    return UnreadableError(f"the line is longer than {mebibytes(longest)}{advice}", lines_on=1)
