"""Checks a run once for all tests that need it, and makes a test of every gate and every golden query."""

import os
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.api import named, valid_k
from ragcontract.contract.resolve import Contract
from ragcontract.core.errors import InputError
from ragcontract.core.finding import Finding, sentence
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import paths_of, several
from ragcontract.core.safe_text import printable, visible
from ragcontract.evaluation.source import Inputs, Local, find_inputs
from ragcontract.report.api_report import Report
from ragcontract.runs.run_writer import InMemory

PathLike = str | os.PathLike[str]
Paths = PathLike | Sequence[PathLike] | None
GATE, QUERY = "gate:", "query:"  # how a test's id begins; a query's only where it would be ambiguous
MARKER = "@pytest.mark.rag_contract"
PATHS = ("golden", "run", "baseline", "calibration", "config")
ARGUMENTS = "golden, run, baseline, scores, judgments, calibration, config, k, tags, repeats, folder"
LISTED = ("golden", "run", "baseline", "scores", "judgments", "tags")  # arguments of which each may be a list
_CHECKED = pytest.StashKey[dict[tuple[str, int], tuple[Any, "CheckedRun | Exception"]]]()


def named_by(node: Any) -> dict[str, Any]:
    """Return the arguments of a test's markers. Those of a function override those of its class and module.

    Raises InputError if two markers of one function, class or module have the same argument.
    """
    arguments: dict[str, Any] = {}
    places: dict[str, Any] = {}
    for place, marker in reversed([*node.iter_markers_with_node("rag_contract")]):
        if marker.args:
            raise InputError([f"{MARKER}: takes keyword arguments only"])
        if twice := [name for name in marker.kwargs if places.get(name) is place]:
            several = "give a list in one marker" if twice[0] in LISTED else "leave one of them out"
            where = printable(visible(place.name))
            raise InputError([f"{MARKER}: two markers on {where} have the argument {twice[0]}; {several}"])
        arguments |= marker.kwargs
        places |= dict.fromkeys(marker.kwargs, place)
    if wrong := [name for name in arguments if name not in ARGUMENTS.split(", ")]:
        raise InputError([f"{MARKER}: Unexpected keyword argument '{wrong[0]}'; it takes {ARGUMENTS}"])
    return arguments


def inputs_in(arguments: Mapping[str, Any], folder: Path) -> Inputs:
    """Return the inputs that markers name, with the defaults that the command line has in the same folder."""
    paths = {name: _listed(arguments.get(name), name) for name in PATHS}
    singles = {name: next(iter(paths[name]), None) for name in ("calibration", "config")}
    several_of = {name: paths_of(arguments.get(name) or ()) for name in ("scores", "judgments")}
    named = Inputs.named(
        **paths | singles | several_of,
        k=valid_k(arguments.get("k")),
        tags=several(arguments.get("tags", ())),
        repeats=arguments.get("repeats", False),
    )
    return find_inputs(named, str(folder))


class Target(Struct, frozen=True):
    """The gate or the golden query that a test is about."""

    kind: Literal["gate", "query"]
    id: str

    @property
    def test_id(self) -> str:
        """The part of the test's id in square brackets, unique among the targets and safe in a runner's log."""
        name = printable(self.id)
        if self.kind == "gate":
            return GATE + name
        return QUERY + name if name.startswith((GATE, QUERY)) else name


class Case:
    """The result of one gate or one golden query: the value of the fixture ``rag_contract_case``.

    ``query`` is None for a gate. ``skipped`` says why a gate was skipped, if it was.
    """

    def __init__(
        self, target: Target, query: GoldenQuery | None, findings: Sequence[Finding], skipped: str = ""
    ) -> None:
        self.kind, self.id, self.query = target.kind, target.id, query
        self._findings = findings
        self._skipped = skipped

    def raise_if_failed(self) -> None:
        """Fail the test if the gate or a rule of the query is broken; xfail it if that is waived or only a warning.

        The test of a gate that was not evaluated, or has no effect, is skipped.
        """
        __tracebackhide__ = True
        if failing := [finding for finding in self._findings if finding.status == "fail"]:
            pytest.fail(self._message(failing), pytrace=False)
        if self._findings:
            reasons = (f"{visible(finding.why)}: {_sentence(finding)}" for finding in self._findings)
            pytest.xfail(printable("; ".join(reasons)))
            pytest.fail(self._message(self._findings), pytrace=False)  # with --runxfail, the line above does nothing
        if self._skipped:
            pytest.skip(printable(visible(self._skipped)))

    def __repr__(self) -> str:
        """Return the kind and the id of what the case is about."""
        return printable(f"<rag_contract_case {self.kind} {visible(self.id)}>")

    def _message(self, findings: Sequence[Finding]) -> str:
        lines = [_sentence(finding) for finding in findings]
        if self.query:
            lines.append(f"question: {visible(self.query.query)}")
        lines.append(f"defined at {visible(findings[0].location)}")
        return printable("\n".join(lines))


class CheckedRun:
    """A run that was checked: its report, and the case of every target."""

    def __init__(self, report: Report, contract: Contract) -> None:
        self.report = report
        self._queries = contract.queries
        self._skipped = {gate.id: gate.skipped or "skipped" for gate in report.gates if gate.status == "skipped"}
        self._findings: dict[Target, list[Finding]] = {}
        for finding in report.findings:
            kind: Literal["gate", "query"] = "gate" if finding.query_id is None else "query"
            self._findings.setdefault(Target(kind, finding.query_id or finding.ids[0]), []).append(finding)

    def case(self, target: Target) -> Case:
        query = self._queries.get(target.id) if target.kind == "query" else None
        skipped = self._skipped.get(target.id, "") if target.kind == "gate" else ""
        return Case(target, query, self._findings.get(target, []), skipped)


def parametrize(metafunc: pytest.Metafunc, fixture: str) -> None:
    """Make a test for each gate, in the order of the config, and for each query, in the order of the golden set."""
    try:
        arguments = named_by(metafunc.definition)
        contract = _contract_of(inputs_in(arguments, _folder_of(metafunc.config, arguments)))
    except InputError as error:
        raise pytest.Collector.CollectError(_explained(error)) from None
    targets = [
        *(Target("gate", gate.id) for gate in contract.gates),
        *(Target("query", query_id) for query_id in contract.queries),
    ]
    metafunc.parametrize(fixture, targets, ids=[target.test_id for target in targets], indirect=True)


def checked(request: pytest.FixtureRequest) -> CheckedRun:
    """Check the run that a test is about. All tests of one session with the same inputs share the result."""
    try:
        arguments = named_by(request.node)
        run = None if arguments.get("run") is not None else request.getfixturevalue("rag_run")
        return _checked_once(request, arguments, run)
    except InputError as error:
        pytest.fail(_explained(error), pytrace=False)


def warn_of_broken(report: object, test: str) -> None:
    """Warn that a test passed although the contract is broken; it may be about something else on purpose."""
    if isinstance(report, Report) and report.verdict == "fail":
        advice = "call rag_contract.raise_if_failed() if it is to fail for that"
        warnings.warn(printable(visible(f"{test} passed, and {advice}: {report.summary()}")), stacklevel=1)


def _checked_once(request: pytest.FixtureRequest, arguments: Mapping[str, Any], run: Any) -> CheckedRun:
    known = request.session.stash.setdefault(_CHECKED, {})
    key = (repr(sorted(arguments.items())), id(run))
    if key in known:
        _, result = known[key]
        if isinstance(result, Exception):
            first, *_ = str(result).splitlines() or [type(result).__name__]
            raise InputError([f"{first} (the first test that failed has everything about it)"])
        return result
    try:
        result = _check(arguments, _folder_of(request.config, arguments), run)
    except Exception as error:  # including those of the run's own function, which is called only once
        known[key] = run, error
        raise
    known[key] = run, result  # the run is held, so that no other object gets its identity
    return result


def _check(arguments: Mapping[str, Any], folder: Path, run: Any) -> CheckedRun:
    inputs = inputs_in(arguments, folder)
    contract = _contract_of(inputs)
    if run is not None:
        inputs = replace(inputs, run=_run_of(run, contract, folder))
    report = Report.of(pipeline.check(inputs, now=datetime.now(UTC)).report)
    for warning in (*contract.config_file.problems.warnings, *report.warnings):
        warnings.warn(printable(visible(warning)), stacklevel=1)
    return CheckedRun(report, contract)


def _run_of(run: Any, contract: Contract, folder: Path) -> Local | Sequence[str]:
    """Return the value of the fixture ``rag_run`` as a run; a function is asked every question."""
    if callable(run) and not isinstance(run, Mapping):
        run = {query.id: run(query.query) for query in contract.queries.values()}
    if isinstance(run, Mapping):
        return Local(InMemory(run=run))
    return find_inputs(Inputs(run=_listed(run, "rag_run")), str(folder)).paths("run")


def _contract_of(inputs: Inputs) -> Contract:
    """Read the contract; raises InputError with all problems of its files."""
    contract = pipeline.load(inputs)
    contract.problems.raise_if_any()
    return contract


def _folder_of(config: pytest.Config, arguments: Mapping[str, Any]) -> Path:
    """Return the contract's folder, relative to the current folder if possible, because messages name files in it."""
    folder = Path(config.rootpath, arguments.get("folder", ""))
    try:
        return Path(os.path.relpath(folder))
    except ValueError:  # on another drive
        return folder


def _listed(paths: Paths, what: str) -> list[str]:
    """Return paths as a list, which is empty for None; raises InputError for an empty list or an empty path."""
    if paths is None:
        return []
    if "" in (names := named(paths, what)):
        raise InputError([f"{what}: is an empty path; name a file"])
    return names


def _sentence(finding: Finding) -> str:
    return sentence(finding, visible, visible)


def _explained(error: InputError) -> str:
    """Return the message about input that cannot be judged."""
    lines = ["the retrieval contract cannot be judged:", *(f"  {visible(line)}" for line in error.lines())]
    return printable("\n".join(lines))
