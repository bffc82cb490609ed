"""The section ``metrics``: what can be declared, what is wrong with it, and what limits on it are."""

from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcontract.contract.config_file import ConfigFile, read_config
from ragcontract.contract.limits import NO_VALUE
from ragcontract.core.lines import Line
from ragcontract.metrics.named_scores import DeclaredScore
from ragcontract.registry import BUILT_IN, Registry


class Coverage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a built-in metric, as another module would register them."""

    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.5


WITH_OPTIONS = replace(BUILT_IN, options=(Line(names=("coverage",), home={"coverage": Coverage}),))
FAITHFULNESS = "metrics: {faithfulness: {from: scores}}\n"


def read(folder: Path, text: str, registry: Registry = BUILT_IN) -> ConfigFile:
    path = folder / "ragcontract.yml"
    path.write_text(text)
    return read_config(str(path), registry)


def problems(folder: Path, text: str, registry: Registry = BUILT_IN) -> list[str]:
    """Return what is wrong, with lines and without the file."""
    found = read(folder, text, registry).problems.problems
    return [problem.replace(f"{folder}/ragcontract.yml:", "") for problem in found]


def test_a_declared_score_has_limits_by_its_direction_and_by_tag(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "metrics:\n  rating: {from: scores, scale: [1, 5]}\n  toxicity: {from: scores, better: lower}\n"
        "minimums: {rating: 3.5}\nmaximums: {toxicity: 0.02}\n"
        'fail_on: {rating_drop_gt: 2, toxicity_rise_gt: "10%"}\n'
        "tags: {chat: {minimums: {rating: 4}, maximums: {toxicity: 0}}}\n",
    )
    found.problems.raise_if_any()
    assert {gate.id: (gate.limit, gate.relative) for gate in found.gates} == {
        "minimums.rating": (3.5, False),
        "fail_on.rating_drop_gt": (2, False),
        "maximums.toxicity": (0.02, False),
        "fail_on.toxicity_rise_gt": (0.1, True),
        "tags.chat.minimums.rating": (4, False),
        "tags.chat.maximums.toxicity": (0, False),
    }
    assert found.declared["rating"] == DeclaredScore(source="scores", scale=(1, 5))


@pytest.mark.parametrize("value", ["", " null", " ~"])
def test_a_metric_that_is_only_named_is_a_mistake(tmp_path: Path, value: str) -> None:
    source = "is not a built-in metric with options; a score that another tool computes needs a source"
    assert problems(tmp_path, f"metrics:\n  faithfulness:{value}\n  context_recall_text:{value}\n") == [
        f"2: metrics.faithfulness: {source}: `faithfulness: {{from: scores}}`",
        f"3: metrics.context_recall_text: expected an object, but it {NO_VALUE}",
    ]


def test_a_tag_that_is_only_named_is_a_mistake_as_of_limits_that_are_not_indented(tmp_path: Path) -> None:
    assert problems(tmp_path, "tags:\n  chat:\n") == [f"2: tags.chat: expected an object, but it {NO_VALUE}"]


def test_a_name_may_be_a_word_of_python(tmp_path: Path) -> None:
    found = read(tmp_path, "metrics: {class: {from: scores}}\nminimums: {class: 0.5}\n")
    assert [gate.quantity.key for gate in found.gates] == ["class"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "minimums: {faithfulness: 0.7}",
            (
                "1: minimums.faithfulness: is not a built-in metric; if another tool computes it, declare it under "
                "metrics: `faithfulness: {from: scores}`"
            ),
        ),
        (
            "tags: {t: {fail_on: {faithfulness_drop_gt: 0.7}}}",
            (
                "1: tags.t.fail_on.faithfulness_drop_gt: is not a built-in metric; if another tool computes it, "
                "declare it under metrics: `faithfulness: {from: scores}`"
            ),
        ),
        (
            f"{FAITHFULNESS}minimums: {{faithfullness: 0.7}}",
            "2: minimums.faithfullness: unknown key; did you mean 'faithfulness'?",
        ),
        (
            f"{FAITHFULNESS}maximums: {{faithfulness: 0.7}}",
            "2: maximums.faithfulness: higher is better: write minimums.faithfulness",
        ),
        (
            f"{FAITHFULNESS}fail_on: {{faithfulness_rise_gt: 0.7}}",
            "2: fail_on.faithfulness_rise_gt: higher is better: write fail_on.faithfulness_drop_gt",
        ),
        (
            "metrics: {rating: {from: scores, scale: [1, 5]}}\nminimums: {rating: 0.5}",
            "2: minimums.rating: expected a number from 1 to 5, found 0.5",
        ),
        ("metrics: {recall: {from: scores}}", "1: metrics.recall: is the name of a built-in metric; give the score"),
        ("metrics: {mrr_at_7: {from: scores}}", "1: metrics.mrr_at_7: is the name of a built-in metric; give the"),
        ("metrics: {latency_p95_ms: {from: scores}}", "1: metrics.latency_p95_ms: is the name of a built-in metric;"),
        ("metrics: {mrr_at_5: {}}", "1: metrics.mrr_at_5: is a built-in metric without options; leave the entry out"),
        ("metrics: {own_at_k: {from: scores}}", "1: metrics.own_at_k: ends in _at_k, which stands for the largest"),
        (
            "metrics: {Rating: {from: scores}}",
            "1: metrics.Rating: is not a name for a score; expected a lower-case letter",
        ),
        (
            "metrics: {rating: {scale: [1, 5]}}",
            (
                "1: metrics.rating: is not a built-in metric with options; a score that another tool computes needs a "
                "source: `rating: {from: scores}`"
            ),
        ),
        ("metrics: {rating: scores}", "1: metrics.rating: is not a built-in metric with options"),
        ("metrics: {rating: {from: ragas}}", '1: metrics.rating.from: expected "scores", found "ragas"'),
        (
            "metrics: {rating: {from: scores, scale: [5, 1]}}\nminimums: {rating: 3}",
            "1: metrics.rating.scale: expected the lowest value and then a higher one, as [1, 5], found [5.0, 1.0]",
        ),
        (
            "metrics: {rating: {from: scores, scale: 5}}\nminimums: {rating: 3}",
            "1: metrics.rating.scale: expected the lowest and the highest value, as [1, 5], found 5",
        ),
        (
            "metrics: {rating: {from: scores, beter: lower}}",
            "1: metrics.rating.beter: unknown key; did you mean 'better'?",
        ),
        ("missing_scores: skip", '1: missing_scores: expected "error" or "zero", found "skip"'),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_the_way_out(text: str, said: str, tmp_path: Path) -> None:
    (found,) = problems(tmp_path, text)
    assert found.startswith(said)


def test_options_of_built_in_metrics_are_read_by_their_own_record(tmp_path: Path) -> None:
    assert read(tmp_path, "metrics: {coverage: {threshold: 0.9}}", WITH_OPTIONS).declared == {
        "coverage": Coverage(threshold=0.9)
    }
    (wrong,) = problems(tmp_path, "metrics: {coverage: {treshold: 0.9}}", WITH_OPTIONS)
    assert wrong == "1: metrics.coverage.treshold: unknown key; did you mean 'threshold'?"
    (near,) = problems(tmp_path, "metrics: {coverge: {}}", WITH_OPTIONS)
    assert near.startswith(
        "1: metrics.coverge: is not a built-in metric with options; did you mean 'coverage'? a score"
    )


def test_an_entry_without_a_value_declares_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "metrics:\n  faithfulness:\n").declared == {}


def test_a_score_whose_source_is_misspelled_is_wrong_once_and_not_wherever_it_is_named(tmp_path: Path) -> None:
    found = read(tmp_path, "metrics: {faithfulness: {from: score}}\nminimums: {faithfulness: 0.5}\n")
    assert problems(tmp_path, "metrics: {faithfulness: {from: score}}\nminimums: {faithfulness: 0.5}\n") == [
        '1: metrics.faithfulness.from: expected "scores", found "score"; did you mean "scores"?'
    ]
    assert found.declared == {"faithfulness": DeclaredScore(source="scores")}
