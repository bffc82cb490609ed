"""What a judge said, replayed for a check: the judgments and calibration files, and whether limits on it count.

Nothing is asked: ``rag-contract judge`` has done that. Only contracts with judged metrics import this.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.answers.evidence import edited
from ragcontract.contract.resolve import Contract
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.gate import Gate
from ragcontract.core.numbers import count
from ragcontract.core.run import SourceFile
from ragcontract.core.text import shorten
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Collector, Problems
from ragcontract.judging.gate_report import GateReport
from ragcontract.metrics.judged_recall import KEY, JudgedRecall
from ragcontract.rules.second_pass import SecondPass
from ragcontract.runs.calibration import Calibration, CalibrationFile, read_calibration
from ragcontract.runs.judged_texts import Task
from ragcontract.runs.judgments import Judgment, Judgments, read_judgments
from ragcontract.runs.replaying import Replay
from ragcontract.statistics.judge_trust import why_not

TASK: Task = "attribution"
NO_JUDGMENTS = (
    "it needs what a judge said, and no judgments are given; run `rag-contract judge`, and name its file with "
    "--judgments (in the action, the input judgments)"
)


class Replayed(Struct, frozen=True, kw_only=True):
    """The judgments that a run was scored with, in ``found`` by query, and why limits on them do not count.

    ``read`` counts all judgments in the ``files``, ``without_verdict`` those of them that have none, by their status.
    A query for which nothing was retrieved needs no judgments. ``advisory`` says whether limits that do not count are
    shown without effect, instead of being refused.
    """

    files: tuple[SourceFile, ...] = ()
    calibration_path: str | None = None
    read: int = 0
    without_verdict: Mapping[str, int] = {}
    found: Mapping[str, Sequence[Judgment]] = {}
    calibration: Calibration | None = None
    why_not: tuple[str, ...] = ()
    advisory: bool = False
    problems: Problems = Problems()
    second_pass: SecondPass | None = None

    @property
    def judgments(self) -> list[Judgment]:
        """All judgments that were used, in the order of the run."""
        return [one for said in self.found.values() for one in said]


def replayed_contract(
    contract: Contract, paths: Sequence[str], calibration: str | None, now: datetime, progress: Progress = no_progress
) -> tuple[Contract, Replayed]:
    """Return the contract with its judged metrics computed from judgments files, and what is read of files.

    ``found`` is filled when a run is evaluated. Without files, a limit on a judged metric cannot be judged.
    """
    problems = Collector()
    file: CalibrationFile | None = None
    if calibration is not None:
        try:
            file = read_calibration(calibration)
        except InputError as error:
            problems.include(Problems(problems=tuple(error.problems)))
    advisory = contract.config.judge.uncalibrated == "advisory"
    given = file.of(TASK) if file else None
    if not paths:
        gates = judged_gates(contract)
        for gate in gates:
            problems.problem(gate.location, f"{gate.id} cannot be judged: {NO_JUDGMENTS}")
        if contract.config.judge.second_pass:
            problems.problem(contract.config_file.locations.of("judge") or "judge", f"second_pass: {NO_JUDGMENTS}")
        contract = replace(contract, impossible=contract.impossible | {gate.id for gate in gates})
        return contract, Replayed(calibration=given, advisory=advisory, problems=problems.found())
    read = read_judgments(paths, progress, may_lack=True, now=now)
    problems.include(read.problems)
    found: dict[str, tuple[Judgment, ...]] = {}
    second = _second_pass(contract, read, file, now, problems)
    made = Replayed(
        files=read.files,
        second_pass=second,
        calibration_path=calibration,
        read=len(read.by_key),
        without_verdict=Counter(one.status for one in read.by_key.values() if one.status != "ok"),
        found=found,
        calibration=given,
        advisory=advisory,
        problems=problems.found(),
    )
    return _with_judgments(contract, read, found), made


def _replay(contract: Contract, read: Judgments) -> Replay:
    """Return the judgments that count; those whose quotes are not in the texts do not."""
    return Replay(
        read.by_key.values(),
        contract.config.judge,
        edited=edited,
        located=read.location,
        lacking=read.lacking,
    )


def _with_judgments(contract: Contract, read: Judgments, found: dict[str, tuple[Judgment, ...]]) -> Contract:
    replay = _replay(contract, read)
    families = contract.families
    if all(metric.key != KEY for metric in contract.metrics):  # no limit on it: it is shown
        families = (*families, JudgedRecall(contract.k))
    made = [
        family.replaying(replay, contract.queries, found) if isinstance(family, JudgedRecall) else family
        for family in families
    ]
    return replace(contract, families=tuple(made))


def _second_pass(
    contract: Contract, read: Judgments, file: CalibrationFile | None, now: datetime, problems: Collector
) -> SecondPass | None:
    """Return what the judge cleared, if the configuration asks for it and the judge can be relied on."""
    settings = contract.config.judge
    if not settings.second_pass:
        return None
    replay = _replay(contract, read)
    fingerprints = replay.fingerprints("confirmation", contract.queries.keys())
    given = file.of("confirmation") if file else None
    reasons = why_not(given, "confirmation", fingerprints=fingerprints, now=now) if fingerprints else ()
    if not reasons:
        return SecondPass(replay, contract.k, settings.unconfirmed)
    why = f"the judge is not calibrated: {'; '.join(reasons)}"
    if settings.uncalibrated == "advisory":
        problems.warning(f"judge.second_pass has no effect, and what is flagged counts: {why}")
    else:
        problems.problem(contract.config_file.locations.of("judge") or "judge", f"second_pass cannot be used: {why}")
    return None


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


def judged_gates(contract: Contract) -> list[Gate]:
    """Return the limits on what a judge said."""
    tasks = {metric.key for metric in contract.metrics if metric.task}
    return [gate for gate in contract.gates if gate.quantity.key in tasks]


def without_words(replayed: Replayed) -> Replayed:
    """Return the same without what was quoted from documents, and what the judge said in its own words."""
    found = {
        query_id: tuple([replace(one, quote=None, reason="") for one in said])
        for query_id, said in replayed.found.items()
    }
    return replace(replayed, found=found)


def with_trust(replayed: Replayed, contract: Contract, now: datetime) -> Replayed:
    """Return the same, with the reasons why limits on what was found do not count; none without such limits."""
    if not judged_gates(contract):
        return replayed
    fingerprints = {one.fingerprint for one in replayed.judgments if one.votes}
    return replace(replayed, why_not=why_not(replayed.calibration, TASK, fingerprints=fingerprints, now=now))


def not_calibrated(replayed: Replayed, contract: Contract) -> Problems:
    """Return that limits do not count because of the judge: problems, or a warning if they are advisory."""
    problems = Collector()
    why = f"the judge is not calibrated: {'; '.join(replayed.why_not)}"
    for gate in judged_gates(contract) if replayed.why_not else ():
        if replayed.advisory:
            problems.warning(f"{gate.location}: {gate.id} is shown without effect: {why}")
        else:
            advice = (
                "name a calibration with --calibration, or set judge.uncalibrated: advisory to show it without effect"
            )
            problems.problem(gate.location, f"{gate.id} cannot be judged: {why}; {advice}")
    return problems.found()


def without_effect(gates: Iterable[GateReport], replayed: Replayed, contract: Contract) -> tuple[GateReport, ...]:
    """Return the results of gates; those on what a judge without a good calibration said have no effect."""
    advisory = {gate.id for gate in judged_gates(contract)} if replayed.why_not and replayed.advisory else set[str]()
    skipped = "advisory, because the judge is not calibrated"
    return tuple(
        [
            replace(gate, status="skipped", waived=None, skipped=skipped) if gate.id in advisory else gate
            for gate in gates
        ]
    )
