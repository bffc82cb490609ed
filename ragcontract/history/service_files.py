"""What a team service keeps beside an entry: the report, and the golden files and the config as they were that day.

With them, the service shows a run whole, and scores it again when the golden files change.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.core.run import SourceFile
from ragcontract.files.opening import READ_ERRORS, read_problem, read_within
from ragcontract.history.entry import NewEntry
from ragcontract.report.record import Report

WITHOUT = "the service gets the entry without it"
NO_NAME = "the contract has no name; in the service, all such contracts share one project: give each a name"


class ContractOfDay(Struct, frozen=True, kw_only=True):
    """The texts of the golden files and of the config."""

    golden: list[str]
    config: str | None


def with_files(new: NewEntry, report: Report, content: bytes) -> NewEntry:
    """Return an entry with its report, whose file has this content, and the files that it names, read again.

    What is too large, or has changed since the check, is left out. A contract without a name gets a warning, too: runs
    of several in one project would be scored by the golden queries of any of them.
    """
    left_out = [] if new.entry.contract else [NO_NAME]
    golden = None
    try:
        golden = contract_of_day(report)
    except InputError as error:
        left_out.append(f"the contract of this run: {error}; {WITHOUT}")
    fits = len(content) <= bounds.REPORT
    if not fits:
        left_out.append(f"the report is larger than {mebibytes(bounds.REPORT)}; {WITHOUT}")
    return replace(new, report=content if fits else None, golden=golden, left_out=tuple(left_out))


def contract_of_day(report: Report) -> bytes:
    """Return the golden files and the config of a check as JSON; raises InputError."""
    config = report.inputs.config
    texts = _texts([*report.inputs.golden.files, *(config.files if config else ())])
    number = len(report.inputs.golden.files)
    content = msgspec.json.encode(ContractOfDay(golden=texts[:number], config="".join(texts[number:]) or None))
    if len(content) > bounds.BLOB:
        raise InputError([f"is larger than {mebibytes(bounds.BLOB)}"])
    return content


def _texts(files: Sequence[SourceFile]) -> list[str]:
    texts: list[str] = []
    left = bounds.BLOB
    for file in files:
        try:
            data, source = read_within(left, file.path)
            texts.append(data.decode())
        except (*READ_ERRORS, ValueError) as error:
            raise InputError([f"{file.path}: {read_problem(error)}"]) from error
        if source.sha256 != file.sha256:
            raise InputError([f"{file.path}: has changed since the check"])
        left -= len(data)
    return texts
