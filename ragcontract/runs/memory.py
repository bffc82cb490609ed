"""A run that was never a file: what a test has just retrieved."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ragcontract.core.errors import InputError
from ragcontract.core.ids import as_id, as_ids
from ragcontract.core.numbers import count
from ragcontract.model import Accepted, Latency, SourceFile
from ragcontract.runs.encoder import Id, Result, RowEncoder
from ragcontract.runs.run_file import descending

NAME = "(in memory)"
# Mappings are invariant in their keys: a dict[str, …] would be no Mapping[str | int, …].
AtHand = Mapping[str, Iterable[Result]] | Mapping[int, Iterable[Result]] | Mapping[Id, Iterable[Result]]


class RunInMemory:
    """The rows of a mapping of query ids to what was retrieved, as a run's reader yields them.

    Its one file is called ``(in memory)`` and has the digest of the file that
    :class:`~ragcontract.runs.writer.RunWriter` would write. ``warnings`` say what is odd about the rows.
    """

    created_at: str | None = None
    k: list[int] | None = None
    questions: Mapping[str, str] = {}
    accepted: Sequence[Accepted] = ()
    latency: Latency | None = None
    unmeasured = 0

    def __init__(self, run: AtHand) -> None:
        """Take the rows; raises :class:`InputError` for what no run's reader would take."""
        encoder = RowEncoder(NAME, {})
        digest = hashlib.sha256()
        self._rows: dict[str, list[str]] = {}
        unordered: list[Id] = []
        for query_id, results in run.items():
            line, row = encoder.row(query_id, results)
            if as_id(row.query_id) in self._rows:
                raise InputError([f"{encoder.location(query_id)}: is there already, as text or as a number"])
            self._rows[as_id(row.query_id)] = as_ids([result.doc_id for result in row.results])
            if not descending([result.score for result in row.results]):
                unordered.append(query_id)
            digest.update(line)
        if not self._rows:
            raise InputError([f"{NAME}: the run is empty"])
        self.files = [SourceFile(path=NAME, sha256=digest.hexdigest())]
        self.versions: dict[str, list[str]] = {}
        self.warnings = [_about_order(encoder.location(unordered[0]), len(unordered))] if unordered else []

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        """Yield ``(query_id, doc_ids)`` of every row."""
        return iter(self._rows.items())


def _about_order(first: str, rows: int) -> str:
    """Say what the reader of a run's files says of rows whose scores do not descend."""
    return (
        f"{first}: the scores are not in descending order ({count(rows, 'such row')}); "
        "ranks are the order of the results, scores never reorder them"
    )
