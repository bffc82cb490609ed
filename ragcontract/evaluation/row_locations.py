"""Where the rows of a run are, so that a problem with one says where it and an earlier row of its query stand."""

from ragcontract.core.run import RunRow
from ragcontract.files.events import Batch
from ragcontract.files.schema import shown

FILE_BITS = 40


class RowLocations:
    """The first row of each query, by the query's id, as one integer of file and line, to save memory."""

    def __init__(self) -> None:
        """Know no row yet."""
        self.lines: dict[str, int] = {}
        self._paths: list[str] = []

    def start_of(self, batch: Batch[RunRow]) -> int:
        """Return the integer of a batch's first row; the others follow it one by one."""
        if batch.path not in self._paths[-1:]:
            self._paths.append(batch.path)
        return (len(self._paths) - 1 << FILE_BITS) + batch.line

    def of(self, query_id: str) -> str:
        """Return the location of a query's row, such as ``run.jsonl:17``."""
        file, line = divmod(self.lines[query_id], 1 << FILE_BITS)
        return f"{self._paths[file]}:{line}"


def location_of(batch: Batch[RunRow], index: int) -> str:
    """Return the location of a row, such as ``run.jsonl:17``; for a run in memory, its query."""
    return batch.location(index) if batch.line else f"{batch.path}: query {shown(batch.rows[index].query_id)}"
