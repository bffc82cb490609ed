"""must_not_leak: values are found, allowed where the question has them, and in no report."""

import json
import random
from pathlib import Path

import pytest

from ragcontract.answers.leaked_values import leaks, values_in
from tests.builders import Row, write_jsonl
from tests.process import rag_contract
from tests.rules.answers import broken, refusal, rule, says

VALUES = {
    "email": "ann.lee@example.org",
    "phone": "+49 30 901820",
    "card": "4111 1111 1111 1111",
    "iban": "DE89 3704 0044 0532 0130 00",
    "key": "sk-abcdefghijklmnop1234",
}
NO_DOCUMENTS: Row = {"relevant_doc_ids": []}
NOTHING: Row = {"results": []}
WORDS = {"email": "e-mail address", "phone": "phone number", "card": "card number", "iban": "IBAN", "key": "key"}


@pytest.mark.parametrize("kind", VALUES)
def test_each_kind_is_found_by_its_place_and_masked(kind: str, tmp_path: Path) -> None:
    answer = f"Sure.\nAsk for {VALUES[kind]}, please."
    line = f"fail must_not_leak: expected no {WORDS[kind]}; found: line 2: Sure. Ask for [{kind}], please."
    assert broken(tmp_path, rule("must_not_leak"), says(answer)) == [line]
    assert broken(tmp_path, rule("must_not_leak", kinds=[kind]), says(answer)) == [line]
    others = [other for other in VALUES if other != kind]
    assert broken(tmp_path, rule("must_not_leak", kinds=others), says(answer)) == []


def test_several_values_are_one_violation_a_kind_and_mask_each_other(tmp_path: Path) -> None:
    answer = f"{VALUES['email']} and b@example.org: {VALUES['iban']}"
    (found,) = broken(tmp_path, rule("must_not_leak", kinds=["email"]), says(answer))
    begins = "fail must_not_leak: expected no e-mail address; found: 2 places, the first in line 1: "
    assert found == f"{begins}[email] and [email]: [iban]"


def test_what_the_question_has_may_be_repeated(tmp_path: Path) -> None:
    asked = {"query": "Is Ann.Lee@example.org or +49 30 901820 mine?", **rule("must_not_leak")}
    assert broken(tmp_path, asked, says("ann.lee@example.org is yours, and +49 30 901820 too.")) == []
    (found,) = broken(tmp_path, asked, says("ann.lee@example.org is bob@example.org."))
    assert found.endswith("line 1: is [email].")


def test_allowed_values_may_be_said_but_not_as_a_part_of_others(tmp_path: Path) -> None:
    asked = rule("must_not_leak", allowed=["help@example.org"])
    assert broken(tmp_path, asked, says("Write to HELP@example.org.")) == []
    for other in ("my.help@example.org", "xhelp@example.org", "help@example.org.uk", "help@example.organic"):
        (found,) = broken(tmp_path, asked, says(f"Write to {other}."))
        assert "[email]" in found


@pytest.mark.parametrize("answer", ["ann&#64;example.org", "ann<b>@</b>example.org", '{"to": "ann\\u0040example.org"}'])
def test_what_a_page_shows_is_searched_as_well(answer: str, tmp_path: Path) -> None:
    assert len(broken(tmp_path, rule("must_not_leak"), says(answer))) == 1


def test_the_text_of_a_refusal_is_searched(tmp_path: Path) -> None:
    assert len(broken(tmp_path, rule("must_not_leak"), says("No.", refusal="Ask ann@example.org"))) == 1


def test_no_answer_leaks_nothing(tmp_path: Path) -> None:
    (found,) = broken(tmp_path, rule("must_not_leak"), says(None))
    assert found.startswith("fail answered: ")


def test_the_configuration_asks_it_of_every_query(tmp_path: Path) -> None:
    config = "answers: {must_not_leak: [email, key]}\n"
    assert len(broken(tmp_path, NO_DOCUMENTS, says("ann@example.org", **NOTHING), config)) == 1
    assert broken(tmp_path, NO_DOCUMENTS, says(VALUES["iban"], **NOTHING), config) == []
    own = rule("must_not_leak", kinds=["iban"])  # replaces it
    assert broken(tmp_path, own, says("ann@example.org", **NOTHING), config) == []
    allowed = "answers: {must_not_leak: {kinds: [email], allowed: [ann@example.org]}}\n"
    assert broken(tmp_path, NO_DOCUMENTS, says("ann@example.org", **NOTHING), allowed) == []
    off = config + "per_query: {enforce_must_not_leak: false}\n"
    assert broken(tmp_path, {"relevant_doc_ids": ["a"]}, says("ann@example.org", results=[{"doc_id": "a"}]), off) == []


def test_every_turn_of_a_conversation_is_searched(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "Who?"},
        {"role": "assistant", "content": "Ann."},
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": "At ann@example.org"},
    ]
    asked = {"turns": [{"query": "Who?"}, {"query": "Where?"}]}
    config = "answers: {must_not_leak: [email]}\n"
    for golden, settings in (({**asked, **rule("must_not_leak")}, ""), ({**asked, **rule("must_not_refuse")}, config)):
        (found,) = broken(tmp_path, golden, {"messages": messages}, settings)
        assert "in turn 2 (messages[3]): no e-mail address" in found or "in turn 2" in found
        assert "[email]" in found


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"kinds": ["mail"]}, "rules[0].kinds[0]: expected"),
        ({"kinds": []}, "rules[0].kinds: expected"),
        ({"kinds": ["key", "key"]}, "rules[0].kinds[1]: is there twice; leave one of them out"),
    ],
)
def test_kinds_that_are_none_are_refused(fields: Row, problem: str, tmp_path: Path) -> None:
    (found,) = refusal(tmp_path, rule("must_not_leak", **fields), says("x"))
    assert problem in found


def test_no_report_has_the_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = [*VALUES.values(), "tel: 0171 2345678"]
    answer = " ".join(values) + " " + "x" * 1_900 + " cut.off@example.org " + "y" * 300
    rules = [{"type": "must_not_leak"}, {"type": "must_contain", "value": "nothing of this"}]
    row = {
        "query_id": "q1",
        "response": answer,
        "messages": [{"role": "user", "content": "Q?"}, {"role": "assistant", "content": answer}],
        "retrieved_contexts": [f"It is {VALUES['email']}"],
        "tool_calls": [{"name": "mail", "arguments": {"to": VALUES["email"]}}],
        "results": [{"doc_id": "d", "text": f"The card {VALUES['card']}"}],
    }
    write_jsonl(tmp_path / "golden.jsonl", [{"id": "q1", "query": "Q?", "rules": rules}])
    write_jsonl(tmp_path / "run.jsonl", [row])
    kinds = {"md": "report.md", "json": "report.json", "html": "report.html"}
    options = [part for kind, name in kinds.items() for part in (f"--report-{kind}", name)]
    done = rag_contract("check", "--run", "run.jsonl", *options, "--junit", "junit.xml")
    assert done.code == 1, done.err
    outputs = {name: (tmp_path / name).read_text() for name in (*kinds.values(), "junit.xml")} | {"terminal": done.out}
    for name, text in outputs.items():
        plain = text.replace("&nbsp;", " ")
        for value in (*VALUES.values(), "0171 2345678", "cut.off", "ann.lee", "3704 0044"):
            assert value not in plain, (name, value)
        assert "[email]" in plain, name
    rules_broken = {violation["rule"] for violation in json.loads(outputs["report.json"])["queries"][0]["violations"]}
    assert rules_broken >= {"must_not_leak", "must_contain"}


def test_a_baseline_has_no_digest_of_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "golden.jsonl", [{"id": "q1", "query": "Q?", **rule("must_not_leak")}])
    files = []
    for value in ("ann@example.org", "bob@example.org"):
        write_jsonl(tmp_path / "run.jsonl", [{"query_id": "q1", "response": f"Ask {value}"}])
        assert rag_contract("baseline", "--run", "run.jsonl", "--force").code == 0
        files.append(json.loads((tmp_path / "baseline.json").read_text())["queries"][0]["broken"])
    assert files[0] == files[1] != {}


def test_the_values_of_a_question_are_those_that_masking_takes_out() -> None:
    chance = random.Random(3)
    parts = [*VALUES.values(), "and", "or .", "[email]", "x@y", ",", "(see b@example.org)", "tel 0171 2345678"]
    for _ in range(300):
        question = " ".join(chance.choices(parts, k=chance.randint(1, 7)))
        for value in values_in(question):
            assert value in question
            assert value.strip()
    assert values_in("Is a@b.example.org, or c@d.org. mine? sk-abcdefghijklmnop1234") == [
        *("sk-abcdefghijklmnop1234", "a@b.example.org", "c@d.org"),
    ]


@pytest.mark.parametrize("part", ["a@", "1 ", "[email]", "x@y.de ", "+1 "])
def test_hostile_answers_and_questions_end(part: str) -> None:
    text = part * 100_000
    assert len([*leaks(text, {"email", "phone", "card"})]) >= 0
    assert len(values_in(text[:20_000])) >= 0


def test_marks_in_an_answer_are_no_values() -> None:
    assert [*leaks("Write [email] or [key].", {"email", "key"})] == []
    (leak,) = leaks("Write [email] or ann@example.org.", {"email"})
    assert leak.masked[leak.start : leak.end] == "[email]"
    assert leak.masked == "Write (email) or [email]."


def test_where_a_value_covers_lines_no_line_is_named() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nabc1\nabc2\n-----END PRIVATE KEY-----"
    assert [(leak.kind, leak.line) for leak in leaks(f"{key}\nann@example.org", {"key", "email"})] == [
        *(("key", None), ("email", None)),
    ]
    assert [leak.line for leak in leaks("a\nann@example.org\n\nb@example.org", {"email"})] == [2, 4]


def test_an_allowed_host_is_no_allowed_address() -> None:
    assert len([*leaks("Ask ann@example.org.", {"email"}, ["example.org"])]) == 1


def test_values_that_follow_each_other_are_parted_where_the_first_one_ends() -> None:
    cards = "4111 1111 1111 1111", "5500 0000 0000 0004"
    assert values_in(" ".join(cards)) == [*cards]
