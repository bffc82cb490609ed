"""What becomes of a contract that needs what a judge said, where no judgments are given: nothing missing passes."""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ragcontract.contract.resolve import Contract
from ragcontract.core.gate import Gate
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.numbers import count
from ragcontract.evaluation.side import Side
from ragcontract.files.problems import Collector, Problems
from ragcontract.judging.gates import lacking_field
from ragcontract.judging.id_lists import named

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
    for key in dict.fromkeys(contract.config.judge.metrics) if contract.judged or stored else ():
        if key in judged:
            where = location("judge", "metrics") or location("judge") or "judge"
            problems.problem(where, f"judge.metrics: {key} cannot be computed: {NO_JUDGMENTS}")
    if contract.config.judge.second_pass and contract.rules:
        problems.problem(location("judge") or "judge", f"second_pass: {NO_JUDGMENTS}")
    if not (contract.judged or stored):
        for metric in judged.values():
            problems.warning(f"{metric.label} is left out: {NO_JUDGMENTS}")
        return contract.without_judged_metrics(), problems.found()
    return replace(contract, impossible=contract.impossible | {gate.id for gate in gates}), problems.found()


def unjudged_before(gate: Gate, baseline: Side, queries: Mapping[str, GoldenQuery]) -> str:
    """Return of which queries a baseline that is a run lacks what a limit on a change compares; empty if of none.

    Left out, they would be a way past the limit: the less is judged, the more passes.
    """
    lacking = baseline.lacking[gate.quantity.key]
    query_ids = [one for one in lacking if gate.tag is None or gate.tag in queries[one].tags]
    if not query_ids:
        return ""
    which = f"{baseline.name} has no {gate.quantity.label} for {count(len(query_ids), 'query')}: {named(query_ids)}"
    return f"{which}; judge that run, too, with `rag-contract judge` into another file, and name both with --judgments"


def _compared(contract: Contract, keys: set[str]) -> Iterator[Gate]:
    """Yield the limits of the configuration on these metrics that need them in a baseline."""
    yield from (gate for gate in contract.config_file.gates if gate.quantity.key in keys and gate.compares)
