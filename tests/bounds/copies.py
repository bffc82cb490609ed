"""Limits on what is copied to be recorded."""

import shutil

from ragcontract.core.errors import InputError
from ragcontract.record.adapters.chroma import copied
from tests.bounds.lab import Case, Cases, Lab


def a_folder_of_chroma(lab: Lab, size: int) -> bool:
    folder = lab.folder / "db"
    (folder / "index").mkdir(parents=True, exist_ok=True)
    (folder / "chroma.sqlite3").write_bytes(b"x" * 10)
    (folder / "index" / "data.bin").write_bytes(b"x" * (size - 10))
    try:
        copy = copied(folder)
    except InputError as error:
        return "too large to copy" not in str(error)
    shutil.rmtree(copy)
    return True


CASES: Cases = {"CHROMA_COPY": Case(a_folder_of_chroma, small=1_000)}
