"""Whether limits on what a judge said count: only with a good calibration of this judge at this task."""

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from ragcontract.contract.resolve import Contract
from ragcontract.files.problems import Collector, Problems
from ragcontract.judging.gate_report import GateReport
from ragcontract.judging.replayed import Replayed, judged_gates
from ragcontract.statistics.judge_trust import why_not


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


def without_effect(gates: Iterable[GateReport], replayed: Replayed) -> tuple[GateReport, ...]:
    """Return the results of gates; those on what a judge without a good calibration said have no effect."""
    advisory = replayed.untrusted if replayed.advisory else {}
    skipped = "advisory, because the judge is not calibrated"
    return tuple(
        [
            replace(gate, status="skipped", waived=None, skipped=skipped) if gate.id in advisory else gate
            for gate in gates
        ]
    )
