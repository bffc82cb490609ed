"""The counts of all workers, added up: what is little is brought to the driver at once, of the rest the first ones."""

from collections.abc import Collection
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

FEW = 20_000  # of a kind, which the driver takes as they are


class Counted(NamedTuple):
    """One count; see :mod:`ragcontract.cluster.workers` for what its number and its key are."""

    number: int
    key: bytes
    rows: int


class Size(NamedTuple):
    """How many counts there are of a kind, the largest of them, and the highest number."""

    counts: int
    most: int
    highest: int


class Counts:
    """Counts by kind. A data frame has them, each kind, number and key once; it is asked a few times."""

    def __init__(self, frame: DataFrame, *, whole: Collection[str], few: int = FEW) -> None:
        """Ask for all counts of ``whole`` kinds, and of others as far as they are ``few``."""
        self._frame = frame
        sizes = frame.groupBy("kind").agg(sql.count("*"), sql.max("rows"), sql.max("number")).collect()
        self._sizes = {kind: Size(*size) for kind, *size in sizes}
        self._here: dict[str, list[Counted]] = {
            kind: [] for kind, size in self._sizes.items() if kind in whole or size.counts <= few
        }
        for kind, number, key, rows in frame.filter(sql.col("kind").isin(list(self._here))).collect():
            self._here[kind].append(Counted(number, bytes(key), rows))

    def size(self, kind: str) -> Size:
        """Return how many counts of a kind there are."""
        return self._sizes.get(kind, Size(0, 0, 0))

    def here(self, kind: str) -> list[Counted] | None:
        """Return all counts of a kind, in order; None where there are too many."""
        return sorted(self._here.get(kind, [])) if self.size(kind).counts == 0 or kind in self._here else None

    def there(self, kind: str) -> DataFrame:
        """Return the counts of a kind on the cluster."""
        return self._frame.filter(sql.col("kind") == kind)

    def first(self, kind: str, most: int, *, number: int = 0, rows: int = 1) -> list[Counted]:
        """Return those of a kind and a ``number`` whose keys come first, of those with so many ``rows`` or more."""
        if (here := self.here(kind)) is not None:
            return [one for one in here if one.number == number and one.rows >= rows][:most]
        found = self.there(kind).filter((sql.col("number") == number) & (sql.col("rows") >= rows))
        ordered = found.orderBy("key").limit(most).collect()
        return [Counted(one.number, bytes(one.key), one.rows) for one in ordered]
