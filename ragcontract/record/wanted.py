"""What to record and how, as a user says it."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.nearest import nearest
from ragcontract.core.run import VERSION_FIELDS
from ragcontract.core.text import shorten
from ragcontract.core.version import __version__
from ragcontract.record.golden_questions import Selection
from ragcontract.record.journal import Header, path_beside
from ragcontract.record.loop import Manner
from ragcontract.record.target import Target

OnFailure = Literal["stop", "leave-out", "keep-retrieval"]
TOP = 10
SECONDS = {"s": 1, "min": 60}
# The least and the most of each number.
WHOLE = {
    "top": (1, bounds.RECORDED_TOP),
    "concurrency": (1, bounds.CONCURRENCY),
    "retries": (0, bounds.RETRIES),
    "repeats": (1, bounds.ROUNDS),
    "warmup": (0, bounds.ROUNDS),
    "limit": (1, bounds.RANK),
    "stream_answer_chars": (0, bounds.ANSWER),
}
LEAST_SECONDS = {"timeout": 0.001, "connect_timeout": 0.001, "progress_every_seconds": 0}
NUMBERS = (*WHOLE, *LEAST_SECONDS)


class Wanted(Struct, frozen=True, kw_only=True):
    """What to record, and how; ``out`` is None for a run in memory, ``versions`` win over all that is found.

    The commit is that of ``folder``.
    """

    golden: Sequence[str]
    manner: Manner
    out: str | None = None
    selection: Selection = Selection()
    repeats: int = 1
    warmup: int = 0
    on_failure: OnFailure = "stop"
    versions: Mapping[str, str] = {}
    doc_id: str | None = None
    fresh: bool = False
    folder: Path = Path()

    @property
    def journal(self) -> Path | None:
        """Where the journal is; None for a run in memory."""
        return None if self.out is None else path_beside(Path(self.out))

    def header(self, target: Target, commit: str | None) -> Header:
        """Return what the journal begins with."""
        return Header(
            target=target.name,
            target_sha256=target.sha256,
            git=commit,
            top=self.manner.top,
            repeats=self.repeats,
            tool=__version__,
            doc_id=self.doc_id,
        )


def wrong_numbers(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what is wrong with numbers, by the names of their options; None is not given."""
    wrong = []
    for name, value in given.items():
        if value is None:
            continue
        whole = name in WHOLE
        least, most = WHOLE[name] if whole else (LEAST_SECONDS[name], bounds.CALL_SECONDS)
        is_number = type(value) is int or (not whole and type(value) is float)
        if not is_number or not least <= value <= most:
            expected = "a whole number of" if whole else "seconds,"
            wrong.append((name, f"expected {expected} {least:,} to {most:,}, found {value!r}"))
    return wrong


def rate_of(text: str) -> float | None:
    """Return the calls a second that ``5/s`` or ``300/min`` allows; None if the text is not a rate."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?/ ?(s|min)", text)
    number = float(found[1]) if found else math.nan
    return number / SECONDS[found[2]] if found and 0 < number <= bounds.RATE else None


def wrong_versions(given: Mapping[str, str]) -> list[str]:
    """Return what is wrong with versions that a user chose."""
    wrong = []
    for name, value in given.items():
        if name not in VERSION_FIELDS:
            near = nearest(name, VERSION_FIELDS)
            meant = f"did you mean {near!r}?" if near else f"the versions of a run are {', '.join(VERSION_FIELDS)}"
            wrong.append(f"{shorten(name, bounds.NAME)}: is no version; {meant}")
        elif not 1 <= len(value) <= bounds.ID:
            wrong.append(f"{name}: expected text of 1 to {bounds.ID:,} characters")
    return wrong
