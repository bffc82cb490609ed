"""Why the scores that broke a limit are as they are, in the words of the tool that computed them."""

from ragcontract.core.phrase import Phrase
from ragcontract.reports.report import Report

REASONS = "Why the worst scores are as they are"


def score_reasons(report: Report) -> list[Phrase]:
    """Return a sentence for each of the worst queries of the limits that are broken, each once."""
    broken = (finding for finding in report.findings if finding.kind == "gate")
    return list(dict.fromkeys(phrase for finding in broken for phrase in finding.details))
