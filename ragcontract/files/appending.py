"""Files that grow: on a full disk, no half of a line is left in them."""

from contextlib import suppress
from pathlib import Path


def append(path: Path, data: bytes) -> None:
    """Add data at the end of a file, or make it; all of it or nothing. Raises OSError."""
    is_new = not path.exists()
    with path.open("ab", buffering=0) as file:
        end = path.stat().st_size
        left = memoryview(data)
        try:
            while left:  # a disk that is nearly full takes a part
                left = left[file.write(left) :]
        except BaseException:  # also on an interrupt
            with suppress(OSError):
                file.truncate(end)
                if is_new:
                    path.unlink()
            raise
