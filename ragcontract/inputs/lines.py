"""Cuts an input file into lines, whatever they hold."""

from collections.abc import Iterator

from ragcontract.inputs.files import UTF8_BOM, InputFile

MAX_LINE_BYTES = 64 << 20
HEAD = 1024  # bytes that tell binary data from text
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


class UnreadableError(Exception):
    """The rest of the file cannot be read as lines; ``lines_on`` counts from the last line that could."""

    def __init__(self, message: str, *, lines_on: int = 0) -> None:
        """Keep the sentence, and how many lines on it is about."""
        super().__init__(message)
        self.lines_on = lines_on


def lines_of(file: InputFile, expected: str) -> Iterator[bytes]:
    """Yield lines of at most ``MAX_LINE_BYTES``, byte order marks taken off.

    Raises :class:`UnreadableError`, which says that ``expected`` ("JSON lines") was, or one of ``READ_ERRORS``.
    """
    head = file.stream.peek(HEAD)[:HEAD]
    if head.startswith(UTF16_BOMS):
        raise UnreadableError("is UTF-16 or UTF-32; save the file as UTF-8", lines_on=1)
    if b"\0" in head:
        raise UnreadableError(f"is binary data; expected {expected} as UTF-8 text, or gzip of them", lines_on=1)
    while line := file.stream.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            raise UnreadableError("the line is longer than 64 MiB", lines_on=1)
        yield line.removeprefix(UTF8_BOM)  # not only of the first: files are put together
