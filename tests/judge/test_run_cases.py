"""What is judged of a run."""

from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from ragcontract.contract.config_file import ConfigFile, read_config
from ragcontract.core.config_sections import Task
from ragcontract.core.errors import InputError
from ragcontract.judge.run_cases import TASKS, Cases, read_cases
from ragcontract.registry import BUILT_IN
from tests.builders import Row, golden, write_jsonl

CLAIMS: Row = {"reference_claims": ["Refunds take five days.", "Returns are free."]}


def read(
    folder: Path,
    queries: list[Row],
    rows: list[Row],
    k: int = 5,
    *tags: str,
    config: ConfigFile | None = None,
    tasks: Collection[Task] = TASKS,
    repeats: bool = False,
) -> Cases:
    write_jsonl(folder / "golden.jsonl", queries)
    write_jsonl(folder / "run.jsonl", rows)
    config = config or read_config(None, BUILT_IN, k=k)
    paths = [str(folder / "golden.jsonl")], [str(folder / "run.jsonl")]
    return read_cases(*paths, config, tags=tags, tasks=tasks, repeats=repeats)


def answer(text: str, results: Sequence[Row] = ()) -> Row:
    return {"query_id": "q1", "results": list(results), "response": text}


def not_containing(text: str) -> Row:
    return {"type": "must_not_contain", "value": text}


def texts(*found: str | None) -> list[Row]:
    return [{"doc_id": f"d{at}", **({} if text is None else {"text": text})} for at, text in enumerate(found)]


def test_the_claims_are_judged_by_the_texts_of_the_first_results(tmp_path: Path) -> None:
    (case,) = read(tmp_path, [golden(**CLAIMS)], [{"query_id": "q1", "results": texts("a", "b", "c", None)}], 3).cases
    assert [item.name for item in case.items] == ["claim:1", "claim:2"]
    assert (case.task, case.query_id, case.contexts) == ("attribution", "q1", ("a", "b", "c"))


def test_what_the_model_saw_counts_more_than_what_was_retrieved(tmp_path: Path) -> None:
    row = {"query_id": "q1", "results": texts(None), "retrieved_contexts": ["x"] * 9}
    assert read(tmp_path, [golden(**CLAIMS)], [row]).cases[0].contexts == ("x",) * 9


def test_queries_without_claims_are_not_judged(tmp_path: Path) -> None:
    found = read(tmp_path, [golden(), golden("q2", reference="A good answer.")], [{"query_id": "q2", "results": []}])
    assert found.cases == ()
    assert "not judged, because there are no reference_claims: 1 golden query ('q2')" in found.warnings[0]


def test_a_query_without_a_row_is_a_warning(tmp_path: Path) -> None:
    found = read(tmp_path, [golden(**CLAIMS), golden("q2")], [{"query_id": "q2", "results": []}])
    assert "not judged, because there is no row in the run: 1 golden query ('q1')" in found.warnings


def test_nothing_retrieved_is_a_case_without_contexts(tmp_path: Path) -> None:
    assert read(tmp_path, [golden(**CLAIMS)], [{"query_id": "q1", "results": []}]).cases[0].contexts == ()


def test_only_queries_with_a_tag_are_judged_if_one_is_given(tmp_path: Path) -> None:
    queries = [golden("q1", tags=["a"], **CLAIMS), golden("q2", tags=["b"], **CLAIMS)]
    rows = [{"query_id": one["id"], "results": []} for one in queries]
    assert [case.query_id for case in read(tmp_path, queries, rows, 5, "b").cases] == ["q2"]


def test_all_that_is_wrong_is_said_with_its_line(tmp_path: Path) -> None:
    queries = [golden(f"q{at}", **CLAIMS) for at in range(3)]
    rows: list[Row] = [
        {"query_id": "q0", "results": texts("a", None)},
        {"query_id": "q1"},
        {"query_id": "q2", "results": []},
        {"query_id": "q2", "results": []},
    ]
    with pytest.raises(InputError) as raised:
        read(tmp_path, queries, rows)
    assert [problem.removeprefix(f"{tmp_path}/run.jsonl:") for problem in raised.value.problems] == [
        "1: has no text in results[1]; a judge needs it, or retrieved_contexts",
        "2: has neither retrieved_contexts nor results; a judge needs what was retrieved",
        f"4: query_id: 'q2' has a row already, at {tmp_path}/run.jsonl:3 (with --repeats, all are judged)",
    ]


def test_of_several_rows_of_a_query_all_are_judged_and_what_is_the_same_once(tmp_path: Path) -> None:
    rows: list[Row] = [{"query_id": "q1", "results": texts(one)} for one in ("a", "b", "a")]
    found = read(tmp_path, [golden(**CLAIMS)], rows, repeats=True).cases
    assert [case.contexts for case in found] == [("a",), ("b",)]


def test_what_rules_flag_is_judged_with_all_that_was_retrieved(tmp_path: Path) -> None:
    query = golden(forbidden_claims=[r"\$\d+"], forbidden_elements=["guarantee"], rules=[not_containing("for free")])
    row = answer("It is $4, not $499; no guarantee, not for free. Is $4 much?", texts("a", "b"))
    (case,) = read(tmp_path, [query], [row]).cases
    assert (case.task, case.contexts, case.response) == ("confirmation", ("a", "b"), row["response"])
    assert [(one.name, one.text, one.why) for one in case.items] == [
        ("must_not_contain:1", "for free", "must_not_contain: for free"),
        ("forbidden_claims:1", "$4", r"forbidden_claims: \$\d+"),
        ("forbidden_claims:2", "$499", r"forbidden_claims: \$\d+"),
        ("forbidden_elements:1", "guarantee", "forbidden_elements: guarantee"),
    ]


def test_nothing_is_judged_where_no_rule_flags_anything(tmp_path: Path) -> None:
    found = read(tmp_path, [golden(forbidden_claims=["free"])], [answer("It costs nothing.", texts(None))])
    assert (found.cases, found.can_be_flagged) == ((), True)


def test_rules_that_are_turned_off_flag_nothing(tmp_path: Path) -> None:
    query = golden(forbidden_claims=["free"], forbidden_elements=["free"])
    (tmp_path / "off.yml").write_text("per_query: {enforce_forbidden_claims: false}\n")
    config = read_config(str(tmp_path / "off.yml"), BUILT_IN)
    (case,) = read(tmp_path, [query], [answer("It is free.")], config=config).cases
    assert [one.name for one in case.items] == ["forbidden_elements:1"]


def test_flagged_words_of_a_conversation_are_judged_turn_by_turn(tmp_path: Path) -> None:
    said = ["Is it free?", "It is.", "Really free?", "Not free, but cheap."]
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    query = golden(forbidden_claims=["free"], turns=[{"query": said[0]}, {"query": said[2]}])
    row = {"query_id": "q1", "results": [], "messages": messages}
    (case,) = read(tmp_path, [query], [row]).cases
    assert (case.question, case.response, case.items[0].name) == (said[2], said[3], "turn:2/forbidden_claims:1")


def test_criteria_are_judged_by_the_answer_the_reference_and_what_is_known_of_the_texts(tmp_path: Path) -> None:
    query = golden(
        criteria=["Says that returns are free.", {"id": "tone", "text": "Is polite."}], reference="They are."
    )
    (case,) = read(tmp_path, [query], [answer("Returns are free.", texts("a", None))]).cases
    assert (case.task, case.response, case.reference, case.contexts) == (
        "criteria",
        "Returns are free.",
        "They are.",
        (),
    )
    assert [(one.name, one.text) for one in case.items] == [
        ("criterion:1", "Says that returns are free."),
        ("criterion:tone", "Is polite."),
    ]


def test_only_the_tasks_that_are_asked_for_are_judged(tmp_path: Path) -> None:
    query = golden(criteria=["Is polite."], forbidden_claims=["free"], **CLAIMS)
    row = answer("It is free.", texts("a"))
    for task in TASKS:
        assert [case.task for case in read(tmp_path, [query], [row], tasks=[task]).cases] == [task]
    assert [case.task for case in read(tmp_path, [query], [row]).cases] == list(TASKS)


def test_a_row_without_a_response_or_the_texts_of_a_flagged_one_is_an_error(tmp_path: Path) -> None:
    queries = [golden("q1", criteria=["Is polite."]), golden("q2", forbidden_claims=["free"])]
    rows: list[Row] = [{"query_id": "q1", "results": []}, {**answer("It is free.", texts(None)), "query_id": "q2"}]
    with pytest.raises(InputError) as raised:
        read(tmp_path, queries, rows)
    assert [problem.removeprefix(f"{tmp_path}/run.jsonl:") for problem in raised.value.problems] == [
        "1: has no response, which its criteria need; export it, as null if there was none",
        "2: has no text in results[0]; a judge needs it, or retrieved_contexts",
    ]
