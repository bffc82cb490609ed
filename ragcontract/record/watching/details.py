"""The details of a recording, which a run has no fields for: what was asked, how often, how long it took, what failed.

They hold an entry for every question, so these are kept in a file until the document is written.
"""

import platform
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from ragcontract.core import bounds
from ragcontract.core.version import __version__
from ragcontract.files.temporary import temporary_file, unwritable_temporary
from ragcontract.http.secrets import NO_SECRETS, Secrets
from ragcontract.record.git_commit import Commit
from ragcontract.record.returned.plain_values import as_json, plain, printable
from ragcontract.record.target import Target
from ragcontract.record.watching.package_versions import packages
from ragcontract.record.watching.recording_events import Case, End, Event, Start
from ragcontract.statistics.latency import nearest_rank


class Details:
    """Watches a recording; afterwards, ``document`` is what `--details` writes."""

    def __init__(self, target: Target, *, secrets: Secrets = NO_SECRETS, commit: Commit | None = None) -> None:
        """Begin; ``commit`` is what is checked out."""
        self._target = target
        self._secrets = secrets
        self._commit = commit
        self._began = datetime.now(UTC)
        self._start: Start | None = None
        self._end: End | None = None
        self._times = array("d")
        self._failures: list[dict[str, Any]] = []
        self._counts: Counter[str] = Counter()
        self._usage: Counter[str] = Counter()
        self._models: Counter[str] = Counter()
        self._cases = temporary_file()

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        match event:
            case Start():
                self._start = event
            case Case():
                self._case(event)
            case End():
                self._end = event
            case _:
                pass

    def document(self) -> Iterator[bytes]:
        """Yield the document as JSON, part by part; call it after the last question, before the teardown."""
        head = msgspec.json.format(as_json(self._secrets.redacted(plain(self._head()))), indent=2)
        yield printable(head).rstrip().removesuffix(b"}").rstrip() + b',\n  "cases": ['
        self._cases.seek(0)
        first = True
        for line in self._cases:
            yield (b"\n    " if first else b",\n    ") + line.rstrip()
            first = False
        yield b"\n  ]\n}\n"

    def close(self) -> None:
        """Remove the temporary file."""
        with suppress(OSError):  # of what it could not take, nothing is wanted any more
            self._cases.close()

    def _case(self, case: Case) -> None:
        self._counts["asked"] += 1
        self._counts["failed"] += not case.ok
        self._counts["needed_more_than_one_attempt"] += case.attempts > 1
        entry: dict[str, Any] = {"query_id": case.query_id, "repeat": case.repeat, "ok": case.ok}
        entry |= {"ms": round(case.ms, 3), "attempts": case.attempts}
        if case.response is not None:
            self._times.append(case.ms)
            entry |= self._of_response(case)
        elif case.failure is not None and len(self._failures) < bounds.DETAILED_FAILURES:
            self._failures.append({"query_id": case.query_id, "repeat": case.repeat, **plain(case.failure)})
        try:
            self._cases.write(printable(as_json(self._secrets.redacted(entry))) + b"\n")
        except OSError as error:
            raise unwritable_temporary(error) from error

    def _of_response(self, case: Case) -> dict[str, Any]:
        response = case.response
        if response is None:
            return {}
        if response.llm_model is not None:
            self._models[response.llm_model] += 1
        if response.error is not None:
            self._counts["with_error"] += 1
        usage = plain(response.usage or {})
        self._usage.update({name: value for name, value in usage.items() if type(value) in {int, float}})
        found = {"usage": usage or None, "metadata": plain(response.metadata), "error": response.error}
        return {name: value for name, value in found.items() if value is not None}

    def _head(self) -> dict[str, Any]:
        commit, end, start = self._commit, self._end, self._start
        counts = {
            "wanted": start.total if start else None,
            "kept_from_before": start.kept if start else None,
            **{name: self._counts[name] for name in ("asked", "failed", "with_error", "needed_more_than_one_attempt")},
            "attempts_repeated": end.retried if end else None,
        }
        facts = _told(self._target.system.facts)
        return {
            "details": 1,
            "tool": {"name": "rag-contract", "version": __version__},
            "began_at": self._began.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "ended_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "target": {"name": self._target.name, "sha256": self._target.sha256},
            "git": {"sha": commit.sha, "dirty": commit.dirty} if commit else None,
            "python": platform.python_version(),
            "packages": facts.pop("packages", None) or packages(),
            "versions": _told(self._target.system.versions),
            **facts,
            "counts": counts,
            "written": end.written if end else False,
            "failures_by_kind": dict(end.failures) if end else {},
            "latency_ms": latency(self._times),
            "models": dict(self._models.most_common(bounds.NEAR_COMPARED)),
            "usage": dict(self._usage),
            "failures": self._failures,
            "more_failures": max(0, self._counts["failed"] - len(self._failures)),
        }


def _told(ask: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a system says; nothing if its code fails, which the recording itself warns of."""
    try:
        return dict(ask())
    except (Exception, SystemExit):  # noqa: BLE001 (users' code; the run is written already)
        return {}


def latency(times: "array[float]") -> Mapping[str, float] | None:
    """Return the time of the first question, which often pays for what is loaded, and percentiles of the others.

    None if there was no response.
    """
    if not times:
        return None
    rest = sorted(times[1:])
    if not rest:
        return {"first": round(times[0], 3)}
    found = {f"p{percent}": nearest_rank(rest, percent) for percent in (50, 95, 99)} | {"max": rest[-1]}
    return {name: round(value, 3) for name, value in {"first": times[0], **found}.items()}
