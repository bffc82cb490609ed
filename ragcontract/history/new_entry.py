"""Makes the entry of a check: its report in short, and its run in the form of a baseline."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count, mebibytes
from ragcontract.core.run import SourceFile
from ragcontract.decision.evaluated import Evaluation
from ragcontract.history.badge import badge_files
from ragcontract.history.entry import (
    BaselineDigest,
    Digests,
    Entry,
    EntryBroken,
    EntryGate,
    EntryInputs,
    EntryMetric,
    GoldenDigests,
    NewEntry,
    Origin,
    ResultsFile,
    encode,
    new_id,
)
from ragcontract.history.trend import limited_metrics
from ragcontract.report.baseline import head_of, row_of, stored_queries
from ragcontract.report.record import Report
from ragcontract.runs.baseline_contract import question_digest
from ragcontract.runs.baseline_file import StoredHead

FEW_IDS = 20  # that an entry can always hold


def new_entry(
    report: Report,
    evaluation: Evaluation,
    origin: Origin,
    *,
    report_sha256: str,
    accepted: bool = False,
    private: bool = False,
    default_branch: bool = False,
) -> NewEntry:
    """Return the entry of a check that is whole (see :func:`part_of`), whose evaluation has kept the document ids.

    ``accepted`` says whether a label accepted that the contract is broken. With ``private``, questions are stored as
    digests. Raises :class:`InputError` if its entry is too large.
    ``default_branch`` says whether the check is of that branch, so that the badge shows it.
    """
    created_at = datetime.fromisoformat(report.created_at).astimezone(UTC)
    rows, retrieval = _rows(evaluation, private=private)
    results, why = _results(report, rows)
    run = str(origin.run_id) if origin.run_id else report_sha256[:12]
    entry = Entry(
        id=new_id(created_at, origin.commit, run, origin.run_attempt),
        contract=report.contract,
        created_at=report.created_at,
        source=replace(origin, contract=report.contract or None),
        tool=report.tool,
        verdict=report.verdict,
        accepted=accepted,
        summary=report.summary_line,
        inputs=_inputs(report),
        metrics=_metrics(report),
        gates=[msgspec.convert(msgspec.to_builtins(gate), EntryGate) for gate in report.gates],
        broken=msgspec.convert(report.broken, EntryBroken, from_attributes=True),
        failed=[query.id for query in report.queries if query.status == "fail"][: bounds.ENTRY_FAILED],
        tolerated=[query.id for query in report.queries if query.status not in {"pass", "fail"}][: bounds.ENTRY_FAILED],
        pass_rate=report.pass_rate.rate if report.pass_rate is not UNSET else None,
        latency=report.latency.current if report.latency else None,
        head=msgspec.convert(head_of(evaluation, created_at), StoredHead, from_attributes=True),
        retrieval=retrieval,
        results=results,
        no_results=why,
    )
    default_branch = default_branch and not origin.dirty
    return NewEntry(
        entry=entry,
        content=_fitting(entry),
        results=rows if results else None,
        badge=badge_files(entry, limited_metrics(report)) if default_branch else {},
        default_branch=default_branch,
    )


def part_of(report: Report) -> str | None:
    """Return what is wrong with a check of some tags: only whole checks are recorded. None if it is whole."""
    if report.scope is None:
        return None
    tags = " ".join(f"--tag {tag}" for tag in report.scope.tags)
    return f"covers only part of the contract ({tags}); only whole checks are recorded"


def _fitting(entry: Entry) -> bytes:
    """Return the encoded entry; from one that is too large, the means and the limits of tags are left out first."""
    smaller = iter(
        (
            lambda: replace(entry, head=replace(entry.head, tags={})),
            lambda: replace(entry, gates=[gate for gate in entry.gates if gate.tag is None]),
            lambda: replace(entry, failed=entry.failed[:FEW_IDS], tolerated=entry.tolerated[:FEW_IDS]),
        )
    )
    while len(content := encode(entry)) > bounds.ENTRY:
        make = next(smaller, None)
        if make is None:
            raise InputError([f"its entry would be larger than {bounds.ENTRY >> 10:,} KiB, so it cannot be recorded"])
        entry = make()
    return content


def _rows(evaluation: Evaluation, *, private: bool) -> tuple[bytes, str]:
    """Return the content of the result set, sorted by id, and the digest of what was retrieved."""
    retrieval = hashlib.sha256()
    lines = []
    for query in sorted(stored_queries(evaluation), key=lambda query: query.id):
        retrieval.update(msgspec.json.encode([query.id, query.doc_ids, query.repeats]) + b"\n")
        stored = replace(query, query=question_digest(query.query)) if private else query
        lines.append(msgspec.json.encode(row_of(stored)) + b"\n")
    return b"".join(lines), retrieval.hexdigest()


def _results(report: Report, rows: bytes) -> tuple[ResultsFile | None, str | None]:
    """Return the digest and the sizes of the result set, or why there is none."""
    if missing := report.inputs.run.missing:
        return None, f"the run has no row for {count(len(missing), 'golden query')}"
    if len(rows) > bounds.RESULT_SET:
        return None, f"it would be larger than {mebibytes(bounds.RESULT_SET)}"
    digest = hashlib.sha256(rows).hexdigest()
    return ResultsFile(sha256=digest, queries=report.inputs.golden.queries, bytes=len(rows)), None


def _inputs(report: Report) -> EntryInputs:
    inputs, baseline = report.inputs, report.inputs.baseline
    chosen = report.history.baseline if report.history is not UNSET else None
    return EntryInputs(
        golden=GoldenDigests(
            sha256=_digests(inputs.golden.files),
            queries=inputs.golden.queries,
            answerable=inputs.golden.answerable,
        ),
        run=Digests(sha256=_digests(inputs.run.files)),
        config=Digests(sha256=_digests(inputs.config.files)) if inputs.config else None,
        baseline=BaselineDigest(
            sha256=next(iter(_digests(baseline.files)), ""),
            created_at=baseline.created_at,
            entry=chosen.id if chosen else None,
        )
        if baseline
        else None,
    )


def _digests(files: Sequence[SourceFile]) -> list[str]:
    return [file.sha256 for file in files]


def _metrics(report: Report) -> dict[str, EntryMetric]:
    return {
        key: msgspec.convert(msgspec.to_builtins(metric) | {"value": metric.current}, EntryMetric)
        for key, metric in report.metrics.items()
        if metric.diagnostic is UNSET
    }
