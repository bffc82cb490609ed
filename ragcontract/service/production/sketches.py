"""What a day's texts and documents are remembered by, so that later days can tell what is new: sets of hashes, as bits.

A sketch is 64 KiB of bits, most of them 0, and compressed to a few. Of 28 days with 40,000 different 4-grams, one new
gram in 13 is taken for one that is known, which changes what is measured, but not whether it changes.
"""

import zlib
from collections.abc import Iterable, Sequence

from ragcontract.core import bounds
from ragcontract.service.production.question_similarity import normalised

GRAMS, DOCUMENTS = KINDS = ("grams", "documents")
SIZE = 4  # characters of a gram
_BITS = 1 << 19


def grams_in(question: str) -> list[int]:
    """Return the hashes of the grams of a question; empty if it has no letter."""
    text = normalised(question[: bounds.COMPARED_QUESTION])
    text = f" {text} " if text else ""
    return [_hash(text[at : at + SIZE]) for at in range(len(text) - SIZE + 1)]


def document_hash(doc_id: str) -> int:
    """Return the hash of a document's id."""
    return _hash(doc_id)


def _hash(text: str) -> int:
    return zlib.crc32(text.encode(errors="surrogatepass")) % _BITS


class Sketch:
    """A set of hashes."""

    def __init__(self) -> None:
        self._bits = bytearray(_BITS // 8)

    def add(self, hashes: Iterable[int]) -> None:
        """Add hashes."""
        bits = self._bits
        for each in hashes:
            bits[each >> 3] |= 1 << (each & 7)

    def share_unknown(self, hashes: Sequence[int]) -> float:
        """Return the share of hashes that are not in the set."""
        bits = self._bits
        return sum(not bits[each >> 3] >> (each & 7) & 1 for each in hashes) / len(hashes)

    def packed(self) -> bytes:
        """Return what the database has of the set."""
        return zlib.compress(self._bits, 6)


def union_of(bodies: Iterable[bytes]) -> Sketch:
    """Return the union of sketches that the database has."""
    total = 0
    for body in bodies:
        total |= int.from_bytes(zlib.decompressobj().decompress(body, _BITS // 8), "little")
    union = Sketch()
    union._bits[:] = total.to_bytes(_BITS // 8, "little")  # noqa: SLF001 (its own)
    return union
