"""What the fuzzer makes: valid files of every kind, from the schemas, the same from the same seed; and its changes."""

import json
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import jsonschema
import pytest

from ragcontract.contract.golden_row import ANSWER_FIELDS, OPTIONS
from ragcontract.schemas import SCHEMAS
from tests.fuzz.case import Case
from tests.fuzz.generate.by_schema import fitting, schema
from tests.fuzz.generate.damage import BYTES, change_bytes
from tests.fuzz.generate.encoding import decode, encode
from tests.fuzz.generate.expected_answers import RULES
from tests.fuzz.generate.files import mutated, remade
from tests.fuzz.generate.growth import LARGE, LARGEST, amplified
from tests.fuzz.generate.kinds import KINDS
from tests.fuzz.generate.mutation import change_value, words
from tests.fuzz.generate.values import Maker
from tests.fuzz.limits import SMALL_INPUT, Limits
from tests.fuzz.sandbox import Sandbox
from tests.fuzz.targets.registry import TARGETS, bred, made
from tests.fuzz.worker import Failure, judged

SEEDS = range(40)
FILES = {
    "golden": "golden.jsonl",
    "run": "current_run.jsonl",
    "baseline": "baseline.json",
    "config": "ragcontract.yml",
    "report": "report.json",
    "scores": "scores.jsonl",
    "judgments": "judgments.jsonl",
    "labels": "labels.jsonl",
    "calibration": "judge-calibration.json",
    "history": "entry-1.json",
}


def maker(seed: object = 0) -> Maker:
    return Maker(Random(str(seed)))


def test_every_format_with_a_schema_is_a_kind() -> None:
    # The first two are printed and never read; the last one names code to run.
    assert set(FILES) == set(SCHEMAS) - {"diff", "comparison", "record"}
    assert set(FILES.values()) <= set(KINDS)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_nobody_changed_fits_the_schema(name: str) -> None:
    validator = jsonschema.Draft202012Validator(schema(name))
    for seed in SEEDS:
        value = KINDS[FILES[name]](Maker(Random(seed), oddness=0.0))
        for one in value if isinstance(value, list) else [value]:
            assert [error.message[:200] for error in validator.iter_errors(json.loads(json.dumps(one)))] == []


def test_every_field_of_a_schema_is_made() -> None:
    met = {field for seed in range(200) for field in fitting(maker(seed), "golden")}
    assert met == set(schema("golden")["$defs"]["GoldenRow"]["properties"])


def test_every_type_of_rule_and_every_field_about_answers_is_made() -> None:
    rows = [row for seed in range(300) for row in KINDS["golden.jsonl"](maker(seed))]
    rules = [rule for row in rows for rule in row.get("rules") or () if isinstance(rule, dict)]
    assert set(RULES) == set(
        schema("golden")["$defs"]["GoldenRow"]["properties"]["rules"]["anyOf"][0]["items"]["discriminator"]["mapping"]
    )
    assert {rule.get("type") for rule in rules} >= set(RULES)
    assert {field for row in rows for field in row} >= {*ANSWER_FIELDS, *OPTIONS, "turns"}


def test_contracts_of_answers_come_to_every_verdict() -> None:
    codes: list[int] = []
    with Sandbox() as sandbox:
        random = Random("answers")
        target = TARGETS["check"]
        while len(codes) < 80 or (0 not in codes and len(codes) < 400):  # of a hundred, only one or two hold
            one = Maker(random, oddness=0.0)
            if one.about_answers and not one.grown:
                kinds = ["golden.jsonl", "current_run.jsonl", "ragcontract.yml", "scores.jsonl"]
                one.has_baseline = one.has_run_before = False
                files = {kind: encode(kind, KINDS[kind](one)) for kind in kinds}
                scores = ["--scores", "scores.jsonl"] if one.scores_apart else []
                argv = {"argv.json": encode("argv.json", ["check", *scores])}
                case = Case(target="check", files=files | argv)
                ended = judged(case, target, sandbox, Limits(memory=1 << 40))
                assert not isinstance(ended, Failure), ended
                codes.append(int(ended.code))
    assert codes.count(2) < len(codes) * 2 / 3
    assert {0, 1} <= set(codes)


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_what_its_file_holds(name: str) -> None:
    for seed in SEEDS:
        value = KINDS[name](maker(seed))
        if not isinstance(value, str):
            with suppress(UnicodeDecodeError):  # half of a surrogate pair in YAML, which has no escape for it
                read = decode(name, encode(name, value, ascii_only=True))
                assert same(read, json.loads(json.dumps(value)))


def same(one: Any, other: Any) -> bool:
    """Compare as text: NaN is not itself."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@pytest.mark.parametrize("target", TARGETS)
def test_a_seed_makes_the_same_cases_each_time(target: str) -> None:
    def cases() -> list[bytes]:
        random = Random("a seed")
        cases = [made(random, target, TARGETS[target]) for _ in range(30)]
        return [case.packed() for case in [*cases, *(bred(random, cases) for _ in range(30))]]

    assert cases() == cases()


@pytest.mark.parametrize("name", KINDS)
def test_any_file_can_be_changed_any_number_of_times(name: str) -> None:
    one = maker(name)
    for _ in range(100):
        data = mutated(one, name, KINDS[name](one))
        assert len(remade(one, name, data)) <= LARGEST < SMALL_INPUT


@pytest.mark.parametrize("change", [*BYTES, *LARGE])
def test_bytes_are_changed_even_if_there_are_none(change: Callable[[Maker, bytes], bytes]) -> None:
    for seed in SEEDS:
        assert isinstance(change(maker(seed), b""), bytes)
        assert isinstance(change(maker(seed), b'{"id": 1}\n'), bytes)


def test_a_changed_value_differs_most_of_the_time() -> None:
    row = {"id": "q", "relevant_doc_ids": ["a", "b"], "metadata": {"x": {"y": [1]}}}
    texts = {json.dumps(change_value(maker(seed), json.loads(json.dumps(row)))) for seed in range(100)}
    assert len(texts) > 60
    assert len({change_bytes(maker(seed), b'{"id": "q"}\n') for seed in range(100)}) > 60


def test_an_amplified_value_is_large_and_within_the_limit() -> None:
    sizes = [len(encode("x.json", amplified(maker(seed), [{"id": "q", "tags": ["a"]}]))) for seed in range(30)]
    assert max(sizes) > 100_000
    assert max(sizes) < 2 * LARGEST


@pytest.mark.parametrize("grown", ["queries", "documents", "tags", "waivers"])
def test_at_times_a_case_has_very_many_of_something_in_all_of_its_files(grown: str) -> None:
    one = next(found for found in map(maker, range(20_000)) if found.grown == grown)
    golden, run, config = (KINDS[name](one) for name in ("golden.jsonl", "current_run.jsonl", "ragcontract.yml"))
    counted = {
        "queries": (golden, run),
        "documents": (run[0]["results"],),
        "tags": (config.get("tags", ()),),
        "waivers": (golden, config.get("waivers", ())),
    }
    assert min(map(len, counted[grown])) >= 100


def test_the_words_of_the_formats_are_known() -> None:
    assert {"must_rank_at_most", "recall_at_k", "significant", "doc_ids"} <= set(words())


def test_cases_come_to_every_outcome_of_a_check_and_of_the_action() -> None:
    codes: dict[str, set[int]] = {"check": set(), "action": set(), "post-comment": set()}
    with Sandbox() as sandbox:
        for target, found in codes.items():
            random = Random("outcomes")
            for number in range(600):  # a check that passes is one in a hundred
                if number >= 120 and {0, 1, 2} <= found | ({1} if target == "post-comment" else set()):
                    break
                ended = judged(made(random, target, TARGETS[target]), TARGETS[target], sandbox, Limits(memory=1 << 40))
                assert not isinstance(ended, Failure), ended
                found.add(int(ended.code))
    assert codes["check"] == {0, 1, 2}
    assert codes["action"] >= {0, 1, 2}
    assert codes["post-comment"] >= {0, 2}
