"""What is wrong with an interaction, as far as it shows by itself, and which interactions become candidates.

The flags of an interaction are a set of bits.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from ragcontract.service.mounted import Flags, Sampling

ERROR, EMPTY, SLOW, LOW_CONFIDENCE, NEGATIVE_FEEDBACK = 1, 2, 4, 8, 16
NAMES: Mapping[str, int] = {  # in the API and on pages
    "error": ERROR,
    "empty": EMPTY,
    "slow": SLOW,
    "low_confidence": LOW_CONFIDENCE,
    "negative_feedback": NEGATIVE_FEEDBACK,
}
SAMPLED = "sampled"  # the reason of a candidate without a flag
SLOW_TIMES = 2  # `auto`: slow is what takes more than so many times the 95th percentile of the day before
_ALL = 1 << 64


def names_of(flags: int) -> list[str]:
    """Return the names of the flags of an interaction."""
    return [name for name, bit in NAMES.items() if flags & bit]


def flags_of(row: Mapping[str, Any], *, has_no_results: bool, wanted: Flags, p95: float | None) -> int:
    """Return the flags of an interaction; ``p95`` is that of the day before in milliseconds, if it is known."""
    latency, confidence = row["latency_ms"], row["confidence"]
    slow = wanted.latency_ms if wanted.latency_ms != "auto" else None if p95 is None else SLOW_TIMES * p95
    flags = ERROR if row["error"] is not None else 0
    if has_no_results:
        flags |= EMPTY
    if slow is not None and latency is not None and latency > slow:
        flags |= SLOW
    if wanted.confidence_lt is not None and confidence is not None and confidence < wanted.confidence_lt:
        flags |= LOW_CONFIDENCE
    return flags | NEGATIVE_FEEDBACK if row["feedback"] == -1 else flags


def is_drawn(secret: str, external_id: str, flags: int, sampling: Sampling) -> bool:
    """Return whether an interaction becomes a candidate: always the same for the same id."""
    rate = sampling.error if flags & ERROR else sampling.flagged if flags else sampling.ok
    number = hashlib.sha256(f"{secret}{external_id}".encode()).digest()[:8]
    return int.from_bytes(number) < rate * _ALL
