"""Judgments in a check: computes judged metrics from judgments files, and decides whether limits on them count.

Limits count only with a good calibration of the judge. Without judgments, limits that need them are reported, because
nothing that is missing passes. No model is asked here; ``rag-contract judge`` did that before. Only contracts with
judged metrics import this module.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from datetime import datetime
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.resolve import Contract, lacking_field
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.gate import Gate
from ragcontract.core.judge_settings import JUDGED_METRICS, Task
from ragcontract.core.metric import MetricSettings
from ragcontract.core.numbers import count
from ragcontract.core.run import SourceFile
from ragcontract.core.safe_text import shorten
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Collector, Problems
from ragcontract.judgments.calibration import Calibration, checked_calibrations, why_not
from ragcontract.judgments.judged_metrics import JudgedShare
from ragcontract.judgments.judgments_file import Judgment, Judgments, read_judgments
from ragcontract.judgments.replay import Replay, edited
from ragcontract.judgments.second_pass import FlaggedAnswer, SecondPass
from ragcontract.registry import BUILT_IN

NO_JUDGMENTS = (
    "it needs what a judge said, and no judgments are given; run `rag-contract judge`, and name its file with "
    "--judgments (in the action, the input judgments)"
)
CONFIRMATION: Task = "confirmation"
ByTask: TypeAlias = dict[Task, dict[str, tuple[tuple[Judgment, ...], ...]]]  # then by query, for each of its rows


class Replayed(Struct, frozen=True, kw_only=True):
    """The judgments that a run was scored with, and why limits on them do not count."""

    files: tuple[SourceFile, ...] = ()  # the judgments files
    calibration_path: str | None = None
    read: int = 0  # how many judgments the files have
    without_verdict: Mapping[str, int] = {}  # how many of them have no verdict, by status
    families: tuple[JudgedShare, ...] = ()
    # The judgments from which metrics are computed, by task and query, for each row. A query without any text to judge
    # has none. Filled while the run is evaluated.
    by_task: Mapping[Task, MutableMapping[str, tuple[tuple[Judgment, ...], ...]]] = {}
    replay: Replay | None = None  # knows who judged run and baseline
    second_pass: SecondPass | None = None
    flagged: Mapping[str, Sequence[FlaggedAnswer]] = {}  # the flagged answers of the run, by query
    calibrations: Mapping[Task, Calibration] = {}
    why_not: Mapping[Task, tuple[str, ...]] = {}  # why limits on judgments do not count, by task
    # Why limits do not count, by the id of the limit. A limit on a change depends on the judge of the baseline, too.
    untrusted: Mapping[str, tuple[str, ...]] = {}
    advisory: bool = False  # whether limits that do not count are shown without effect, instead of being refused
    problems: Problems = Problems()

    def judgments(self, task: Task) -> list[Judgment]:
        """Return the judgments that were used for a task, in the order of the run; each once if rows share it."""
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


def replayed_contract(
    contract: Contract,
    paths: Sequence[str],
    calibration: str | None,
    now: datetime,
    progress: Progress = no_progress,
    *,
    stored: bool = False,
) -> tuple[Contract, Replayed]:
    """Return the contract with its judged metrics computed from judgments files, and what the files have.

    Without files, the problems are those of :func:`without_judgments`, also for a run that is ``stored`` as a baseline.
    """
    problems = Collector()
    calibrations = _calibrations(calibration, problems)
    advisory = contract.config.judge.uncalibrated == "advisory"
    if not paths:
        contract, lacking = without_judgments(contract, stored=stored)
        problems.include(lacking)
        return contract, Replayed(calibrations=calibrations, advisory=advisory, problems=problems.collected())
    read = read_judgments(paths, progress, now=now)
    problems.include(read.problems)
    if not read.is_whole:  # a judgment that seems to be missing may be in the file that does not exist
        impossible = {gate.id for gate, _ in judged_gates(contract)}
        contract = replace(contract, impossible=contract.impossible | impossible)
        return contract, Replayed(calibrations=calibrations, advisory=advisory, problems=problems.collected())
    replay = _replay(contract, read)
    contract, by_task = _with_judgments(contract, read, replay)
    second, why = _second_pass(contract, read, replay, calibrations, now=now, problems=problems)
    return contract, Replayed(
        files=read.files,
        calibration_path=calibration,
        read=len(read.by_key),
        without_verdict=Counter(judgment.status for judgment in read.by_key.values() if judgment.status != "ok"),
        families=judged_families(contract),
        by_task=by_task,
        replay=replay,
        second_pass=second,
        calibrations=calibrations,
        why_not={CONFIRMATION: why} if why else {},
        advisory=advisory,
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
    for gate in _compared(contract, set(judged)) if stored else ():
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


def of_run(replayed: Replayed) -> Replayed:
    """Return the judgments of an evaluated run, with the answers that its rules flagged."""
    return replace(replayed, flagged=replayed.second_pass.flagged) if replayed.second_pass else replayed


def cleared(replayed: Replayed, contract: Contract) -> Problems:
    """Return warnings about the violations that the judge cleared, because a check may pass for that reason alone."""
    second, problems = replayed.second_pass, Collector()
    numbers = {} if second is None else second.cleared
    if numbers:
        problems.warning(f"the judge cleared {count(sum(numbers.values()), 'violation')} of {_queries(numbers)}")
    if second is not None and second.unknown_before and contract.only_new:
        what = f"the baseline has flagged texts without a verdict in {_queries(second.unknown_before)}"
        problems.warning(f"{what}: they count as new; judge that run, too, into another file, and name both")
    return problems.collected()


def with_trust(replayed: Replayed, contract: Contract, now: datetime, *, stored: bool = False) -> Replayed:
    """Return the judgments with the reasons why limits on them do not count; none without such limits.

    A limit on a change depends on the judge of the baseline, which may be ``stored``, as well as on that of the run.
    """
    reasons, untrusted = dict(replayed.why_not), dict[str, tuple[str, ...]]()
    calibrations, gates = replayed.calibrations, judged_gates(contract)
    of_run = {
        task: {judgment.fingerprint for judgment in replayed.judgments(task) if judgment.votes}
        for task in {task for _, task in gates}
    }
    for gate, task in gates:
        judges = of_run[task]
        if gate.compares and replayed.replay:
            judges = judges | replayed.replay.used(task)
            if stored:  # the metric's fingerprint names these judges, and a baseline of others is not compared
                judges = judges | replayed.replay.fingerprints(task, contract.queries.keys())
        if distrust := why_not(calibrations.get(task), task, fingerprints=judges, now=now, others=calibrations.keys()):
            untrusted[gate.id] = distrust
            reasons.setdefault(task, distrust)
    return replace(replayed, why_not=reasons, untrusted=untrusted)


def not_calibrated(replayed: Replayed, contract: Contract) -> Problems:
    """Return a problem, or a warning if limits are advisory, for each limit that does not count."""
    problems = Collector()
    for gate, _ in judged_gates(contract):
        reasons = replayed.untrusted.get(gate.id)
        why = f"the judge is not calibrated: {'; '.join(reasons or ())}"
        if reasons and replayed.advisory:
            problems.warning(f"{gate.location}: {gate.id} is shown without effect: {why}")
        elif reasons:
            advisory = "judge.uncalibrated: advisory shows it without effect"
            problems.problem(gate.location, f"{gate.id} cannot be judged: {why}; {advisory}")
    return problems.collected()


def without_words(replayed: Replayed) -> Replayed:
    """Return the judgments without the judge's words and its quotes from documents and answers."""
    by_task = {
        task: {
            query_id: tuple([tuple(map(_without_words, row)) for row in rows]) for query_id, rows in by_query.items()
        }
        for task, by_query in replayed.by_task.items()
    }
    flagged = {query_id: tuple(map(_unsaid, answers)) for query_id, answers in replayed.flagged.items()}
    return replace(replayed, by_task=by_task, flagged=flagged)


def judged_families(contract: Contract) -> tuple[JudgedShare, ...]:
    """Return the judged metrics of a contract."""
    return tuple([family for family in contract.families if isinstance(family, JudgedShare)])


def judged_gates(contract: Contract) -> list[tuple[Gate, Task]]:
    """Return the limits on judged metrics, with their tasks."""
    tasks = {family.metric.key: family.task for family in judged_families(contract)}
    return [(gate, tasks[gate.quantity.key]) for gate in contract.gates if gate.quantity.key in tasks]


def _compared(contract: Contract, keys: set[str]) -> Iterator[Gate]:
    """Yield the limits of the configuration on these metrics that need them in a baseline."""
    yield from (gate for gate in contract.config_file.gates if gate.quantity.key in keys and gate.compares)


def _replay(contract: Contract, read: Judgments, fingerprint: str | None = None) -> Replay:
    """Return the judgments that count, only those of one judge with a fingerprint. Edited judgments do not count."""
    return Replay(
        read.by_key.values(),
        contract.config.judge,
        fingerprint=fingerprint,
        edited=edited,
        located=read.location,
    )


def _calibrations(path: str | None, problems: Collector) -> dict[Task, Calibration]:
    """Return the calibrations of a file by task; add what is wrong with it to the problems."""
    if path is None:
        return {}
    try:
        return checked_calibrations(path)
    except InputError as error:
        problems.include(Problems(problems=tuple(error.problems)))
        return {}


def _with_judgments(contract: Contract, read: Judgments, replay: Replay) -> tuple[Contract, ByTask]:
    """Return the contract with its judged metrics, and the record that they fill with the judgments they use.

    A metric that nothing asks for is shown if the files have judgments for it.
    """
    tasks = {judgment.task for judgment in read.by_key.values()}
    known = {metric.key for metric in contract.metrics}
    settings = MetricSettings(cutoffs=(contract.k,))
    further = [family for provider in BUILT_IN.naming(JUDGED_METRICS).providers for family in provider(settings)]
    shown = [family for family in further if isinstance(family, JudgedShare) and family.metric.key not in known]
    families = [*contract.families, *(family for family in shown if family.task in tasks)]
    by_task: ByTask = {}
    for at, family in enumerate(families):
        if isinstance(family, JudgedShare):
            families[at] = family.replaying(replay, contract.queries, by_task.setdefault(family.task, {}))
    return replace(contract, families=tuple(families)), by_task


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
    calibration = calibrations.get(CONFIRMATION)
    tasks = calibrations.keys()
    reasons = (
        why_not(calibration, CONFIRMATION, fingerprints=fingerprints, now=now, others=tasks) if fingerprints else ()
    )
    if reasons:
        why = f"the judge is not calibrated: {'; '.join(reasons)}"
        if settings.uncalibrated == "refuse":
            where = contract.config_file.locations.of("judge") or "judge"
            problems.problem(where, f"second_pass cannot be used: {why}")
            return None, reasons
        problems.warning(f"judge.second_pass has no effect, and what is flagged counts: {why}")
    elif calibration is not None:
        # Only the last judge of each query was compared with the calibration. Judgments of others do not count.
        replay = _replay(contract, read, calibration.fingerprint)
    return SecondPass(replay, contract.k, settings.unconfirmed, clears=not reasons), reasons


def _queries(ids: Iterable[str]) -> str:
    named = list(ids)
    names = ", ".join(repr(shorten(query_id, bounds.NAME)) for query_id in named[: bounds.NAMES])
    return f"{count(len(named), 'golden query')}: {names}{', …' if len(named) > bounds.NAMES else ''}"


def _without_words(judgment: Judgment) -> Judgment:
    return replace(judgment, quote=None, reason="")


def _unsaid(answer: FlaggedAnswer) -> FlaggedAnswer:
    items = tuple([replace(item, text="") for item in answer.items])
    judgments = {name: _without_words(judgment) for name, judgment in answer.judgments.items()}
    return replace(answer, items=items, judgments=judgments)
