"""Checks a run once for all tests that need it, and makes a test of every gate and every golden query.

Tests share a check only if another one would read the same: the same options and contents of files, and in memory a run
that one set-up of its fixture made.
"""

import hashlib
import os
import stat
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct
from msgspec.structs import replace

from ragcontract import pipeline
from ragcontract.api import Report, named, valid_k
from ragcontract.contract.defaults import GOLDEN as DEFAULT_GOLDEN
from ragcontract.contract.defaults import RUN as DEFAULT_RUN
from ragcontract.contract.resolve import Contract
from ragcontract.core.errors import InputError
from ragcontract.core.finding import Finding, sentence
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import paths_of, several, some
from ragcontract.core.safe_text import printable, visible
from ragcontract.evaluation.past import NOT_ASKED
from ragcontract.evaluation.source import Inputs, Local, find_inputs, folders_above
from ragcontract.files.paths import existing_files
from ragcontract.report.terminal import pass_notes
from ragcontract.runs.run_writer import InMemory

PathLike = str | os.PathLike[str]
Paths = PathLike | Sequence[PathLike] | None
GATE, QUERY = "gate:", "query:"  # how a test's id begins; a query's only where it would be ambiguous
MARKER = "@pytest.mark.rag_contract"
PATHS = ("golden", "run", "baseline", "calibration", "config")
ARGUMENTS = "golden, run, baseline, scores, judgments, calibration, config, k, tags, repeats, folder"
LISTED = ("golden", "run", "baseline", "scores", "judgments", "tags")  # arguments of which each may be a list
CASE, RUN = "rag_contract_case", "rag_run"  # fixtures
COARSE = 5_000_000_000  # nanoseconds in which a file may change twice and have one time of change
Key = tuple[Any, ...]
_CHECKED = pytest.StashKey[dict[Key, tuple[object, "CheckedRun | Exception"]]]()
_DIGESTS = pytest.StashKey[dict[tuple[int, ...], str]]()


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


def inputs_in(arguments: Mapping[str, Any], folder: Path, top: Path) -> Inputs:
    """Return the inputs that markers name, with the defaults that the command line has in the same folder.

    ``top`` is pytest's rootdir, up to which a configuration is searched for that is not read.
    """
    paths = {name: _listed(arguments.get(name), name) for name in PATHS}
    singles = {name: next(iter(paths[name]), None) for name in ("calibration", "config")}
    several_of = {name: paths_of(arguments.get(name) or ()) for name in ("scores", "judgments")}
    named = Inputs.named(
        **paths | singles | several_of,
        k=valid_k(arguments.get("k")),
        tags=several(arguments.get("tags", ())),
        repeats=arguments.get("repeats", False),
    )
    return find_inputs(named, str(folder), folders_above(folder, top))


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


def targets_of(contract: Contract) -> list[Target]:
    """Return the targets of a contract: gates in the order of the config, queries in the order of the golden set."""
    return [
        *(Target("gate", gate.id) for gate in contract.gates),
        *(Target("query", query_id) for query_id in contract.queries),
    ]


def raise_if_others(tested: Sequence[Target], checked: Sequence[Target]) -> None:
    """Raise InputError if tests were made of other targets than those of the contract that was checked."""
    if others := set(checked) ^ set(tested):
        names = some((target.test_id for target in (*tested, *checked) if target in others), "target")
        problem = (
            f"{MARKER}: this test was made of another contract than the one that it checks: {names} in one of them "
            "only; name golden, config, folder, tags and baseline in the marker of a function, class or module, not of "
            "pytest.param, and leave these files as they are while pytest runs"
        )
        raise InputError([problem])


class CheckedRun:
    """A run that was checked: its report, and the case of every target."""

    def __init__(self, report: Report, contract: Contract) -> None:
        self.report = report
        self._queries = contract.queries
        self._targets = targets_of(contract)
        self._tested: Sequence[Target] = self._targets
        self._skipped = {gate.id: gate.skipped or "skipped" for gate in report.gates if gate.status == "skipped"}
        self._findings: dict[Target, list[Finding]] = {}
        for finding in report.findings:
            kind: Literal["gate", "query"] = "gate" if finding.query_id is None else "query"
            self._findings.setdefault(Target(kind, finding.query_id or finding.ids[0]), []).append(finding)

    def case(self, target: Target, tested: Sequence[Target]) -> Case:
        """Return the case of a gate or a golden query.

        Raises InputError unless ``tested``, of which pytest made tests, are the targets of the checked contract.
        """
        if tested is not self._tested:
            raise_if_others(tested, self._targets)
            self._tested = tested
        query = self._queries.get(target.id) if target.kind == "query" else None
        skipped = self._skipped.get(target.id, "") if target.kind == "gate" else ""
        return Case(target, query, self._findings.get(target, []), skipped)


def parametrize(metafunc: pytest.Metafunc, fixture: str) -> None:
    """Make a test for each gate and each query of the contract."""
    try:
        arguments = named_by(metafunc.definition)
        contract = _contract_of(inputs_in(arguments, _folder_of(metafunc.config, arguments), metafunc.config.rootpath))
    except InputError as error:
        raise pytest.Collector.CollectError(_explained(error)) from None
    targets = targets_of(contract)
    cases = [(target, targets) for target in targets]
    metafunc.parametrize(fixture, cases, ids=[target.test_id for target in targets], indirect=True)


def case_of(request: pytest.FixtureRequest, note: str) -> Case:
    """Return the case of a test that ``parametrize`` made."""
    target, tested = request.param
    run = checked(request, note)
    try:
        return run.case(target, tested)
    except InputError as error:
        pytest.fail(_explained(error), pytrace=False)


def checked(request: pytest.FixtureRequest, note: str) -> CheckedRun:
    """Check the run that a test is about, or return the check of another test that would read the same.

    The notes of a check become properties of the test that made it, with the name ``note``.
    """
    try:
        arguments = named_by(request.node)
        run = None if arguments.get("run") is not None else request.getfixturevalue(RUN)
        return _checked_once(request, arguments, run, note)
    except InputError as error:
        pytest.fail(_explained(error), pytrace=False)


def warn_of_broken(report: object, test: str) -> None:
    """Warn that a test passed although the contract is broken; it may be about something else on purpose."""
    if isinstance(report, Report) and report.verdict == "fail":
        advice = "call rag_contract.raise_if_failed() if it is to fail for that"
        warnings.warn(printable(visible(f"{test} passed, and {advice}: {report.summary()}")), stacklevel=1)


def _checked_once(request: pytest.FixtureRequest, arguments: Mapping[str, Any], run: Any, note: str) -> CheckedRun:
    folder = _folder_of(request.config, arguments)
    inputs = inputs_in(arguments, folder, request.config.rootpath)
    made, maker = None, ()
    if _names_files(run):
        inputs, run = replace(inputs, run=_files_of(run, folder)), None
    elif run is not None:
        made, maker = _set_up(request)
    known = request.session.stash.setdefault(_CHECKED, {})
    key = (repr(sorted(arguments.items())), maker, _contents_of(inputs, request.session))
    before, result = known.get(key, (None, None))
    if result is None or before is not made:
        try:
            result = _check(inputs, run, folder)
        except Exception as error:  # including those of the run's own function, which is called only once
            known[key] = made, error
            raise
        request.node.user_properties += [(note, printable(text)) for text in pass_notes(result.report)]
        known[key] = made, result  # the set-up is held, so that no other one gets its identity
    elif isinstance(result, Exception):
        first, *_ = str(result).splitlines() or [type(result).__name__]
        raise InputError([f"{first} (the first test that failed has everything about it)"])
    return result


def _names_files(run: Any) -> bool:
    """Return whether a run is a path or several. An iterator of paths, which can be read once, is its set-up's."""
    return isinstance(run, str | os.PathLike | Sequence | AbstractSet) and not callable(run)


def _set_up(request: pytest.FixtureRequest) -> tuple[object, Key]:
    """Return what a set-up of ``rag_run`` made, and its maker: the fixture's definition and the parameters of fixtures.

    A parameter of the test function itself says nothing about the run.
    """
    definition = request._get_active_fixturedef(RUN)  # noqa: SLF001 (pytest has no public name for it)
    of_test = {CASE}
    for marker in request.node.iter_markers("parametrize"):
        if not marker.kwargs.get("indirect", marker.args[2:3]):
            names = marker.kwargs.get("argnames") or marker.args[0]
            of_test |= {name.strip() for name in (names.split(",") if isinstance(names, str) else names)}
    every = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    parameters = tuple((name, id(value)) for name, value in every.items() if name not in of_test)
    return definition.cached_result, (definition, *parameters)


def _contents_of(inputs: Inputs, session: pytest.Session) -> Key:
    """Return the files of a check with the digests of what they contain."""
    known = session.stash.setdefault(_DIGESTS, {})
    files, _ = existing_files(inputs.all)  # the check reports what is wrong with others
    return tuple((file, _digest(Path(file), known)) for file in files)


def _digest(path: Path, known: dict[tuple[int, ...], str]) -> str:
    """Return the digest of a file, which is read again only if it has changed, or may have in an instant.

    A pipe, which can be read only once, has none, and neither has what cannot be read.
    """
    with suppress(OSError):
        status = path.stat()
        times = status.st_mtime_ns, status.st_ctime_ns
        state = (status.st_dev, status.st_ino, status.st_size, *times)
        if state not in known and stat.S_ISREG(status.st_mode):
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if max(times) >= time.time_ns() - COARSE:
                return digest
            known[state] = digest
        return known.get(state, "")
    return ""


def _check(inputs: Inputs, run: Any, folder: Path) -> CheckedRun:
    contract = _contract_of(inputs)
    if run is not None:
        inputs = replace(inputs, run=_run_of(run, contract, folder))
    inputs = replace(inputs, past=NOT_ASKED)
    report = Report.of(pipeline.check(inputs, now=datetime.now(UTC)).report)
    for warning in (*contract.config_file.problems.warnings, *report.warnings, *_newer_run(inputs, folder)):
        warnings.warn(printable(visible(warning)), stacklevel=1)
    return CheckedRun(report, contract)


def _run_of(run: Any, contract: Contract, folder: Path) -> Local | Sequence[str]:
    """Return the value of the fixture ``rag_run`` as a run; a function is asked every question."""
    if callable(run) and not isinstance(run, Mapping):
        run = {query.id: run(query.query) for query in contract.queries.values()}
    return Local(InMemory(run=run)) if isinstance(run, Mapping) else _files_of(run, folder)


def _files_of(run: Paths, folder: Path) -> list[str]:
    """Return the paths that the fixture ``rag_run`` names, in the current folder or in the contract's.

    Raises InputError if both folders have such files: one of them may be old.
    """
    paths = []
    for path in _listed(run, RUN):
        (inside,) = find_inputs(Inputs(run=[path]), str(folder)).paths("run")
        here, there = ({Path(file).resolve() for file in existing_files([each])[0]} for each in (path, inside))
        if here and there and here != there:
            advice = "return an absolute path"
            raise InputError([f"{RUN}: {path!r} leads to two runs, in the current folder and in {folder}; {advice}"])
        paths.append(path if here else inside)
    return paths


def _newer_run(inputs: Inputs, folder: Path) -> Iterator[str]:
    """Yield a warning if the current folder is another one than the contract's, and has a newer run.

    A golden file beside that run says that it is of another contract, unless the current folder is below this one's.
    """
    newer, run = Path(DEFAULT_RUN), folder / DEFAULT_RUN
    is_checked = inputs.paths("run") == [str(run)]
    is_of_another = set(folder.parts) != {".."} and Path(DEFAULT_GOLDEN).is_file()
    if not is_checked or is_of_another or not (newer.is_file() and run.is_file()):
        return
    if newer.stat().st_mtime > run.stat().st_mtime:
        yield f"{newer}: is newer than {run}, which is checked; return the path of the run from {RUN}"


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
