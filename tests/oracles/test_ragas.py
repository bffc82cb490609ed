"""Context recall and tool calls beside ragas 0.4.3, in an environment that `make test-oracles` sets up."""

import random
from typing import Any, get_args

import pytest

from ragcontract.answers.metric_options import Measure
from ragcontract.answers.similarity import recall_of_ids, recall_of_texts
from ragcontract.answers.tool_calls import tool_calls
from tests.answers import ragas_tools
from tests.answers.texts import chunks, sentences
from tests.oracles.outside import asked

pytestmark = pytest.mark.oracles
PARIS = "Paris is the capital of France."
TOWER = "The Eiffel Tower is one of the most famous landmarks in Paris."
DISTANCES = [measure for measure in get_args(Measure) if measure != "coverage"]
Case = dict[str, Any]


def test_the_examples_of_its_documentation_have_its_values() -> None:
    by_ids = {
        "retrieved_context_ids": ["doc_1", "doc_2", "doc_3"],
        "reference_context_ids": ["doc_1", "doc_4", "doc_5", "doc_6"],
    }
    by_text = {"retrieved_contexts": [PARIS], "reference_contexts": [PARIS, TOWER]}
    values = asked(
        "ragas_scores",
        [{"kind": "ids", **by_ids}, {"kind": "text", **by_text, "measure": "levenshtein", "threshold": 0.5}],
    )
    assert values == [0.25, 0.5]
    assert recall_of_ids(by_ids["retrieved_context_ids"], by_ids["reference_context_ids"]) == 0.25
    assert recall_of_texts([PARIS], [PARIS, TOWER], measure="levenshtein") == 0.5


def test_recall_of_ids_is_that_of_ragas() -> None:
    chance = random.Random(3)
    pools = (["a", "b", "c", "01", "1", "é"], [1, 2, 3, 10, -1])
    cases = [
        {
            "retrieved_context_ids": chance.choices(pool, k=chance.randint(0, 6)),
            "reference_context_ids": chance.choices(pool, k=chance.randint(1, 5)),
        }
        for pool in pools
        for _ in range(150)
    ]
    ours = [
        recall_of_ids(map(str, case["retrieved_context_ids"]), [str(one) for one in case["reference_context_ids"]])
        for case in cases
    ]
    assert asked("ragas_scores", [{"kind": "ids", **case} for case in cases]) == ours
    assert len(set(ours)) > 5


def made_texts(chance: random.Random) -> Case:
    """Return a case of texts: prose in chunks, or short texts of few characters, some of them no letters."""
    if chance.random() < 0.5:
        document = sentences(12, seed=chance.randint(1, 99))
        found = chunks(" ".join(document), chance.choice([60, 150, 300]))
        wanted = [chance.choice(document) for _ in range(chance.randint(1, 4))]
        return {"retrieved_contexts": chance.sample(found, min(4, len(found))), "reference_contexts": wanted}
    characters = "abAB é😀\u0301漢"
    texts = ["".join(chance.choices(characters, k=chance.randint(0, 9))) for _ in range(chance.randint(2, 10))]
    cut = chance.randint(1, len(texts) - 1)
    return {"retrieved_contexts": texts[:cut], "reference_contexts": texts[cut:]}


def test_recall_by_each_distance_is_that_of_ragas() -> None:
    chance = random.Random(5)
    cases = [
        {**made_texts(chance), "measure": measure, "threshold": chance.choice([0.3, 0.5, 0.5, 0.75, 0.9])}
        for measure in DISTANCES
        for _ in range(300)
    ]
    ours = [recall_of_texts(case["retrieved_contexts"], case["reference_contexts"], **rest(case)) for case in cases]
    assert asked("ragas_scores", [{"kind": "text", **case} for case in cases]) == ours
    assert len(set(ours)) > 5
    assert all(0 < sum(ours[start : start + 300]) < 300 for start in range(0, len(ours), 300)), "each measure varies"


def rest(case: Case) -> Case:
    return {name: case[name] for name in ("measure", "threshold")}


def test_nothing_retrieved_is_zero_where_ragas_raises_an_error() -> None:
    """Through its `evaluate()` the row leaves the mean."""
    with pytest.raises(AssertionError, match=r"max\(\) .* is an empty sequence|max\(\) iterable argument is empty"):
        asked(
            "ragas_scores",
            [
                {
                    "kind": "text",
                    "retrieved_contexts": [],
                    "reference_contexts": [PARIS],
                    "measure": "levenshtein",
                    "threshold": 0.5,
                }
            ],
        )
    assert recall_of_texts([], [PARIS], measure="levenshtein") == 0.0


def test_the_tool_metrics_that_ours_are_compared_with_are_those_of_ragas() -> None:
    chance = random.Random(7)
    values = [1, "1", True, None, 1.0, [1, 2], {"a": 1, "b": [2]}, {"b": [2], "a": 1}]

    def trace() -> list[Case]:
        return [
            {
                "name": chance.choice("ab"),
                "args": {name: chance.choice(values) for name in chance.choice(["", "x", "xy"])},
            }
            for _ in range(chance.choice([0, 1, 1, 2, 2, 3]))
        ]

    cases = [(wanted, trace() if chance.random() < 0.6 else wanted[::-1]) for wanted in (trace() for _ in range(400))]
    theirs = asked("ragas_scores", [{"kind": "tools", "called": called, "wanted": wanted} for wanted, called in cases])
    ours = [
        [
            ragas_tools.accuracy(called, wanted, in_order=True),
            ragas_tools.accuracy(called, wanted, in_order=False),
            ragas_tools.f1(called, wanted),
        ]
        for wanted, called in cases
    ]
    assert theirs == ours
    assert all(tool_calls(called) for _, called in cases if called)
    assert {len(set(column)) > 2 for column in zip(*ours, strict=True)} == {True}
