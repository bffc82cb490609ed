"""Notices ids of documents that are made anew each time, as frameworks do where nobody names a document."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import RagContractError
from ragcontract.core.ids import as_id
from ragcontract.core.text import shorten
from ragcontract.files.anchored_path import AnchoredPath
from ragcontract.files.events import located
from ragcontract.files.problems import Collector
from ragcontract.files.rows import read_rows

# Versions 1, 4, 6 and 7; those of versions 3 and 5 are made of what they stand for, and stay the same.
# Anything may stand around one, as in `doc-<UUID>` or `<UUID>_0`, but other digits: they would make it a digest.
RANDOM = re.compile(
    r"(?<![0-9a-f])[0-9a-f]{8}-?[0-9a-f]{4}-?[1467][0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}(?![0-9a-f])",
    re.IGNORECASE,
)


class _EarlierRow(Struct, frozen=True, kw_only=True):
    query_id: Any = None
    results: Any = None


class RandomIds:
    """Compares the ids of a run, as its rows are written, with those of other rows of the same queries."""

    def __init__(self, out: AnchoredPath | None) -> None:
        """Read the beginning of the run that is to be overwritten, if there is one."""
        self._before: dict[str, frozenset[str]] = {}
        self._differs: str | None = None
        self._is_stable = False
        with suppress(RagContractError, OSError):  # what lies there need not be a run
            for row in _earlier(out):
                self._compare(row.query_id, row.results)

    def passing(self, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield rows as they are, and compare them."""
        for row in rows:
            self._compare(row["query_id"], row.get("results"))
            yield row

    def warnings(self) -> Iterator[str]:
        """Yield a warning if some ids differ from those of before, and none is the same."""
        if self._differs is not None and not self._is_stable:
            query = shorten(self._differs, bounds.NAME)
            what = f"ids of documents look like random UUIDs, and differ from those of before (as for query {query!r})"
            yield f"{what}; no golden query can name them, so say with --doc-id where a result names its document"

    def _compare(self, query_id: object, results: object) -> None:
        ids = frozenset(_random(results))
        if not ids or not isinstance(query_id, str | int):
            return
        known_as = as_id(query_id)
        before = self._before.get(known_as)
        if before is not None:
            self._is_stable |= not ids.isdisjoint(before)
            self._differs = self._differs or known_as
        elif len(self._before) < bounds.COMPARED_QUESTIONS:
            self._before[known_as] = ids


def _earlier(out: AnchoredPath | None) -> Iterator[_EarlierRow]:
    if out is not None and Path(out).is_file():
        rows = located(read_rows([str(Path(out))], _EarlierRow, spell_check=0), Collector())
        yield from (row for _, row in islice(rows, bounds.COMPARED_QUESTIONS))


def _random(results: object) -> Iterator[str]:
    for result in results if isinstance(results, list) else ():
        doc_id = result.get("doc_id") if isinstance(result, Mapping) else result
        if isinstance(doc_id, str) and RANDOM.search(doc_id):
            yield doc_id
