"""Matchers: texts, patterns and alternatives, and what is wrong with those that say too little or too much."""

import msgspec
import pytest

from ragcontract.answers.answer_text import Answer, answer_of
from ragcontract.answers.matchers import described, faults, finds, matcher, spans
from ragcontract.core.config_sections import AsWritten, Matcher, Reading
from tests.answers.work import grows_linearly


def written(value: object) -> AsWritten:
    """Return a matcher as it is decoded from a golden row."""
    found: AsWritten = msgspec.convert(value, AsWritten)
    return found


def quoted(value: object, answer: str, reading: Reading = "text") -> list[str]:
    """Return the parts of an answer that a matcher finds."""
    one, prepared = matcher(written(value), reading), Answer(answer)
    found = [prepared.text[slice(*span)] for span in spans(one, prepared)]
    assert finds(one, prepared) == bool(found)
    return found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("30 days", ["30\u00a0days", "30 Days"]),
        ({"text": "30 days", "ignore_case": False}, ["30\u00a0days"]),
        ({"text": "day", "word": True}, []),
        ({"text": "day"}, ["day", "Day"]),
        ({"text": "days", "word": True}, ["days", "Days"]),
        ({"regex": r"\d+\sd"}, ["30\u00a0d", "30 D"]),
        ({"regex": r"\d+\sD", "ignore_case": False}, ["30 D"]),
        ({"regex": "or.*left"}, []),
        ({"regex": "or.*left", "dot_all": True}, ["or\n30 Days left"]),
        ({"any": ["nothing", "left", {"regex": "o[r]"}]}, ["left", "or"]),
        ("(30|31) days", []),
    ],
)
def test_what_a_matcher_finds(value: object, found: list[str]) -> None:
    assert quoted(value, "30\u00a0days or\n30 Days left") == found


def test_a_bare_text_is_a_pattern_where_patterns_are_usual() -> None:
    assert quoted("(30|31) days", "31 days", "regex") == ["31 days"]
    assert quoted({"any": ["x", r"\d"]}, "5", "regex") == ["5"]
    assert described(matcher(written({"any": ["x", {"text": "y"}]}), "regex")) == ("x", "y")


def test_a_pattern_is_searched_for_in_the_normal_form_of_the_answer() -> None:
    assert quoted({"regex": "cafe\u0301s?"}, "two cafe\u0301s") == ["cafés"]


def test_a_forbidden_pattern_is_also_searched_for_in_what_a_page_shows() -> None:
    one, answer = matcher(Matcher(regex=r"\d+ days"), "regex"), Answer("30\u00a0days, **30** days")
    assert [answer.text[slice(*span)] for span in spans(one, answer)] == ["30\u00a0days", "30** days"]
    assert not finds(one, answer), "a required one is not"
    assert list(spans(one, answer, normalise=False)) == []


def test_word_bounds_are_those_of_all_scripts() -> None:
    assert quoted({"text": "né", "word": True}, "née né, né") == ["né", "né"]
    assert quoted({"text": "$5", "word": True}, "US$5 $50") == ["$5"]


@pytest.mark.parametrize(
    ("answer", "found"),
    [("_secret_", True), ("a _secret_.", True), ("secret_", True), ("my_secret", False), ("secret_1", False)],
)
def test_an_underscore_is_emphasis_unless_the_word_goes_on(answer: str, found: bool) -> None:
    one = Matcher(text="secret", word=True)
    assert finds(one, Answer(answer)) == finds(one, Answer(answer), normalise=False) == found


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("机密", "这是机密信息。"),
        ("ひみつ", "これはひみつです"),
        ("データ", "このデータは"),
        ("ความลับ", "นี่คือความลับของเรา"),
        ("ຄວາມລັບ", "ນີ້ແມ່ນຄວາມລັບຂອງ"),
        ("សម្ងាត់", "នេះជារឿងសម្ងាត់ណា"),
        ("လျှို့ဝှက်", "ဒါကလျှို့ဝှက်ချက်"),
        ("secret", "这是secret信息"),
        ("30", "需要30天"),
        ("secret", "The secret¹ is"),
        ("secret", "The secret²³."),
        ("Secret", "Secret™ is a brand"),
        ("secret", "The **secret**¹ is"),
        ("secret", "The secret① is"),
        ("m²", "5 m² of it"),
        ("m2", "5 m² of it"),
    ],
)
@pytest.mark.parametrize("more", ["", " word" * 4_000])
def test_words_end_anywhere_in_scripts_without_blanks_and_before_raised_marks(
    word: str, answer: str, more: str
) -> None:
    one = {"text": word, "word": True}
    assert quoted(one, answer + more)
    assert finds(Matcher(text=word, word=True), Answer(answer + more))


@pytest.mark.parametrize(
    ("word", "answer"),
    [("ret", "secret¹"), ("secret", "secret1"), ("secret", "secrets¹"), ("비밀", "비밀은"), ("m", "m2")],
)
def test_a_raised_mark_begins_no_word_and_digits_and_affixes_belong_to_it(word: str, answer: str) -> None:
    assert not finds(Matcher(text=word, word=True), Answer(answer))


def test_a_word_may_begin_within_a_part_that_is_none() -> None:
    assert quoted({"text": "a a", "word": True}, "xa a a") == ["a a"]


def test_texts_may_be_compared_as_they_are() -> None:
    one, answer = matcher("30 days", "text"), Answer("**30  days**")
    assert finds(one, answer)
    assert not finds(one, answer, normalise=False)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({}, [((), "expected exactly one of text, regex and any, found none of them")]),
        ({"text": "a", "regex": "b"}, [((), "expected exactly one of text, regex and any, found text and regex")]),
        ({"any": []}, [(("any",), "is empty; give at least one alternative")]),
        ({"any": ["a"], "word": True}, [(("word",), "belongs to the single alternatives; write it there")]),
        ({"text": "a", "dot_all": True}, [(("dot_all",), "is for patterns; it means nothing for a text")]),
        (
            {"regex": "a", "word": True},
            [(("word",), r"is for texts; in a pattern, write \b where a word begins and ends")],
        ),
        (
            {"text": "** "},
            [(("text",), "has no characters left once emphasis and blanks are removed; give a text to search for")],
        ),
        (
            {"any": ["a", {"regex": "("}]},
            [
                (
                    ("any", 1, "regex"),
                    (
                        'is not an RE2 pattern (missing ): (); to search for a text as it is, write {"text": …}, '
                        "or a backslash before special characters"
                    ),
                )
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_matcher(value: object, wrong: list[object]) -> None:
    assert list(faults(written(value), "text")) == wrong


def test_good_matchers_have_no_faults() -> None:
    for value in ("a", {"text": "a", "word": True}, {"regex": "(a)"}, {"any": ["a", {"regex": "b"}]}):
        assert list(faults(written(value), "text")) == []


@pytest.mark.parametrize("text", ["aaaa", "a a a a"])
def test_hostile_answers_take_linear_time(text: str) -> None:
    one = Matcher(text=text * 100, word=True)
    assert grows_linearly(lambda size: finds(one, Answer(text * size + "b")), 2_000)


def test_many_words_in_a_long_answer_take_linear_time() -> None:
    def search(size: int) -> bool:
        answer = Answer(" ".join(f"word{number}" for number in range(size)))
        words = [Matcher(text=f"wor{number}", word=True) for number in range(size)]
        return any(finds(word, answer) for word in words)

    assert grows_linearly(search, 2_000)


def test_a_long_answer_has_the_words_of_a_short_one() -> None:
    for text in ("né", "$5", "a b", "né né", "snake_case", "_x_", "it's"):
        one = Matcher(text=text, word=True)
        for said in ("né né, $5 a b", "snake_case", "_x_ it's", "xné $55 aa b snake_cases its"):
            long = Answer(f"{said} {'word ' * 4_000}")
            assert finds(one, long) == finds(one, Answer(said))
            assert list(spans(one, long)) == list(spans(one, Answer(said)))


def test_the_rules_of_a_query_prepare_its_answer_once() -> None:
    assert answer_of("the same") is answer_of("the same")
    assert answer_of("half \ud800").text == r"half \ud800"
