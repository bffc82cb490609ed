r"""Patterns on RE2: what they mean in Python, in linear time, and what is wrong with those that are none."""

import builtins
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcontract.answers import regexes
from ragcontract.answers.answer_text import Answer
from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.answers.regexes import NoEngineError, PatternError, compiled, translated
from ragcontract.core import bounds
from tests.answers.work import grows_linearly

ATOMS = (
    *(r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", r"[\d]", r"[^\d]", r"[\W]", r"[^\W\d_]", r"[\S]", r"[^\S\n]", r"[\D]"),
    *(r"[a\s-]", r"[]x]", r"[^]x]", r"[a[]", r"[\b]", ".", "a", "é", r"\u00e9", r"\x41", r"\.", "(?:a|bc)", "(a)"),
    *("^", r"\A", r"\Z"),
)
ANCHORS = ("^", r"\A", r"\Z")
QUANTIFIERS = ("", "", "", "*", "+", "?", "*?", "+?", "{2}", "{,2}", "{1,3}?")
PATTERNS = st.lists(st.tuples(st.sampled_from(ATOMS), st.sampled_from(QUANTIFIERS)), min_size=1, max_size=5).map(
    lambda parts: "".join(atom + ("" if atom in ANCHORS else how) for atom, how in parts)
)
LETTERS = "aAbcxéÉ_0٣²½ⅷ \t\n\x1c\x85\u00a0\u2028\u3000.]-[\x08가あ\u0301€😀"
SUBJECTS = st.text(alphabet=st.sampled_from(LETTERS), max_size=12)


@settings(max_examples=400)
@given(PATTERNS, SUBJECTS, st.booleans(), st.booleans())
def test_a_pattern_means_what_it_means_in_python(pattern: str, text: str, ignore_case: bool, dot_all: bool) -> None:
    flags = (re.IGNORECASE if ignore_case else 0) | (re.DOTALL if dot_all else 0)
    expected = [found.span() for found in re.finditer(pattern, text, flags)]
    engine, answer = compiled(pattern, ignore_case=ignore_case, dot_all=dot_all), Answer(text, compose=False)
    found = list(engine.matches(answer))
    assert engine.finds(answer) == bool(expected)
    if any(start == end for start, end in expected):  # after an empty match, the two go on differently
        found, expected = found[:1], expected[:1]
    assert found == expected


def test_classes_are_those_of_unicode_on_every_code_point() -> None:
    assigned = map(chr, range(0x110000))  # in the version of Unicode that this Python knows
    every = "".join(char for char in assigned if unicodedata.category(char) not in {"Cn", "Cs"})
    answer = Answer(every, compose=False)
    for name in "dsw":
        found = [answer.text[slice(*span)] for span in compiled(rf"\{name}+").matches(answer)]
        assert found == re.findall(rf"\{name}+", every)


@pytest.mark.parametrize("text", ["30 days.\n", "30 days.", "30 days.\n\n", "30 days. "])
def test_the_end_may_be_followed_by_a_line_break(text: str) -> None:
    pattern = r"days\.$"
    assert bool(compiled(pattern).search(Answer(text))) == bool(re.search(pattern, text))


def test_lines_have_ends_of_their_own_where_the_pattern_asks_for_it() -> None:
    answer = Answer("one\ntwo\n")
    assert list(compiled("(?m)^[a-z]+$").matches(answer)) == [(0, 3), (4, 7)]


def test_a_pattern_that_finds_no_characters_finds_nothing_within_one() -> None:
    assert compiled(r"\B").finds(Answer("é a"))
    assert not compiled(r"\B").finds(Answer("aéb")), "only between the two bytes of é"


def test_quoted_text_stays_as_it_is() -> None:
    assert translated(r"\Q\d$[\E\d") == r"\Q\d$[\E(?-i:[\p{Nd}])"


def test_the_places_of_matches_are_counted_in_characters() -> None:
    answer = Answer("é가😀 a 30 € 5")
    assert [answer.text[slice(*span)] for span in compiled(r"\d+|€").matches(answer)] == ["30", "€", "5"]
    assert list(compiled("x*").matches(Answer("é"))) == [(0, 0), (1, 1)]
    assert list(compiled(r"\d+").matches(answer, (8, len(answer.text)))) == [(11, 12)]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(?<!a)b", "(invalid perl operator: (?<!); lookarounds and backreferences are not supported, write two rules"),
        ("a(?=b)", "lookarounds and backreferences are not supported"),
        (r"(a)\1", "lookarounds and backreferences are not supported"),
        ("(?P<x>a)(?P=x)", "lookarounds and backreferences are not supported"),
        ("a++", "atomic groups and possessive quantifiers are not supported"),
        ("(?>a)", "atomic groups and possessive quantifiers are not supported"),
        ("a{1001}", "is not an RE2 pattern (invalid repetition size: {1001}); repeat at most 1,000 times"),
        (r"(\w{1,100}\s){100}", "nested repetitions multiplied"),
        (r"(\w{1,100}\s){9}(\w{1,100}\s){9}", "make its repetition counts smaller"),
        ("(?x)a", "of the flags, i, m and s are supported"),
        ("1)", 'write {"text": …}'),
        ("[a", 'write {"text": …}'),
        ("*", 'write {"text": …}'),
        ("a\\", 'write {"text": …}'),
        (r"\C", "write . instead"),
        ("x" * (bounds.PATTERN + 1), "is longer than 2,000 characters; write several"),
    ],
)
def test_what_is_wrong_is_explained(pattern: str, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        compiled(pattern)
    assert message in str(caught.value)


def test_without_the_engine_the_way_to_install_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    imports = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "re2":
            raise ImportError(name)
        return imports(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NoEngineError, match=re.escape('run `pip install "rag-contract[answers]"`')):
        compiled("never compiled before")


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        ("(a+)+$", "a" * 50_000 + "!"),
        ("(project|study|report).*audit rate.*202[6-9]", "project audit rate " * 3_000),
        ("no .* (is |was )?(mentioned|provided|specified)", "no " * 20_000),
        (r"\s*\d+\s*x", " " * 30_000),
        (r"(\w+\s?)*$", "word " * 10_000 + "!"),
    ],
)
def test_what_hangs_other_engines_takes_linear_time(pattern: str, answer: str) -> None:
    found = compiled(pattern)
    half = len(answer) // 8
    assert grows_linearly(lambda size: found.search(Answer(answer[:half] * (size // 1_000))), 1_000)


def test_a_pattern_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled("once")
    monkeypatch.setattr(regexes, "_engine", lambda: pytest.fail("compiled again"))
    compiled("once")


def test_a_large_pattern_searches_only_what_it_can_search_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    large = compiled("(?:a?.?){400}c")
    monkeypatch.setattr(bounds, "SEARCHED", 100 * large.size)
    assert large.search(Answer("b" * 100)) is None
    with pytest.raises(CannotScoreError, match=r"101 characters, too long to search for .* at most 100 characters"):
        large.search(Answer("b" * 101))
    assert next(large.matches(Answer("b" * 200 + "c"), (150, 201))) == (150, 201)


def test_a_pattern_of_too_many_instructions_is_refused() -> None:
    with pytest.raises(PatternError, match=r"makes [0-9,]+ instructions, expected at most 100,000"):
        compiled(r"\pL{300}$")
