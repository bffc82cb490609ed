"""Whether the application chooses the class that a golden query expects."""

from collections.abc import Iterable

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, MetricSettings, Missing
from ragcontract.core.run import RunRow
from ragcontract.core.scores import Values

ACCURACY = Metric(key="label_accuracy", label="Label accuracy", suggested=True)


class LabelAccuracy:
    """1 if the row's label is exactly the expected one, otherwise 0, also where the application failed."""

    metrics = (ACCURACY,)
    needs = frozenset({"label", "error"})
    from_ids = False
    switch = "expected_label"

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Return the value of a row; a row with neither a label nor an error cannot be judged."""
        expected = query.answer.expected_label if query.answer else None
        if expected is None:
            return ()
        if row.label is None and row.error is None:
            return Missing("has no label, which expected_label needs; export the class that the application chose")
        return (float(row.label == expected),)


def labels(_settings: MetricSettings) -> Iterable[Family]:
    """Return the family."""
    return [LabelAccuracy()]
