"""Contracts that no run breaks, and what golden rows expect although nothing uses it: ``lint`` says so. Pure."""

from collections.abc import Iterator

from ragcontract.contract.always_held import holds_always
from ragcontract.contract.resolve import Contract
from ragcontract.core.numbers import count
from ragcontract.runs.past import REFERENCES
from ragcontract.statistics.quantities import LABEL_MACRO_F1

NOTHING_FAILS = (
    "nothing in this contract can fail: no limit that a run may miss is set, and no query that fails has a rule that "
    "is enforced; set a limit, or enforce rules"
)


def nothing_fails(contract: Contract) -> bool:
    """Return whether every run passes: no gate can fail, and no query whose severity is error has a rule.

    Pass rates count the rules of these queries only.
    """
    if any(not gate.quantity.of_rules and not holds_always(gate, contract) for gate in contract.gates):
        return False
    return not any(query.severity == "error" and contract.has_rules(query) for query in contract.queries.values())


def unused_fields(contract: Contract) -> Iterator[tuple[str, str]]:
    """Yield the location of the first row with a field that nothing uses, and a sentence about all of them."""
    used = _used(contract)
    for name in REFERENCES:
        answers = [query.answer for query in contract.queries.values() if query.answer]
        having = sum(getattr(answer, name) is not None for answer in answers)
        if name not in used and having:
            have = "has" if having == 1 else "have"
            unused = f"{count(having, 'query')} {have} {name}, and no limit, rule or judgment uses it"
            yield contract.golden.answer_fields[name], f"{unused}; limit a metric that reads it, or leave it out"


def _used(contract: Contract) -> set[str]:
    """Return the fields that a limit, a rule or a judgment reads; a reference is also what claims are made from."""
    limited = {gate.quantity.key for gate in contract.gates}
    named = {*limited, *contract.settings.metrics, *contract.config.judge.metrics}
    asked = {
        metric.asks or str(family.switch)
        for family in contract.families
        for metric in family.metrics
        if metric.key in named
    }
    used = {"expected_mode", *asked}  # of which a rule is made
    if LABEL_MACRO_F1.key in limited:
        used.add("expected_label")
    return used | {"reference"} if "reference_claims" in used else used
