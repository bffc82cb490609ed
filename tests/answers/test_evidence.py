"""Quotes are found in the text that they are from, however a model writes quotation marks and blanks."""

import pytest

from ragcontract.core import bounds
from ragcontract.judgments.replay import Evidence

TEXT = "Returns are accepted — “no questions asked” — within **30 days**\n of  delivery."


@pytest.mark.parametrize(
    "quote",
    [
        "Returns are accepted",
        "RETURNS ARE accepted",
        '- "no questions asked" -',
        "within 30 days of delivery.",
        "within\n\n30   days",
        "Returns are\u200b accepted",
        TEXT,
    ],
)
def test_a_quote_is_compared_as_texts_are_everywhere(quote: str) -> None:
    assert Evidence({3: TEXT}, None).fault(quote, 3, of_context=True) is None


@pytest.mark.parametrize(
    "quote", ["Returns were accepted", "Returns accepted", "30 days … delivery", "**", "`", "\u200b"]
)
def test_words_that_are_not_there_are_no_quote(quote: str) -> None:
    assert Evidence({3: TEXT}, None).fault(quote, 3, of_context=True) is not None


def test_a_short_quote_counts_if_it_is_the_whole_text() -> None:
    assert Evidence({1: " Yes.\n"}, None).fault("yes.", 1, of_context=True) is None
    longer = Evidence({1: "Yes. Or not."}, None)
    assert longer.fault("Yes.", 1, of_context=True) is not None
    assert longer.fault("yes. or ", 1, of_context=True) is not None, "blanks at its ends do not count"


def test_a_quote_is_in_the_text_that_it_names_and_not_in_another() -> None:
    evidence = Evidence({1: TEXT, 2: "Nothing of that."}, "What was answered.")
    assert evidence.fault("Returns are accepted", 2, of_context=True) is not None
    assert evidence.fault("Returns are accepted") is not None
    assert evidence.fault("What was answered") is None
    assert Evidence({1: TEXT}, None).fault("Returns are accepted") is not None


def test_nothing_is_found_in_a_text_that_is_too_long_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "NORMAL", 5000)
    evidence = Evidence({1: "ﷺ" * 2000 + TEXT}, None)
    first, second = (evidence.fault("Returns are accepted", 1, of_context=True) for _ in range(2))
    assert first == second is not None
