"""How texts are compared, and where what was found stands in the answer."""

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragcontract.answers.normalising import Form, normalised, traced
from ragcontract.answers.shown import rendered
from tests.answers.work import grows_linearly

FORMS = [
    *(Form(normalise=normalise, ignore_case=case) for normalise in (True, False) for case in (True, False)),
    Form(raised=False),
]
ODD = st.text(
    alphabet=st.sampled_from(
        "aBcßİſǰﬁée\u0301’“–´″¹①\u200b\u00ad*_`[]()! \t\n\u00a0ｶﾞ½…1가\u1100\u1161\ud800\u2063\u3164\ufe0f\x07\x1f\"'<>"
    ),
    max_size=60,
)
MARKUP = st.lists(
    st.sampled_from(
        [
            *"aé*_`~[]()<>&\\!: \n\u0301\u200b",
            "<b>",
            "</b>",
            "<br>",
            "<!--",
            "-->",
            "&amp;",
            "&shy;",
            "&#101;",
            "](",
            "```",
        ]
    ),
    max_size=30,
).map("".join)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("You have **30\u00a0days**.", "you have 30 days."),
        ("it’s “so” – said", 'it\'s "so" - said'),
        ("non‑breaking − minus", "non-breaking - minus"),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
        ("see [the *policy*](https://example.com/a?b) now", "see the *policy* now"),
        ("![image](a.png)", "image"),
        ("`code` and __strong__", "code and strong"),
        ("STRASSE", "straße"),
        ("ｆｕｌｌ ﬁne", "full fine"),
        ("cafe\u0301", "CAFÉ"),
        ("  a \n\n b  ", "a b"),
    ],
)
def test_what_looks_the_same_is_the_same(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(("one", "other"), [("1.5", "15"), ("a-b", "a b"), ("a_b", "ab"), ("$5", "5"), ("[1]", "1")])
def test_what_means_something_else_is_not(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


def test_case_may_count_and_texts_may_be_compared_as_they_are() -> None:
    assert normalised("**A**", Form(ignore_case=False)) == "A"
    assert normalised("**A**  b", Form(normalise=False)) == "**a**  b"
    assert normalised("**A**  b", Form(normalise=False, ignore_case=False)) == "**A**  b"


@given(ODD, st.sampled_from(FORMS))
@example("ﬁ\u0301", Form())
def test_a_traced_text_is_the_same_and_every_part_has_its_place(text: str, form: Form) -> None:
    found = traced(text, form)
    assert found.text == normalised(text, form)
    last = 0
    for at in range(len(found.text)):
        start, end = found.span(at, at + 1)
        assert 0 <= start < end <= len(text)
        assert end >= last
        last = end
        if found.text[at].isalpha():
            assert found.text[at] in normalised(text[start:end], form)


@given(MARKUP)
def test_every_part_of_what_a_page_shows_has_its_place(text: str) -> None:
    found = rendered(text)
    places = [found.span(at, at + 1) for at in range(len(found.text))]
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert places == sorted(places)
    assert [found.text[at] for at, (start, end) in enumerate(places) if found.text[at] == "a" != text[start]] == []


@pytest.mark.parametrize(
    "part",
    [
        "<a ",
        '<a "',
        "<a '\"",
        "<!--",
        "<style>",
        "<b x=y <",
        "&amp;",
        "\\*",
        "[a](b ",
        "[",
        "*a ",
        "**a",
        "a_",
        "```\n",
        "[x]: ",
    ],
)
def test_markup_that_is_made_to_be_slow_takes_linear_time(part: str) -> None:
    assert grows_linearly(lambda size: rendered(part * size), 2_000)


@pytest.mark.parametrize(
    ("answer", "sought", "quoted"),
    [
        ("You have **30\u00a0days** left", "30 days", "30\u00a0days"),
        ("You have 30  **days** left", "30 days", "30  **days"),
        ("x ﬁne STRAẞE y", "strasse", "STRAẞE"),
        ("see [our policy](http://a) here", "policy here", "policy](http://a) here"),
        ("a\u200bb", "ab", "a\u200bb"),
        ("cafe\u0301!", "café", "cafe\u0301"),
    ],
)
def test_a_span_is_what_the_application_said(answer: str, sought: str, quoted: str) -> None:
    found = traced(answer)
    start = found.text.index(sought)
    first, last = found.span(start, start + len(sought))
    assert answer[first:last] == quoted


@pytest.mark.parametrize("part", ["[a](", "**", "\u0301\u0316", "ｶﾞ ", "[](", "a ", "Ab’"])
def test_hostile_answers_take_linear_time(part: str) -> None:
    assert grows_linearly(lambda size: (normalised(part * size), traced(part * size)), 5_000)


CHARACTERS = tuple(map(chr, range(sys.maxunicode + 1)))
EDITORIAL = frozenset("⸂⸃⸄⸅⸉⸊⸌⸍⸜⸝⸠⸡")  # of editions of old texts: among the quotation marks, but none


def test_every_dash_is_a_simple_one() -> None:
    dashes = [*"−˗⁃", *(char for char in CHARACTERS if unicodedata.category(char) == "Pd")]
    assert {normalised(f"well{dash}known") for dash in dashes} == {"well-known"}


def test_every_quotation_mark_and_prime_is_a_simple_one() -> None:
    marks = {char for char in CHARACTERS if unicodedata.category(char) in {"Pi", "Pf"}} - EDITORIAL
    single = frozenset("‘’‚‛‹›´′‵ʼʻʹ＇׳")
    assert {normalised(f"don{mark}t") for mark in single} == {"don't"}
    assert {normalised(f"A {mark}deal{mark}") for mark in marks - single | {*"„″‶˝ʺ〝〞〟「」『』｢｣＂״❝❞"}} == {
        'a "deal"'
    }
