"""Temporary files, and the error of one that cannot be written."""

import tempfile
from typing import IO

from ragcontract.core.errors import OutputError


def temporary_file() -> IO[bytes]:
    """Open a file that is gone when it is closed; raises OutputError."""
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise unwritable_temporary(error) from error


def unwritable_temporary(error: OSError) -> OutputError:
    """Return the error of a temporary file that cannot be written."""
    return OutputError([f"a temporary file: cannot be written ({error.strerror or error}); TMPDIR says where"])
