"""Which earlier judgments are as good as new ones, and what a judgments file has in the end."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from ragcontract.runs.judgments import Judgment, QueryKey, query_key

USUAL_DAYS = 7


class Cache(Struct, frozen=True, kw_only=True):
    """Earlier judgments: those ``stored`` in the file, and those of a judging that did not end.

    A judgment is reused for ``max_age_days``, by the clock of this machine: one from the future is not. What is
    ``stored`` is reused only where there is a verdict; of the judging that did not end, whatever was replied.
    """

    now: datetime
    stored: Mapping[QueryKey, Judgment] = {}
    unfinished: Mapping[QueryKey, Judgment] = {}
    max_age_days: float = USUAL_DAYS
    refresh: bool = False

    def get(self, wanted: QueryKey) -> Judgment | None:
        """Return a judgment to reuse; None if the item is to be asked."""
        unfinished = self.unfinished.get(wanted)
        if unfinished is not None and unfinished.status != "failed" and self._is_fresh(unfinished):
            return unfinished
        stored = None if self.refresh else self.stored.get(wanted)
        return stored if stored is not None and stored.status == "ok" and self._is_fresh(stored) else None

    def merged(self, wanted: Iterable[QueryKey], new: Iterable[Judgment]) -> list[Judgment]:
        """Return the content of the file: the new judgments, and earlier ones that may still be of use.

        Where there is no new one, the old one stays, however old: a check says how old it is. What is not wanted any
        more stays as long as it could be reused, because texts may change back, and until its query has a verdict on
        all that is wanted: a judging of some queries or tasks leaves the others alone.
        """
        result = {**self.stored, **self.unfinished}
        for judgment in new:
            old = result.get(query_key(judgment))
            if judgment.status != "failed" or old is None or old.status == "failed":
                result[query_key(judgment)] = judgment
        asked = set(wanted)
        lacking = {one[0] for one in asked if one not in result or result[one].status != "ok"}
        again = {(one[0], result[one].task) for one in asked if one[0] not in lacking}
        return [
            one
            for found_by, one in result.items()
            if found_by in asked or self._is_fresh(one) or (found_by[0], one.task) not in again
        ]

    def _is_fresh(self, judgment: Judgment) -> bool:
        # Not the other way round: a timedelta cannot have as many days as somebody may allow.
        return 0 <= (self.now - judgment.at) / timedelta(days=1) <= self.max_age_days


def by_key(judgments: Sequence[Judgment]) -> dict[QueryKey, Judgment]:
    """Return judgments by what they are found by; of several, the last."""
    return {query_key(judgment): judgment for judgment in judgments}
