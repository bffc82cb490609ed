"""Records a system from Python: what `rag-contract record` does, as a function."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import get_args

from ragcontract.core.errors import InputError
from ragcontract.http import secrets as of_environment
from ragcontract.record.golden_questions import Selection
from ragcontract.record.loop import Manner
from ragcontract.record.recording import Recording, record
from ragcontract.record.system import Surroundings
from ragcontract.record.target import read_target
from ragcontract.record.wanted import TOP, OnFailure, Wanted, rate_of, wrong_numbers, wrong_versions
from ragcontract.record.watching import Event, Watch

Path = str | os.PathLike[str]


def record_run(
    target: object,
    *,
    golden: Path | Sequence[Path],
    out: Path | None = None,
    top: int = TOP,
    concurrency: int | None = None,
    rate: str | None = None,
    timeout: float = 30,
    connect_timeout: float = 10,
    retries: int = 2,
    repeats: int = 1,
    warmup: int = 0,
    tags: str | Sequence[str] = (),
    queries: str | Sequence[str] = (),
    limit: int | None = None,
    on_failure: OnFailure = "stop",
    versions: Mapping[str, str] | None = None,
    doc_id: str | None = None,
    secrets: str | Sequence[str] = (),
    fresh: bool = False,
    offline: bool = False,
    watch: Watch | None = None,
) -> Recording:
    """Ask a system every golden query, as ``rag-contract record`` does, and return the run.

    ``target`` is a function, an object with ``run``, or text as on the command line. With ``out``, the run is written
    there and ``rows`` of the result is its path; without, ``rows`` has the run itself: both are for ``check(run=…)``.
    The options are those of the command line: ``timeout`` is in seconds, ``rate`` is text such as ``"5/s"``,
    ``secrets`` are names of environment variables. ``watch`` is called with what happens. Raises
    :class:`~ragcontract.InputError` if there is no run because questions failed; those that were answered stay in the
    journal beside ``out``.
    """
    numbers = {
        "top": top,
        "concurrency": concurrency,
        "timeout": timeout,
        "connect_timeout": connect_timeout,
        "retries": retries,
        "repeats": repeats,
        "warmup": warmup,
        "limit": limit,
    }
    wrong = [f"{name}: {problem}" for name, problem in wrong_numbers(numbers)] + wrong_versions(versions or {})
    if rate is not None and rate_of(rate) is None:
        wrong.append(f"rate: expected text such as '5/s' or '300/min', found {rate!r}")
    if on_failure not in get_args(OnFailure):
        wrong.append(f"on_failure: expected {', '.join(map(repr, get_args(OnFailure)))}, found {on_failure!r}")
    if repeats != 1 and out is None:
        wrong.append("repeats: a run in memory has one row a query; name a file with `out`")
    if wrong:
        raise InputError(wrong)
    known = of_environment.named(_several(secrets), os.environ)
    surroundings = Surroundings(
        secrets=known, doc_id=doc_id, seconds=timeout, connect_seconds=connect_timeout, offline=offline
    )
    found = read_target(target, surroundings)
    wanted = Wanted(
        golden=[os.fspath(path) for path in ([golden] if isinstance(golden, str | os.PathLike) else golden)],
        out=None if out is None else os.fspath(out),
        manner=Manner(
            top=top,
            concurrency=concurrency or found.system.concurrency,
            seconds=timeout,
            retries=retries,
            rate=None if rate is None else rate_of(rate),
        ),
        selection=Selection(tags=_several(tags), ids=_several(queries), limit=limit),
        repeats=repeats,
        warmup=warmup,
        on_failure=on_failure,
        versions=versions or {},
        doc_id=doc_id,
        fresh=fresh,
        folder=FilePath(),
    )
    recording = record(wanted, found, secrets=known, watch=watch or _ignore)
    if recording.error is not None:
        raise recording.error
    return recording


def _several(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else [*given]


def _ignore(_: Event) -> None:
    """Watch nothing."""
