"""The records of the history: an entry, which sums up a check, and its result set, which can serve as a baseline.

An entry is a small JSON document that never changes. Its result set has the queries of the baseline that the run would
make, one a line, sorted by id; equal result sets are one file, named by its digest. Neither has a text of the
application or of its documents. Entries are input like any file: their size, nesting, name and fields are checked.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.metric import Direction, Scale
from ragcontract.core.run import Latency
from ragcontract.core.safe_text import shorten
from ragcontract.decision.gate_report import Status
from ragcontract.evaluation.past import day_of
from ragcontract.files.json_lines import UNDECODABLE
from ragcontract.files.json_text import check_nesting
from ragcontract.report.history_report import COMMIT_DIGITS, RunMean
from ragcontract.report.record import Provenance
from ragcontract.runs.baseline_file import StoredHead, Tool

SCHEMA_VERSION: Literal[1] = 1
DEFAULT_FOLDER = "_default"  # of the contract without a name
_ID = re.compile(r"(\d{4})(\d\d)\d\dT\d{6}Z-([0-9a-f]{12})-([0-9]{1,18}|[0-9a-f]{12})-([0-9]{1,9})", re.ASCII)
SHORT_COMMIT = COMMIT_DIGITS  # as reports show a commit
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)
DIGEST_DIGITS = 12  # of the report's digest, in the ids of checks outside GitHub Actions
NO_COMMIT = "0" * 12
NO_TIME = "is not a time with a time zone, such as 2026-11-21T20:30:00+00:00"

Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Meta(ge=0)]


class Origin(Provenance, frozen=True, kw_only=True):
    """The repository, the commit and the CI job of a recorded check."""

    event: Annotated[str | None, Meta(description="The event that started the CI job, such as push.")] = None
    run_id: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="The workflow run; null outside GitHub Actions.")
    ] = None
    run_attempt: Annotated[int, Meta(ge=1)] = 1
    dirty: Annotated[bool, Meta(description="Files that git tracks were changed, so the commit is not what ran.")] = (
        False
    )


class Digests(Struct, frozen=True, kw_only=True):
    """The digests of the files of an input, in order."""

    sha256: list[str]


class GoldenDigests(Digests, frozen=True, kw_only=True):
    """The golden files, and how many queries they have."""

    queries: Count
    answerable: Count


class BaselineDigest(Struct, frozen=True, kw_only=True):
    """The baseline: a file, or an entry of the history."""

    sha256: str
    created_at: str | None
    entry: Annotated[str | None, Meta(description="The id of the entry that was the baseline.")] = None


class EntryInputs(Struct, frozen=True, kw_only=True):
    """The inputs of the check, by their digests."""

    golden: GoldenDigests
    run: Digests
    config: Digests | None = None
    baseline: BaselineDigest | None = None


class EntryMetric(Struct, frozen=True, kw_only=True):
    """The mean of a metric over all queries that have it."""

    label: str
    value: RunMean | None
    k: int | None = None
    better: Direction = "higher"
    scale: Scale = Scale()
    status: Status


class EntryGate(Struct, frozen=True, kw_only=True):
    """A limit as it was that day, and what was compared with it."""

    id: str
    metric: str | None = None
    kind: str
    tag: str | None = None
    limit: float | str | None = None
    observed: float | None = None
    now: float | None = None
    before: float | None = None
    status: str
    waived: str | None = None


class EntryBroken(Struct, frozen=True, kw_only=True):
    """How many queries are broken."""

    queries: Count
    new: Count
    in_baseline: Count


class ResultsFile(Struct, frozen=True, kw_only=True):
    """The result set: which file, and its size."""

    sha256: Digest
    queries: Count
    bytes: Count


class Entry(Struct, frozen=True, kw_only=True, dict=True):
    """A recorded check. Unknown fields are ignored."""

    schema_version: Literal[1] = SCHEMA_VERSION
    id: Annotated[str, Meta(description="The time, the commit, the workflow run and its attempt.")]
    contract: Annotated[str, Meta(description="The name of the contract; empty without one.")]
    created_at: str
    source: Origin
    tool: Tool
    verdict: Literal["pass", "fail"]
    accepted: Annotated[bool, Meta(description="A label accepted that the contract is broken.")] = False
    summary: str
    inputs: EntryInputs
    metrics: dict[str, EntryMetric]
    gates: list[EntryGate]
    broken: EntryBroken
    failed: Annotated[
        list[str], Meta(max_length=bounds.ENTRY_FAILED, description="The queries that fail; the first 1,000.")
    ]
    tolerated: Annotated[
        list[str],
        Meta(
            max_length=bounds.ENTRY_FAILED,
            description="Broken queries that do not fail by themselves: known, waived and such; the first 1,000.",
        ),
    ] = []
    pass_rate: float | None = None
    latency: Latency | None = None
    head: Annotated[StoredHead, Meta(description="The head of the baseline that this run would make.")]
    retrieval: Annotated[Digest, Meta(description="A digest of the ids of documents that each query returned.")]
    results: ResultsFile | None
    no_results: Annotated[str | None, Meta(description="Why there is no result set.")] = None

    @property
    def commit(self) -> str | None:
        """The commit that was checked."""
        return self.source.commit

    @property
    def passed(self) -> bool:
        """True if the run passed by itself: no label accepted it, and its commit is what ran."""
        return self.verdict == "pass" and not self.accepted and not self.source.dirty

    @property
    def state(self) -> str:
        """The verdict, and why a pass does not count."""
        state = f"{self.verdict}, accepted by a label" if self.accepted else self.verdict
        return f"{state}, from a dirty working tree" if self.source.dirty else state

    @property
    def day(self) -> date:
        """The day of the check, UTC."""
        return day_of(self.created_at)

    @cached_property
    def broken_ids(self) -> frozenset[str]:
        """The broken queries, whether they fail or not; see :attr:`lists_all_broken`."""
        return frozenset((*self.failed, *self.tolerated))

    @property
    def lists_all_broken(self) -> bool:
        """True if a query that is not among the broken ones held; False if the lists are cut."""
        listed = len(self.failed) + len(self.tolerated)
        return listed >= self.broken.queries and max(len(self.failed), len(self.tolerated)) < bounds.ENTRY_FAILED

    def lacks_for_baseline(self) -> Iterator[str]:
        """Yield why the run cannot be a baseline, whatever its verdict."""
        if self.no_results:
            yield f"it has no result set: {self.no_results}"
        if self.source.commit is None:
            yield "its commit is not known"
        if self.source.branch is None:
            yield "its branch is not known; name it with --branch"
        if self.source.dirty:
            yield "it is from a dirty working tree, so it does not count as a pass"

    def is_of_run(self, run_id: int | None) -> bool:
        """Return whether a workflow run recorded it; False outside GitHub Actions."""
        return run_id is not None and self.source.run_id == run_id


class NewEntry(Struct, frozen=True, kw_only=True):
    """An entry to be stored, and its result set, encoded.

    ``badge`` has the files of the contract's badge by path; it is empty if the entry is not of the default branch.
    ``report`` and ``golden`` are what only a team service keeps; ``left_out`` says why it does not get them,
    and what else is wrong.
    """

    entry: Entry
    content: bytes
    results: bytes | None = None
    badge: Mapping[str, bytes] = {}
    default_branch: bool = False  # it is of the default branch, and of a commit
    report: bytes | None = None
    golden: bytes | None = None
    left_out: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return entry_path(folder_of(self.entry.contract), self.entry.id)

    @property
    def end_of_name(self) -> str:
        """The end of the names of all entries of its CI run and attempt; empty outside of CI."""
        source = self.entry.source
        return f"-{source.run_id}-{source.run_attempt}.json" if source.run_id else ""

    def badge_beside(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """Return the badge unless another run is newer; ``names`` are those of the files in the entry's folder."""
        ids = filter(None, map(EntryId.of_file, (*names, self.path.rpartition("/")[2])))
        return self.badge if self.badge and self.entry.id in [each.id for each in last_attempts(ids)[:1]] else {}


def folder_of(contract: str) -> str:
    """Return the name of a contract's folder: the name itself if it is plain, else letters of it and a digest."""
    if contract in {"", DEFAULT_FOLDER}:  # which lists of contracts show
        return DEFAULT_FOLDER
    if re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,59}", contract):
        return contract
    plain = re.sub("[^a-z0-9]", "", contract.lower())[:40]
    digest = hashlib.sha256(contract.encode(errors="surrogatepass")).hexdigest()
    return f"{plain}-{digest[:8]}"


def is_folder_name(name: str) -> bool:
    """Return whether a folder of a store may be that of a contract."""
    return name == DEFAULT_FOLDER or bool(re.fullmatch(r"[a-z0-9-][a-z0-9._-]{0,59}", name))


def is_month(name: str) -> bool:
    """Return whether a folder has the name of a month, such as 2026-11."""
    return bool(re.fullmatch(r"\d{4}-\d\d", name, re.ASCII))


def is_digest(text: str) -> bool:
    """Return whether a text is a SHA-256 digest in hexadecimal digits."""
    return bool(re.fullmatch(r"[0-9a-f]{64}", text))


class EntryId(Struct, frozen=True, kw_only=True):
    """The parts of an entry's id. Ids sort by time."""

    id: str
    commit: str  # the first 12 hexadecimal digits
    run: str  # the workflow run, or a digest of the report
    attempt: int

    @classmethod
    def of(cls, text: str) -> "EntryId | None":
        """Read an id; returns None if the text is not an id."""
        match = _ID.fullmatch(text)
        if match is None or not 1 <= int(match[2]) <= 12:  # noqa: PLR2004 (months)
            return None
        return cls(id=text, commit=match[3], run=match[4], attempt=int(match[5]))

    @classmethod
    def of_file(cls, name: str) -> "EntryId | None":
        """Read the id in the name of an entry's file; returns None for any other file."""
        return cls.of(name.removesuffix(".json")) if name.endswith(".json") else None

    @property
    def run_id(self) -> int:
        """The workflow run, to compare two runs at one commit; 0 outside GitHub Actions."""
        return 0 if len(self.run) == DIGEST_DIGITS else int(self.run)

    @property
    def month(self) -> str:
        """The name of the entry's folder, such as 2026-11."""
        return f"{self.id[:4]}-{self.id[4:6]}"


def last_attempts(ids: Iterable[EntryId]) -> list[EntryId]:
    """Return ids, newest first, with the last attempt of each run in the place of its first."""
    slots: dict[tuple[str, str], EntryId] = {}
    for entry_id in sorted(ids, key=lambda entry: entry.id):
        key = entry_id.commit, entry_id.run
        if key not in slots or slots[key].attempt < entry_id.attempt:
            slots[key] = entry_id
    return [*reversed(slots.values())]


def new_id(created_at: datetime, commit: str | None, run: str, attempt: int) -> str:
    """Return the id of an entry; ``created_at`` is UTC."""
    return f"{created_at:%Y%m%dT%H%M%SZ}-{(commit or NO_COMMIT)[:12]}-{run}-{attempt}"


def entry_path(folder: str, entry_id: str) -> str:
    """Return the path of an entry in a store; ``entry_id`` must be valid."""
    return f"entries/{folder}/{entry_id[:4]}-{entry_id[4:6]}/{entry_id}.json"


def results_path(sha256: str) -> str:
    """Return the path of a result set in a store; ``sha256`` must be a digest."""
    return f"results/{sha256[:2]}/{sha256}.jsonl"


def encode(entry: Entry) -> bytes:
    """Return an entry as it is stored: JSON that people can read, with a line break at the end."""
    return msgspec.json.format(msgspec.json.encode(entry), indent=1) + b"\n"


class _Version(Struct):
    schema_version: Any = None


class OtherVersionError(Exception):
    """An entry is of a version that this program does not know."""


def decode(data: bytes, path: str) -> Entry:
    """Read an entry that is at ``path`` in a store.

    Raises :class:`OtherVersionError`, or :class:`InputError` if it is faulty or belongs elsewhere.
    """
    if len(data) > bounds.ENTRY:
        raise InputError([f"{path}: is larger than {bounds.ENTRY >> 10:,} KiB, the limit for an entry"])
    try:
        check_nesting(data)
        version = msgspec.json.decode(data, type=_Version).schema_version
        if type(version) is int and version != SCHEMA_VERSION:
            raise OtherVersionError(path)
        entry = msgspec.json.decode(data, type=Entry)
    except UNDECODABLE as error:
        reason = shorten(str(error), bounds.MESSAGE)  # which may quote a value of the entry
        raise InputError([f"{path}: is not an entry of a history ({reason})"]) from error
    known = EntryId.of(entry.id)
    if known is None or entry_path(folder_of(entry.contract), entry.id) != path:
        raise InputError([f"{path}: its id or its contract belongs to another file; entries are never renamed"])
    commit = entry.source.commit
    if (commit or NO_COMMIT)[: len(NO_COMMIT)] != known.commit or (commit is not None and not is_commit(commit)):
        raise InputError([f"{path}: source.commit: is not the commit that its id names"])
    if not is_time(entry.created_at):
        raise InputError([f"{path}: created_at: {NO_TIME}"])
    return entry


def is_time(text: str) -> bool:
    """Return whether a text is a time with a time zone, as entries have it; it can be converted to UTC."""
    try:
        return bool(_TIME.fullmatch(text) and datetime.fromisoformat(text).astimezone(UTC))
    except (ValueError, OverflowError):  # no such day, or in the year 0 or 10000
        return False


def is_commit(text: str) -> bool:
    """Return whether a text is the full id of a commit."""
    return bool(re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text))


def is_commit_start(text: str) -> bool:
    """Return whether a text is the beginning of the id of a commit that is long enough to name it."""
    return bool(re.fullmatch(rf"[0-9a-f]{{{SHORT_COMMIT},64}}", text))


def short_commit(commit: str | None) -> str:
    """Return a commit as git shows it, or zeros if it is not known."""
    return (commit or NO_COMMIT)[:SHORT_COMMIT]


def newest_first(ids: Iterable[EntryId]) -> list[EntryId]:
    """Sort ids by their times."""
    return sorted(ids, key=lambda entry_id: entry_id.id, reverse=True)
