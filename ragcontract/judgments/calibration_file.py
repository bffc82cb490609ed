"""The file ``judge-calibration.json``: how well a judge agreed with people, at each task that they labelled."""

from collections.abc import Callable, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.judge_settings import Count, LabelCounts, Task
from ragcontract.core.phrase import Message
from ragcontract.core.run import Moment
from ragcontract.files.json_lines import UNDECODABLE, explained
from ragcontract.files.json_text import JsonLocator, check_nesting, doubled_key, fault, malformed
from ragcontract.files.opening import READ_ERRORS, read_problem, read_within
from ragcontract.files.problems import Problem
from ragcontract.files.writing import document, write_files

FORMAT_VERSION = 1
REMAKE = "make it with `rag-contract judge calibrate`"
Share = Annotated[float, Meta(ge=0, le=1)]


class Calibration(Struct, frozen=True, kw_only=True):
    """How well a judge agreed with people at one task. Rates and kappa are for readers; they follow from ``counts``."""

    task: Annotated[Task, Meta(description="What was judged.")]
    fingerprint: Annotated[str, Meta(max_length=bounds.FINGERPRINT, description="Who judged, and how.")]
    at: Annotated[Moment, Meta(description="When.")]
    n: Annotated[Count, Meta(description="The labelled items that have a verdict.")]
    counts: LabelCounts
    unjudged: Annotated[Count, Meta(description="The labelled items that have none.")] = 0
    tpr: Annotated[Share | None, Meta(description="How often the judge says yes where people do.")] = None
    tpr_low: Annotated[Share | None, Meta(description="The lower end of its 90 % interval (Wilson).")] = None
    tnr: Annotated[Share | None, Meta(description="How often the judge says no where people do.")] = None
    tnr_low: Annotated[Share | None, Meta(description="The lower end of its 90 % interval (Wilson).")] = None
    kappa: Annotated[Annotated[float, Meta(ge=-1, le=1)] | None, Meta(description="Cohen's kappa.")] = None
    kappa_low: Annotated[float | None, Meta(description="The lower end of its 90 % interval.")] = None
    self_agreement: Annotated[
        Share | None, Meta(description="How often the judge says the same of an item when it is asked again.")
    ] = None


class _Head(Struct, frozen=True, kw_only=True):
    format_version: int


class CalibrationFile(Struct, frozen=True, kw_only=True):
    """The whole file: one calibration for each task that was labelled."""

    format_version: int
    calibrations: Annotated[tuple[Calibration, ...], Meta(min_length=1)]


def write_calibration(path: str, file: CalibrationFile, before: Callable[[], None] = lambda: None) -> None:
    """Write the file, whole or not at all, and not if ``before`` raises anything; raise OutputError."""
    write_files({path: document(file, {})}, before)


def read_calibration(path: str) -> CalibrationFile:
    """Return the content of the file; raise InputError with everything that is wrong with it."""
    try:
        data, _ = read_within(bounds.CALIBRATION, path)
    except READ_ERRORS as error:
        raise InputError([f"{path}: {read_problem(error)}"]) from error
    if not data.strip():
        raise InputError([f"{path}: is empty; {REMAKE}"])
    try:
        check_nesting(data)
        version = msgspec.json.decode(data, type=_Head).format_version
        if version != FORMAT_VERSION:
            what = f"has format version {version}, and this rag-contract reads version {FORMAT_VERSION}"
            raise InputError([f"{path}: {what}; {REMAKE}"])
        file = msgspec.json.decode(data, type=CalibrationFile)
        if (key := doubled_key(data)) is not None:
            raise InputError([Message.of(f"{path}: ", fault(key), f"; {REMAKE}")])
    except UNDECODABLE as error:
        raise InputError(list(_problems(data, path, error))) from error
    tasks = [calibration.task for calibration in file.calibrations]
    if twice := sorted({task for task in tasks if tasks.count(task) > 1}):
        raise InputError([f"{path}: has two calibrations for {task!r}; {REMAKE}" for task in twice])
    return file


def _problems(data: bytes, path: str, error: Exception) -> Iterator[str]:
    """Yield everything that is wrong with a file that cannot be decoded, each with its line."""
    locator = JsonLocator(data.decode(errors="replace")) if isinstance(error, msgspec.ValidationError) else None
    for mismatch in explained(data, error, CalibrationFile):
        line = locator.line(mismatch.path) if locator else malformed(data, error)[0]
        yield str(Problem.of(f"{path}:{line}", mismatch))
