"""The order of what is asked, and what each key does."""

import pytest

from ragcontract.cli.label_screen import Interview
from ragcontract.labelling.labels import Labels
from tests.labelling.builders import Person, interviewed, question


def test_every_document_of_every_question_is_asked_with_the_progress() -> None:
    interview, person, _ = interviewed(question("q1"), question("q2", "c"), answers="yny")
    assert person.asked == ["1/2, 0 decided: q1 a", "q1 b", "2/2, 1 decided: q2 c"]
    assert interview.labels == {"q1": Labels(grades={"a": 1, "b": 0}), "q2": Labels(grades={"c": 1})}
    assert interview.decided == 2


def test_what_is_decided_is_not_asked() -> None:
    labelled = question("q1", "a", "b", "c", labels=Labels(grades={"a": 2, "c": 0}))
    interview, person, _ = interviewed(labelled, question("q2", labels=Labels(unanswerable=True)), answers="n")
    assert person.asked == ["2/2, 1 decided: q1 b"]
    assert interview.changed == {"q1": Labels(grades={"a": 2, "c": 0, "b": 0})}


def test_questions_without_a_relevant_document_come_before_those_that_have_one() -> None:
    labelled = question("labelled", "a", "b", labels=Labels(grades={"a": 1}))
    started = question("started", "c", "d", labels=Labels(grades={"c": 0}))
    nothing = question("nothing", labels=Labels(unanswerable=True))
    _, person, _ = interviewed(labelled, started, question("open", "e"), nothing, answers="yyn")
    assert person.asked == ["1/4, 1 decided: started d", "2/4, 2 decided: open e", "4/4, 3 decided: labelled b"]


def test_every_answer_is_saved_before_the_next_one_is_asked() -> None:
    _, _, saved = interviewed(question("q1"), answers="yn")
    assert saved[:2] == [{"q1": Labels(grades={"a": 1})}, {"q1": Labels(grades={"a": 1, "b": 0})}]


@pytest.mark.parametrize("answers", [[], ["y"], ["y", "n", "n"], ["a"], ["b"], ["n", "n", "a"]])
def test_ctrl_c_at_any_moment_loses_no_answer(answers: list[str]) -> None:
    saved: list[dict[str, Labels]] = []
    interview = Interview([question("q1"), question("q2")], lambda labels: saved.append(dict(labels)))
    with pytest.raises(KeyboardInterrupt):
        interview.run(Person([*answers, "^C"]))
    assert saved[-1] == interview.changed
    given = sum(answer in "yn" for answer in answers)
    assert sum(len(labels.grades) for labels in interview.changed.values()) == given


def test_what_is_skipped_stays_open_and_is_not_asked_again_in_this_session() -> None:
    interview, person, _ = interviewed(question("q1"), question("q2", "c"), answers="nss")
    assert interview.changed == {"q1": Labels(grades={"a": 0})}
    assert interview.decided == 0
    assert person.asked[-1] == "2/2, 0 decided: q2 c"


def test_no_to_the_rest_leaves_what_is_decided_or_skipped() -> None:
    interview, person, _ = interviewed(question("q1", "a", "b", "c", "d"), answers="ysx")
    assert interview.changed == {"q1": Labels(grades={"a": 1, "c": 0, "d": 0})}
    assert len(person.asked) == 3


def test_where_no_document_is_relevant_it_is_asked_whether_nothing_answers_the_question() -> None:
    interview, person, _ = interviewed(question("q1"), answers="xy")
    assert person.asked == ["1/1, 0 decided: q1 a", "q1 nothing?"]
    assert interview.labels["q1"] == Labels(grades={"a": 0, "b": 0}, unanswerable=True)
    assert interview.decided == 1


def test_a_question_that_something_answers_stays_open_until_the_document_is_known() -> None:
    interview, _, _ = interviewed(question("q1"), answers="xn")
    assert interview.labels["q1"].relevance() == {"a": 0, "b": 0, "TODO": 1}
    assert interview.decided == 0


def test_a_question_whose_rule_needs_a_document_is_not_said_to_have_none() -> None:
    interview, person, _ = interviewed(question("q1", can_be_unanswerable=False), answers="x")
    assert person.asked == ["1/1, 0 decided: q1 a"]
    assert interview.labels["q1"].relevance() == {"a": 0, "b": 0, "TODO": 1}


def test_a_document_that_was_not_returned_is_added_by_its_id() -> None:
    interview, _, _ = interviewed(question("q1"), answers=["n", "n", "a", " doc 9 "])
    assert interview.labels["q1"] == Labels(grades={"a": 0, "b": 0, "doc 9": 1})


def test_an_id_that_is_too_long_is_refused_and_an_empty_one_adds_nothing() -> None:
    interview, person, _ = interviewed(question("q1"), answers=["a", "x" * 2_001, "a", " ", "y", "y"])
    assert interview.labels["q1"] == Labels(grades={"a": 1, "b": 1})
    assert person.said == ["an id has at most 2,000 characters"]


def test_back_takes_the_last_answer_away_also_across_questions() -> None:
    interview, person, saved = interviewed(question("q1"), question("q2"), answers="ysbbnx")
    assert person.asked[2:] == ["2/2, 0 decided: q2 a", "1/2, 0 decided: q1 b", "q1 a", "q1 b", "q1 nothing?"]
    assert interview.changed == {"q1": Labels(grades={"a": 0, "b": 0})}
    assert {} in saved, "the row is as it was"


def test_back_at_the_start_says_so() -> None:
    _, person, _ = interviewed(question("q1"), answers="b")
    assert person.said == ["this is the first answer"]


def test_quitting_ends_at_once() -> None:
    interview, person, _ = interviewed(question("q1"), question("q2"), answers="yqy")
    assert interview.changed == {"q1": Labels(grades={"a": 1})}
    assert len(person.asked) == 2


@pytest.mark.parametrize("key", ["", "?", "Q", "yes", "\x1b"])
def test_any_other_key_shows_what_the_keys_mean_and_changes_nothing(key: str) -> None:
    interview, person, _ = interviewed(question("q1"), answers=[key])
    assert person.helped == 1
    assert interview.changed == {}


@pytest.mark.parametrize("key", ["s", "x"])
def test_keys_for_documents_where_none_is_asked_about(key: str) -> None:
    interview, person, _ = interviewed(question("q1"), answers=["x", key])
    assert person.helped == (key == "x")
    assert not interview.labels["q1"].unanswerable
