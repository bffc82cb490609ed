"""Options of a recording as users give them, on the command line and in Python, and what is wrong with them."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.nearest import nearest
from ragcontract.core.numbers import is_within
from ragcontract.core.run import VERSION_FIELDS
from ragcontract.core.text import shorten
from ragcontract.files.anchored_path import AnchoredPath
from ragcontract.http.secrets import Secrets, of_environment, wrong_names
from ragcontract.record.beginning import Beginning, begun
from ragcontract.record.golden_questions import Selection
from ragcontract.record.interface import Surroundings, System
from ragcontract.record.loop.loop import CallSettings
from ragcontract.record.record_settings import OnFailure, RecordSettings
from ragcontract.record.sources import Sources

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


class RecordOptions(Struct, frozen=True, kw_only=True):
    """The options: ``rate`` is text such as ``5/s``, ``secrets`` are names; None is not given."""

    golden: Sequence[str]
    out: str | None = None
    top: int = TOP
    concurrency: int | None = None
    rate: str | None = None
    timeout: float = 30
    connect_timeout: float = 10
    retries: int = 2
    repeats: int = 1
    warmup: int = 0
    tags: Sequence[str] = ()
    queries: Sequence[str] = ()
    limit: int | None = None
    on_failure: OnFailure = "stop"
    versions: Mapping[str, str] = {}
    doc_id: str | None = None
    secrets: Sequence[str] = ()
    fresh: bool = False
    watch_files: Sequence[str] = ()
    offline: bool = False
    isolate: bool = False

    def wrong(self, environ: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return what is wrong, by the names of the fields."""
        numbers = {name: getattr(self, name) for name in self.__struct_fields__ if name in {*WHOLE, *LEAST_SECONDS}}
        found = wrong_numbers(numbers)
        if self.rate is not None and rate_of(self.rate) is None:
            found.append(("rate", f"expected a rate such as 5/s or 300/min, found {self.rate!r}"))
        if self.on_failure not in get_args(OnFailure):
            known = ", ".join(map(repr, get_args(OnFailure)))
            found.append(("on_failure", f"expected {known}, found {self.on_failure!r}"))
        found += [("versions", problem) for problem in wrong_versions(self.versions)]
        return found + [("secrets", problem) for problem in wrong_names(self.secrets, environ)]

    def surroundings(self, environ: Mapping[str, str], sources: Sources) -> Surroundings:
        """Return what a system is made with."""
        return Surroundings(
            sources=sources,
            secrets=self.known(environ),
            doc_id=self.doc_id,
            seconds=self.timeout,
            connect_seconds=self.connect_timeout,
            offline=self.offline,
            isolate=self.isolate,
            environ=environ,
        )

    def known(self, environ: Mapping[str, str]) -> Secrets:
        """Return the secrets."""
        return of_environment(self.secrets, environ)

    def beginning(self, *outputs: AnchoredPath) -> Beginning:
        """Read the questions; call it before any code of the target runs. ``outputs`` are those beside the run.

        Raises InputError or OutputError.
        """
        selection = Selection(tags=self.tags, ids=self.queries, limit=self.limit)
        return begun(self.golden, self.out, selection, watch=self.watch_files, further=outputs)

    def settings(self, beginning: Beginning, system: System) -> RecordSettings:
        """Return what to record of a system."""
        return RecordSettings(
            beginning=beginning,
            calls=CallSettings(
                top=self.top,
                concurrency=self.concurrency or system.concurrency,
                seconds=self.timeout,
                retries=self.retries,
                rate=None if self.rate is None else rate_of(self.rate),
            ),
            repeats=self.repeats,
            warmup=self.warmup,
            on_failure=self.on_failure,
            versions=self.versions,
            doc_id=self.doc_id,
            fresh=self.fresh,
        )


def wrong_numbers(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what is wrong with numbers, by the names of their options; None is not given."""
    wrong = []
    for name, value in given.items():
        if value is None:
            continue
        whole = name in WHOLE
        least, most = WHOLE[name] if whole else (LEAST_SECONDS[name], bounds.CALL_SECONDS)
        if not is_within(value, least, most, whole=whole):
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
