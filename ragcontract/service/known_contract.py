"""The contract of a project, by which the service scores older runs again.

It is that of the mounted folder, else what the newest run of the project's branch was checked with. What CI sent is
untrusted: it is written into a temporary folder under names of ours and read there as a contract's files always are,
without plugins and judgments. So nothing in it names a file or code that is opened.
"""

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Row, select

from ragcontract import pipeline
from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import count, mebibytes
from ragcontract.core.phrase import Location
from ragcontract.decision.evaluated import plan_of
from ragcontract.evaluation.source import Inputs
from ragcontract.files.json_lines import UNDECODABLE
from ragcontract.files.json_text import check_nesting
from ragcontract.files.opening import read_problem, read_regular
from ragcontract.history.page_runs import Today
from ragcontract.history.service_files import ContractOfDay
from ragcontract.service.blobs import blob
from ragcontract.service.mounted import NOT_REGULAR
from ragcontract.service.tables import projects, runs, trends

OUTDATED = 0  # in place of when a trend was computed
GOLDEN, CONFIG = "golden.jsonl", "ragcontract.yml"
NONE_KNOWN = "no contract is known: no run of the branch was sent with its golden queries, and none is mounted"


class KnownContract(Struct, frozen=True, kw_only=True):
    """The contract of a project: which it is, and as it was read, or why that is impossible."""

    digest: str | None = None  # None if there is none
    today: Today | None = None
    problem: str = ""


def contract_of(connection: Connection, project_id: int, folder: Path | None) -> KnownContract:
    """Return the contract of a project; ``folder`` has the mounted projects, if there are any."""
    try:
        data = _mounted(connection, project_id, folder)
        if data is not None:
            return _read(_digest(data), data)
        run = newest_run(connection, project_id, sent_golden=True)
        return _read(run.golden, blob(connection, run.golden) or b"") if run else KnownContract(problem=NONE_KNOWN)
    except InputError as error:
        return KnownContract(problem=f"the contract cannot be read: {error.problems[0]}")


def contract_digest(connection: Connection, project_id: int, folder: Path | None) -> str | None:
    """Return the digest of a project's contract, which :func:`contract_of` returns with it, without reading it."""
    try:
        data = _mounted(connection, project_id, folder)
    except InputError:
        return None
    run = newest_run(connection, project_id, sent_golden=True) if data is None else None
    return _digest(data) if data is not None else run.golden if run else None


def project_branch(connection: Connection, project_id: int) -> str | None:
    """Return the branch whose runs are the project's state: that of the newest run until one is known."""
    branch: str | None = connection.execute(select(projects.c.branch).where(projects.c.id == project_id)).scalar()
    if branch is None:
        newest = select(runs.c.branch).where(runs.c.project_id == project_id, runs.c.entry.is_not(None))
        branch = connection.execute(newest.order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(1)).scalar()
    return branch


def newest_run(connection: Connection, project_id: int, *, sent_golden: bool = False) -> "Row[int, str | None] | None":
    """Return the id and the golden blob of the newest recorded run of the project's branch; None if there is none."""
    branch = project_branch(connection, project_id)
    wanted = runs.c.golden if sent_golden else runs.c.entry
    of_branch = runs.c.branch.is_(None) if branch is None else runs.c.branch == branch
    newest = select(runs.c.id, runs.c.golden).where(runs.c.project_id == project_id, of_branch, wanted.is_not(None))
    return connection.execute(newest.order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(1)).one_or_none()


def outdate_trend(connection: Connection, project_id: int) -> None:
    """Note that the trend of a project lacks something: a run may come late, and a result set after its run."""
    connection.execute(trends.update().where(trends.c.project_id == project_id).values(computed_at=OUTDATED))


def _mounted(connection: Connection, project_id: int, folder: Path | None) -> bytes | None:
    """Return the contract of a mounted folder; None if none is mounted. Raises InputError if it cannot be read."""
    if folder is None:
        return None
    slug: str = connection.execute(select(projects.c.slug).where(projects.c.id == project_id)).scalar_one()
    home = folder / slug
    if home.is_symlink():
        raise InputError([f"{slug}: {NOT_REGULAR}"])
    golden, config = (_text_of(home, name) for name in (GOLDEN, CONFIG))
    return msgspec.json.encode(ContractOfDay(golden=[golden], config=config)) if golden is not None else None


def _text_of(home: Path, name: str) -> str | None:
    try:
        data = read_regular(home / name, bounds.SERVICE_CONTRACT)
        if data is None or len(data) > bounds.SERVICE_CONTRACT:
            large = f"is larger than {mebibytes(bounds.SERVICE_CONTRACT)}"
            raise InputError([f"{name}: {NOT_REGULAR if data is None else large}"])
        return data.decode()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError([f"{name}: {read_problem(error)}"]) from error
    except UnicodeDecodeError as error:
        raise InputError([f"{name}: is not UTF-8"]) from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@lru_cache(maxsize=4)  # of the projects that are looked at; one of 1,000 queries takes 10 ms
def _read(digest: str, data: bytes) -> KnownContract:
    try:
        return KnownContract(digest=digest, today=_loaded(_decoded(data)))
    except InputError as error:
        more = error.more + len(error.problems) - 1
        further = f" (and {count(more, 'further problem')})" if more else ""
        return KnownContract(digest=digest, problem=f"the contract cannot be read: {error.problems[0]}{further}")


def _decoded(data: bytes) -> ContractOfDay:
    if len(data) > bounds.SERVICE_CONTRACT:
        raise InputError([f"is larger than {mebibytes(bounds.SERVICE_CONTRACT)}"])
    try:
        check_nesting(data)
        contract = msgspec.json.decode(data, type=ContractOfDay)
    except UNDECODABLE as error:
        raise InputError([f"is not golden queries with a configuration ({error})"]) from error
    if not 0 < len(contract.golden) <= bounds.SERVICE_GOLDEN_FILES:
        raise InputError([f"has {count(len(contract.golden), 'golden file')}, not 1 to {bounds.SERVICE_GOLDEN_FILES}"])
    return contract


def _loaded(files: ContractOfDay) -> Today:
    """Load a contract from files that are gone afterwards; no path in it leads to them."""
    with TemporaryDirectory(prefix="rag-contract-") as folder:
        names = [GOLDEN, *(f"golden-{number}.jsonl" for number in range(2, len(files.golden) + 1))]
        for name, text in zip(names, files.golden, strict=True):
            Path(folder, name).write_bytes(text.encode())
        if files.config is not None:
            Path(folder, CONFIG).write_bytes(files.config.encode())
        inputs = Inputs(
            golden=[str(Path(folder, name)) for name in names],
            config=str(Path(folder, CONFIG)) if files.config is not None else None,
            awaits_baseline=True,
            replays=False,
        )
        try:
            contract = pipeline.load(inputs).without_judged_metrics()
            contract.problems.raise_if_any()
        except InputError as error:
            problems = [problem.replace(f"{folder}{os.sep}", "") for problem in error.problems]
            raise InputError(problems, more=error.more) from error
        contract = _without_folder(contract, folder)
        return contract, plan_of(contract, inputs)


def _without_folder(contract: Contract, folder: str) -> Contract:
    """Return the contract with the names of its files in place of their paths."""
    start = f"{folder}{os.sep}"
    golden, config = contract.golden, contract.config_file
    queries = {
        query_id: replace(query, location=Location(query.location.path.removeprefix(start), query.location.line))
        for query_id, query in golden.queries.items()
    }
    named = [[replace(file, path=file.path.removeprefix(start)) for file in each.files] for each in (golden, config)]
    warnings = tuple(warning.replace(start, "") for warning in contract.problems.warnings)
    return replace(
        contract,
        golden=replace(golden, queries=queries, files=tuple(named[0])),
        config_file=replace(config, files=tuple(named[1])),
        problems=replace(contract.problems, warnings=warnings),
    )
