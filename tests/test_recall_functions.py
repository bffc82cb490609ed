"""Context recall in Python, called as users of ragas call theirs."""

import asyncio
import inspect
import sys
from typing import Any

import pytest

import ragcontract
from ragcontract import (
    InputError,
    acontext_recall_ids,
    acontext_recall_text,
    context_recall_ids,
    context_recall_text,
)

PARIS = "Paris is the capital of France."
INSTALL = "needs rapidfuzz; install it: pip install 'rag-contract[text]', or use measure: coverage"
TOWER = "The Eiffel Tower is one of the most famous landmarks in Paris."
BY_IDS: dict[str, Any] = {
    "user_input": "Where is the Eiffel Tower located?",
    "retrieved_context_ids": ["doc_1", "doc_2", "doc_3"],
    "reference_context_ids": ["doc_1", "doc_4", "doc_5", "doc_6"],
}
BY_TEXT: dict[str, Any] = {
    "user_input": "Where is the Eiffel Tower located?",
    "retrieved_contexts": [PARIS],
    "reference_contexts": [PARIS, TOWER],
}


def test_the_examples_of_ragas_have_their_values() -> None:
    assert context_recall_ids(**BY_IDS) == 0.25
    assert context_recall_text(**BY_TEXT) == 0.5
    for measure in ("levenshtein", "hamming"):
        assert context_recall_text(**BY_TEXT, measure=measure) == 0.5


def test_the_asynchronous_functions_return_the_same_and_the_others_work_in_a_running_loop_too() -> None:
    async def in_a_loop() -> list[float]:
        beside = [context_recall_ids(**BY_IDS), context_recall_text(**BY_TEXT)]
        return [*beside, *await asyncio.gather(acontext_recall_ids(**BY_IDS), acontext_recall_text(**BY_TEXT))]

    assert asyncio.run(in_a_loop()) == [0.25, 0.5, 0.25, 0.5]


@pytest.mark.parametrize("name", ["context_recall", "context_recall_ids", "context_recall_text"])
def test_the_asynchronous_functions_take_the_same_arguments(name: str) -> None:
    function, other = getattr(ragcontract, name), getattr(ragcontract, f"a{name}")
    assert inspect.signature(function) == inspect.signature(other)
    assert inspect.iscoroutinefunction(other)


def test_whole_numbers_are_the_same_ids_as_their_digits_and_any_iterable_will_do() -> None:
    ids = context_recall_ids(retrieved_context_ids={1, 2}, reference_context_ids=(str(one) for one in (1, 1, 3)))
    assert ids == 0.5
    assert context_recall_text(retrieved_contexts=iter([PARIS]), reference_contexts=(PARIS,), threshold=1) == 1.0


THRESHOLD = "threshold: expected a number above 0, with which every text would count, and at most 1, as 0.5, found"
EMPTY = "is empty, so there is nothing to find; leave out samples that nothing answers"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"retrieved_context_ids": None}, "retrieved_context_ids: expected a list, found null"),
        ({"retrieved_context_ids": "doc_1"}, 'retrieved_context_ids: expected a list, found "doc_1" (text)'),
        ({"reference_context_ids": ["a", 1.0]}, "reference_context_ids[1]: expected text of 1 to 2,000 characters, or"),
        ({"reference_context_ids": [True]}, "reference_context_ids[0]: expected text of 1 to 2,000 characters, or"),
        ({"reference_context_ids": [""]}, "reference_context_ids[0]: expected text of 1 to 2,000 characters, or"),
        ({"reference_context_ids": []}, f"reference_context_ids: {EMPTY}"),
    ],
)
def test_what_are_no_ids_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as refused:
        context_recall_ids(**BY_IDS | given)
    [message] = refused.value.problems
    assert message.startswith(f"context_recall_ids: {problem}")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"retrieved_contexts": PARIS}, "retrieved_contexts: expected a list, found"),
        ({"reference_contexts": [PARIS, None]}, "reference_contexts[1]: expected text, found null"),
        ({"reference_contexts": []}, f"reference_contexts: {EMPTY}"),
        ({"reference_contexts": [PARIS, "?"]}, "the sample has a text without words in reference_contexts"),
        ({"measure": "levenstein"}, 'measure: expected "coverage" or "hamming" or'),
        (
            {"threshold": 50},
            f"{THRESHOLD} 50",
        ),
        (
            {"threshold": float("nan")},
            f'{THRESHOLD} "nan" (text)',
        ),
        (
            {"threshold": True},
            f"{THRESHOLD} true",
        ),
    ],
)
def test_what_are_no_texts_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as refused:
        context_recall_text(**BY_TEXT | given)
    [message] = refused.value.problems
    assert message.startswith(f"context_recall_text: {problem}")


def test_without_rapidfuzz_a_distance_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    assert context_recall_text(**BY_TEXT) == 0.5
    with pytest.raises(InputError) as refused:
        context_recall_text(**BY_TEXT, measure="jaro")
    assert refused.value.problems == [f"context_recall_text: jaro {INSTALL}"]
