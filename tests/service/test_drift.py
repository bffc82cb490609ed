"""Which days are unlike others of their kind, and what is said of it: no database, no clock."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random

import pytest

from ragcontract.core import bounds
from ragcontract.service.database import DAY
from ragcontract.service.production.drift import (
    FARTHEST,
    LIKE_DAYS,
    WINDOW,
    Measured,
    alarm_of,
    all_compared,
    is_weekend,
    like_days,
    standing,
)
from ragcontract.service.production.monitors import (
    MONITORS,
    TO_COMPARE,
    false_alarms_a_month,
    floor_of,
    shown_value,
)

MONDAY = round(datetime(2026, 8, 31, tzinfo=UTC).timestamp() * 1_000)
LENGTH, ERRORS, VOLUME, SCORE = (MONITORS[name] for name in ("question_length", "error_rate", "volume", "top_score"))


def days_of(values: Sequence[float | None], n: int = 500, first: int = MONDAY) -> list[Measured]:
    """Return days from a Monday on; None is a day without a value."""
    return [Measured(first + place * DAY, n, value) for place, value in enumerate(values) if value is not None]


def usual(number: int, level: float = 45, seed: int = 1) -> list[float]:
    """Return values about a level, give or take two percent."""
    random = Random(seed)
    return [level * math.exp(random.gauss(0, 0.02)) for _ in range(number)]


def alarms(days: Sequence[Measured]) -> list[int]:
    """Return the places of the days that alarm, with a sign for their direction, the first day being 1."""
    return [((each.day - MONDAY) // DAY + 1) * each.alarm for each in days if each.alarm]


def test_weekends_are_saturdays_and_sundays() -> None:
    assert [is_weekend(MONDAY + place * DAY) for place in range(8)] == [*[False] * 5, True, True, False]


def test_a_day_is_compared_with_like_days_of_the_last_35() -> None:
    days = days_of([45.0] * 80)
    compared = {place: like_days(LENGTH, days[:place], days[place].day, None) for place in (70, 71, 75, 76)}
    assert [len(of_day) for of_day in compared.values()] == [25, 25, 10, 10]
    for place, of_day in compared.items():
        assert {is_weekend(each.day) for each in of_day} == {is_weekend(days[place].day)}
        assert min(each.day for each in of_day) >= days[place].day - WINDOW * DAY


def test_nothing_is_told_before_there_are_eight_like_days() -> None:
    told = [each.z is not None for each in all_compared(LENGTH, days_of(usual(30)))]
    weekdays = [place for place in range(30) if place % 7 < 5]
    assert [place for place in weekdays if told[place]] == weekdays[LIKE_DAYS:]
    assert told.index(True) == 10  # a Thursday: eight weekdays are known
    weekends = [place for place in range(30) if place % 7 >= 5 and told[place]]
    assert weekends == []  # the ninth day of a weekend is the 34th
    assert all_compared(LENGTH, days_of(usual(34)))[33].z is not None


def test_z_is_the_distance_in_spreads_of_like_days() -> None:
    values = [40.0, 41, 42, 43, 44, 0, 0, 45, 46, 47, 48, 60]
    today = all_compared(LENGTH, days_of([value or None for value in values]))[-1]
    known = sorted(math.log(value) for value in values[:-1] if value)
    middle = known[4] if len(known) % 2 else (known[3] + known[4]) / 2
    spread = sorted(abs(value - middle) for value in known)
    mad = spread[4] if len(spread) % 2 else (spread[3] + spread[4]) / 2
    assert today.z == pytest.approx((math.log(60) - middle) / (1.4826 * mad))


@pytest.mark.parametrize(
    ("name", "n", "before", "today", "z"),
    [
        ("question_length", 500, 45.0, 45.0 * math.exp(0.02), 1.0),
        ("volume", 500, 500.0, 500.0 * math.exp(-0.06), -3.0),
        ("latency_p95", 500, 800.0, 800.0 * math.exp(0.1), 5.0),
        ("error_rate", 400, 0.0, math.sin(0.04) ** 2, 2.0),  # the floor is 0.4 / √400
        ("error_rate", 10_000, 0.0, math.sin(0.04) ** 2, 10.0),
        ("top_score", 500, 0.8, 0.84, 2.5),
        ("top_score", 500, -20.0, -21.0, -2.5),
        ("score_gap", 500, 0.0, 0.5, FARTHEST),
    ],
)
def test_a_monitor_that_is_constant_has_the_least_spread(
    name: str, n: int, before: float, today: float, z: float
) -> None:
    days = all_compared(MONITORS[name], days_of([before] * 10 + [today], n))
    assert days[-1].z == pytest.approx(z)
    assert all_compared(MONITORS[name], days_of([before] * 11, n))[-1].z == 0


def test_far_from_usual_alarms_at_once_and_less_far_on_two_days_running() -> None:
    steady = [45.0] * 28
    for step, raised in ((0.13, [29]), (-0.13, [-29]), (0.08, [30]), (-0.08, [-30]), (0.06, [])):
        changed = [45 * math.exp(step)] * 3
        assert alarms(all_compared(LENGTH, days_of(steady + changed))) == raised, step


def test_the_limits_themselves_are_no_alarm_and_not_as_usual() -> None:
    """About a score of 50, z is exactly the distance."""

    def raised(*distances: float) -> list[int]:
        return alarms(all_compared(SCORE, days_of([50.0] * 28 + [50 + each for each in distances])))

    assert (raised(6), raised(6.5), raised(-6), raised(-6.5)) == ([], [29], [], [-29])
    assert (raised(3.5, 3.5), raised(4, 3.5), raised(3.5, 4), raised(4, 3), raised(4, 4)) == ([], [], [], [], [30])
    days = all_compared(SCORE, days_of([50.0] * 28 + [60.0, 52.0, 52.0, 52.0]))
    assert standing(days) is not None
    assert standing(all_compared(SCORE, days_of([50.0] * 28 + [60.0, 51.5, 51.5, 51.5]))) is None


def test_two_days_in_two_directions_are_no_alarm() -> None:
    up, down = 45 * math.exp(0.08), 45 * math.exp(-0.08)
    assert alarms(all_compared(LENGTH, days_of([45.0] * 28 + [up, down, up, down]))) == []
    assert alarms(all_compared(LENGTH, days_of([45.0] * 28 + [up, 45.0, up, 45.0]))) == []


def test_friday_and_monday_are_running_if_nothing_can_be_told_of_the_weekend() -> None:
    up = 45 * math.exp(0.08)
    values: list[float | None] = [None if place % 7 >= 5 else 45.0 for place in range(35)]
    values[32] = up
    assert alarms(all_compared(LENGTH, days_of([*values, up]))) == [36]
    values[32], values[31] = 45.0, up  # not Thursday and Monday
    assert alarms(all_compared(LENGTH, days_of([*values, up]))) == []
    values[32] = None  # even if nothing can be told of Friday
    assert alarms(all_compared(LENGTH, days_of([*values, up]))) == []
    days = all_compared(LENGTH, days_of([*values, 90.0]))
    assert days[-1].alarm == 1
    assert alarm_of(LENGTH, days[:-1], days[-1]).since == days[-1].day


def test_an_alarm_is_raised_once_and_ends_after_three_days_as_usual() -> None:
    long = 45 * math.exp(0.3)
    steady = [45.0] * 28
    for calm, raised in ((2, [29]), (3, [29, 33])):
        values = [*steady, long, *[45.0] * calm, long]
        assert alarms(all_compared(LENGTH, days_of(values))) == raised
    days = all_compared(LENGTH, days_of([*steady, long, long, 45.0, 45.0]))
    assert standing(days) == days[28]
    assert standing(all_compared(LENGTH, days_of([*steady, long, 45.0, 45.0, 45.0]))) is None


def test_a_day_that_cannot_be_told_neither_ends_an_alarm_nor_starts_its_end_anew() -> None:
    long = 45 * math.exp(0.3)
    days = days_of([*[45.0] * 28, long, 45.0, 45.0, 45.0, 45.0])
    days[30] = days[30]._replace(n=99)
    assert standing(all_compared(LENGTH, days[:-1])) is not None
    assert standing(all_compared(LENGTH, days)) is None


def test_a_new_level_becomes_the_usual_one_by_itself_in_weeks() -> None:
    longer = [45 * 1.35 * value / 45 for value in usual(60, seed=2)]
    days = all_compared(LENGTH, days_of(usual(70) + longer))
    assert alarms(days) == [71]
    stood = next(place for place in range(70, 130) if standing(days[: place + 1]) is None) - 70
    assert 14 <= stood <= 35


def test_the_days_of_a_change_are_among_later_like_days() -> None:
    days = days_of([45.0] * 70 + [60.0] * 7)
    assert [each.value for each in like_days(LENGTH, days[:-1], days[-1].day, None)].count(60.0) == 1  # Saturday


def test_an_old_alarm_ends_and_the_next_day_may_raise_it_again() -> None:
    restless = [90.0, 45.0, 45.0] * 30
    days = all_compared(LENGTH, days_of([45.0] * 28 + restless))
    assert alarms(days) == [29, 29 + bounds.MONITOR_ALARM_DAYS + 2]


def test_an_accepted_level_ends_the_alarm_and_is_learnt_anew() -> None:
    values = [45.0] * 42 + [60.0] * 20
    days = days_of(values)
    accepted = days[42].day
    again = all_compared(LENGTH, days, accepted)
    assert [each.z for each in again[:42]] == [each.z for each in all_compared(LENGTH, days)[:42]]
    assert alarms(again) == []
    assert standing(again, accepted) is None
    told = [place for place in range(42, 62) if again[place].z is not None]
    assert told[0] == 52  # eight weekdays later
    assert all(again[place].z == 0 for place in told)
    back = all_compared(LENGTH, [*days, *days_of([45.0], first=days[-1].day + DAY)], accepted)
    assert back[-1].z is None or back[-1].z < -6


def test_what_was_standing_before_an_accepted_level_is_over() -> None:
    days = all_compared(LENGTH, days_of([45.0] * 28 + [60.0, 60.0, 60.0]))
    assert standing(days, days[28].day) is not None  # of that day: it is compared again
    assert standing(days, days[29].day) is None


@pytest.mark.parametrize("n", [99, 100])
def test_under_100_interactions_nothing_is_told(n: int) -> None:
    days = all_compared(LENGTH, [*days_of([45.0] * 28), Measured(MONDAY + 28 * DAY, n, 90.0)])
    assert (days[-1].z is not None, days[-1].alarm) == (n >= 100, int(n >= 100))


def test_days_of_under_100_interactions_are_not_compared_with() -> None:
    days = days_of([45.0] * 14)
    few = [each._replace(n=99) if place < 3 else each for place, each in enumerate(days)]
    assert all_compared(LENGTH, days)[-3].z is not None
    assert all_compared(LENGTH, few)[10].z is None


def test_no_traffic_at_all_is_told() -> None:
    before = [Measured(MONDAY + place * DAY, 500 + place, 500.0 + place) for place in range(28)]
    days = all_compared(VOLUME, [*before, *(Measured(MONDAY + place * DAY, 0, 0.0) for place in (28, 29, 30))])
    assert alarms(days) == [-29]
    assert days[-1].z is not None
    assert days[-1].z < -100
    assert alarm_of(VOLUME, days[:28], days[28]).sentence == (
        "There are fewer interactions since 28 Sep: 0 interactions, usually 501 to 524"
    )


def test_about_100_interactions_a_day_quiet_days_count_for_their_number() -> None:
    """Compared with busy days alone, every quiet day would be unusual."""
    random = Random(4)
    counts = [round(random.gauss(103, 10)) for _ in range(365)]
    days = all_compared(VOLUME, [Measured(MONDAY + place * DAY, n, float(n)) for place, n in enumerate(counts)])
    told = [each.z for each in days if each.z is not None]
    assert len(told) > 200
    assert abs(sum(told) / len(told)) < 0.2
    assert len(alarms(days)) <= 1


def test_missing_days_are_no_days() -> None:
    values: list[float | None] = [45.0 if place % 3 else None for place in range(40)]
    days = all_compared(LENGTH, days_of(values))
    assert len(days) == 26
    assert days[-1].z == 0


@pytest.mark.parametrize("value", [0.0, 0.3])
def test_nothing_has_a_logarithm(value: float) -> None:
    days = all_compared(MONITORS["latency_p50"], days_of([value] * 14 + [800.0]))
    assert days[11].z == 0
    assert days[-1].alarm == 1


def test_rates_are_as_spread_at_every_level() -> None:
    compared = TO_COMPARE["rate"]
    assert [compared(value) for value in (0.0, 1.0)] == [0, pytest.approx(math.pi / 2)]
    for p in (0.04, 0.5, 0.9):
        slope = (compared(p + 1e-6) - compared(p - 1e-6)) / 2e-6
        assert slope * math.sqrt(p * (1 - p)) == pytest.approx(0.5, abs=1e-3)
    assert floor_of(ERRORS, 0, 0.0) == floor_of(ERRORS, 1, 0.0) == 0.4
    assert floor_of(SCORE, 100, 0.0) > 0


def test_a_sentence_says_what_happened_since_when_and_what_is_usual() -> None:
    values = [43.0, 44, 45, 46, 47] * 10
    days = all_compared(LENGTH, days_of([*values, 61.0]))
    alarm = alarm_of(LENGTH, days[:-1], days[-1])
    assert alarm.sentence == "Questions are longer since 20 Oct: median 61 characters, usually 43 to 47"
    assert (alarm.direction, alarm.since, alarm.day) == (1, days[-1].day, days[-1].day)
    assert alarm_of(LENGTH, [], days[-1]).sentence == "Questions are longer since 20 Oct: median 61 characters"


def test_an_alarm_of_two_days_is_since_the_first() -> None:
    up = math.exp(0.08)
    days = all_compared(LENGTH, days_of([45.0] * 28 + [45 * up, 46 * up]))
    alarm = alarm_of(LENGTH, days[:-1], days[-1])
    assert (alarm.day, alarm.since) == (days[-1].day, days[-2].day)
    assert alarm.sentence == "Questions are longer since 28 Sep: median 49.8 characters, usually 45"


@pytest.mark.parametrize("name", MONITORS)
@pytest.mark.parametrize("direction", [1, -1])
def test_every_monitor_has_a_sentence(name: str, direction: int) -> None:
    monitor = MONITORS[name]
    value, level = (0.9, 0.5) if monitor.scale == "rate" else (900.0, 500.0)
    values = [level] * 10 + [value if direction > 0 else level / 100]
    days = all_compared(monitor, days_of(values, 2_000))
    assert days[-1].alarm == direction
    sentence = alarm_of(monitor, days[:-1], days[-1]).sentence
    assert sentence.startswith(monitor.up if direction > 0 else monitor.down)
    assert f" {shown_value(monitor, level, unit=False)}" in sentence


def test_a_direction_has_words_of_its_own() -> None:
    phrases = [phrase for monitor in MONITORS.values() for phrase in (monitor.up, monitor.down)]
    assert len(set(phrases)) == 2 * len(MONITORS)


def test_the_page_expects_as_many_false_alarms_as_there_are_monitors() -> None:
    assert false_alarms_a_month(24) == pytest.approx(2 * false_alarms_a_month(12))
    assert 0 < false_alarms_a_month(12) < 1
