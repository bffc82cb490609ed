"""Counts the rows of a side by the class that was expected and the one that was found."""

from collections import Counter

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.run import RunRow, mode_of


class ClassCounter:
    """The modes and the labels of rows, each counted only if the plan ``needs`` that field; every row counts as one."""

    def __init__(self, needs: frozenset[str]) -> None:
        """Count nothing yet."""
        self._has_modes, self._has_labels = "mode" in needs, "label" in needs
        self.modes: Counter[tuple[str, str | None]] = Counter()
        self.labels: Counter[tuple[str, str | None]] = Counter()

    def note(self, query: GoldenQuery, row: RunRow) -> None:
        """Count a row of a query that expects a mode or a label."""
        self._count(query, mode_of(row) if self._has_modes else None, row.label if self._has_labels else None)

    def note_missing(self, query: GoldenQuery) -> None:
        """Count a query without a row, in which no class was found."""
        self._count(query, None, None)

    def _count(self, query: GoldenQuery, mode: str | None, label: str | None) -> None:
        if query.answer is None:
            return
        if self._has_modes and query.answer.expected_mode is not None:
            self.modes[query.answer.expected_mode, mode] += 1
        if self._has_labels and query.answer.expected_label is not None:
            self.labels[query.answer.expected_label, label] += 1
