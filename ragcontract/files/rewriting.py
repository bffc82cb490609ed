"""Files that are read, changed and written, so that nothing is lost which another program wrote meanwhile.

Commands of ours write in turns. Other programs know nothing of turns, so directly before a file is replaced, it is
compared with what was read.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ragcontract.core.errors import OutputError
from ragcontract.files.locking import turn
from ragcontract.files.writing import PART, Content, is_device, write_files

Digest = bytes


def digest_of(data: bytes) -> Digest:
    """Return what tells one content of a file from another."""
    return hashlib.blake2b(data).digest()


def file_digest(path: str) -> Digest:
    """Return the digest of a file; one that is not there is as if it were empty. Raises OutputError."""
    found = hashlib.blake2b()
    if not is_device(path):
        try:
            with Path(path).open("rb") as file:
                while part := file.read(PART):
                    found.update(part)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise OutputError([f"{path}: cannot be read ({error.strerror or error})"]) from error
    return found.digest()


@contextmanager
def in_turn(path: str) -> Iterator[None]:
    """Keep other commands of ours from writing a file until the block ends; raises OutputError if one does not end."""
    if is_device(path):
        yield
        return
    with turn(Path(path).resolve()):
        yield


def require_unchanged(path: str, read: Digest) -> None:
    """Raise OutputError if a file is not what was ``read`` any more."""
    if file_digest(path) != read:
        changed = "was changed by another program since it was read, so it is not overwritten"
        raise OutputError([f"{path}: {changed}; run the command again to go on from what is in it"])


def rewrite(path: str, content: Content, read: Digest) -> None:
    """Replace a file in turn, whole or not at all, unless it is not what was ``read`` any more; raises OutputError."""
    with in_turn(path):
        write_files({path: content}, before=partial(require_unchanged, path, read))
