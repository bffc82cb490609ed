"""Which judgments of earlier count, and which stay in the file."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.judge.judging_session import Cache, by_key
from ragcontract.judgments.items import AskedJudge
from ragcontract.judgments.judgments_file import Judgment, Status, query_key

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
WHO = AskedJudge(protocol=1, instructions="x", model="toy", host="h", votes=1, confirm="failures")


def said(key: str = "a", status: Status = "ok", days: float = 0) -> Judgment:
    return Judgment(
        key=key * 64,
        task="attribution",
        query_id="q1",
        item="claim:1",
        status=status,
        verdict=False if status == "ok" else None,
        fingerprint="f",
        judge=WHO,
        at=NOW - timedelta(days=days),
    )


def cache(*stored: Judgment, unfinished: tuple[Judgment, ...] = (), refresh: bool = False) -> Cache:
    return Cache(now=NOW, stored=by_key(stored), unfinished=by_key(unfinished), refresh=refresh)


@pytest.mark.parametrize(
    ("status", "stored", "unfinished"),
    [("ok", True, True), ("unsure", False, True), ("compromised", False, True), ("failed", False, False)],
)
def test_what_has_no_verdict_is_only_reused_from_what_did_not_end(
    status: Status, stored: bool, unfinished: bool
) -> None:
    one = said(status=status)
    assert (cache(one).get(query_key(one)) is not None) == stored
    assert (cache(unfinished=(one,)).get(query_key(one)) is not None) == unfinished


def test_a_refresh_reuses_only_what_did_not_end() -> None:
    one = said()
    assert cache(one, refresh=True).get(query_key(one)) is None
    assert cache(one, unfinished=(one,), refresh=True).get(query_key(one)) == one


def test_a_new_judgment_replaces_the_old_one_unless_there_was_no_reply() -> None:
    old, new, failed = said(days=1), said(), said(status="failed")
    assert cache(old).merged([query_key(old)], [new]) == [new]
    assert cache(old).merged([query_key(old)], [failed]) == [old]
    assert cache().merged([query_key(failed)], [failed]) == [failed]


def test_what_is_not_wanted_any_more_stays_as_long_as_it_could_be_reused() -> None:
    new, young, old = said(), said("b", days=6), said("c", days=8)
    assert cache(young, old).merged([query_key(new)], [new]) == [young, new]
    assert cache(young, old).merged([query_key(old)], []) == [young, old]


def test_what_is_not_wanted_stays_until_its_query_is_judged_again() -> None:
    old, new, unsure = said("c", days=8), said(), said("d", status="unsure")
    other_query, other_task = replace(new, query_id="q2"), replace(new, task="criteria")
    assert cache(old).merged([], []) == [old]
    assert cache(old).merged([query_key(new)], []) == [old]
    assert cache(old).merged([query_key(new), query_key(unsure)], [new, unsure]) == [old, new, unsure]
    assert cache(old).merged([query_key(other_query)], [other_query]) == [old, other_query]
    assert cache(old).merged([query_key(other_task)], [other_task]) == [old, other_task]


def test_an_id_that_is_a_number_is_the_same_as_its_digits() -> None:
    assert query_key(replace(said(), query_id=7)) == query_key(replace(said(), query_id="7"))


@pytest.mark.parametrize("days", [999_999_999, bounds.RANK])
def test_any_age_may_be_allowed_that_the_configuration_takes(days: float) -> None:
    old = said(days=700_000)
    found = Cache(now=NOW, stored=by_key([old]), max_age_days=days)
    assert found.get(query_key(old)) == old
    assert found.merged([], []) == [old]
