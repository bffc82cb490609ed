"""What is measured of a day's interactions, and how it is compared and called: a line for each monitor.

A monitor has at most one value a day, in natural units. To be compared, rates become arcsin √p, whose spread depends
on the number of interactions alone; counts, lengths and times become logarithms, whose differences are shares.
"""

from collections.abc import Callable, Mapping
from math import asin, log, sqrt
from typing import Literal

from msgspec import Struct

from ragcontract.core.numbers import fixed, milliseconds, ms_digits, percent

Scale = Literal["rate", "logarithm", "score"]
RATE_FLOOR = 0.4  # divided by √n; the spread of arcsin √p is 0.5/√n where answers do not depend on each other
SHARE_FLOOR = 0.02  # of a logarithm; of scores, a share of the usual one
LEAST = 0.5  # counts, lengths and times below are taken for this one, as nothing has no logarithm
SCORE_LEAST = 1e-6  # differences of scores that are nothing
# Made by `python -m benchmarks.drift`, and what the page tells people; a test holds it to the table.
FALSE_ALARMS = 0.2  # of a monitor in a year in which nothing changes
MONTHS = 12  # of a year


class Monitor(Struct, frozen=True, kw_only=True):
    """What is measured: its name in the database and the API, and its words in sentences."""

    name: str
    label: str
    unit: str  # of a value: interactions, characters, ms, a share from 0 to 1, or a score
    scale: Scale
    up: str  # what happens if it rises, as the beginning of a sentence
    down: str
    value: str  # what stands before a value in a sentence, such as `median`
    of: str  # what `n` counts

    @property
    def needs_many(self) -> bool:
        """Whether a day with few interactions says nothing; the number of interactions itself always says something."""
        return self.name != VOLUME


VOLUME = "volume"
_ALL = "interactions"
_DRAWN = "drawn interactions"
_MONITORS = (
    Monitor(
        name=VOLUME,
        label="Interactions",
        unit="interactions",
        scale="logarithm",
        up="There are more interactions",
        down="There are fewer interactions",
        value="",
        of=_ALL,
    ),
    Monitor(
        name="question_length",
        label="Question length",
        unit="characters",
        scale="logarithm",
        up="Questions are longer",
        down="Questions are shorter",
        value="median ",
        of=_DRAWN,
    ),
    Monitor(
        name="unseen_grams",
        label="New wording",
        unit="share",
        scale="rate",
        up="Questions have more wording that is new",
        down="Questions have less wording that is new",
        value="4-grams unseen in 28 days ",
        of=_DRAWN,
    ),
    Monitor(
        name="error_rate",
        label="Errors",
        unit="share",
        scale="rate",
        up="There are more errors",
        down="There are fewer errors",
        value="",
        of=_ALL,
    ),
    Monitor(
        name="empty_rate",
        label="Empty results",
        unit="share",
        scale="rate",
        up="More questions have no results",
        down="Fewer questions have no results",
        value="",
        of="interactions with a list of results",
    ),
    Monitor(
        name="negative_rate",
        label="Negative feedback",
        unit="share",
        scale="rate",
        up="More feedback is negative",
        down="Less feedback is negative",
        value="",
        of="interactions with feedback",
    ),
    Monitor(
        name="top_score",
        label="Top score",
        unit="score",
        scale="score",
        up="The score of the first result is higher",
        down="The score of the first result is lower",
        value="median ",
        of="drawn interactions with a score",
    ),
    Monitor(
        name="score_gap",
        label="Gap to the second score",
        unit="score",
        scale="score",
        up="The gap between the first two scores is wider",
        down="The gap between the first two scores is narrower",
        value="median ",
        of="drawn interactions with two scores",
    ),
    Monitor(
        name="latency_p50",
        label="Latency, median",
        unit="ms",
        scale="logarithm",
        up="Answers take longer",
        down="Answers take less time",
        value="median ",
        of="drawn interactions with a latency",
    ),
    Monitor(
        name="latency_p95",
        label="Latency, 95th percentile",
        unit="ms",
        scale="logarithm",
        up="The slowest answers take longer",
        down="The slowest answers take less time",
        value="95th percentile ",
        of="drawn interactions with a latency",
    ),
    Monitor(
        name="unknown_documents",
        label="Unknown documents",
        unit="share",
        scale="rate",
        up="More results are documents that are new",
        down="Fewer results are documents that are new",
        value="",
        of="drawn interactions with results",
    ),
    Monitor(
        name="golden_coverage",
        label="Golden coverage",
        unit="share",
        scale="rate",
        up="More questions are near to a golden query",
        down="Fewer questions are near to a golden query",
        value="",
        of=_DRAWN,
    ),
)
MONITORS: Mapping[str, Monitor] = {monitor.name: monitor for monitor in _MONITORS}


def _rate(value: float) -> float:
    return asin(sqrt(min(max(value, 0.0), 1.0)))


def _logarithm(value: float) -> float:
    return log(max(value, LEAST))


def _score(value: float) -> float:
    return value


TO_COMPARE: Mapping[Scale, Callable[[float], float]] = {"rate": _rate, "logarithm": _logarithm, "score": _score}


def floor_of(monitor: Monitor, n: int, usual: float) -> float:
    """Return the least spread that days are taken to have: of ``n`` interactions, with this median of like days."""
    if monitor.scale == "rate":
        return RATE_FLOOR / sqrt(max(n, 1))
    if monitor.scale == "logarithm":
        return SHARE_FLOOR
    return max(SHARE_FLOOR * abs(usual), SCORE_LEAST)


def shown_value(monitor: Monitor, value: float, *, unit: bool = True) -> str:
    """Return a value as people read it, with its unit or without."""
    if monitor.unit == "share":
        return percent(value, 1)
    if monitor.unit == "ms":
        text = milliseconds(value, ms_digits(value))
        return text if unit else text.removesuffix(" ms")
    if monitor.unit == "score":
        return fixed(value, 3)
    text = f"{value:,.1f}".removesuffix(".0")
    return f"{text} {monitor.unit}" if unit else text


def false_alarms_a_month(monitors: int) -> float:
    """Return how many false alarms to expect in a month of so many monitors that can tell something."""
    return monitors * FALSE_ALARMS / MONTHS
