"""What distinguishes the contracts that one run checks, where no name does."""

from ragcontract.github.context import Context
from ragcontract.github.marker import digest
from ragcontract.github.settings import Settings
from ragcontract.reports.report import ErrorReport, Report


def contract_of(context: Context, settings: Settings, report: Report | ErrorReport | None) -> tuple[str, str]:
    """Return two fingerprints: of the job and its inputs, and of the contract's files (empty without a report).

    Two contracts differ if either does. The run's content is in neither of them: a later step of the job that checks a
    better export checks the same contract.
    """
    inputs = (
        context.job,
        settings.working_directory,
        settings.golden,
        settings.run,
        settings.baseline,
        settings.config,
        settings.k,
        settings.tag,
        settings.report_json if settings.mode == "post-comment" else "",
    )
    return digest(repr(inputs)), digest(repr(_files(report))) if isinstance(report, Report) else ""


def _files(report: Report) -> list[list[str]]:
    sides = (report.inputs.golden, report.inputs.config, report.inputs.baseline)
    return [[file.sha256 for file in side.files] if side else [] for side in sides]
