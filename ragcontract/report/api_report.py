"""The report that the Python API returns: the report of ``report.json`` with methods for tests and notebooks."""

from ragcontract.core import bounds
from ragcontract.core.finding import Finding, sentence
from ragcontract.core.numbers import more
from ragcontract.core.safe_text import printable, visible
from ragcontract.report import record as records


class ContractBroken(AssertionError):  # noqa: N818 (a verdict, not an error)
    """The run breaks the contract; the message has the summary and the first 20 findings that fail.

    ``report`` is the whole report.
    """

    def __init__(self, report: "Report") -> None:
        failing = [finding for finding in report.findings if finding.status == "fail"]
        lines = [f"  {described(finding)}" for finding in failing[: bounds.RAISED]]
        lines += filter(None, [more(len(failing), bounds.RAISED, "finding", "  … and {}")])
        super().__init__(printable("\n".join([report.summary(), *lines])))
        self.report = report

    def __reduce__(self) -> tuple[type["ContractBroken"], tuple["Report"]]:
        """Make copies from the report, for test runners that send exceptions to another process."""
        return type(self), (self.report,)


class Report(records.Report, frozen=True, kw_only=True):
    """The outcome of a check, with the content of ``report.json``.

    ``verdict`` is "pass" or "fail". Numbers are in ``metrics`` by key (``mrr_at_5``), reasons in ``findings``.
    """

    @classmethod
    def of(cls, report: records.Report) -> "Report":
        """Return the report with methods."""
        return cls(**{name: getattr(report, name) for name in report.__struct_fields__})

    def __bool__(self) -> bool:
        """Refuse to be a condition: ``assert report`` would hold whatever the verdict is."""
        raise TypeError('a report is neither true nor false: call raise_if_failed(), or compare verdict with "pass"')

    def summary(self) -> str:
        """Return verdict and reason as one line of plain text, for a log or a chat message."""
        return self.summary_line

    def raise_if_failed(self) -> None:
        """Raise :class:`ContractBroken` with the reasons if the verdict is "fail"; otherwise, do nothing."""
        __tracebackhide__ = True  # pytest then shows the line of the test, not this one
        if self.verdict == "fail":
            raise ContractBroken(self)

    def __repr__(self) -> str:
        """Return a short text, because the fields of all queries would fill pages."""
        return printable(f"<Report: {self.summary()}>")


def described(finding: Finding) -> str:
    """Return a finding as one line of plain text: the gate or the query, what is wrong, and where it is defined."""
    name = finding.ids[0] if finding.query_id is None else finding.query_id
    return f"{visible(name)}: {sentence(finding, visible, visible)} ({visible(finding.location)})"
