"""Record a system from Python: what `rag-contract record` does, as a function."""

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack, cast

from ragcontract.core.errors import InputError
from ragcontract.core.ids import Path, paths_of, several
from ragcontract.record.adapters.framework import redacting
from ragcontract.record.events import Event, Watch
from ragcontract.record.journal import begun
from ragcontract.record.record_options import OnFailure, RecordOptions
from ragcontract.record.recording import Recording, record
from ragcontract.record.target import read_target

SEVERAL = frozenset({"tags", "queries", "secrets", "watch_files"})  # options that take one or several texts


class RecordKeywords(TypedDict, total=False):
    """The options of the command line, with the same defaults."""

    top: int
    concurrency: int | None
    rate: str | None
    timeout: float
    connect_timeout: float
    retries: int
    repeats: int
    warmup: int
    tags: str | Sequence[str]
    queries: str | Sequence[str]
    limit: int | None
    on_failure: OnFailure
    versions: Mapping[str, str]
    doc_id: str | None
    secrets: str | Sequence[str]
    fresh: bool
    watch_files: str | Sequence[str]
    offline: bool
    isolate: bool


def record_run(
    target: object,
    *,
    golden: Path | Sequence[Path],
    out: Path | None = None,
    watch: Watch | None = None,
    **options: Unpack[RecordKeywords],
) -> Recording:
    """Ask a system every golden query, as ``rag-contract record`` does, and return the run.

    ``target`` is a function, an object with ``run``, or text as on the command line. With ``out``, the run is written
    there and ``rows`` of the result is its path; without it, ``rows`` is the run itself. Pass either to
    ``check(run=…)``. ``watch`` is called with each event.

    The other options are those of the command line: ``top`` (10), ``timeout`` in seconds (30), ``rate`` as text such as
    ``"5/s"``, ``secrets`` as names of environment variables, ``watch_files`` as the patterns of ``--watch``.

    Raises :class:`~ragcontract.InputError` if questions failed, so that there is no run. The answers to the others stay
    in the journal beside ``out``.
    """
    lists = {name: several(cast("str | Sequence[str]", value)) for name, value in options.items() if name in SEVERAL}
    record_options = RecordOptions(
        golden=paths_of(golden),
        out=None if out is None else os.fspath(out),
        **{**options, **lists},  # type: ignore[arg-type]
    )
    wrong = [f"{name}: {problem}" for name, problem in record_options.wrong(os.environ)]
    if record_options.repeats != 1 and out is None:
        wrong.append("repeats: a run in memory has one row a query; name a file with `out`")
    if wrong:
        raise InputError(wrong)
    secrets = record_options.known(os.environ)
    with redacting(secrets):
        beginning = record_options.beginning()
        with begun(beginning.journal):
            resolved_target = read_target(target, record_options.surroundings(os.environ, beginning.sources))
            recording = record(
                record_options.settings(beginning, resolved_target.system),
                resolved_target,
                secrets=secrets,
                watch=watch or _ignore,
            )
        if recording.error is not None:
            raise recording.error
        return recording


def _ignore(_: Event) -> None:
    """Ignore an event."""
