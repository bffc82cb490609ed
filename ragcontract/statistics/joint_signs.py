"""Random signs for the changed queries, the same for all tests, and the tests' statistics under them.

A random sign for each of 1,000 samples is one large integer with a bit in each of 1,000 fields of 64 bits. Multiplied
by a query's contribution, rounded to a whole number, and summed over the queries, it gives the sums of all samples at
once. Of very many changed queries, several share a sign: half of them, at random, have the opposite one. Each test's
statistic is divided by what this makes of its spread, so its variance remains exact.
"""

import random
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import fsum, sqrt

from msgspec import Struct

from ragcontract.statistics.sign_flips import SignFlips

SEED = 20_070_101
SAMPLES = 1_000  # at once
FIELD = 64
ONES = int.from_bytes((1).to_bytes(FIELD // 8, "little") * SAMPLES, "little")
UNIT = (1 << 30) - 1  # of a rounded contribution: a digit of Python's integers, so that multiplication is fast
SIGNS, FEWEST_SIGNS = 1_024, 128
PRODUCTS = 8_192


class Rounded(Struct, frozen=True):
    """A test's contributions, by sign, as whole numbers, and what makes a statistic of their sum."""

    sizes: tuple[tuple[int, int], ...]
    offset: int
    total: int
    factor: float

    @classmethod
    def of(cls, contributions: dict[int, float]) -> "Rounded":
        """Round the contributions, the largest of which is not 0."""
        largest = max(map(abs, contributions.values()))
        sizes = tuple((sign, round(size / largest * UNIT)) for sign, size in contributions.items())
        norm = sqrt(fsum(size * size for size in contributions.values())) / largest
        offset = -sum(size for _, size in sizes if size < 0)
        return cls(sizes, offset, sum(size for _, size in sizes), 1 / (norm * UNIT))

    def statistics(self, signs: Sequence[int]) -> list[float]:
        """Return the statistic of each sample. A bit of 1 is a plus; a field must not fall below 0."""
        total = ONES * self.offset
        for sign, size in self.sizes:
            total += signs[sign] * size
        sums = array("Q", total.to_bytes(FIELD // 8 * SAMPLES, sys.byteorder))
        double, less = 2 * self.factor, (2 * self.offset + self.total) * self.factor
        return [double * one - less for one in sums]


def rounded(tests: Sequence[SignFlips]) -> tuple[list[Rounded], int]:
    """Return the tests with their queries dealt to signs, and the number of signs.

    It depends on the queries' contributions alone and not on their order.
    """
    vectors: dict[int, list[tuple[int, float]]] = {}
    for number, test in enumerate(tests):
        for query, size in test.contributions.items():
            vectors.setdefault(query, []).append((number, size))
    ordered = sorted(vectors.values(), key=lambda vector: (-max(abs(size) for _, size in vector), vector))
    most = _number_of_signs(tests)
    dice = random.Random(SEED)  # noqa: S311
    parts: list[dict[int, list[float]]] = [{} for _ in tests]
    for index, vector in enumerate(ordered):
        opposite = index >= most and dice.getrandbits(1)
        for number, size in vector:
            parts[number].setdefault(index % most, []).append(-size if opposite else size)
    return [Rounded.of(_sums(part)) for part in parts], min(most, len(ordered))


def _sums(part: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """Return the contributions of one test by sign; where all that share a sign cancel out, they have one direction."""
    sums = {sign: fsum(sizes) for sign, sizes in part.items()}
    return sums if any(sums.values()) else {sign: fsum(map(abs, sizes)) for sign, sizes in part.items()}


def _number_of_signs(tests: Sequence[SignFlips]) -> int:
    most = SIGNS
    while most > FEWEST_SIGNS and sum(min(len(test.contributions), most) for test in tests) > PRODUCTS:
        most //= 2
    return most


def sampled_signs(number: int, batches: int) -> Iterator[list[int]]:
    """Yield as many batches of 1,000 samples of ``number`` random signs; always the same ones."""
    dice = random.Random(SEED)  # noqa: S311
    for _ in range(batches):
        yield list(islice(_signs(dice), number))


def _signs(dice: random.Random) -> Iterator[int]:
    while True:
        bits = dice.getrandbits(FIELD * SAMPLES)
        for bit in range(FIELD):
            yield bits >> bit & ONES
