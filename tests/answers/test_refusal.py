"""Refusals by their evidence, the strongest first."""

import pytest

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.refusals import BEGINNING, PHRASES, Evidence, evidence
from ragcontract.core.config_sections import AnswerSettings
from ragcontract.core.run import RunRow

PINNED = AnswerSettings(refusal_phrases=["I only know about our products"])


def found(response: str, settings: AnswerSettings = AnswerSettings(), **fields: str) -> tuple[str, str] | None:  # noqa: B008
    """Return the kind of evidence and the phrase, if it is one."""
    answer = Answer(response)
    shown = evidence(RunRow(query_id="q", response=response, **fields), answer, settings)  # type: ignore[arg-type]
    return (shown.kind, answer.text[slice(*shown.span)]) if shown else None


@pytest.mark.parametrize(
    ("response", "phrase"),
    [
        ("I’m sorry, but I can’t help with that.", "I can’t help"),
        ("I am **unable to** say.", "I am **unable to"),
        ("Unfortunately, I don't have enough information.", "I don't have enough information"),
        ("I'm sorry to hear that. Refunds take 5 days.", None),
        ("I apologize for the delay. It is 30 days.", None),
        ("You can't help it; hi can't answer", None),
        ("I can't recommend it enough: 30 days.", None),
        ("x " * BEGINNING + "I can't help", None),
        ("", None),
        ("Dabei kann ich nicht helfen.", None),
    ],
)
def test_common_phrases_count_at_the_beginning(response: str, phrase: str | None) -> None:
    assert found(response) == (None if phrase is None else ("common phrases", phrase))


def test_what_the_row_says_comes_before_the_words() -> None:
    said = "I can't help with that"
    assert found(said, refusal="No.", finish_reason="content_filter", mode="abstain") == ("refusal", "")
    assert found(said, finish_reason="content_filter", mode="abstain") == ("finish_reason", "")
    assert found(said, mode="abstain") == ("mode", "")
    assert found(said, refusal=" ", finish_reason="stop", mode="trustworthy") == ("common phrases", "I can't help")


def test_the_applications_own_sentence_counts_anywhere() -> None:
    late = "x " * BEGINNING + "Sorry: I only know about **our** products!"
    assert found(late, PINNED) == ("refusal_phrases", "I only know about **our** products")
    assert found("I can't help", PINNED) == ("common phrases", "I can't help")


def test_common_phrases_can_be_left_out() -> None:
    only = AnswerSettings(refusal_phrases=["nope"], only_these=True)
    assert found("I can't help", only) is None
    assert found("Nope.", only) == ("refusal_phrases", "Nope")


def test_every_phrase_is_found_as_it_is_written() -> None:
    assert len(set(PHRASES)) == len(PHRASES)
    for phrase in PHRASES:
        assert found(phrase.capitalize()) is not None


def test_evidence_without_a_phrase_has_no_span() -> None:
    assert Evidence(kind="mode").span == (0, 0)
