"""Whether limits on what a judge said count: only with a good calibration of this judge at this task."""

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from ragcontract.contract.resolve import Contract
from ragcontract.files.problems import Collector, Problems
from ragcontract.judging.gate_report import GateReport
from ragcontract.judging.replayed import Replayed, judged_gates
from ragcontract.runs.judged_texts import Task
from ragcontract.statistics.judge_trust import why_not


def with_trust(replayed: Replayed, contract: Contract, now: datetime, *, stored: bool = False) -> Replayed:
    """Return the same, with the reasons why limits on what was found do not count; none without such limits.

    A limit on a drop from a ``stored`` baseline is also about whoever judged that.
    """
    reasons, gates = dict(replayed.why_not), judged_gates(contract)
    for task in dict.fromkeys(task for _, task in gates):
        # Not of ``found`` alone: of a query with several rows, that has the last one.
        fingerprints = replayed.replay.used(task) if replayed.replay else frozenset[str]()
        if stored and replayed.replay and any(gate.compares for gate, of in gates if of == task):
            # A baseline of other judges than those that the metric names now is not compared, see ``fingerprint``.
            fingerprints |= replayed.replay.fingerprints(task, contract.queries.keys())
        if found := why_not(replayed.calibrations.get(task), task, fingerprints=fingerprints, now=now):
            reasons[task] = found
    return replace(replayed, why_not=reasons)


def not_calibrated(replayed: Replayed, contract: Contract) -> Problems:
    """Return that limits do not count because of the judge: problems, or a warning if they are advisory."""
    problems = Collector()
    for gate, task in judged_gates(contract):
        reasons = replayed.why_not.get(task)
        why = f"the judge is not calibrated: {'; '.join(reasons or ())}"
        if reasons and replayed.advisory:
            problems.warning(f"{gate.location}: {gate.id} is shown without effect: {why}")
        elif reasons:
            advice = (
                "name a calibration with --calibration, or set judge.uncalibrated: advisory to show it without effect"
            )
            problems.problem(gate.location, f"{gate.id} cannot be judged: {why}; {advice}")
    return problems.found()


def without_effect(gates: Iterable[GateReport], replayed: Replayed, contract: Contract) -> tuple[GateReport, ...]:
    """Return the results of gates; those on what a judge without a good calibration said have no effect."""
    advisory = {gate.id for gate, task in judged_gates(contract) if _is_advisory(replayed, task)}
    skipped = "advisory, because the judge is not calibrated"
    return tuple(
        [
            replace(gate, status="skipped", waived=None, skipped=skipped) if gate.id in advisory else gate
            for gate in gates
        ]
    )


def _is_advisory(replayed: Replayed, task: Task) -> bool:
    return replayed.advisory and task in replayed.why_not
