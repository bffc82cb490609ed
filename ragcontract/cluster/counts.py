"""Access to the counts of all workers: small kinds are collected on the driver at once, large ones are queried."""

from collections.abc import Collection
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

FEW = 20_000  # maximum number of counts of a kind that the driver collects in full


class Counted(NamedTuple):
    """One count; see :mod:`ragcontract.cluster.workers` for the meaning of its number and key."""

    number: int
    key: bytes
    rows: int


class Size(NamedTuple):
    """The number of counts of a kind, the largest ``rows`` among them, and the highest ``number``."""

    counts: int
    most: int
    highest: int


class Counts:
    """Counts by kind, from a data frame with one row per kind, number and key."""

    def __init__(self, frame: DataFrame, *, whole: Collection[str], few: int = FEW) -> None:
        """Collect all counts of ``whole`` kinds, and those of each other kind with at most ``few`` counts."""
        self._frame = frame
        sizes = frame.groupBy("kind").agg(sql.count("*"), sql.max("rows"), sql.max("number")).collect()
        self._sizes = {kind: Size(*size) for kind, *size in sizes}
        self._here: dict[str, list[Counted]] = {
            kind: [] for kind, size in self._sizes.items() if kind in whole or size.counts <= few
        }
        for kind, number, key, rows in frame.filter(sql.col("kind").isin(list(self._here))).collect():
            self._here[kind].append(Counted(number, bytes(key), rows))

    def size(self, kind: str) -> Size:
        """Return the size of a kind."""
        return self._sizes.get(kind, Size(0, 0, 0))

    def here(self, kind: str) -> list[Counted] | None:
        """Return all counts of a kind, sorted, or None if they were not collected."""
        return sorted(self._here.get(kind, [])) if self.size(kind).counts == 0 or kind in self._here else None

    def there(self, kind: str) -> DataFrame:
        """Return the counts of a kind as a data frame."""
        return self._frame.filter(sql.col("kind") == kind)

    def lowest(self, kind: str, most: int) -> list[Counted]:
        """Return the first ``most`` counts of a kind by number and key."""
        if (here := self.here(kind)) is not None:
            return here[:most]
        ordered = self.there(kind).orderBy("number", "key").limit(most).collect()
        return [Counted(one.number, bytes(one.key), one.rows) for one in ordered]

    def first(self, kind: str, most: int, *, number: int = 0, rows: int = 1) -> list[Counted]:
        """Return the first ``most`` counts by key, of a kind and ``number``, with at least that many ``rows``."""
        if (here := self.here(kind)) is not None:
            return [one for one in here if one.number == number and one.rows >= rows][:most]
        found = self.there(kind).filter((sql.col("number") == number) & (sql.col("rows") >= rows))
        ordered = found.orderBy("key").limit(most).collect()
        return [Counted(one.number, bytes(one.key), one.rows) for one in ordered]
