"""A forbidden text is found however it is hidden, and no honest answer fails for its markup."""

from pathlib import Path

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import Ended, rag_contract

FORBIDDING: dict[str, Row] = {
    "must_not_contain": {"rules": [{"type": "must_not_contain", "value": "secret"}]},
    "forbidden_elements": {"forbidden_elements": ["secret"]},
    "a word": {"forbidden_elements": [{"text": "secret", "word": True}]},
    "forbidden_claims": {"forbidden_claims": ["sec[r]et"]},
    "regex_must_not_match": {"rules": [{"type": "regex_must_not_match", "pattern": r"\bsecret\b"}]},
}
HIDDEN = {
    "zero width": "The sec\u200bret is out.",
    "an invisible operator": "The sec\u2063ret is out.",
    "a filler": "The sec\u3164ret is out.",
    "a variation selector": "The sec\ufe0fret is out.",
    "a tag character": "The sec\U000e0061ret is out.",
    "a direction mark": "The sec\u202eret is out.",
    "a control": "The sec\x07ret is out.",
    "a separator": "The sec\x1fret is out.",
    "an entity that nobody sees": "The sec&shy;ret is out.",
    "a number of an entity": "The sec&#8203;ret is out.",
    "an encoded letter": "The s&#x65;cret is out.",
    "an entity encoded twice": "The s&amp;#101;cret is out.",
    "encoded angle brackets": "It is out: &lt;b s&#101;cret&gt;",
    "a tag": "The sec<b>ret</b> is out.",
    "tags around all letters": "The <i>s</i><i>e</i><i>c</i><i>r</i><i>e</i><i>t</i> is out.",
    "an attribute with a bracket": """The sec<b title=">" id='">'>ret</b> is out.""",
    "a tag that the next one closes": "The sec<b id=1 <i>ret</i> is out.",
    "a tag over lines": "The sec<b\nid=1\n>ret</b> is out.",
    "a comment": "The sec<!-- > -->ret is out.",
    "a style": "The sec<style>p > b {}</style>ret is out.",
    "emphasis": "The sec*r*et is out.",
    "emphasis in emphasis": "The **sec*r*et** is out.",
    "a deletion": "The sec~~r~~et is out.",
    "code": "The sec`r`et is out.",
    "a link": "The sec[r](https://example.com/a_(b) 'R')et is out.",
    "a reference": "The sec[r][1]et is out.\n\n[1]: https://example.com",
    "full width": "The ｓｅｃｒｅｔ is out.",
    "what is no link": "See [note](the secret is 180,000 euros).",
    "a title": 'See [note](https://example.com "the secret is out").',
    "a target in brackets": "See ![note](<the secret is 180,000 euros>).",
    "what is no tag": "If a <b secret and c> d, it is out.",
    "what follows a comment without an end": "<!-- The secret is out.",
}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(asked: Row, response: str, config: str = "k: 5\n", **fields: object) -> Ended:
    write_jsonl(Path("golden.jsonl"), [golden("q", query="Q?", **asked)])
    write_jsonl(Path("current_run.jsonl"), [run("q", response=response, **fields)])
    Path("ragcontract.yml").write_text(config)
    return rag_contract("check")


@pytest.mark.parametrize("answer", HIDDEN)
def test_a_forbidden_text_cannot_be_hidden(answer: str) -> None:
    for name, asked in FORBIDDING.items():
        ended = check(asked, HIDDEN[answer])
        assert ended.code == 1, name
        assert "1 of 1 query broken in its answer" in ended.out


@pytest.mark.parametrize("answer", ["The secret is out.", "The sec<b>ret</b> is out."])
def test_a_forbidden_text_is_found_in_the_words_of_a_refusal(answer: str) -> None:
    for name, asked in FORBIDDING.items():
        ended = check(asked, "I cannot say.", refusal=answer)
        assert ended.code == 1, name
        assert f'Found: "{answer}"' in ended.out
        assert check(asked, "I cannot say.", refusal="Nor anything else.").code == 0
        assert check(asked, "I cannot say it: sec", refusal="ret").code == 0


def test_a_word_of_two_alphabets_in_a_refusal_is_a_warning() -> None:
    ended = check(FORBIDDING["must_not_contain"], "No.", refusal="The s&#1077;cret is out.")
    assert "answered only warns" in ended.out


@pytest.mark.parametrize(
    "answer",
    [
        "No table is broken: no<br>table, secr<p>et.",
        "The sec</td><td>ret of cells.",
        "A sec ret has a blank.",
        "secr_et and sec*ret are code, AT&T; R&D is not, x &lt y.",
        "a < b and sec > ret",
    ],
)
def test_words_that_no_reader_sees_together_stay_apart(answer: str) -> None:
    for name, asked in FORBIDDING.items():
        assert check(asked, answer).code == 0, name


def test_only_a_pattern_sees_where_a_link_leads() -> None:
    link = "See [note](https://example.com/secret)."
    assert [name for name, asked in FORBIDDING.items() if check(asked, link).code] == [
        "forbidden_claims",
        "regex_must_not_match",
    ]


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("30 days", "You have 30&nbsp;<b>days</b>."),
        ("30 days", "You have 30&amp;nbsp;days."),
        ("AT&T", "AT&amp;T it is."),
        ("$5", r"It costs \$5."),
        ("snake_case", r"Write snake\_case."),
        ("is not very large", "It is *not* very large."),
        ("note says so", 'The [note](https://example.com "N. 5") says so.'),
        ("our page", "See our [page][1].\n\n[1]: https://example.com"),
        ("a < b and c > d", "If a < b and c > d, stop."),
        ("<b>", "Write `<b>` for bold text."),
        ("&lt;", "Write `&lt;` for <."),
        ("soft", "so\u00adft"),
        ("❤", "❤️"),
    ],
)
def test_a_text_that_a_reader_sees_is_there(wanted: str, answer: str) -> None:
    assert check({"answer_must_include": [wanted]}, answer).code == 0


def test_a_required_pattern_sees_the_answer_as_it_is_written() -> None:
    plain = {"rules": [{"type": "regex_must_match", "pattern": r"^[\w .]+$"}]}
    assert check(plain, "The secret is out.").code == 0
    assert check(plain, "The <b>secret</b> is out.").code == 1
    assert check(plain, "The sec\u200bret is out.").code == 1


def test_a_rule_that_forbids_markup_forbids_no_other_text() -> None:
    for markup, other in (("&amp;", "R & D"), ("<b>", "b"), ("\\_", "a_b"), ("](", "a (b) [c]")):
        asked = {"rules": [{"type": "must_not_contain", "value": markup}]}
        assert check(asked, other).code == 0
        assert check(asked, f"a {markup} b").code == 1


def test_a_phrase_that_allows_a_claim_may_have_markup_in_it() -> None:
    asked = {"forbidden_claims": ["SMS"], "allowed_phrases": ["never by SMS"]}
    assert check(asked, "We send codes never by <b>SMS</b>.").code == 0
    assert check(asked, "We send codes <b>never</b>. By S<b>M</b>S.").code == 1


def test_a_refusal_may_have_markup_in_it() -> None:
    refuse = {"rules": [{"type": "must_not_refuse"}]}
    assert check(refuse, "I can<b>not</b> help with that.").code == 1
    pinned = "answers: {refusal_phrases: [ask someone else]}\n"
    assert check(refuse, "Please a<i>sk someone e</i>lse.", pinned).code == 1
    assert check({"rules": [{"type": "must_refuse"}]}, "Please a&shy;sk someone else.", pinned).code == 0


def test_without_normalisation_an_answer_is_searched_only_as_it_is_written() -> None:
    config = "answers: {normalise: false}\n"
    for asked in FORBIDDING.values():
        assert check(asked, "The sec<b>ret</b> is out.", config).code == 0
        assert check(asked, "The secret is out.", config).code == 1


def test_a_message_quotes_what_the_answer_has() -> None:
    ended = check(FORBIDDING["must_not_contain"], f"{'long ' * 40}The sec<b>r&shy;et</b> is out. {'long ' * 40}")
    assert "sec<b>r&shy;et</b>" in ended.out


def test_an_answer_of_nothing_but_markup_fails_the_check() -> None:
    ended = check({"rules": [{"type": "max_chars", "value": 99}]}, "```text\n<br>&nbsp;\u2063\n```\n-")
    assert ended.code == 0, "a tag in code is what the answer is about"
    ended = check({"rules": [{"type": "max_chars", "value": 99}]}, "```text\n\u2063\n```\n<br>&nbsp;-")
    assert ended.code == 1
    assert "Expected an answer" in ended.out
    assert "which has no letter, digit or symbol" in ended.out


def test_a_word_of_two_alphabets_is_a_warning() -> None:
    ended = check(FORBIDDING["must_not_contain"], "The s\u0435cret is out.")
    assert ended.code == 0
    assert "WARN q  answered only warns" in ended.out
    assert "`s\u0435cret`, which has Latin and Cyrillic letters" in Path("report.md").read_text()
