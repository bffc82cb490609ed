"""What becomes of a contract that needs what a judge said, where no judgments are given: nothing missing passes.

What a judge said, replayed for a check: the judgments and the calibration are read, and metrics computed from them.

Nothing is asked: ``rag-contract judge`` has done that. Only contracts with judged metrics import this. Whether limits
on what the judge said count, ``judged_limits`` says.

Whether limits on what a judge said count: only with a good calibration of this judge at this task.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from datetime import datetime
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.built_in import BUILT_IN
from ragcontract.contract.resolve import Contract, lacking_field
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.gate import Gate
from ragcontract.core.judge_settings import Task
from ragcontract.core.metric import MetricSettings
from ragcontract.core.numbers import count
from ragcontract.core.run import SourceFile
from ragcontract.core.safe_text import shorten
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Collector, Problems
from ragcontract.judgments.calibration_file import Calibration
from ragcontract.judgments.judged_metrics import JudgedShare
from ragcontract.judgments.judgments_file import Judgment, Judgments, read_judgments
from ragcontract.judgments.replay import Replay, edited
from ragcontract.judgments.second_pass import FlaggedAnswer, SecondPass
from ragcontract.judgments.trust import checked_calibrations, why_not

NO_JUDGMENTS = (
    "it needs what a judge said, and no judgments are given; run `rag-contract judge`, and name its file with "
    "--judgments (in the action, the input judgments)"
)


def without_judgments(contract: Contract, *, stored: bool = False) -> tuple[Contract, Problems]:
    """Return the contract, whose judged metrics have no values, and what is wrong with that.

    Limits on what a judge said cannot be judged, and neither can metrics that the configuration asks for. A run that is
    ``stored`` as a baseline must have what limits will compare. A run that is only measured is measured without these
    metrics, and a warning names them.
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
        return contract.without_judged_metrics(), problems.found()
    return replace(contract, impossible=contract.impossible | {gate.id for gate in gates}), problems.found()


def _compared(contract: Contract, keys: set[str]) -> Iterator[Gate]:
    """Yield the limits of the configuration on these metrics that need them in a baseline."""
    yield from (gate for gate in contract.config_file.gates if gate.quantity.key in keys and gate.compares)


Found: TypeAlias = dict[Task, dict[str, tuple[tuple[Judgment, ...], ...]]]

CONFIRMATION: Task = "confirmation"


class Replayed(Struct, frozen=True, kw_only=True):
    """The judgments that a run was scored with, and why limits on them do not count, both by task.

    ``untrusted`` has the reasons by the id of the limit: one on a change is also about whoever judged the baseline.

    ``found`` has those on which metrics are computed, by query, for each of its rows; ``replay`` knows who judged all
    of them, also those of a baseline. A query without any text to judge needs none. ``read``
    counts all judgments in the ``files``, ``without_verdict`` those of them that have none, by their status.
    ``advisory`` says whether limits that do not count are shown without effect, instead of being refused.
    """

    files: tuple[SourceFile, ...] = ()
    calibration_path: str | None = None
    read: int = 0
    without_verdict: Mapping[str, int] = {}
    families: tuple[JudgedShare, ...] = ()
    found: Mapping[Task, MutableMapping[str, tuple[tuple[Judgment, ...], ...]]] = {}
    replay: Replay | None = None
    second_pass: SecondPass | None = None
    flagged: Mapping[str, Sequence[FlaggedAnswer]] = {}
    calibrations: Mapping[Task, Calibration] = {}
    why_not: Mapping[Task, tuple[str, ...]] = {}
    untrusted: Mapping[str, tuple[str, ...]] = {}
    advisory: bool = False
    problems: Problems = Problems()

    def judgments(self, task: Task) -> list[Judgment]:
        """All judgments that were used for a task, in the order of the run; each once, if rows have the same texts."""
        said: list[tuple[str, Iterable[Judgment]]]
        if task == CONFIRMATION:
            said = [(name, answer.said.values()) for name, answers in self.flagged.items() for answer in answers]
        else:
            said = [(name, row) for name, rows in self.found.get(task, {}).items() for row in rows]
        return list({(query_id, one.key): one for query_id, judgments in said for one in judgments}.values())


def replayed_contract(
    contract: Contract,
    paths: Sequence[str],
    calibration: str | None,
    now: datetime,
    progress: Progress = no_progress,
    *,
    stored: bool = False,
) -> tuple[Contract, Replayed]:
    """Return the contract with its judged metrics computed from judgments files, and what is read of files.

    ``found`` is filled when a run is evaluated. Without files, :func:`without_judgments` says what is wrong with that,
    also for a run that is ``stored`` as a baseline.
    """
    problems = Collector()
    calibrations = _calibrations(calibration, problems)
    advisory = contract.config.judge.uncalibrated == "advisory"
    if not paths:
        contract, lacking = without_judgments(contract, stored=stored)
        problems.include(lacking)
        return contract, Replayed(calibrations=calibrations, advisory=advisory, problems=problems.found())
    read = read_judgments(paths, progress, now=now)
    problems.include(read.problems)
    if not read.is_whole:  # what seems to lack may be in the file that is not there
        impossible = {gate.id for gate, _ in judged_gates(contract)}
        contract = replace(contract, impossible=contract.impossible | impossible)
        return contract, Replayed(calibrations=calibrations, advisory=advisory, problems=problems.found())
    replay = _replay(contract, read)
    contract, found = _with_judgments(contract, read, replay)
    second, why = _second_pass(contract, read, replay, calibrations, now=now, problems=problems)
    return contract, Replayed(
        files=read.files,
        calibration_path=calibration,
        read=len(read.by_key),
        without_verdict=Counter(one.status for one in read.by_key.values() if one.status != "ok"),
        families=judged_families(contract),
        found=found,
        replay=replay,
        second_pass=second,
        calibrations=calibrations,
        why_not={CONFIRMATION: why} if why else {},
        advisory=advisory,
        problems=problems.found(),
    )


def _replay(contract: Contract, read: Judgments, fingerprint: str | None = None) -> Replay:
    """Return the judgments that count, of the judge with a fingerprint; those with quotes from elsewhere do not."""
    return Replay(
        read.by_key.values(),
        contract.config.judge,
        fingerprint=fingerprint,
        edited=edited,
        located=read.location,
    )


def _calibrations(path: str | None, problems: Collector) -> dict[Task, Calibration]:
    """Return what a calibration file has, by task."""
    if path is None:
        return {}
    try:
        return checked_calibrations(path)
    except InputError as error:
        problems.include(Problems(problems=tuple(error.problems)))
        return {}


def judged_families(contract: Contract) -> tuple[JudgedShare, ...]:
    """Return the judged metrics of a contract."""
    return tuple([family for family in contract.families if isinstance(family, JudgedShare)])


def judged_gates(contract: Contract) -> list[tuple[Gate, Task]]:
    """Return the limits on what a judge said, with its task."""
    tasks = {family.metric.key: family.task for family in judged_families(contract)}
    return [(gate, tasks[gate.quantity.key]) for gate in contract.gates if gate.quantity.key in tasks]


def _with_judgments(contract: Contract, read: Judgments, replay: Replay) -> tuple[Contract, Found]:
    """Return the contract with its judged metrics, and where what is found for them will be.

    A metric that nothing asks for is shown if the files have judgments for it.
    """
    tasks = {one.task for one in read.by_key.values()}
    known = {metric.key for metric in contract.metrics}
    settings = MetricSettings(cutoffs=(contract.k,))
    further = [family for provider in BUILT_IN.metrics for family in provider(settings)]
    shown = [one for one in further if isinstance(one, JudgedShare) and one.metric.key not in known]
    families = [*contract.families, *(one for one in shown if one.task in tasks)]
    found: Found = {}
    for at, family in enumerate(families):
        if isinstance(family, JudgedShare):
            families[at] = family.replaying(replay, contract.queries, found.setdefault(family.task, {}))
    return replace(contract, families=tuple(families)), found


def _second_pass(
    contract: Contract,
    read: Judgments,
    replay: Replay,
    calibrations: Mapping[Task, Calibration],
    *,
    now: datetime,
    problems: Collector,
) -> tuple[SecondPass | None, tuple[str, ...]]:
    """Return what the judge cleared, if the configuration asks for it, and why it may not clear anything."""
    settings = contract.config.judge
    if not settings.second_pass or not contract.rules:  # a run that is only measured breaks no rule
        return None, ()
    fingerprints = replay.fingerprints(CONFIRMATION, contract.queries.keys())
    given = calibrations.get(CONFIRMATION)
    tasks = calibrations.keys()
    reasons = why_not(given, CONFIRMATION, fingerprints=fingerprints, now=now, others=tasks) if fingerprints else ()
    if reasons:
        why = f"the judge is not calibrated: {'; '.join(reasons)}"
        if settings.uncalibrated == "refuse":
            where = contract.config_file.locations.of("judge") or "judge"
            problems.problem(where, f"second_pass cannot be used: {why}")
            return None, reasons
        problems.warning(f"judge.second_pass has no effect, and what is flagged counts: {why}")
    elif given is not None:
        # Of each query, only the last judge was looked at: what another one said, of a turn perhaps, does not count.
        replay = _replay(contract, read, given.fingerprint)
    return SecondPass(replay, contract.k, settings.unconfirmed, clears=not reasons), reasons


def cleared(replayed: Replayed, contract: Contract) -> Problems:
    """Return warnings about what the judge cleared: a check that passes because of a judge says so."""
    second, problems = replayed.second_pass, Collector()
    found = {} if second is None else second.cleared
    if found:
        problems.warning(f"the judge cleared {count(sum(found.values()), 'violation')} of {_queries(found)}")
    if second is not None and second.unknown_before and contract.only_new:
        what = f"the baseline has flagged texts without a verdict in {_queries(second.unknown_before)}"
        problems.warning(f"{what}: they count as new; judge that run, too, into another file, and name both")
    return problems.found()


def _queries(ids: Iterable[str]) -> str:
    named = list(ids)
    names = ", ".join(repr(shorten(one, bounds.NAME)) for one in named[: bounds.NAMES])
    return f"{count(len(named), 'golden query')}: {names}{', …' if len(named) > bounds.NAMES else ''}"


def of_run(replayed: Replayed) -> Replayed:
    """Return the same when the run is evaluated: with what was flagged in it."""
    return replace(replayed, flagged=replayed.second_pass.found) if replayed.second_pass else replayed


def without_words(replayed: Replayed) -> Replayed:
    """Return the same without what was quoted from documents and answers, and what the judge said in its own words."""
    found = {
        task: {
            query_id: tuple([tuple(map(_without_words, row)) for row in rows]) for query_id, rows in by_query.items()
        }
        for task, by_query in replayed.found.items()
    }
    flagged = {query_id: tuple(map(_unsaid, answers)) for query_id, answers in replayed.flagged.items()}
    return replace(replayed, found=found, flagged=flagged)


def _without_words(judgment: Judgment) -> Judgment:
    return replace(judgment, quote=None, reason="")


def _unsaid(answer: FlaggedAnswer) -> FlaggedAnswer:
    items = tuple([replace(item, text="") for item in answer.items])
    return replace(answer, items=items, said={name: _without_words(one) for name, one in answer.said.items()})


def with_trust(replayed: Replayed, contract: Contract, now: datetime, *, stored: bool = False) -> Replayed:
    """Return the same, with the reasons why limits on what was found do not count; none without such limits.

    A limit on a change is also about whoever judged the baseline, which may be ``stored``; others are about the run.
    """
    reasons, untrusted = dict(replayed.why_not), dict[str, tuple[str, ...]]()
    given, gates = replayed.calibrations, judged_gates(contract)
    of_run = {
        task: {one.fingerprint for one in replayed.judgments(task) if one.votes} for task in {task for _, task in gates}
    }
    for gate, task in gates:
        judges = of_run[task]
        if gate.compares and replayed.replay:
            judges = judges | replayed.replay.used(task)
            if stored:  # a baseline of other judges than those that the metric names now is not compared
                judges = judges | replayed.replay.fingerprints(task, contract.queries.keys())
        if found := why_not(given.get(task), task, fingerprints=judges, now=now, others=given.keys()):
            untrusted[gate.id] = found
            reasons.setdefault(task, found)
    return replace(replayed, why_not=reasons, untrusted=untrusted)


def not_calibrated(replayed: Replayed, contract: Contract) -> Problems:
    """Return that limits do not count because of the judge: problems, or a warning if they are advisory."""
    problems = Collector()
    for gate, _ in judged_gates(contract):
        reasons = replayed.untrusted.get(gate.id)
        why = f"the judge is not calibrated: {'; '.join(reasons or ())}"
        if reasons and replayed.advisory:
            problems.warning(f"{gate.location}: {gate.id} is shown without effect: {why}")
        elif reasons:
            advisory = "judge.uncalibrated: advisory shows it without effect"
            problems.problem(gate.location, f"{gate.id} cannot be judged: {why}; {advisory}")
    return problems.found()
