"""What a stored baseline says of a query beside its ranks: metrics that ids cannot give again, and broken rules."""

from collections.abc import Iterable, Iterator

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric
from ragcontract.core.rule import Violation
from ragcontract.core.scores import Values
from ragcontract.runs.past import REFERENCES, expected_of
from ragcontract.runs.stored import ComparedQuery, MeasuredQuery


def stored_values(metrics: Iterable[Metric], stored: ComparedQuery) -> Values:
    """Return the stored metrics of a query; an empty tuple if any of them is missing."""
    known = stored.metrics if isinstance(stored, MeasuredQuery) else {}
    values = [known.get(metric.key) for metric in metrics]
    return tuple([value for value in values if value is not None]) if None not in values else ()


def stored_violations(stored: ComparedQuery) -> Iterator[Violation]:
    """Yield the rules about the answer that a stored query violates; of their causes, only digests are known."""
    for rule, causes in stored.broken.items():
        yield Violation(rule=rule, expected=(), found=(), causes=tuple(causes))


def has_other_reference(family: Family, query: GoldenQuery, stored: ComparedQuery) -> bool:
    """Return whether a family compared the stored query's answer with another reference than today's."""
    field = family.switch
    if not isinstance(field, str) or field not in REFERENCES or stored.expects is None:
        return False
    return stored.expects.references.get(field) != expected_of(query).references.get(field)
