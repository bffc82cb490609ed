"""Allowed phrases: they cover a claim within them, in the same sentence, and are short."""

import pytest

from ragcontract.answers.allowed_phrases import forbidden
from ragcontract.answers.answer_text import Answer
from ragcontract.core import bounds
from ragcontract.core.config_sections import Matcher
from tests.answers.work import grows_linearly

PRICE = Matcher(regex=r"\$\d+")
NOT_SAID = Matcher(regex=r"(not|no) .*(say|mention|specif)\w*|(say|mention)\w* (no|nothing).*")


def left(answer: str, claim: Matcher = PRICE, *allowed: Matcher) -> str | None:
    """Return the claim that no phrase covers."""
    prepared = Answer(answer)
    span = next(forbidden(claim, allowed or (NOT_SAID,), prepared), None)
    return None if span is None else prepared.text[slice(*span)]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("It costs $499.", "$499"),
        ("The page mentions nothing like $499.", None),
        ("That it is not $499 is what they say.", None),
        ("No price is mentioned. It costs $499, they say.", "$499"),
        ("It is not $5, they say. It costs $499.", "$499"),
        ("They mention no price.\n\nIt costs $499", "$499"),
        ("They mention no price, such as v1.5 at $499", None),
        ("値段は no 。 $499 say", "$499"),
        ("It is not " + "so very " * 40 + "$499 as they say", "$499"),
        ("It is not $1, $2 or $3, they say.", None),
    ],
)
def test_a_phrase_covers_what_lies_within_it(answer: str, found: str | None) -> None:
    assert left(answer) == found


NOT_MENTIONED = Matcher(regex="not mention .*")
CITATIONS = (
    *(".[1] ", ".[^1] ", ".[1, 3] ", ".[1](http://x) ", ".[[1]](http://x) ", ".[1][2] ", ".[1]", r".\[1\] ", ".【1】 "),
    *(
        ".【1†source】 ",
        ".(1) ",
        ".¹ ",
        ".^1^ ",
        ".^[1]^ ",
        ".$^{1}$ ",
        ".&sup1; ",
        ".<sup>1</sup> ",
        ".<sup>[1]</sup> ",
    ),
    *(".<sup><a href='#1'>1</a></sup> ", ".» ", ".”[1] ", ".) ", "?[1] ", "![1] ", "…[1] ", ".**[1] "),
)
MARKS = tuple("\r\f\v\x85\u2028\u2029।॥؟۔։።。．｡！‼⁇។။།|")


@pytest.mark.parametrize("end", [*CITATIONS, *MARKS, "\n- ", "\n2. ", "</td><td>", "</li><li>", "</p>", "\r\n\r\n"])
@pytest.mark.parametrize("phrase", [NOT_MENTIONED, Matcher(regex="not mention .*", dot_all=True)])
def test_a_phrase_covers_nothing_of_the_next_sentence(end: str, phrase: Matcher) -> None:
    assert left(f"It does not mention $5{end}It costs $9.", PRICE, phrase) == "$9"


@pytest.mark.parametrize(
    "answer",
    [
        '{"a": "It does not mention $5", "b": "It costs $9"}',
        '["It does not mention $5","It costs $9"]',
        '```json\n{"a": "It does not mention $5", "b": "It costs $9"}\n```',
        '{"a": "It does not mention $5", "b": "\\"It\\" costs \\u00249"}',
        "| It does not mention $5 | It costs $9 |",
    ],
)
def test_a_phrase_covers_nothing_of_the_next_string_or_cell(answer: str) -> None:
    assert left(answer, PRICE, NOT_MENTIONED) in ("$9", "\\u00249")


@pytest.mark.parametrize(
    "answer",
    [
        "It does not mention $5 [1] or $9.",
        "It does not mention [the](http://x.y/a) price of $9",
        "It does not mention 1.5 kg, v1.2 or $9.",
        "It does not mention １．５ kg or $9.",
        'It does not mention "this", "that" or $9.',
        "It does not mention the\nprice of $5 or $9, says the page.",
        "It does not mention <b>$5</b>, x² or <i>$9</i>.",
        '{"a": "It does not mention $5 or $9"}',
        "- It does not mention $5 or $9.",
        "| a | It does not mention $5 or $9 |",
    ],
)
def test_a_phrase_covers_the_rest_of_its_sentence(answer: str) -> None:
    assert left(answer, PRICE, Matcher(regex="not mention .*", dot_all=True)) is None


def test_a_claim_that_crosses_the_end_of_a_sentence_is_never_covered() -> None:
    claim = Matcher(regex=r"costs\. \$5")
    assert left("no costs. $5 mentioned", claim, Matcher(regex="no .* mentioned", dot_all=True)) == "costs. $5"


def test_texts_and_alternatives_are_claims_and_phrases_too() -> None:
    phrase = Matcher(any=(Matcher(text="no refunds yet"), Matcher(regex="never refunds?")))
    claim = Matcher(text="refund")
    assert left("We have **no\u00a0refunds** yet.", claim, phrase) is None
    assert left("We have never refunds", claim, phrase) is None
    assert left("We have refunds, no refunds yet.", claim, phrase) == "refund"


def test_a_phrase_is_at_most_so_long() -> None:
    phrase = Matcher(regex="no x*claim")
    for length, found in ((bounds.ALLOWED_PHRASE, None), (bounds.ALLOWED_PHRASE + 1, "claim")):
        answer = f"no {'x' * (length - len('no claim'))}claim"
        assert len(answer) == length
        assert left(answer, Matcher(text="claim"), phrase) == found


def test_a_phrase_is_no_longer_on_both_sides_of_the_claim() -> None:
    phrase = Matcher(regex="x+ claim x+")
    for length, found in ((97, None), (98, "claim")):
        assert left(f"{'x' * length} claim {'x' * (length - 1)}", Matcher(text="claim"), phrase) == found


def test_after_many_covered_matches_the_next_one_counts() -> None:
    assert left("no $5 mentioned. " * bounds.CLEARED) is None
    assert left("no $5 mentioned. " * (bounds.CLEARED + 1)) == "$5"


@pytest.mark.parametrize("answer", ["$1", "no $1 mentioned ", "no $1 mentioned. ", "no. ", "$1 no " * 50])
def test_hostile_answers_take_linear_time(answer: str) -> None:
    greedy = Matcher(regex=r"\$\d+(.*guaranteed)?")
    assert grows_linearly(lambda size: next(forbidden(greedy, (NOT_SAID,), Answer(answer * size)), None), 2_000)
