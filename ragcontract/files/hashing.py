"""One read of a file serves both ends: its rows, and its digest."""

import hashlib
import io
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

LARGE = 1 << 19  # bytes; a thread costs what hashing a tenth of that does


class HashingReader(io.RawIOBase):
    """Passes a raw file through, hashing and counting each block.

    Hashing a large file takes as long as decoding it. It needs no interpreter lock, so large blocks are hashed beside
    the decoding, in a thread.
    """

    def __init__(self, raw: io.FileIO, progress: Callable[[int], object]) -> None:
        """Read ``raw``; ``progress`` is told the size of each block."""
        self._file = raw
        self._progress = progress
        self._digest = hashlib.sha256()
        self._thread: threading.Thread | None = None

    def hexdigest(self) -> str:
        """Return the SHA-256 of all that was read."""
        self._wait()
        return self._digest.hexdigest()

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read the next block."""
        count = self._file.readinto(buffer) or 0
        self._wait()  # the blocks before come first
        if count < LARGE or not self._started(bytes(memoryview(buffer)[:count])):
            self._digest.update(memoryview(buffer)[:count])
        self._progress(count)
        return count

    def close(self) -> None:
        """Close the file."""
        self._wait()
        self._file.close()
        super().close()

    def _started(self, block: bytes) -> bool:
        """Start to hash a block beside, unless there may be no further thread."""
        import threading

        thread = threading.Thread(target=self._digest.update, args=(block,))
        with suppress(RuntimeError):
            thread.start()
            self._thread = thread
        return self._thread is not None

    def _wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
