"""Finds out which relevant ids never occur in a run: whether the ids of contract and run are written the same way.

Most of it costs nothing in a good run: the search ends once every relevant id has occurred.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.id_forms import Match, matches, most_common


class UnseenIds(Struct, frozen=True, kw_only=True):
    """The relevant ids of the queries with rows: ``never`` of the ``relevant`` ones occur in no row.

    Of these, ``compared`` were compared with ids that do occur: ``matched`` occur in the form of the
    ``example``. ``retrieved`` are the first ids of the run.
    """

    relevant: int = 0
    never: int = 0
    compared: int = 0
    matched: int = 0
    example: Match | None = None
    retrieved: tuple[str, ...] = ()


class UnseenIdSearch:
    """Searches the rows of a run for the relevant ids of all golden queries."""

    def __init__(self, golden: Mapping[str, GoldenQuery]) -> None:
        """Search for the relevant ids of these queries."""
        self._golden = golden
        self._unseen = set(chain.from_iterable(query.relevant_doc_ids for query in golden.values()))
        self._relevant = len(self._unseen)
        self._held: list[tuple[GoldenQuery, list[str]]] = []
        self._room = bounds.COMPARED_IDS

    def note(self, rows: Iterable[list[str]]) -> None:
        """Note the document ids of rows."""
        if self._unseen:
            self._unseen.difference_update(*rows)

    def hold(self, query: GoldenQuery, doc_ids: list[str]) -> None:
        """Hold a row that lacks a relevant document, to compare its ids with it, as long as there is room."""
        if self._unseen and self._room > 0:
            self._held.append((query, doc_ids))
            self._room -= len(doc_ids)

    def result(self, without_row: Collection[str]) -> UnseenIds:
        """Return what was found; the ids of queries ``without_row`` do not count."""
        if not self._unseen:
            return UnseenIds(relevant=self._relevant)
        relevant, unseen = self._relevant, self._unseen
        if without_row:
            absent = set(without_row)
            having = [query for query_id, query in self._golden.items() if query_id not in absent]
            wanted = set(chain.from_iterable(query.relevant_doc_ids for query in having))
            relevant, unseen = len(wanted), unseen & wanted
        compared = [
            doc_id
            for doc_id in dict.fromkeys(chain.from_iterable(query.relevant_doc_ids for query, _ in self._held))
            if doc_id in unseen
        ]
        example, matched = most_common(matches(compared, chain.from_iterable(doc_ids for _, doc_ids in self._held)))
        retrieved = dict.fromkeys(chain.from_iterable(doc_ids[:1] for _, doc_ids in self._held[: bounds.NAMES]))
        return UnseenIds(
            relevant=relevant,
            never=len(unseen),
            compared=len(compared),
            matched=matched,
            example=example,
            retrieved=tuple(retrieved),
        )
