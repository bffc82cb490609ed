"""What distinguishes the contracts that one workflow run checks, where no name does."""

from ragcontract.github.context import Context
from ragcontract.github.marker import digest
from ragcontract.github.settings import Settings


def contract_of(context: Context, settings: Settings, reported: str = "") -> str:
    """Return a fingerprint of the step, of its place in the matrix, and of the inputs that choose what is checked.

    It is the same in each attempt of a workflow run, so that an attempt replaces its own earlier result and no other.
    Therefore neither the runner's name nor the content of any file is in it: an attempt gets another runner, and may
    get another run or baseline. ``reported`` is the name in a report that another workflow run made: one step may post
    the reports of several contracts.
    """
    inputs = (
        context.step,
        settings.job_index,
        settings.working_directory,
        settings.golden,
        settings.run,
        settings.scores,
        settings.judgments,
        settings.calibration,
        settings.baseline,
        settings.config,
        settings.k,
        settings.tag,
        settings.repeats,
        settings.report_json if settings.mode == "post-comment" else "",
        *([reported] if reported else []),
    )
    return digest(repr(inputs))
