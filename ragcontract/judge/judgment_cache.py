"""Which judgments of earlier are as good as new ones, and what a judgments file has in the end."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from ragcontract.core.ids import as_id
from ragcontract.runs.judgments import Judgment

USUAL_DAYS = 7

Place = tuple[str, str]  # the id of a query, and a key


def place_of(judgment: Judgment) -> Place:
    """Return what a judgment is found by."""
    return as_id(judgment.query_id), judgment.key


class Cache(Struct, frozen=True, kw_only=True):
    """Judgments of earlier: those ``stored`` in the file, and those of a judging that did not end.

    A judgment is reused for ``max_age_days``, by the clock of this machine: one from the future is not. What is
    ``stored`` is reused only where there is a verdict; of the judging that did not end, whatever was replied.
    """

    now: datetime
    stored: Mapping[Place, Judgment] = {}
    unfinished: Mapping[Place, Judgment] = {}
    max_age_days: float = USUAL_DAYS
    refresh: bool = False

    def get(self, place: Place) -> Judgment | None:
        """Return a judgment to reuse; None if the item is to be asked."""
        unfinished = self.unfinished.get(place)
        if unfinished is not None and unfinished.status != "failed" and self._is_fresh(unfinished):
            return unfinished
        stored = None if self.refresh else self.stored.get(place)
        return stored if stored is not None and stored.status == "ok" and self._is_fresh(stored) else None

    def merged(self, wanted: Iterable[Place], new: Iterable[Judgment]) -> list[Judgment]:
        """Return the content of the file: the new judgments, and those of earlier that may still be of use.

        Where there is no new one, the old one stays, however old: a check says how old it is. What is not wanted any
        more stays as long as it could be reused, because texts may change back, and until its query has a verdict on
        all that is wanted: a judging of some queries or tasks leaves the others alone.
        """
        result = {**self.stored, **self.unfinished}
        for judgment in new:
            old = result.get(place_of(judgment))
            if judgment.status != "failed" or old is None or old.status == "failed":
                result[place_of(judgment)] = judgment
        asked = set(wanted)
        lacking = {place[0] for place in asked if place not in result or result[place].status != "ok"}
        again = {(place[0], result[place].task) for place in asked if place[0] not in lacking}
        return [
            one
            for place, one in result.items()
            if place in asked or self._is_fresh(one) or (place[0], one.task) not in again
        ]

    def _is_fresh(self, judgment: Judgment) -> bool:
        # Not the other way round: a timedelta cannot have as many days as somebody may allow.
        return 0 <= (self.now - judgment.at) / timedelta(days=1) <= self.max_age_days


def by_place(judgments: Sequence[Judgment]) -> dict[Place, Judgment]:
    """Return judgments by what they are found by; of several, the last."""
    return {place_of(judgment): judgment for judgment in judgments}
