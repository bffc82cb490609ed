"""The contract of a project, by which the service scores older runs again.

It is that of the mounted folder, else what the newest run of the project's branch was checked with. What CI sent is
untrusted: it is written into a temporary folder under fixed names and read there like any contract, without plugins and
judgments. So nothing in it can name a file to open, or code to run.
"""

import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Row, select

from ragcontract import pipeline
from ragcontract.contract.defaults import CONFIG, GOLDEN
from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.numbers import count, mebibytes
from ragcontract.core.phrase import Location
from ragcontract.decision.evaluated import plan_of
from ragcontract.evaluation.source import Inputs
from ragcontract.files.json_lines import UNDECODABLE
from ragcontract.files.json_text import check_nesting
from ragcontract.history.page_runs import Today
from ragcontract.history.service_files import ContractOfDay
from ragcontract.service.blobs import blob
from ragcontract.service.mounted import content_of
from ragcontract.service.projects_and_runs import newest_run
from ragcontract.service.tables import projects, runs

NONE_KNOWN = "no contract is known: no run of the branch was sent with its golden queries, and none is mounted"


class KnownContract(Struct, frozen=True, kw_only=True):
    """The contract of a project: its digest, and the contract itself or why it cannot be read."""

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


def golden_of(contract: KnownContract) -> Mapping[str, GoldenQuery]:
    """Return the golden queries of a contract by their ids; none if it is not known or cannot be read."""
    return contract.today[0].golden.queries if contract.today else {}


def contract_digest(connection: Connection, project_id: int, folder: Path | None) -> str | None:
    """Return the digest that :func:`contract_of` returns, without reading the contract."""
    try:
        data = _mounted(connection, project_id, folder)
    except InputError:
        return None
    run = newest_run(connection, project_id, sent_golden=True) if data is None else None
    return _digest(data) if data is not None else run.golden if run else None


def sender_of(connection: Connection, project_id: int, contract: KnownContract) -> "Row[int, int, str | None] | None":
    """Return the id, time and commit of the newest run that sent a contract; None if it is that of a mounted folder."""
    run = newest_run(connection, project_id, sent_golden=True)
    if run is None or run.golden != contract.digest:
        return None
    columns = runs.c.id, runs.c.created_at, runs.c.commit_sha
    return connection.execute(select(*columns).where(runs.c.id == run.id)).first()


def _mounted(connection: Connection, project_id: int, folder: Path | None) -> bytes | None:
    """Return the contract of a mounted folder; None if none is mounted. Raises InputError if it cannot be read."""
    if folder is None:
        return None
    slug: str = connection.execute(select(projects.c.slug).where(projects.c.id == project_id)).scalar_one()
    golden, config = (_text_of(folder / slug, name) for name in (GOLDEN, CONFIG))
    return msgspec.json.encode(ContractOfDay(golden=[golden], config=config)) if golden is not None else None


def _text_of(home: Path, name: str) -> str | None:
    data = content_of(home, name, bounds.SERVICE_CONTRACT)
    try:
        return None if data is None else data.decode()
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
    """Load a contract from temporary files; no path in the contract names them."""
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
