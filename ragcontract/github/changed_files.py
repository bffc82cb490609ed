"""Finds out what a pull request changes of the baseline and of judgments, which no file of the checkout says."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.github.context import Context, text_at
from ragcontract.github.failure import GitHubError
from ragcontract.github.paths import in_repository
from ragcontract.github.pull_request import PullRequest
from ragcontract.reports.report import ErrorReport, Report

if TYPE_CHECKING:
    from ragcontract.github.client import Client


class ChangedHere(Struct, frozen=True, kw_only=True):
    """What a pull request changes of the inputs of a check.

    ``baseline`` says whether it replaces the baseline, ``judgments`` are the files of judgments, and the calibration,
    that it adds or changes. None: that is not known.
    """

    baseline: bool | None = None
    judgments: tuple[str, ...] | None = ()


class _Listed(Struct, frozen=True, kw_only=True):
    """The files of a pull request that were looked for, each with its status, and whether all were listed."""

    statuses: Mapping[str, str]
    complete: bool


def changed_here(
    client: "Client",
    pull_request: PullRequest,
    report: Report | ErrorReport | None,
    context: Context,
    *,
    elsewhere: bool = False,
) -> ChangedHere:
    """Return what the pull request changes. Its files are listed once, and each page is asked for once.

    A comment without the answer is better than none. With ``elsewhere``, the check was in another workflow, and its
    folders are not known here: judgments are looked for by the names of their files, and a baseline that is not found
    may still be changed.
    """
    if not isinstance(report, Report):
        return ChangedHere()
    of_baseline, of_judge = _baseline(report, context), _judgments(report, context, elsewhere=elsewhere)
    wanted = of_baseline | of_judge.keys()
    if not wanted:
        return ChangedHere()
    listed = _listed(client, pull_request, wanted, names=frozenset(of_judge) if elsewhere else frozenset())
    unknown = not listed.complete or elsewhere
    judgments = tuple([path for name, path in of_judge.items() if name in listed.statuses])
    return ChangedHere(
        baseline=_replaced(report, of_baseline, listed) or (None if unknown or not of_baseline else False),
        judgments=judgments or (None if of_judge and not listed.complete else ()),
    )


def _listed(client: "Client", pull_request: PullRequest, wanted: set[str], names: frozenset[str]) -> _Listed:
    """Return which of the ``wanted`` files the pull request changes; of ``names``, the folder does not matter."""
    found: dict[str, str] = {}
    try:
        for number, file in enumerate(client.files_of(pull_request.number), 1):
            path, status = text_at(file, "filename"), text_at(file, "status")
            found |= {
                one: status for one in (path, PurePosixPath(path).name) if one in wanted and one in {path, *names}
            }
            if len(found) == len(wanted):
                return _Listed(statuses=found, complete=True)
            if number >= bounds.PULL_REQUEST_FILES:
                return _Listed(statuses=found, complete=False)
    except GitHubError:
        return _Listed(statuses=found, complete=False)
    return _Listed(statuses=found, complete=True)


def _baseline(report: Report, context: Context) -> set[str]:
    baseline = report.inputs.baseline
    return {in_repository(file.path, context) for file in baseline.files} if baseline else set()


def _replaced(report: Report, files: set[str], listed: _Listed) -> bool:
    """Return whether the pull request replaces the baseline.

    A new file counts only if it says itself that it replaced a baseline. What it does not say of itself is found out
    too: whoever makes a baseline by hand, or deletes the older one first, makes one that replaced none.
    """
    changed = [listed.statuses[path] for path in files if path in listed.statuses]
    says_so = report.inputs.baseline is not None and bool(report.inputs.baseline.replaces)
    return any(says_so or status != "added" for status in changed)


def _judgments(report: Report, context: Context, *, elsewhere: bool) -> dict[str, str]:
    """Return the paths of the files of a judge as the report has them, by what GitHub would call them."""
    given = report.inputs.judgments
    if given is None:
        return {}
    paths = [*(file.path for file in given.files), *([given.calibration] if given.calibration else [])]
    return {PurePosixPath(path).name if elsewhere else in_repository(path, context): path for path in paths}
