"""must_refuse and must_not_refuse: by evidence, and with a warning where common phrases are all there is."""

from pathlib import Path

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import rag_contract
from tests.rules.answers import broken, decided, refusal, rule, says

ANSWER = says("It is 5.")
UNSURE = "warn must_refuse: expected a refusal; found: It is 5. (judged by common English phrases only)"
SURE = "fail must_refuse: expected a refusal; found: It is 5."
PINNED = "answers: {refusal_phrases: [ask someone else]}\n"


@pytest.mark.parametrize(
    ("answered", "config", "found"),
    [
        (says("I cannot help with that."), "", []),
        (says("Well", refusal="No."), "", []),
        (says("Please ask someone else."), PINNED, []),
        (ANSWER, "", [UNSURE]),
        (ANSWER, PINNED, [SURE]),
        (ANSWER, "answers: {refusal: phrases}\n", [SURE]),
        (ANSWER | {"mode": "trustworthy"}, "", [SURE]),
        (ANSWER | {"mode": "abstain"}, "", []),
    ],
)
def test_a_refusal_that_is_wanted(tmp_path: Path, answered: Row, config: str, found: list[str]) -> None:
    assert broken(tmp_path, rule("must_refuse"), answered, config) == found


@pytest.mark.parametrize(
    ("answered", "config", "evidence"),
    [
        (ANSWER, "", None),
        (says("I’m sorry to hear that. It is 5."), "", None),
        (says("I cannot help with that."), "", "I cannot help with that. (a common English phrase)"),
        (says("Ask  someone else."), PINNED, "Ask someone else. (a phrase of refusal_phrases)"),
        (says("Well", refusal="No."), "", "the refusal No."),
        (says("Well", finish_reason="content_filter"), "", "finish_reason content_filter"),
        (says("Well", finish_reason="CONTENT_FILTER"), "", "finish_reason CONTENT_FILTER"),
        (says("Well", finish_reason="contentFilter"), "", "finish_reason contentFilter"),
        (says("Well", mode="abstain"), "", "mode abstain"),
    ],
)
def test_a_refusal_that_is_not(tmp_path: Path, answered: Row, config: str, evidence: str | None) -> None:
    expected = [] if evidence is None else [f"fail must_not_refuse: expected no refusal; found: {evidence}"]
    assert broken(tmp_path, rule("must_not_refuse"), answered, config) == expected


@pytest.mark.parametrize(
    "reason",
    [
        "content-filter", "content_filtered", "SAFETY", "FinishReason.SAFETY", "IMAGE_SAFETY", "guardrail_intervened",
        "refusal", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "ERROR_TOXIC",
    ],
)  # fmt: skip
def test_what_services_call_a_filter_is_a_refusal(tmp_path: Path, reason: str) -> None:
    answered = says("Well", finish_reason=reason)
    found = f"fail must_not_refuse: expected no refusal; found: finish_reason {reason}"
    assert broken(tmp_path, rule("must_not_refuse"), answered) == [found]
    assert broken(tmp_path, rule("must_refuse"), answered) == []


@pytest.mark.parametrize("reason", ["stop", "end_turn", "tool_calls", "unblocked", "not_refused", "length"])
def test_why_a_model_stopped_otherwise_is_no_refusal(tmp_path: Path, reason: str) -> None:
    assert broken(tmp_path, rule("must_refuse"), says("It is 5.", finish_reason=reason), PINNED)[0] == SURE


@pytest.mark.parametrize("nothing", ["", " ", "\u200b", ".", "**", "<!-- No. -->"])
def test_a_refusal_that_says_nothing_is_no_evidence(tmp_path: Path, nothing: str) -> None:
    assert broken(tmp_path, rule("must_refuse"), ANSWER | {"refusal": nothing}, PINNED) == [SURE]
    assert broken(tmp_path, rule("must_not_refuse"), ANSWER | {"refusal": nothing}) == []
    assert "has no response" in refusal(tmp_path, rule("must_refuse"), {"refusal": nothing})[0]


NO_REFUSAL = (
    "None", "none", "NULL", "null", "nil", "undefined", "nan", "n/a", "N/A.", "False", "false", "no", "0",
    "[object Object]", " None ", "No\u200bne", "None\nNone", "not applicable", "0.0", "00", "f", "not refused",
    "Not refused.", "not a refusal", "no refusal", "No refusal detected", "non-refusal", "refused: false",
    "is_refusal=0", "refusal: no", "The model did not refuse.", "I didn't refuse.", "answered", "Answer", "unset",
    "not set", "empty", "not detected", "nothing", "complied", "None\nnot refused",
)  # fmt: skip


@pytest.mark.parametrize("word", NO_REFUSAL)
def test_what_programs_write_for_no_refusal_is_none(tmp_path: Path, word: str) -> None:
    assert broken(tmp_path, rule("must_refuse"), ANSWER | {"refusal": word}, PINNED) == [SURE]
    assert broken(tmp_path, rule("must_not_refuse"), ANSWER | {"refusal": word}) == []
    assert "has no response" in refusal(tmp_path, rule("must_refuse"), {"refusal": word})[0]


@pytest.mark.parametrize("word", ["0.0", "not refused", "not a refusal", "answered", "unset"])
def test_an_answer_with_such_a_word_as_refusal_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ragcontract.yml").write_text("answers: {refusal_phrases: [I pass.]}\n")
    write_jsonl(Path("golden.jsonl"), [golden(**rule("must_refuse"))])
    write_jsonl(Path("current_run.jsonl"), [run(response="It is 5.", refusal=word)])
    ended = rag_contract("check")
    assert ended.code == 1
    assert "Expected a refusal" in ended.out


@pytest.mark.parametrize(
    "words",
    [
        "None of that is public.",
        "No.",
        "No, sorry.",
        "None\nI cannot say.",
        "拒否",
        "🙅",
        "Refused.",
        "1",
        "true",
        "refused: true",
        "No. Refused.",
        "I refuse.",
        "Not answered.",
        "Nothing to say.",
        "0.1",
        "I cannot answer.",
        "The request was not accepted.",
        "Refusal",
    ],
)
def test_a_refusal_may_be_short_or_begin_with_such_a_word(tmp_path: Path, words: str) -> None:
    assert broken(tmp_path, rule("must_refuse"), ANSWER | {"refusal": words}, PINNED) == []


def test_without_a_response_only_other_evidence_can_be_judged(tmp_path: Path) -> None:
    assert "has no response" in refusal(tmp_path, rule("must_refuse"), {})[0]
    assert "has no response" in refusal(tmp_path, rule("must_refuse"), {"mode": "trustworthy"})[0]


@pytest.mark.parametrize(
    "mode",
    [
        "ABSTAIN", "Abstained", " abstain", "abs\u200btain", "refusal", "unanswerable", "no-answer", "no answer",
        "noanswer", "No_Answer", "not answered", "unable", "unable_to_answer", "denied", "rejected", "blocked",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["must_refuse", "must_not_refuse"])
def test_a_mode_that_nearly_says_that_it_refuses_cannot_be_judged(tmp_path: Path, name: str, mode: str) -> None:
    (problem,) = refusal(tmp_path, rule(name), says("Well", mode=mode))
    assert "expected trustworthy, disputed or abstain; did you mean 'abstain'?" in problem


@pytest.mark.parametrize("mode", ["hybrid", "chat", "answered", "no_citations", "unblocked", "rerank"])
def test_an_application_may_have_modes_of_its_own(tmp_path: Path, mode: str) -> None:
    assert broken(tmp_path, rule("must_not_refuse"), says("It is 5.", mode=mode)) == []
    assert broken(tmp_path, rule("must_refuse"), says("It is 5.", mode=mode)) == [SURE]


def test_a_warning_does_not_fail_the_check(tmp_path: Path) -> None:
    assert decided(tmp_path, rule("must_refuse"), ANSWER).verdict == "pass"
    assert decided(tmp_path, rule("must_refuse"), ANSWER, PINNED).verdict == "fail"
    both = {"rules": [{"type": "must_refuse"}, {"type": "max_chars", "value": 3}]}
    assert {one.status for one in decided(tmp_path, both, ANSWER).findings} == {"warn", "fail"}
    assert decided(tmp_path, both, ANSWER).verdict == "fail"


REFUSE, DO_NOT = {"type": "must_refuse"}, {"type": "must_not_refuse"}


@pytest.mark.parametrize(
    "fields",
    [
        {"rules": [REFUSE, DO_NOT]},
        {"turns": [{"query": "Hello?", "rules": [REFUSE, DO_NOT]}]},
        {"turns": [{"query": "Hello?"}], "rules": [{**REFUSE, "in": "each"}, {**DO_NOT, "in": "each"}]},
        {"turns": [{"query": "Hello?"}], "rules": [{**REFUSE, "in": "last"}, {**DO_NOT, "in": "last"}]},
        {"turns": [{"query": "Hello?"}], "rules": [REFUSE, DO_NOT]},
    ],
)
def test_no_answer_is_a_refusal_and_none(fields: Row, tmp_path: Path) -> None:
    [problem] = refusal(tmp_path, fields, says("No."))
    assert problem.endswith("rules[1]: must_not_refuse contradicts must_refuse in rules[0]; take one of them out")


def test_one_turn_may_refuse_and_another_one_answer(tmp_path: Path) -> None:
    turns = [{"query": "Hello?", "rules": [DO_NOT]}, {"query": "What does the director earn?"}]
    said = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello!"}]
    said += [{"role": "user", "content": "The director?"}, {"role": "assistant", "refusal": "No."}]
    assert broken(tmp_path, {"turns": turns, "rules": [{**REFUSE, "in": "last"}]}, {"messages": said}) == []


def test_who_must_abstain_must_not_also_answer(tmp_path: Path) -> None:
    asked = {"expected_mode": "abstain", "rules": [DO_NOT]}
    assert refusal(tmp_path, asked, says("No.", mode="abstain")) == [
        "golden.jsonl:1: rules[0]: must_not_refuse contradicts expected_mode, abstain; take one of them out"
    ]


def test_only_phrases_of_which_there_are_none_would_find_no_refusal(tmp_path: Path) -> None:
    problem = (
        "ragcontract.yml:1: answers.only_these: needs refusal_phrases: without any, no text would be a refusal; "
        "name them, or leave it out"
    )
    config = "answers: {only_these: true}\n"
    assert refusal(tmp_path, {"rules": [REFUSE]}, says("No."), config) == [problem]
    config = "answers: {only_these: true, refusal_phrases: ['No.']}\n"
    assert broken(tmp_path, {"rules": [REFUSE]}, says("No."), config) == []
