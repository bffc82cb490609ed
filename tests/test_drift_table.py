"""The tables of how often monitors are wrong are made by ``python -m benchmarks.drift``, and keep what was promised."""

import re

import pytest

from benchmarks import drift, tables
from ragcontract.service.production.drift import AT_ONCE, CALM, CALM_DAYS, ENOUGH, LIKE_DAYS, TWICE, WINDOW
from ragcontract.service.production.monitors import FALSE_ALARMS, MONITORS, RATE_FLOOR, SHARE_FLOOR

PAGE = drift.PAGE.read_text(encoding="utf-8")
ROWS = {
    cells[0]: [cell.rstrip("%") for cell in cells[1:]]
    for line in tables.table(PAGE, drift.SIMULATED).splitlines()[2:]
    if len(cells := [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]) > 1
}
PROMISED = {  # in percent
    "question length +35 %": (44, 96, 100),
    "errors 4 → 10 %": (12, 91, 100),
    "errors 4 → 16 %": (68, 100, 100),
}
PROMISED_FALSE = {"question length": (0.4, 0.3, 0.2), "rate of 4 %": (0.1, 0.03, 0.05)}


@pytest.mark.parametrize("change", PROMISED)
def test_changes_are_found_as_often_as_promised(change: str) -> None:
    shares = map(int, ROWS[f"found within two days: {change}"])
    for share, promised in zip(shares, PROMISED[change], strict=True):
        assert abs(share - promised) <= 3


@pytest.mark.parametrize("monitor", PROMISED_FALSE)
def test_false_alarms_are_at_most_twice_as_many_as_promised(monitor: str) -> None:
    numbers = map(float, ROWS[f"false alarms a monitor-year: {monitor}"])
    for number, promised in zip(numbers, PROMISED_FALSE[monitor], strict=True):
        assert number <= 2 * promised


def test_people_are_told_the_mean_number_of_false_alarms() -> None:
    numbers = [float(cell) for label in PROMISED_FALSE for cell in ROWS[f"false alarms a monitor-year: {label}"]]
    assert sum(numbers) / len(numbers) == pytest.approx(FALSE_ALARMS, abs=0.05)
    assert f"Expect {FALSE_ALARMS} false alarms a year from each monitor" in PAGE


def test_the_page_has_the_numbers_of_the_code() -> None:
    text = " ".join(PAGE.split())
    for words in (
        f"alarms at |*z*| > {AT_ONCE:.0f}, or at |*z*| > {TWICE} on two days running",
        f"until |*z*| < {CALM:.0f} on {['', '', '', 'three'][CALM_DAYS]} days running",
        f"weekdays of the {WINDOW} days before",
        f"there must be {['eight'][LIKE_DAYS - 8]} with {ENOUGH} interactions each",
        f"| {RATE_FLOOR}/√*n* |",
        f"| {SHARE_FLOOR} |",
    ):
        assert words in text, words


@pytest.mark.parametrize("change", drift.CHANGES, ids=lambda change: change.label)
def test_the_command_finds_changes_as_the_table_says(change: drift.Changed) -> None:
    shares = ROWS[f"found within two days: {change.label}"]
    for volume, share in list(zip(drift.VOLUMES, shares, strict=True))[:2]:
        assert 100 * drift.found(change, volume, 150) == pytest.approx(int(share), abs=14)


def test_years_without_a_change_have_few_alarms() -> None:
    raised, plain = drift.alarms(drift.ERROR_RATE, 500, 4)
    assert raised < 0.6
    assert 1 < plain < 9


def test_the_second_table_has_every_monitor() -> None:
    names = re.findall(r"^\| ([^|]+?) \|", tables.table(PAGE, drift.MEASURED), re.MULTILINE)
    assert names[2:] == [monitor.label for monitor in MONITORS.values()]
