"""The Python API: the functions of the command line for test suites and exporters, and the report that they return."""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ragcontract import pipeline
from ragcontract.contract.golden_file import read_golden
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.finding import Finding, sentence
from ragcontract.core.golden import RELEVANT_GRADE, GoldenQuery
from ragcontract.core.ids import Path, paths_of, several
from ragcontract.core.lines import Line
from ragcontract.core.numbers import more
from ragcontract.core.rule import Plugin
from ragcontract.core.safe_text import encodable, printable, visible
from ragcontract.evaluation.source import Inputs, Local, entry_ref
from ragcontract.files.problems import Problems
from ragcontract.registry import BUILT_IN
from ragcontract.report import record as records
from ragcontract.runs.readers import read_doc_ids
from ragcontract.runs.run_writer import InMemory, RunMapping

if TYPE_CHECKING:
    from ragcontract.history.for_check import HistoryFacts, HistoryOfCheck

HISTORY: "Line[Callable[[str, Mapping[str, str], str | None, str | None], HistoryOfCheck]]" = Line(
    home="ragcontract.history.for_check:history_of_check"
)


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


def load_golden(
    *paths: Path, relevance_level: float = RELEVANT_GRADE, allow_fields: Sequence[str] = ()
) -> dict[str, GoldenQuery]:
    """Read golden files (or globs) as one set and return the queries by id, in the order of the files.

    Documents graded at least ``relevance_level`` are relevant. ``allow_fields`` are fields of your own, which
    may look like misspelled rules.
    Raises :class:`~ragcontract.InputError` with all problems; probable mistakes are ``UserWarning``.
    """
    level = valid_level(relevance_level)
    golden = read_golden(named(paths, "golden"), BUILT_IN, level=level, allow_fields=several(allow_fields))
    _raise_or_warn(golden.problems)
    return golden.queries


def load_run(*paths: Path) -> dict[str, list[str]]:
    """Read run files (or globs) as one run and return the document ids of each query, best first.

    A row without results, which is about an answer only, has none.
    Raises :class:`~ragcontract.InputError` with all problems; probable mistakes are ``UserWarning``.
    """
    rows, problems = read_doc_ids(named(paths, "run"))
    _raise_or_warn(problems)
    return rows


def check(
    *,
    golden: Path | Sequence[Path],
    run: Path | Sequence[Path] | RunMapping,
    baseline: Path | Sequence[Path] | None = None,
    scores: Path | Sequence[Path] = (),
    judgments: Path | Sequence[Path] = (),
    calibration: Path | None = None,
    config: Path | None = None,
    k: int | None = None,
    tags: str | Sequence[str] = (),
    repeats: bool = False,
    plugins: Sequence[Plugin] = (),
    no_answers: bool = False,
    name: str = "",
    history: Path | None = None,
    branch: str | None = None,
) -> Report:
    """Check a run against its contract, as ``rag-contract check`` does, and return the report.

    ``report.raise_if_failed()`` raises :class:`~ragcontract.ContractBroken` if the contract is broken.
    ``report.verdict`` is "pass" or "fail", ``report.failed_checks`` has the reasons, and ``report.warnings`` probable
    mistakes. Only the given files are read: an existing ``baseline.json`` is not used unless it is passed. The run may
    also be a mapping from query ids to what ``RunWriter.write`` accepts. ``scores`` are files with the scores and
    checks that other tools computed for it, ``judgments`` are files with a judge's judgments of it, and ``calibration``
    is the file that says how well that judge agrees with people. With ``tags``, only the queries with one of them and
    the limits of these tags are checked, as with ``--tag``. With ``repeats``, a run may have several rows per query,
    which are averaged. ``plugins`` are objects for the rule ``custom``, which names their classes. With ``no_answers``,
    the report has no text of the application or of its documents. ``name`` is that of the contract. ``history`` names
    a history, as ``--history`` does; ``baseline`` may then be an entry of it, such as "history:last-pass", of a
    ``branch``. Raises :class:`~ragcontract.InputError` if the run cannot be judged.
    """
    inputs = inputs_of(
        golden=golden,
        run=Local(InMemory(run=run)) if isinstance(run, Mapping) else run,
        baseline=baseline,
        scores=scores,
        judgments=judgments,
        calibration=calibration,
        config=config,
        k=k,
        tags=tags,
        repeats=repeats,
        plugins=_by_class_name(plugins),
        no_answers=no_answers,
    )
    return _judged(inputs, encodable(name), None if history is None else os.fspath(history), branch)


def _judged(inputs: Inputs, name: str, history: str | None, branch: str | None) -> Report:
    """Check the inputs, with the baseline and the notes of a history if one is named."""
    source = records.Provenance(contract=name) if name else None
    facts: HistoryFacts | None = None
    if history is not None:
        inputs, entry = inputs.without_entry()
        facts = HISTORY.load()(history, os.environ, branch, name).facts(entry)
        inputs = facts.with_baseline(inputs)
    elif (entry := inputs.without_entry()[1]) is not None:
        raise InputError([f"baseline: {entry_ref(entry)}: is an entry of a history; name the history with history="])
    outcome = pipeline.check(inputs, now=datetime.now(UTC), source=source)
    return Report.of((facts.add_to_report(outcome) if facts else outcome).report)


def inputs_of(**values: Any) -> Inputs:
    """Return the inputs that Python names: paths as text, one or several; raises :class:`InputError` if one is wrong.

    None leaves an input out, unless it is golden queries or a run. Sources stay what they are.
    """
    for name in ("golden", "run", "baseline"):
        if isinstance(values.get(name), str | os.PathLike | Sequence):
            values[name] = named(values[name], name)
    for name in ("scores", "judgments"):
        values[name] = paths_of(values.get(name, ()))
    for name in ("calibration", "config"):
        values[name] = None if values.get(name) is None else os.fspath(values[name])
    return Inputs(**values | {"k": valid_k(values.get("k")), "tags": several(values.get("tags", ()))})


def _by_class_name(plugins: Iterable[Plugin]) -> dict[str, Plugin]:
    """Return the plugins by the names by which rules find them; raises :class:`InputError` if two have the same."""
    named: dict[str, Plugin] = {}
    problems = []
    for plugin in plugins:
        name = type(plugin).__name__
        if name in named:
            problems.append(f"plugins: another plugin has the class name {name!r}, too; rename one of the classes")
        named[name] = plugin
    if problems:
        raise InputError(problems)
    return named


def valid_k(k: int | None) -> int | None:
    """Return the cut-off unchanged; raises :class:`InputError` if it is invalid."""
    if k is not None and (type(k) is not int or not 1 <= k <= bounds.RANK):
        raise InputError([f"k: expected a whole number of at least 1, found {k!r}"])
    return k


def valid_level(level: float) -> float:
    """Return the relevance level unchanged; raises :class:`InputError` if it is invalid."""
    if type(level) not in {int, float} or not 0 < level <= bounds.GRADE:
        raise InputError([f"relevance_level: expected a number over 0, at most a billion, found {level!r}"])
    return level


def named(paths: Path | Sequence[Path], what: str) -> list[str]:
    """Return one or several paths as a list of strings; raises :class:`InputError` if there are none."""
    listed = paths_of(paths)
    if not listed:
        raise InputError([f"{what}: names no file"])
    return listed


def _raise_or_warn(problems: Problems) -> None:
    problems.raise_if_any()
    for warning in problems.warnings:
        warnings.warn(warning, stacklevel=3)
