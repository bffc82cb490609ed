"""A forbidden text is found however it is hidden, and no honest answer fails for its markup."""

import re
import unicodedata
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
ESCAPED = r'"The \u0073ecret is out."'
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
    "a link in code": "Write `[x](secret)` here.",
    "a link in longer code": "Write ``[x](secret) ` `` here.",
    "a link in a block of code": "```text\n[x](secret)\n```",
    "a link in a block of tildes": "~~~\n[x](secret)\n```\n~~~",
    "a link in a block of code in a quote": "> ```\n> [x](secret)\n> ```",
    "a link in an indented block": "So:\n\n    [x](secret)",
    "a link whose bracket is escaped": r"\[x](secret)",
    "a link whose bracket is encoded": "&#91;x](secret)",
    "a link in a block of HTML": "<pre>\n[x](secret)</pre>",
    "a link in another block of HTML": "So.\n<div>\n[x](secret)\n</div>",
    "a link in an element of one's own": "<x-y>\n[x](secret)",
    "a tag in the title of a link": "The sec[r](y '<br>')et is out.",
    "a tag in what is no title": "So \\[x](y 'the sec<b>ret</b>')",
    "a tag after a backquote that opens no code": "A ` here.\n\nThe sec<b>ret</b> is ` out.",
    "an address in a block of HTML": "<div>sec<http://e.org>ret</div>",
    "a stroke through each letter": "The s\u0336e\u0336c\u0336r\u0336e\u0336t\u0336 is out.",
    "two marks on a letter": "The s\u0336\u0332ecret is out.",
    "a circle around letters": "The s\u20dde\u20ddcret is out.",
    "negative squares": "The \U0001f182\U0001f174\U0001f172\U0001f181\U0001f174\U0001f183 is out.",
    "negative circles and squares": "The \U0001f162\U0001f134cret is out.",
    "letters in parentheses": "The \u24ae\u24a0cret is out.",
    "one tilde": "The sec~r~et is out.",
    "an instruction": "The sec<?<?>ret is out.",
    "what begins like an instruction": "A <? b: the sec<b>ret</b> is out.",
    "what begins like data": "A <![CDATA[ b: the sec<b>ret</b> is out.",
    "data": "The sec<![CDATA[<]]>ret is out.",
    "an empty comment": "<!-->The sec<b>ret</b> is out. -->",
    "a comment that ends like a tag": "The sec<!-- --!>ret is out.",
    "an escape in JSON": r'{"a": "The \u0073ecret is out."}',
    "an escape in the key of JSON": r'[{"s\u0065cret": 1}]',
    "an escape in JSON in a fence": "```json\n" + r'"\u0073\u0065cret"' + "\n```",
    "an escape in JSON after a blank before its language": "``` json\n" + ESCAPED + "\n```",
    "an escape in JSON in four backquotes": "````json\n" + ESCAPED + "\n````",
    "an escape in JSON in a fence with a title": '```json title="x"\n' + ESCAPED + "\n```",
    "an escape in JSON after a backslash that is none": "```json \\d\\u\n" + ESCAPED + "\n```",
    "an escape in JSON-LD": "```json-ld\n" + ESCAPED + "\n```",
    "an escape in JSON in tildes": "~~~json\n" + ESCAPED + "\n~~~",
    "an escape in JSON in tildes around backquotes": "~~~ `json`\n" + ESCAPED + "\n~~~~\n",
    "an escape in JSON in an indented fence": "  ```json\r\n" + ESCAPED + "\r\n  ```",
    "an escape in JSON in a fence that is closed by a longer one": "```json\n" + ESCAPED + "\n`````",
    "an escape in JSON in a fence that is not closed": "```json\n" + ESCAPED + "\n",
    "an escape in JSON beside three backquotes": "```json\n" + r'["\u0073ecret", "```x```"]' + "\n```",
    "an escape in JSON after a byte order mark": "\ufeff" + ESCAPED,
    "an escape in JSON after a blank without width": "\u200b\n" + ESCAPED,
    "an escape in JSON in a fence with invisible characters": "\u200b```\u200bjson\n" + ESCAPED + "\n```\ufeff",
    "an escape in JSON with a control character": '{\x01"a": ' + ESCAPED + "}",
    "a tag in JSON": r'{"a": "The sec\u003cb\u003er\u003c/b>et is out."}',
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


BLANKS = {
    "a line break": "secret\nplan",
    "two blanks": "secret  plan",
    "a blank at the end of a line": "secret  \n  plan",
    "a tab": "secret\tplan",
    "a blank of its own width": "secret\u2003plan",
    "a tag of a line break": "secret<br>plan",
    "a tag of a line break and one": "secret<br />\nplan",
    "a backslash of a line break": "secret\\\nplan",
    "a quote": "> secret\n> plan",
    "a quote in a quote": "> > secret\n> > plan",
    "emphasis": "**secret**\n*plan*",
    "JSON": r'{"a": "secret\nplan"}',
}


@pytest.mark.parametrize("answer", BLANKS)
def test_a_blank_in_what_is_forbidden_is_any_blank_within_a_paragraph(answer: str) -> None:
    for asked in (
        {"forbidden_elements": ["secret plan"]},
        {"forbidden_claims": ["secret plan"]},
        {"rules": [{"type": "regex_must_not_match", "pattern": "SECRET plan$|secret plan\\b"}]},
    ):
        assert check(asked, BLANKS[answer]).code == 1


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        ("We refund.*in 30 days", "We refund all.\n\nIt arrives in 30 days."),
        ("We refund.*in 30 days", "- We refund all.\n- It arrives in 30 days."),
        ("^[^\\n]* five$", "It is\n\nfive"),
        ("^.{30,}$", "A short line,\nand another one,\nand a third."),
        ("secret plan", "secret\n\nplan"),
    ],
)
def test_a_pattern_with_a_blank_goes_across_no_paragraph(pattern: str, answer: str) -> None:
    assert check({"rules": [{"type": "regex_must_not_match", "pattern": pattern}]}, answer).code == 0


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("τιμή", "Η ΤΙΜΗ είναι 5"),
        ("τιμή", "Η τιμη\u0301 είναι 5"),
        ("ΤΙΜΗ", "Η τιμή είναι 5"),
        ("Μαΐου", "ΤΟΥ ΜΑΪΟΥ"),
        ("ρολόι", "ΕΝΑ ΡΟΛΟΪ"),
        ("ἄνθρωπος", "Ο ΑΝΘΡΩΠΟΣ"),
        ("ᾠδή", "ΜΙΑ ΩΙΔΗ"),
        ("Η", "ή"),
    ],
)
def test_greek_capitals_have_no_accents(wanted: str, answer: str) -> None:
    for asked in (
        {"forbidden_elements": [wanted]},
        {"forbidden_elements": [{"text": wanted, "word": True}]},
        {"rules": [{"type": "must_not_contain", "value": wanted}]},
    ):
        ended = check(asked, answer)
        assert ended.code == 1
        assert f'Found: "{unicodedata.normalize("NFC", answer)}"' in ended.out
    assert check({"answer_must_include": [wanted]}, answer).code == 0
    as_written = {"type": "must_not_contain", "value": wanted, "ignore_case": False}
    assert check({"rules": [as_written]}, answer).code == (wanted in unicodedata.normalize("NFC", answer))


def test_accents_of_other_letters_than_greek_ones_count() -> None:
    for wanted, answer in (("sécret", "SECRET"), ("сёла", "СЕЛА"), ("τιμή", "Η τιμα")):
        assert check({"forbidden_elements": [wanted]}, answer).code == 0


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        *(
            (r"^(yes|no)\b", answer)
            for answer in (
                *("<p>Yes, you are.</p>", "# Yes\n\nYou are.", "## Yes ##", "Yes\n===", "\n\nYes, you are.", " Yes"),
                *(
                    "- Yes, you are.",
                    "* Yes",
                    "+ Yes",
                    "• Yes",
                    "●Yes",
                    "1. Yes",
                    "2) Yes",
                    "- [x] Yes",
                    "> - # Yes",
                    "- > Yes",
                ),
                *("&nbsp;Yes", "<!-- x -->\nYes", "<ul><li>Yes</li></ul>", "<br>Yes", "---\n\nYes", "| Yes |\n|---|"),
                *(
                    "\u200b Yes",
                    "\u2800Yes",
                    "&#8203; Yes",
                    "```\nYes\n```",
                    "- **Yes**",
                    "[x]: /y\n\nYes",
                    "![](x.png) Yes",
                ),
                *("<details><summary></summary>Yes", "> Yes", "\\\nYes"),
            )
        ),
        *(
            (r"\d+ days$", answer)
            for answer in (
                "30 days\n\n",
                "30 days  ",
                "<p>30 days</p>",
                "# 30 days #",
                "30 days&nbsp;",
                "30 days\n\n---",
            )
        ),
        *(("^(yes|no)[.!]?$", answer) for answer in ("<p>Yes.</p>", "\tNo!\n\n", "- No", "### Yes", "| No |")),
        (r"\Ano\z", "# No\n"),
        ("(?m)^no$", "Is it?\n\n- No  \n- Or yes"),
        ("^yes, you are$", "- Yes,\n  you are"),
    ],
)
def test_the_beginning_and_the_end_are_those_that_a_reader_sees(pattern: str, answer: str) -> None:
    for asked in ({"forbidden_claims": [pattern]}, {"rules": [{"type": "regex_must_not_match", "pattern": pattern}]}):
        ended = check(asked, answer)
        assert ended.code == 1
        assert re.search('Found: ".*(yes|no|30 days)', ended.out, re.IGNORECASE)


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        ("^(yes|no)$", "Yes and no"),
        ("^yes", "You are.\n\n- Yes"),
        (r"\d+ days$", "- 30 days\n- from delivery"),
        ("(?m)^yes", "#Yes, 5.Yes -Yes"),
        ("^[*]", "No * here"),
        ("first\nsecond$", "- first\n- second"),
    ],
)
def test_an_anchor_within_the_answer_is_none(pattern: str, answer: str) -> None:
    assert check({"forbidden_claims": [pattern]}, answer).code == 0


def test_a_required_pattern_begins_where_the_answer_as_it_is_written_begins() -> None:
    for answer, code in (("Yes, you are.", 0), ("# Yes, you are.", 1), (" Yes", 1), ("<p>Yes</p>", 1)):
        assert check({"rules": [{"type": "regex_must_match", "pattern": "^yes"}]}, answer).code == code


def test_a_phrase_allows_no_claim_in_the_next_item_of_a_list() -> None:
    asked = {"forbidden_claims": ["(?m)^yes"], "allowed_phrases": [{"text": "never yes"}, r"(?m)never\s+^yes"]}
    assert check(asked, "- We say never\n- yes").code == 1


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("2*3*4", r"It is 2\*3\*4."),
        ("[x](y)", "Write `[x](y)`."),
        ("&lt;b&gt;", "Write `&lt;b&gt;`."),
    ],
)
def test_a_forbidden_text_is_compared_with_what_a_page_shows_literally(wanted: str, answer: str) -> None:
    assert check({"forbidden_elements": [wanted]}, answer).code == 1
    assert check({"forbidden_elements": [{"regex": re.escape(wanted)}]}, answer).code == 1


def test_json_that_is_none_has_no_escapes() -> None:
    for answer in (
        r"Write \u0073ecret.",
        r'{"a": "\u0073ecret"',
        r"`\u0073ecret`",
        "Here:\n```json\n" + ESCAPED + "\n```",
    ):
        assert check(FORBIDDING["must_not_contain"], answer).code == 0


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


@pytest.mark.parametrize(
    "answer",
    [
        '<b title="never by ">SMS</b>',
        "<!-- never by -->SMS",
        "<!-- never by SMS -->By SMS.",
        "By S<!-- never by SMS -->MS.",
        "[x](never-by-)SMS",
    ],
)
def test_a_phrase_that_the_page_does_not_show_allows_nothing_on_it(answer: str) -> None:
    asked = {"forbidden_claims": ["SMS"], "allowed_phrases": ["never.by.{0,4}SMS"]}
    assert check(asked, answer).code == 1


def test_what_the_page_does_not_show_is_allowed_by_a_phrase_around_it() -> None:
    asked = {"forbidden_claims": ["SMS"], "allowed_phrases": ["never by SMS"]}
    for answer in ("<!-- never by SMS -->By letter.", "We are never by **SMS** there.", "Write `never by SMS`."):
        assert check(asked, answer).code == 0


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


@pytest.mark.parametrize(
    "nothing",
    [
        "[a]: http://x",
        "[a]: <x y>\n[b]: /c 'd'\n",
        "<!-- It is 5. -->",
        "<!-- It is 5.",
        "<style>p {}</style>",
        "~~~\n~~~",
        "<p>None</p>",
        "`null`",
        '"null"',
        "- None\n- None",
        "[object Object],[object Object]",
    ],
)
def test_an_answer_that_a_page_does_not_show_is_none(nothing: str) -> None:
    asked = {"rules": [{"type": "max_chars", "value": 99}]}
    ended = check(asked, nothing)
    assert ended.code == 1
    assert "Expected an answer" in ended.out
    for answer in (f"Five.\n\n{nothing}", "[Answer]: Paris", "`<!-- 5 -->`", "[^1]: http://x"):
        assert check(asked, answer).code == 0, answer


def test_a_word_of_two_alphabets_is_a_warning() -> None:
    ended = check(FORBIDDING["must_not_contain"], "The s\u0435cret is out.")
    assert ended.code == 0
    assert "WARN q  answered only warns" in ended.out
    assert "`s\u0435cret`, which has Latin and Cyrillic letters" in Path("report.md").read_text()


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("well-known", "It is well\u2012known."),
        ("well-known", "It is well\u2015known, or well\u2e3aknown."),
        ("don't", "They don\u00b4t."),
        ("don't", "They <b>don\u201bt</b>."),
        ('"deal"', "A «deal»."),
        ('"deal"', "A \u2033deal\u2033."),
    ],
)
def test_unusual_dashes_and_quotation_marks_hide_nothing(wanted: str, answer: str) -> None:
    assert check({"forbidden_elements": [wanted]}, answer).code == 1


UNSEEN = (
    *("<!-- 30 days -->Ask support.", "Ask support.\n\n<!-- 30 days", "<style>30 days</style>Ask support."),
    *("<script>30 days</script>Ask.", "<template>30 days</template>Ask.", '<p title="30 days">Ask support.</p>'),
    *("Ask support.\n\n[30 days]: http://x", "<br data-x='30 days'/>Ask support."),
)
REQUIRING: list[Row] = [
    {"answer_must_include": ["30 days"]},
    {"required_elements": ["30 days"]},
    {"rules": [{"type": "must_contain", "value": "30 days", "word": True}]},
]


@pytest.mark.parametrize("answer", UNSEEN)
def test_a_required_text_that_nobody_sees_is_missing(answer: str) -> None:
    for asked in REQUIRING:
        assert check(asked, answer).code == 1


@pytest.mark.parametrize(
    "answer",
    [
        *("<p>30 days</p>", "<p>30 <b>days</b></p>", "<table><tr><td>30 days</td></tr></table>", "[30 days](http://x)"),
        *("[terms](http://x '30 days')", "`30 days` <br>", "```html\n<b>30 days</b>\n```", "30&nbsp;days<br>"),
        *("| a |\n| - |\n| 30 *days* |\n\n[x]: http://x", "[30 days][x]\n\n[x]: http://x", "<!-- x --> 30 days"),
        *("If a < b: 30 days", "1 < 2, 30 days, 3 > 2", "<del>30 days</del> 60", "~~30 days~~ 60 <br>"),
        *("30<br>days", "<b>30\ndays</b>", "_30 days_ <br>", "> 30 days\n\n<hr>", "    30 days\n\n<hr>"),
    ],
)
def test_a_required_text_that_readers_see_is_found(answer: str) -> None:
    for asked in REQUIRING:
        assert check(asked, answer).code == 0, asked


def test_a_required_text_may_be_markup() -> None:
    for wanted in ("<b>", '<p title="30 days">', "<!-- x -->", "[x]: http://x"):
        assert check({"answer_must_include": [wanted]}, f"Write this: {wanted}").code == 0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("30 days [1]. They cost 5【4:7†source】.", "citations up to [4:0]"),
        ("30 days [1]. They cost 5 [#9].", "citations up to [1]"),
        ("30 days [1]. They cost 5 [Source 9].", "citations up to [1]"),
        ("Items can be returned.\n\n[^1]: Returns policy", "a citation: [1], or the id of a retrieved document"),
    ],
)
def test_a_citation_of_nothing_cannot_be_hidden(answer: str, expected: str) -> None:
    ended = check({"rules": [{"type": "must_cite"}]}, answer, retrieved_contexts=["30 days."])
    assert ended.code == 1
    assert f"Expected {expected}" in ended.out
