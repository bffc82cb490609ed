"""The history of the service's projects as a store: entries are recorded, and read again byte by byte.

A run, its points and its broken queries are one transaction. A store has the projects that its principal sees, and
nothing else.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NoReturn

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, and_, func, select, true

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.entry import (
    Entry,
    EntryId,
    NewEntry,
    OtherVersionError,
    decode,
    entry_path,
    folder_of,
    is_folder_name,
    is_month,
    newest_first,
)
from ragcontract.history.interface import Added, differs, refuse_shared_run
from ragcontract.report.json_report import decoded
from ragcontract.report.record import Report
from ragcontract.service.accounts import Principal
from ragcontract.service.alerts import alert_of_run
from ragcontract.service.blobs import Kind, Sent, blob, put_blob, require_blob, result_sets_after, visible_blob
from ragcontract.service.database import BIGINT, Database, index_key, now_ms, storable
from ragcontract.service.projects_and_runs import (
    add_project,
    at_commit,
    of_months,
    outdate_trend,
    project_branch,
    project_id,
    seen,
)
from ragcontract.service.tables import broken, points, projects, runs

_TIME_OF_ID = len("20261121T203000Z")
_SECOND = timedelta(seconds=1)  # ids have no parts of it


class Recording(Struct, frozen=True, kw_only=True):
    """What is to be recorded, checked as far as that is possible without the database."""

    new: NewEntry
    text: str  # the entry as it was sent
    report: str | None = None  # the digest of a blob
    golden: str | None = None  # the same
    rules: Mapping[str, list[str]] = {}  # the broken rules by query, if there is a report
    default_branch: bool = False
    without_results: bool = False  # its result set was deleted where it comes from

    @property
    def entry(self) -> Entry:
        return self.new.entry

    @property
    def results(self) -> str | None:
        """The digest of the result set."""
        return self.entry.results.sha256 if self.entry.results and not self.without_results else None


class Recorded(Struct, frozen=True, kw_only=True):
    """The run of an entry, which was there already or is new."""

    run_id: int
    project_id: int
    added: Added


def recording_of(slug: str, content: bytes) -> Recording:
    """Read an entry that a client sends for a project; raises InputError if it belongs to another."""
    try:
        key = msgspec.json.decode(content, type=_Named).id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        key = ""
    path = entry_path(slug, key) if EntryId.of(key) else f"entries/{slug}"
    try:
        entry, text = decode(content, path), content.decode()
    except OtherVersionError as error:
        raise InputError([f"{path}: schema_version: is of another version of rag-contract"]) from error
    except UnicodeDecodeError as error:
        raise InputError([f"{path}: is not UTF-8"]) from error
    numbers = {"run_id": entry.source.run_id, "pull_request": entry.source.pull_request}
    for name, number in (numbers | {"run_attempt": entry.source.run_attempt}).items():
        if number is not None and abs(number) > BIGINT:
            raise InputError([f"{path}: source.{name}: is too large"])
    return Recording(new=NewEntry(entry=entry, content=content), text=text)


class _Named(Struct):
    id: str = ""


def with_rules(recording: Recording, report: bytes | None) -> Recording:
    """Return a recording with the rules that its report says are broken.

    Raises InputError if the report belongs to another check than the entry.
    """
    if report is None:
        return recording
    entry, checked = recording.entry, decoded(report, "report")
    if not isinstance(checked, Report) or (checked.contract, checked.verdict) != (entry.contract, entry.verdict):
        raise InputError(["report: is of another check: its contract or its verdict is not that of the entry"])
    rules = {
        query.id: list(dict.fromkeys(violation.rule for violation in query.violations))
        for query in checked.queries
        if query.violations
    }
    return replace(recording, rules=rules)


def report_of(connection: Connection, recording: Recording, principal: Principal) -> bytes | None:
    """Return the report that a recording names; raises InputError if a blob that it names is missing."""
    if recording.report is None:
        return None
    number = project_id(connection, folder_of(recording.entry.contract)) or 0
    _require(connection, recording, principal, number)
    return blob(connection, recording.report)


def _require(connection: Connection, recording: Recording, principal: Principal, project_id: int) -> None:
    """Raise InputError if a blob that the entry or its sender names is missing."""
    named = ((recording.results, "results", bounds.RESULT_SET), (recording.report, "report", bounds.REPORT))
    for sha256, name, most in (*named, (recording.golden, "golden", bounds.BLOB)):
        if sha256 is not None:
            require_blob(connection, sha256, name, sender=principal.actor, project_id=project_id, most=most)


def record(connection: Connection, recording: Recording, principal: Principal, now: int) -> Recorded:
    """Store an entry in its project, which is created unless it exists; the principal sees the project.

    Raises ConflictError if another entry has its key, or another one is of its CI run and attempt; InputError if a blob
    is missing, or if its time is wrong; ``now`` is the time of the service.
    """
    entry = recording.entry
    project_id = locked_project(connection, entry, now)
    if (existing := _existing(connection, recording, principal, project_id)) is not None:
        return Recorded(run_id=existing, project_id=project_id, added="exists")
    recording = storable_recording(connection, recording, principal, project_id, now)
    row = row_of(recording) | {"project_id": project_id, "origin": "ci", "created_by": principal.actor}
    run_id = connection.execute(runs.insert().values(row).returning(runs.c.id)).scalar_one()
    record_means(connection, recording, project_id, run_id)
    alert_of_run(connection, run_id, now)
    return Recorded(run_id=run_id, project_id=project_id, added="added")


def storable_recording(
    connection: Connection, recording: Recording, principal: Principal, project_id: int, now: int
) -> Recording:
    """Return a recording as it is stored in a project, whose blobs are there; raises as :func:`record` does."""
    _refuse_wrong_time(recording, now)
    refuse_shared_run(recording.new, _names_of_run(connection, project_id, recording.new))
    recording = _with_known_results(connection, recording, principal, project_id)
    _require(connection, recording, principal, project_id)
    return recording


def record_means(connection: Connection, recording: Recording, project_id: int, run_id: int) -> None:
    """Store the means and the broken queries of a run, and what its entry says about its project."""
    entry = recording.entry
    of_run = {"project_id": project_id, "run_id": run_id}
    of_queries = [*broken_of(entry, recording.rules)]
    for table, rows in ((points, [*points_of(entry, milliseconds(entry.created_at))]), (broken, of_queries)):
        if rows:
            connection.execute(table.insert(), [each | of_run for each in rows])
    branch = _text(entry.source.branch)
    if recording.default_branch and branch:
        connection.execute(projects.update().where(projects.c.id == project_id).values(branch=branch))
    if branch == project_branch(connection, project_id):
        outdate_trend(connection, project_id)


def _with_known_results(
    connection: Connection, recording: Recording, principal: Principal, project_id: int
) -> Recording:
    """Return a recording with its result set if that is here already: a copy sends what runs share only once."""
    results = recording.entry.results
    if not recording.without_results or results is None:
        return recording
    try:
        require_blob(
            connection,
            results.sha256,
            "results",
            sender=principal.actor,
            project_id=project_id,
            most=bounds.RESULT_SET,
        )
    except InputError:
        return recording
    return replace(recording, without_results=False)


def _existing(connection: Connection, recording: Recording, principal: Principal, project_id: int) -> int | None:
    """Return the run that has the same entry; it may be sent again with the result set that it lacks."""
    of_key = runs.c.project_id == project_id, runs.c.key == recording.entry.id
    row = connection.execute(select(runs.c.id, runs.c.entry, runs.c.results).where(*of_key)).one_or_none()
    if row is None:
        return None
    if row.entry != recording.text:
        raise differs(recording.new.path)
    if row.results is None and recording.results is not None:
        _require(connection, recording, principal, project_id)
        connection.execute(runs.update().where(runs.c.id == row.id).values(results=recording.results))
        outdate_trend(connection, project_id)
    return int(row.id)


def _refuse_wrong_time(recording: Recording, now: int) -> None:
    """Raise InputError if an entry cannot be of the time that it names; from the future, it would stay the newest."""
    created_at, field = recording.entry.created_at, f"{recording.new.path}: created_at"
    advice = "check the clock of the machine that ran the check, and run it again"
    try:
        apart = datetime.fromisoformat(created_at) - datetime.fromisoformat(recording.entry.id[:_TIME_OF_ID])
    except ValueError as error:
        raise InputError([f"{recording.new.path}: id: does not begin with a time"]) from error
    if abs(apart) > _SECOND:
        raise InputError([f"{field}: is not the time in the id of the entry; send entries as `history add` wrote them"])
    if milliseconds(created_at) > now + bounds.SERVICE_CLOCK_AHEAD * 1000:
        minutes = bounds.SERVICE_CLOCK_AHEAD // 60
        raise InputError([f"{field}: is more than {minutes} minutes in the future; {advice}"])
    if milliseconds(created_at) < 0:
        raise InputError([f"{field}: is before 1970; {advice}"])


def locked_project(connection: Connection, entry: Entry, now: int) -> int:
    """Return the project of an entry, locked: until the transaction ends, no other one records anything in it.

    SQLite has one writer at a time anyway.
    """
    slug, repository = folder_of(entry.contract), _text(entry.source.repository)
    add_project(connection, slug, entry.contract, now, repository=entry.source.repository)
    columns = projects.c.id, projects.c.repository
    query = select(*columns).where(projects.c.slug == slug).with_for_update(key_share=True)
    row = connection.execute(query).one()
    if row.repository is None and repository is not None:  # it was mounted, or made for a key
        connection.execute(projects.update().where(projects.c.id == row.id).values(repository=repository))
    return int(row.id)


def _names_of_run(connection: Connection, project_id: int, new: NewEntry) -> list[str]:
    """Return the names that the month's entries of the same CI run and attempt have in other stores."""
    if not new.end_of_name:
        return []
    month = new.entry.id[:6]
    of_run = of_months([month]), runs.c.key.endswith(new.end_of_name.removesuffix(".json"))
    keys = connection.execute(select(runs.c.key).where(runs.c.project_id == project_id, *of_run)).scalars()
    return [f"{key}.json" for key in keys]


def milliseconds(created_at: str) -> int:
    """Return a time of an entry as the database stores it."""
    return round(datetime.fromisoformat(created_at).timestamp() * 1000)


def row_of(recording: Recording) -> dict[str, Any]:
    """Return what the row of a run has of its entry."""
    entry = recording.entry
    created_at = milliseconds(entry.created_at)
    return columns_of(entry) | {
        "state": "completed" if entry.verdict == "pass" else "blocked",
        "created_at": created_at,
        "finished_at": created_at,
        "entry": recording.text,
        "report": recording.report,
        "results": recording.results,
        "golden": recording.golden,
    }


def columns_of(entry: Entry) -> dict[str, Any]:
    """Return what the row of a run has from its entry, to look for runs by it."""
    source = entry.source
    return {
        "key": entry.id,
        "commit_sha": source.commit,
        "branch": _text(source.branch),
        "event": _text(source.event),
        "pull_request": source.pull_request,
        "ci_run": source.run_id,
        "ci_attempt": source.run_attempt if source.run_id else None,
        "verdict": entry.verdict,
        "summary": storable(entry.summary),
    }


def _text(text: str | None) -> str | None:
    return None if text is None else storable(text)


def points_of(entry: Entry, at: int) -> Iterator[dict[str, Any]]:
    """Yield the means of all metrics, over all queries and by tag, each once."""
    means: dict[tuple[str, str], tuple[float | None, str | None]] = {}
    for key, mean in entry.metrics.items():
        means[index_key(key), ""] = mean.value, mean.status
    for tag, values in entry.head.tags.items():
        for key, value in values.items():
            means.setdefault((index_key(key), index_key(tag)), (value, None))
    for (metric, tag), (value, status) in means.items():
        yield {"metric": metric, "tag": tag, "at": at, "value": value, "status": status}


def broken_of(entry: Entry, rules: Mapping[str, list[str]]) -> Iterator[dict[str, Any]]:
    """Yield the broken queries that an entry lists, each once, with their broken rules."""
    ids = {index_key(query): query for query in (*entry.tolerated, *entry.failed)}
    for key, query in ids.items():
        yield {"query_id": key, "rules": msgspec.json.encode(rules.get(query, [])).decode()}


KEPT = "the service keeps result sets as long as their runs"


class DatabaseStore:
    """A :class:`~ragcontract.history.interface.Store`: the history of the projects that a principal sees.

    With ``commit``, the beginning of a commit, the store has only the entries at that commit; an index finds them.
    """

    name = "the service"

    def __init__(self, database: Database, principal: Principal, *, commit: str = "") -> None:
        self._database = database
        self._principal = principal
        self._at = at_commit(commit) if commit else true()

    def contracts(self) -> list[str]:
        with self._database.read() as connection:
            return sorted(connection.execute(select(projects.c.slug).where(seen(self._principal))).scalars())

    def months(self, contract: str) -> list[str]:
        if not is_folder_name(contract):
            return []
        query = select(func.substr(runs.c.key, 1, 6)).where(self._of(contract)).distinct()
        with self._database.read() as connection:
            starts = [*connection.execute(query).scalars()]
        return sorted(filter(is_month, (f"{start[:4]}-{start[4:]}" for start in starts)), reverse=True)

    def ids(self, contract: str, months: Sequence[str]) -> list[EntryId]:
        return self.ids_before(contract, months)

    def ids_before(
        self, contract: str, months: Sequence[str], *, before: str | None = None, limit: int | None = None
    ) -> list[EntryId]:
        """Return the newest ids in these months, of those that are older than an id."""
        if not is_folder_name(contract):
            return []
        wanted = self._of(contract), of_months(month.replace("-", "") for month in filter(is_month, months))
        query = select(runs.c.key).where(*wanted).order_by(runs.c.key.desc()).limit(limit)
        with self._database.read() as connection:
            keys = connection.execute(query if before is None else query.where(runs.c.key < before)).scalars()
            return newest_first(filter(None, map(EntryId.of, keys)))

    def read(self, contract: str, ids: Sequence[EntryId]) -> dict[str, bytes]:
        if not is_folder_name(contract):
            return {}
        keys = [entry_id.id for entry_id in ids]
        contents: dict[str, bytes] = {}
        with self._database.read() as connection:
            for start in range(0, len(keys), bounds.ENTRIES_AT_ONCE):
                contents |= self._contents(connection, contract, keys[start : start + bounds.ENTRIES_AT_ONCE])
        return {key: contents[key] for key in keys if key in contents}

    def _contents(self, connection: Connection, contract: str, keys: Collection[str]) -> dict[str, bytes]:
        wanted = self._of(contract), runs.c.key.in_(keys), runs.c.entry.is_not(None)
        rows = connection.execute(select(runs.c.key, runs.c.entry).where(*wanted))
        return {row.key: row.entry.encode() for row in rows}

    def results(self, sha256: str) -> bytes | None:
        """Return a result set. Raises :class:`~ragcontract.service.blobs.DamagedBlobError` if it was changed."""
        with self._database.read() as connection:
            return visible_blob(connection, sha256, self._principal, [runs.c.results])

    def result_sets(self) -> set[str]:
        digests: set[str] = set()
        with self._database.read() as connection:
            while more := result_sets_after(connection, self._principal, max(digests, default=""), bounds.PAGE_DIGESTS):
                digests.update(more)
        return digests

    def add(self, new: NewEntry) -> Added:
        """Store an entry with its blobs; a badge is not kept."""
        return self.add_all([new])[0]

    def add_all(self, entries: Sequence[NewEntry]) -> list[Added]:
        """Store entries as :meth:`add` does, all or none."""
        principal, now = self._principal, now_ms()
        prepared = [prepared_recording(new) for new in entries]

        def job(connection: Connection) -> list[Added]:
            added: list[Added] = []
            for recording, blobs_sent in prepared:
                slug = folder_of(recording.entry.contract)
                if principal.project_id is not None and project_id(connection, slug, principal) is None:
                    raise InputError([f"{recording.new.path}: is of another project than the key"])
                for each in blobs_sent:
                    put_blob(connection, each, sender=principal.actor, now=now)
                added.append(record(connection, recording, principal, now).added)
            return added

        return self._database.write(job)

    def delete_results(self, digests: Collection[str]) -> NoReturn:  # noqa: ARG002 (the seam's)
        raise InputError([f"{self.name}: {KEPT}; delete the project to delete them"])

    def _of(self, contract: str) -> "ColumnElement[bool]":
        project = select(projects.c.id).where(projects.c.slug == contract, seen(self._principal)).scalar_subquery()
        return and_(runs.c.project_id == project, self._at)


def prepared_recording(new: NewEntry) -> tuple[Recording, list[Sent]]:
    """Return what is to be recorded of an entry, and its blobs."""
    contents: dict[Kind, bytes | None] = {"results": new.results, "report": new.report, "golden": new.golden}
    sent = {kind: Sent.of(kind, data) for kind, data in contents.items() if data is not None}
    recording = replace(
        recording_of(folder_of(new.entry.contract), new.content),
        report=sent["report"].sha256 if "report" in sent else None,
        golden=sent["golden"].sha256 if "golden" in sent else None,
        default_branch=new.default_branch,
        without_results=new.results is None,
    )
    return with_rules(recording, new.report), [*sent.values()]
