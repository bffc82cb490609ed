"""Notes which queries lack a score, and which scores no metric reads."""

from collections.abc import Iterable, Mapping

from ragcontract.core import bounds


class ScoreGaps:
    """Collects both while rows are read; ``known`` are the scores that metrics read."""

    def __init__(self, known: Iterable[str]) -> None:
        """Start without gaps."""
        self._known = frozenset(known)
        self._lacking: dict[str, dict[str, None]] = {}
        self._undeclared: dict[str, None] = {}

    def note(self, query_id: str, lacking: Iterable[str]) -> None:
        """Note the scores that a row of a query lacks."""
        for name in lacking:
            self._lacking.setdefault(name, {})[query_id] = None

    def unread(self, scores: Mapping[str, object] | None) -> list[str]:
        """Return names of a row's scores that no metric reads; none once enough were found."""
        if not scores or len(self._undeclared) >= bounds.NAMES or self._known.issuperset(scores):
            return []
        new = [name for name in scores if name not in self._known][: bounds.NAMES]
        self._undeclared |= dict.fromkeys(new)
        return new

    def lacking(self) -> dict[str, tuple[str, ...]]:
        """Return the queries that lack each score."""
        return {name: tuple(query_ids) for name, query_ids in self._lacking.items()}

    def undeclared(self) -> tuple[str, ...]:
        """Return the first names of scores that no metric reads."""
        return tuple(self._undeclared)[: bounds.NAMES]
