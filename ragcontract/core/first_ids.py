"""The first document ids of a baseline's rows, packed: a baseline may have a hundred thousand queries.

Of each query, there is one list for each row. The judged pool of a query is packed in the same way: it is the union of
its lists, so a query whose pool is what its rows returned has one object for both.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from ragcontract.core import bounds
from ragcontract.core.text import encodable

# Of a baseline's own results, the first k are judged by definition: nothing has to be looked up.
EVERYTHING = b""

_encode = msgspec.msgpack.Encoder().encode
unpacked = msgspec.msgpack.Decoder(list[list[str]]).decode


def packed(lists: object) -> bytes:
    """Pack a list of ids, or lists of them; what is no text, as half of a pair of surrogates, is escaped."""
    try:
        return _encode(lists)
    except UnicodeEncodeError:
        return _encode(_escaped(lists))


def _escaped(lists: Any) -> Any:
    return encodable(lists) if isinstance(lists, str) else [_escaped(one) for one in lists]


def first_of(doc_ids: Sequence[str], k: int, *, by_document: bool) -> Sequence[str]:
    """Return the first ``k`` results, or documents if ranks count documents."""
    return list(dict.fromkeys(doc_ids))[:k] if by_document else doc_ids[:k]


def together(rows: Iterable[bytes]) -> bytes:
    """Pack the rows of one query, each packed on its own; of very many, the first ``bounds.BASELINE_ROWS``."""
    held = [Raw(row) for _, row in zip(range(bounds.BASELINE_ROWS), rows, strict=False)]
    return _encode(held)


def pool_of(pool: bytes) -> frozenset[str]:
    """Return the documents of a packed pool."""
    lists = unpacked(pool)
    return frozenset(lists[0]) if len(lists) == 1 else frozenset().union(*lists)


class FirstIds:
    """Collects the first ids of a baseline's rows while they are read."""

    def __init__(self, k: int, *, by_document: bool) -> None:
        """Collect the first ``k`` ids of each row."""
        self._k, self._by_document = k, by_document
        self._packed: dict[str, bytes] = {}
        self._repeats: dict[str, list[bytes]] = {}

    def note(self, query_id: str, doc_ids: Sequence[str]) -> None:
        """Add a row of a query."""
        first = first_of(doc_ids, self._k, by_document=self._by_document)
        if query_id not in self._packed:
            self._packed[query_id] = packed([first])
            return
        rows = self._repeats.setdefault(query_id, [packed(unpacked(self._packed[query_id])[0])])
        if len(rows) < bounds.BASELINE_ROWS:
            rows.append(packed(first))

    def result(self) -> dict[str, bytes]:
        """Return the packed rows of each query."""
        return self._packed | {query_id: together(rows) for query_id, rows in self._repeats.items()}
