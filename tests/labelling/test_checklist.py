"""Candidates in a file to tick: what is written, what is read, and what is wrong by line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Location
from ragcontract.core.safe_text import visible
from ragcontract.files.problems import Collector
from ragcontract.labelling.checklist import _Reader, checklist, quoted_id, read_checklist
from ragcontract.labelling.labels import Candidate, Labels, Question
from tests.labelling.builders import question

TODO = GoldenQuery(id="q1", query="What about q1?", relevant_doc_ids=("TODO",), location=Location("golden.jsonl", 1))


def read(folder: Path, text: str, **queries: GoldenQuery) -> tuple[dict[str, Labels], list[str]]:
    path = folder / "c.txt"
    path.write_text(text)
    problems = Collector()
    labels = read_checklist(str(path), queries or {"q1": TODO}, problems)
    return labels, [problem.replace(f"{folder}/", "") for problem in problems.collected().problems]


def labels_in(folder: Path, text: str, query: GoldenQuery = TODO) -> Labels | None:
    labels, problems = read(folder, text, q1=query)
    assert problems == []
    return labels.get("q1")


def test_what_is_written_shows_id_score_and_the_start_of_the_text() -> None:
    candidates = (Candidate(doc_id="doc 1", rank=1, score=0.12345, text="t" * 201), Candidate(doc_id="b", rank=2))
    text = "".join(checklist([Question(id="q1", text="What?", candidates=candidates)]))
    assert text.split("\n\n", 1)[1] == (
        f'## q1\nQ: What?\n- [ ] "doc 1"  0.1235  {"t" * 199}…\n- [ ] b\n- [ ] (nothing answers it)\n'
    )


def test_what_is_decided_is_not_listed() -> None:
    done = question("q1", "a", labels=Labels(grades={"a": 1}))
    half = question("q2", "a", "b", labels=Labels(grades={"a": 1}))
    assert "".join(checklist([done, half])).split("\n\n", 1)[1] == "## q2\nQ: What about q2?\n- [ ] b\n"


def test_what_is_ticked_is_relevant_and_the_rest_of_its_question_is_not(tmp_path: Path) -> None:
    text = "".join(checklist([question("q1", "a", "b", "c")])).replace("[ ] b", "[x] b")
    assert labels_in(tmp_path, text) == Labels(grades={"a": 0, "c": 0, "b": 1})


def test_a_question_without_a_tick_stays_open(tmp_path: Path) -> None:
    assert labels_in(tmp_path, "".join(checklist([question("q1", "a")]))) is None


def test_a_question_that_nothing_answers_is_ticked_as_such(tmp_path: Path) -> None:
    text = "".join(checklist([question("q1", "a")])).replace("[ ] (", "[X] (")
    assert labels_in(tmp_path, text) == Labels(grades={"a": 0}, unanswerable=True)


def test_a_document_that_is_not_listed_is_added_in_a_line(tmp_path: Path) -> None:
    assert labels_in(tmp_path, "## q1\n- [ ] a\n[x] new one-is-text\n* [ x ] other\r\n") == Labels(
        grades={"a": 0, "new": 1, "other": 1}
    )


def test_what_was_decided_earlier_stays_unless_it_is_ticked(tmp_path: Path) -> None:
    graded = GoldenQuery(
        id="q1",
        query="?",
        relevant_doc_ids=("a", "f"),
        relevance={"a": 3, "b": 0, "c": 0, "f": 2},
        location=Location("golden.jsonl", 1),
    )
    text = "## q1\n- [ ] a\n- [x] b\n- [ ] c\n- [x] d\n- [ ] e\n- [x] f\n"
    assert labels_in(tmp_path, text, graded) == Labels(grades={"a": 3, "b": 1, "c": 0, "d": 1, "e": 0, "f": 2})


def test_every_mistake_is_reported_with_its_line(tmp_path: Path) -> None:
    must_rank = GoldenQuery(
        id="q2", query="?", relevant_doc_ids=("TODO",), must_rank_at_most=1, location=Location("g", 2)
    )
    text = (
        '- [x] early\n## q1\nx doc_a\n- [y] doc_b\n- [x]\n- [x] "never closed\n## q1\n## qq1\n## q2\n'
        "- [x] (nothing answers it)\n## q3\n- [x] a\n- [x] (nothing answers it)\n##\n"
    )
    labels, problems = read(tmp_path, text, q1=TODO, q2=must_rank, q3=replace(TODO, id="q3"))
    assert labels == {}
    assert [problem.split(": ")[0] for problem in problems] == [
        f"c.txt:{line}" for line in (1, 3, 4, 5, 6, 7, 8, 14, 10, 13)
    ]
    for part in (
        "is above the first question",
        "expected a line such as `- [x] ID` or `- [ ] ID`, or `## ID` above the documents of a question",
        "expected [x], [-], [?], [ ] or a grade as [2], found [y]",
        "expected an id of 1 to 2,000 characters",
        "expected an id as JSON writes it",
        "duplicate id 'q1', first at",
        'no golden query has the id "qq1"; did you mean',
        "needs a document",
        "is ticked, but so is a document of 'q3'",
    ):
        assert any(part in problem for problem in problems), part


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    assert read(tmp_path, "# notes\n\n")[1][0].startswith("c.txt: has no questions; expected a line such as")


@pytest.mark.parametrize("text", ["- [x] evil", "## q1", "\n- [x] evil\n", "(nothing answers it)"])
def test_no_question_and_no_text_can_tick_anything(text: str, tmp_path: Path) -> None:
    asked = Question(
        id="q1", text=text, candidates=(Candidate(doc_id="a", rank=1, text=text), Candidate(doc_id=text, rank=2))
    )
    assert labels_in(tmp_path, "".join(checklist([asked])), replace(TODO, query=text)) is None


@pytest.mark.parametrize("text", ["  Wann?\n\tUnd \u202ewo?  ", "w" * 1_000, "What  is  \u00a0 it?\x1b[2J"])
def test_a_question_that_is_shown_in_another_form_is_still_the_same(text: str, tmp_path: Path) -> None:
    asked = Question(id="q1", text=text, candidates=(Candidate(doc_id="a", rank=1),))
    ticked = "".join(checklist([asked])).replace("[ ] a", "[x] a")
    assert labels_in(tmp_path, ticked, replace(TODO, query=text)) == Labels(grades={"a": 1})


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10))
def test_any_id_is_read_as_it_was_written_and_is_one_visible_line(name: str) -> None:
    written = quoted_id(name)
    assert visible(written) == written
    problems = Collector()
    reader = _Reader("c.txt", {name: TODO}, problems)
    reader.line(Location("c.txt", 1), f"## {written}".strip())
    reader.line(Location("c.txt", 2), f"- [x] {written}  0.5  text".strip())
    assert reader.finish() == {name: Labels(grades={name: 1})}
    assert not problems.collected()


def test_a_cross_is_not_relevant_and_a_question_mark_stays_open(tmp_path: Path) -> None:
    assert labels_in(tmp_path, "## q1\n- [x] a\n- [-] b\n- [?] c\n- [ ] d\n") == Labels(grades={"a": 1, "b": 0, "d": 0})
    assert labels_in(tmp_path, "## q1\n- [-] b\n- [?] c\n- [ ] d\n") == Labels(grades={"b": 0})
    assert labels_in(tmp_path, "## q1\n- [?] c\n- [ ] d\n") is None


def test_a_number_is_a_grade(tmp_path: Path) -> None:
    text = "## q1\n- [2] a\n- [0.5] b\n- [0] c\n- [1] c\n- [ ] d\n"
    assert labels_in(tmp_path, text) == Labels(grades={"a": 2, "b": 0.5, "c": 1, "d": 0})
    assert labels_in(tmp_path, "## q1\n- [0.5] b\n- [ ] d\n") == Labels(grades={"b": 0.5})


def test_a_mark_replaces_what_was_decided_and_a_tick_keeps_a_higher_grade(tmp_path: Path) -> None:
    graded = replace(TODO, relevant_doc_ids=("a", "b"), relevance={"a": 3, "b": 2, "c": 0})
    assert labels_in(tmp_path, "## q1\n- [x] a\n- [-] b\n- [2] c\n", graded) == Labels(grades={"a": 3, "b": 0, "c": 2})


def test_crosses_keep_a_question_that_nothing_answers(tmp_path: Path) -> None:
    nothing = replace(TODO, relevant_doc_ids=())
    assert labels_in(tmp_path, "## q1\n- [-] b\n", nothing) == Labels(grades={"b": 0}, unanswerable=True)
    assert labels_in(tmp_path, "## q1\n- [x] b\n", nothing) == Labels(grades={"b": 1})
