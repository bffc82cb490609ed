"""Finds out whether a pull request changes the baseline, or judgments, which no file of the checkout says."""

from typing import TYPE_CHECKING

from ragcontract.core import bounds
from ragcontract.github.context import Context, text_at
from ragcontract.github.failure import GitHubError
from ragcontract.github.paths import in_repository
from ragcontract.github.pull_request import PullRequest
from ragcontract.reports.report import ErrorReport, Report

if TYPE_CHECKING:
    from ragcontract.github.client import Client


def replaces_baseline(
    client: "Client", pull_request: PullRequest, report: Report | ErrorReport | None, context: Context
) -> bool | None:
    """Return whether the pull request changes a file of the baseline; None if that is not known.

    A new file counts only if it says itself that it replaced a baseline. What it does not say of itself is found out
    too: whoever makes a baseline by hand, or deletes the older one first, makes one that replaced none. Each page is
    asked for once: a comment without the answer is better than none.
    """
    baseline = report.inputs.baseline if isinstance(report, Report) else None
    if baseline is None or not baseline.files:
        return None
    wanted = {in_repository(file.path, context) for file in baseline.files}
    listed = 0
    try:
        for file in client.files_of(pull_request.number):
            listed += 1
            if text_at(file, "filename") in wanted and (baseline.replaces or text_at(file, "status") != "added"):
                return True
            if listed >= bounds.PULL_REQUEST_FILES:
                return None
    except GitHubError:
        return None
    return False


def changed_judgments(
    client: "Client", pull_request: PullRequest, report: Report | ErrorReport | None, context: Context
) -> tuple[str, ...] | None:
    """Return the files of judgments, and the calibration, that the pull request adds or changes; None if not known.

    Whoever writes a pull request can write what a judge would have said: these files are to be reviewed. It can change
    so many others that GitHub does not list these.
    """
    judgments = report.inputs.judgments if isinstance(report, Report) else None
    if judgments is None:
        return ()
    paths = [*(file.path for file in judgments.files), *([judgments.calibration] if judgments.calibration else [])]
    wanted = {in_repository(path, context): path for path in paths}
    found, is_known = [], True
    try:
        for listed, file in enumerate(client.files_of(pull_request.number), 1):
            if (name := text_at(file, "filename")) in wanted:
                found.append(wanted[name])
            if listed >= bounds.PULL_REQUEST_FILES:
                is_known = False
                break
    except GitHubError:
        is_known = False  # a comment without the answer is better than none
    return tuple(found) if found or is_known else None
