"""Options: numbers within limits, rates, versions; what is wrong is said in one go."""

import pytest

from ragcontract.core.run import VERSION_FIELDS
from ragcontract.record.record_options import rate_of, wrong_numbers, wrong_versions


@pytest.mark.parametrize(
    ("text", "rate"), [("5/s", 5), ("300/min", 5), ("0.5/s", 0.5), ("90 / min", 1.5), ("1/min", 1 / 60)]
)
def test_a_rate_is_in_calls_a_second_or_a_minute(text: str, rate: float) -> None:
    assert rate_of(text) == pytest.approx(rate)


@pytest.mark.parametrize("text", ["", "5", "5/h", "-5/s", "0/s", "inf/s", "5/s/s", "1e3/s", "9999999/s"])
def test_what_is_no_rate_is_none(text: str) -> None:
    assert rate_of(text) is None


def test_numbers_are_within_limits() -> None:
    assert wrong_numbers({"top": 1, "retries": 0, "timeout": 0.5, "limit": None, "progress_every_seconds": 0}) == []
    assert wrong_numbers({"top": 0, "concurrency": 257, "retries": -1, "repeats": True, "timeout": 0}) == [
        ("top", "expected a whole number of 1 to 10,000, found 0"),
        ("concurrency", "expected a whole number of 1 to 256, found 257"),
        ("retries", "expected a whole number of 0 to 20, found -1"),
        ("repeats", "expected a whole number of 1 to 1,000, found True"),
        ("timeout", "expected seconds, 0.001 to 3,600, found 0"),
    ]
    assert len(wrong_numbers({"timeout": float("nan"), "connect_timeout": float("inf")})) == 2


def test_versions_are_those_of_a_run() -> None:
    assert wrong_versions({"index_version": "7"}) == []
    assert wrong_versions({"index_versoin": "7", "flavour": "x", "llm_model": ""}) == [
        "index_versoin: is not a version of a run; did you mean 'index_version'?",
        f"flavour: is not a version of a run; the versions are {', '.join(VERSION_FIELDS)}",
        "llm_model: expected text of 1 to 2,000 characters",
    ]
