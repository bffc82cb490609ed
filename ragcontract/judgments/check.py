"""The files of a judge in a check, and the judgments that each side used of them.

Without judgments, limits that need them are reported, because nothing that is missing passes. No model is asked here;
``rag-contract judge`` did that before. Only contracts with judged metrics import this module.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.resolve import Contract, lacking_field
from ragcontract.core.config_sections import JUDGED_METRICS, Task
from ragcontract.core.errors import InputError
from ragcontract.core.metric import Family, MetricSettings
from ragcontract.core.run import SourceFile, Values
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Collector, Problems
from ragcontract.judgments.calibration import Calibration, checked_calibrations, why_not
from ragcontract.judgments.judged_metrics import JudgedShare, JudgedValues
from ragcontract.judgments.judgments_file import Judgment, Judgments, read_judgments
from ragcontract.judgments.replay import Replay
from ragcontract.judgments.second_pass import Confirmed, FlaggedAnswer, SecondPass
from ragcontract.registry import BUILT_IN

NO_JUDGMENTS = (
    "it needs what a judge said, and no judgments are given; run `rag-contract judge`, and name its file with "
    "--judgments (in the action, the input judgments)"
)
CONFIRMATION: Task = "confirmation"
Rows: TypeAlias = tuple[tuple[Judgment, ...], ...]  # the judgments on each row of a query


class UsedJudgments(Struct, frozen=True, kw_only=True):
    """The judgments that a side used."""

    # The judgments from which metrics are computed, by task and query, for each row. A row without any text to judge
    # has none.
    by_task: Mapping[Task, Mapping[str, Rows]] = {}
    flagged: Mapping[str, Sequence[FlaggedAnswer]] = {}  # the flagged answers of a run, by query
    cleared: Mapping[str, int] = {}  # how many violations of a run the judge cleared, by query
    unknown: tuple[str, ...] = ()  # the queries of a baseline with violations that are left out without a verdict

    def of(self, task: Task) -> list[Judgment]:
        """Return the judgments that were used for a task, in the order of the rows; each once if rows share it."""
        of_rows: list[tuple[str, Iterable[Judgment]]]
        if task == CONFIRMATION:
            of_rows = [
                (name, answer.judgments.values()) for name, answers in self.flagged.items() for answer in answers
            ]
        else:
            of_rows = [(name, row) for name, rows in self.by_task.get(task, {}).items() for row in rows]
        return list(
            {(query_id, judgment.key): judgment for query_id, judgments in of_rows for judgment in judgments}.values()
        )

    def fingerprints(self, task: Task) -> set[str]:
        """Return the judges of the judgments that were used for a task. One without votes needed no judge."""
        return {judgment.fingerprint for judgment in self.of(task) if judgment.votes}


class JudgmentsCounter:
    """Collects the judgments that the rows of a side use; without ``words``, neither quotes nor reasons."""

    def __init__(self, families: Iterable[Family], *, words: bool) -> None:
        tasks = [family.task if isinstance(family, JudgedShare) else None for family in families]
        self._tasks = [(at, task) for at, task in enumerate(tasks) if task is not None]
        self._by_task: dict[Task, dict[str, Rows]] = {task: {} for _, task in self._tasks}
        self._flagged: dict[str, tuple[FlaggedAnswer, ...]] = {}
        self._cleared: dict[str, int] = {}
        self._unknown: dict[str, None] = {}
        self._words = words

    def note(self, query_id: str, values: Sequence[Values], confirmed: Confirmed | None = None) -> None:
        """Note the judgments of a row: those of its values, and those on what was flagged in it.

        ``values`` are those of all families. A query without a row has the worst values, and no judgments.
        """
        for at, task in self._tasks:
            if of_family := values[at]:
                judgments = of_family.judgments if isinstance(of_family, JudgedValues) else ()
                rows = self._by_task[task]
                rows[query_id] = (*rows.get(query_id, ()), judgments if self._words else tuple(map(_silent, judgments)))
        if confirmed is None:
            return
        if confirmed.flagged:
            flagged = confirmed.flagged if self._words else tuple(map(_unsaid, confirmed.flagged))
            self._flagged[query_id] = (*self._flagged.get(query_id, ()), *flagged)
        if confirmed.cleared:
            self._cleared[query_id] = self._cleared.get(query_id, 0) + confirmed.cleared
        if confirmed.unknown:
            self._unknown[query_id] = None

    def result(self) -> UsedJudgments:
        return UsedJudgments(
            by_task=self._by_task, flagged=self._flagged, cleared=self._cleared, unknown=tuple(self._unknown)
        )


def _silent(judgment: Judgment) -> Judgment:
    """Return a judgment without the judge's words and its quotes from documents and answers."""
    return replace(judgment, quote=None, reason="")


def _unsaid(answer: FlaggedAnswer) -> FlaggedAnswer:
    items = tuple([replace(item, text="") for item in answer.items])
    judgments = {name: _silent(judgment) for name, judgment in answer.judgments.items()}
    return replace(answer, items=items, judgments=judgments)


class JudgeFiles(Struct, frozen=True, kw_only=True):
    """What the files of a judge have for a contract: what it said, and how well it agrees with people."""

    files: tuple[SourceFile, ...] = ()  # the judgments files
    calibration_path: str | None = None
    read: int = 0  # how many judgments the files have
    without_verdict: Mapping[str, int] = {}  # how many of them have no verdict, by status
    replay: Replay | None = None  # knows who judged
    second_pass: SecondPass | None = None
    calibrations: Mapping[Task, Calibration] = {}
    clears_nothing: tuple[str, ...] = ()  # why the judge may not clear anything in a second pass
    problems: Problems = Problems()

    counter: ClassVar = JudgmentsCounter  # collects those that the rows of a side use


def replayed_contract(
    contract: Contract,
    paths: Sequence[str],
    calibration: str | None,
    now: datetime,
    progress: Progress = no_progress,
    *,
    stored: bool = False,
) -> tuple[Contract, JudgeFiles]:
    """Return the contract with its judged metrics computed from judgments files, and what the files have.

    Without files, the problems are those of :func:`without_judgments`, also for a run that is ``stored`` as a baseline.
    """
    problems = Collector()
    calibrations = _calibrations(calibration, problems)
    if not paths:
        contract, lacking = without_judgments(contract, stored=stored)
        problems.include(lacking)
        return contract, JudgeFiles(calibrations=calibrations, problems=problems.collected())
    read = read_judgments(paths, progress, now=now)
    problems.include(read.problems)
    if not read.is_whole:  # a judgment that seems to be missing may be in the file that does not exist
        judged = {metric.key for metric in contract.metrics if metric.task}
        impossible = {gate.id for gate in contract.gates if gate.quantity.key in judged}
        contract = replace(contract, impossible=contract.impossible | impossible)
        return contract, JudgeFiles(calibrations=calibrations, problems=problems.collected())
    replay = Replay(read.by_key.values(), contract.config.judge, located=read.lines.location)
    contract = _with_judgments(contract, read, replay)
    second, why = _second_pass(contract, read, replay, calibrations, now=now, problems=problems)
    return contract, JudgeFiles(
        files=read.files,
        calibration_path=calibration,
        read=len(read.by_key),
        without_verdict=Counter(judgment.status for judgment in read.by_key.values() if judgment.status != "ok"),
        replay=replay,
        second_pass=second,
        calibrations=calibrations,
        clears_nothing=why,
        problems=problems.collected(),
    )


def without_judgments(contract: Contract, *, stored: bool = False) -> tuple[Contract, Problems]:
    """Return the contract, and report the limits and metrics that need judgments when no judgments are given.

    A run that is ``stored`` as a baseline must have what limits will compare. A run that is only measured is measured
    without the judged metrics, and a warning names them.
    """
    problems, location = Collector(), contract.config_file.locations.of
    judged = {metric.key: metric for metric in contract.metrics if metric.task}
    gates = [gate for gate in contract.gates if gate.quantity.key in judged]
    for gate in gates:
        lacking = lacking_field(contract, gate.quantity.key)
        why = f"no golden query {lacking}" if lacking else NO_JUDGMENTS
        problems.problem(gate.location, f"{gate.id} cannot be judged: {why}")
    compared = (gate for gate in contract.config_file.gates if gate.quantity.key in judged and gate.compares)
    for gate in compared if stored else ():
        problems.problem(gate.location, f"{gate.id} could not be judged by this baseline: {NO_JUDGMENTS}")
    for key in dict.fromkeys(contract.config.judge.metrics) if contract.with_gates or stored else ():
        if key in judged:
            where = location("judge", "metrics") or location("judge") or "judge"
            problems.problem(where, f"judge.metrics: {key} cannot be computed: {NO_JUDGMENTS}")
    if contract.config.judge.second_pass and contract.rules:
        problems.problem(location("judge") or "judge", f"second_pass: {NO_JUDGMENTS}")
    if not (contract.with_gates or stored):
        for metric in judged.values():
            problems.warning(f"{metric.label} is left out: {NO_JUDGMENTS}")
        return contract.without_judged_metrics(), problems.collected()
    return replace(contract, impossible=contract.impossible | {gate.id for gate in gates}), problems.collected()


def _calibrations(path: str | None, problems: Collector) -> dict[Task, Calibration]:
    """Return the calibrations of a file by task; add what is wrong with it to the problems."""
    if path is None:
        return {}
    try:
        return checked_calibrations(path)
    except InputError as error:
        problems.include(Problems(problems=tuple(error.problems)))
        return {}


def _with_judgments(contract: Contract, read: Judgments, replay: Replay) -> Contract:
    """Return the contract with its judged metrics computed from judgments.

    A metric that nothing asks for is shown if the files have judgments for it.
    """
    tasks = {judgment.task for judgment in read.by_key.values()}
    known = {metric.key for metric in contract.metrics}
    settings = MetricSettings(cutoffs=(contract.k,))
    further = [family for provider in BUILT_IN.naming(JUDGED_METRICS).providers for family in provider(settings)]
    shown = [family for family in further if isinstance(family, JudgedShare) and family.metric.key not in known]
    families = [*contract.families, *(family for family in shown if family.task in tasks)]
    return replace(
        contract,
        families=tuple(
            type(family)(contract.k, replay, contract.queries) if isinstance(family, JudgedShare) else family
            for family in families
        ),
    )


def _second_pass(
    contract: Contract,
    read: Judgments,
    replay: Replay,
    calibrations: Mapping[Task, Calibration],
    *,
    now: datetime,
    problems: Collector,
) -> tuple[SecondPass | None, tuple[str, ...]]:
    """Return the second pass if the configuration asks for it, and why the judge may not clear anything."""
    settings = contract.config.judge
    if not settings.second_pass or not contract.rules:  # a run that is only measured breaks no rule
        return None, ()
    fingerprints = replay.fingerprints(CONFIRMATION, contract.queries.keys())
    reasons = why_not(calibrations, CONFIRMATION, fingerprints=fingerprints, now=now) if fingerprints else ()
    if reasons:
        why = f"the judge is not calibrated: {'; '.join(reasons)}"
        if settings.uncalibrated == "refuse":
            where = contract.config_file.locations.of("judge") or "judge"
            problems.problem(where, f"second_pass cannot be used: {why}")
            return None, reasons
        problems.warning(f"judge.second_pass has no effect, and what is flagged counts: {why}")
    elif calibration := calibrations.get(CONFIRMATION):
        # Only the last judge of each query was compared with the calibration. Judgments of others do not count.
        fingerprint = calibration.fingerprint
        replay = Replay(read.by_key.values(), settings, fingerprint=fingerprint, located=read.lines.location)
    return SecondPass(replay=replay, k=contract.k, unconfirmed=settings.unconfirmed, clears=not reasons), reasons
