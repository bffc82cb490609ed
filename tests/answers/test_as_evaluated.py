"""Matching as fitz-gov 4.1.0 does it, where that differs from ours."""

import pytest

from ragcontract.answers.allowed_phrases import elements_found, forbidden_claims
from ragcontract.core.config_sections import Matcher


def texts(found: list[tuple[str, tuple[int, int]]]) -> list[str]:
    return [text for text, _ in found]


def test_every_match_of_a_pattern_counts() -> None:
    claims = (Matcher(regex=r"\$\d"), Matcher(regex="CHEAP"))
    assert texts(forbidden_claims(claims, (), "$1 or $29, cheap")) == ["$1", "$2", "cheap"]


def test_a_phrase_clears_what_lies_within_it_however_long() -> None:
    allowed = (Matcher(regex="no .* mentioned"), Matcher(regex="x+"))
    claim = (Matcher(regex=r"\$\d+"),)
    escape = "There is no doubt. " + "It is good. " * 30 + "It costs $499, as mentioned on our site. $5"
    assert texts(forbidden_claims(claim, allowed, escape)) == ["$5"]


def test_a_long_phrase_clears_what_follows_a_short_one_in_it() -> None:
    allowed = (Matcher(regex="no .* said"), Matcher(regex="ask"))
    assert forbidden_claims((Matcher(regex=r"\$\d"),), allowed, "no ask $5 said") == []


def test_a_text_is_cleared_by_a_phrase_anywhere() -> None:
    claim = (Matcher(text="Refund"),)
    assert texts(forbidden_claims(claim, (), "no refund")) == ["Refund"]
    assert forbidden_claims(claim, (Matcher(regex="maybe"),), "no refund. Maybe.") == []


@pytest.mark.parametrize(
    ("element", "response", "found"),
    [
        (Matcher(text="STRASSE"), "Straße", []),
        (Matcher(text="30 days"), "30\u00a0days, **30** days", []),
        (Matcher(text="Days"), "30 days", ["Days"]),
        (Matcher(text="Days", ignore_case=False), "30 days", []),
        (Matcher(text=""), "", [""]),
        (Matcher(regex="d(a)y"), "30 DAYS", ["DAY"]),
        (Matcher(regex="d(a)y", ignore_case=False), "30 DAYS", []),
        (Matcher(regex="e\u0301"), "é", []),
    ],
)
def test_texts_are_compared_as_they_are_in_lower_case(element: Matcher, response: str, found: list[str]) -> None:
    assert texts(elements_found([element], response)) == found


def test_repeated_elements_count_each_time() -> None:
    assert texts(elements_found([Matcher(text="a"), Matcher(text="a")], "a")) == ["a", "a"]
