"""What the trials of limits need: a folder with inputs, a stand-in for GitHub, and limits made smaller."""

import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from ragcontract.core import bounds
from tests.builders import Row, golden, run, write_jsonl
from tests.github.standin import GitHub
from tests.process import Ended, rag_contract

NUMBERED = "{:05}"


class Lab(Struct, frozen=True, kw_only=True):
    """A folder, which is the current one, with a stand-in for GitHub and pytest's means to replace things."""

    folder: Path
    github: GitHub
    patch: pytest.MonkeyPatch

    def make_smaller(self, name: str, value: float) -> None:
        """Replace a limit, so that inputs at it are small."""
        self.patch.setattr(bounds, name, value)

    def check(
        self, queries: Sequence[Row] | bytes = (), rows: Sequence[Row] | bytes = (), config: str = "", *more: str
    ) -> Ended:
        """Check a run; one query and its row where none are given."""
        for name, given in (("golden.jsonl", queries or [golden()]), ("current_run.jsonl", rows or [run()])):
            path = self.folder / name
            if isinstance(given, bytes):
                path.write_bytes(given)
            else:
                write_jsonl(path, given)
        (self.folder / "ragcontract.yml").write_text(config or "k: 5\n")
        return rag_contract("check", *more)

    def report(self) -> dict[str, Any]:
        """Return what the last check wrote."""
        found: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return found


def accepted(ended: Ended, refusal: str) -> bool:
    """Return whether input was judged; if it was refused, it must be with exit code 2 and for this reason."""
    if ended.code == 2:
        assert refusal in ended.err, ended.err
        return False
    assert ended.code in {0, 1}, ended
    return True


def all_of(*found: bool) -> bool:
    """Return whether something is whole in all its uses; it must be so in all of them, or in none."""
    assert len(set(found)) == 1, found
    return found[0]


def packed(data: bytes, size: int | None = None) -> bytes:
    """Compress data; a file name in the header fills it up to ``size`` bytes."""

    def made(name: str) -> bytes:
        file = io.BytesIO()
        with gzip.GzipFile(name, "wb", fileobj=file, mtime=0) as stream:
            stream.write(data)
        return file.getvalue()

    return made("x") if size is None else made("x" * (size - len(made("x")) + 1))


def row(size: int, **fields: Any) -> bytes:
    """Return a golden row that is padded to ``size`` bytes."""
    return json.dumps(golden(**fields)).encode().ljust(size)


def one_more(value: Any) -> Any:
    """Return the next number after a limit."""
    return value + 1


class Case(Struct, frozen=True):
    """A trial: whether something of a size is accepted, or shown, whole.

    ``small`` is a value for the limit that makes the trial cheap. ``past`` returns a value beyond the limit.
    """

    is_whole: Callable[[Lab, Any], bool]
    small: int | None = None
    past: Callable[[Any], Any] = one_more


Cases = Mapping[str, Case]
