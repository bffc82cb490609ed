"""A secret of this user and machine, by which a journal is known to be of one's own.

A journal lies in the workspace, which a pull request can fill: one that somebody else made could have replies that no
model gave, and would tell what is random in the calls to come. So a journal counts only with this key, which is kept
elsewhere; a runner that is new for each job has a new one.
"""

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

SIZE = 32  # bytes


def journal_key(environ: Mapping[str, str]) -> bytes:
    """Return the key, which is made once.

    Where it cannot be kept, it is another one each time: a judging that did not end cannot be gone on with then.
    """
    made = secrets.token_bytes(SIZE)
    with suppress(OSError, RuntimeError):  # no home, or none that can be written
        path = _folder(environ) / "rag-contract" / "judge.key"
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            # Under another name first: who finds it must find all of it.
            new = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with open(descriptor, "wb") as file:  # noqa: PTH123
                    file.write(made)
                os.link(new, path)
            finally:
                new.unlink()
        found = path.read_bytes()
        if len(found) == SIZE and _is_private(path):
            return found
    return made


def _is_private(path: Path) -> bool:
    """Return whether a key is only for this user, as Git leaves no file: where home is a checkout, it may bring one."""
    found = path.lstat()
    if not hasattr(os, "geteuid"):  # Windows
        return True
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077


def _folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for what programs keep, as the XDG Base Directory Specification has it."""
    given = environ.get("XDG_STATE_HOME", "")
    return Path(given) if given.startswith("/") else Path.home() / ".local" / "state"
