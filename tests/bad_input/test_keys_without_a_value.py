"""A key of a configuration without a value is refused: it never switches off what somebody meant."""

from pathlib import Path

import pytest
from msgspec import Struct

from ragcontract.contract.config import config_record
from ragcontract.contract.limits import limit_keys, sections
from ragcontract.registry import BUILT_IN
from tests.bad_input.test_rows import errors, refused
from tests.builders import golden, good_workspace, run, write_jsonl
from tests.process import rag_contract

MISSING = "has no value; write one, or delete the line"
COMMA = "is what follows the comma in `{0},{1}`; with a decimal point, write `{0}.{1}`"

UNSET = {
    "a decimal comma in a minimum": (
        "minimums: {mrr_at_k: 0,95}",
        [f"1: minimums.95: {COMMA.format('mrr_at_k: 0', 95)}"],
    ),
    "a decimal comma and a blank": (
        "k: 5\nfail_on: {mrr_drop_gt: 0, 05}",
        [f"2: fail_on.05: {COMMA.format('mrr_drop_gt: 0', '05')}"],
    ),
    "a decimal comma in a percentage": (
        "fail_on: {mrr_drop_gt: 0,5%}",
        [f"1: fail_on.5%: {COMMA.format('mrr_drop_gt: 0', '5%')}"],
    ),
    "a decimal comma in a limit of a tag": (
        "tags:\n  p:\n    minimums: {mrr_at_k: 0,9}",
        [f"3: tags.p.minimums.9: {COMMA.format('mrr_at_k: 0', 9)}"],
    ),
    "a decimal comma in a tier": (
        "tiers: [{name: core, minimum: 0,9}]",
        [f"1: tiers[0].9: {COMMA.format('minimum: 0', 9)}"],
    ),
    "a number that follows a text": (
        "answers: {refusal: evidence, 9}",
        [
            (
                "1: answers.9: unknown key; known here: normalise, refusal_phrases, only_these, refusal, "
                "missing_modes, composite, must_not_leak"
            )
        ],
    ),
    "a key that is glued to its value": (
        "minimums: {mrr_at_k:0.95}",
        ['1: minimums.mrr_at_k:0.95: unknown key without a value; write a blank after the colon of "mrr_at_k"'],
    ),
    "unknown keys": (
        "minimumss:\nper_query: {enforce_must_includ: null}\nminimums: {mrr_at: ~}",
        [
            "1: minimumss: unknown key; did you mean 'minimums'?",
            "2: per_query.enforce_must_includ: unknown key; did you mean 'enforce_must_include'?",
            "3: minimums.mrr_at: unknown key; did you mean 'mrr_at_k'?",
        ],
    ),
    "a minimum": (
        "minimums:\n  mrr_at_k:\n",
        [f"2: minimums.mrr_at_k: expected a fraction from 0 to 1, as 0.10, but it {MISSING}"],
    ),
    "a drop of a tag": (
        "tags: {p: {fail_on: {recall_drop_gt: }}}",
        [
            (
                "1: tags.p.fail_on.recall_drop_gt: expected a fraction from 0 to 1, as 0.10 or a percentage of the "
                f'baseline, as "10%", but it {MISSING}'
            )
        ],
    ),
    "a tag": ("tags:\n  p:\n  #  minimums: {}\n", [f"2: tags.p: expected an object, but it {MISSING}"]),
    "a switch": (
        "per_query: {enforce_must_include: }",
        [f"1: per_query.enforce_must_include: expected true, false or new, but it {MISSING}"],
    ),
    "settings that are off by default": (
        "max_baseline_age:\nper_query:\n  forbidden_within:\nanswers: {composite: }\njudge: {model: , votes: }",
        [
            f"1: max_baseline_age: {MISSING}",
            f"3: per_query.forbidden_within: {MISSING}",
            f"4: answers.composite: {MISSING}",
            f"5: judge.model: {MISSING}",
            f"5: judge.votes: {MISSING}",
        ],
    ),
    "a waiver of no query": (
        "waivers:\n- {query: , tag: p, reason: r, owner: o, expires: 2099-01-01}",
        [f"2: waivers[0].query: {MISSING}"],
    ),
}


@pytest.mark.parametrize(("text", "expected"), UNSET.values(), ids=UNSET.keys())
def test_a_key_without_a_value_is_refused(
    text: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    Path("ragcontract.yml").write_text(text)
    said = [line for line in errors(refused(tmp_path)) if "no golden query" not in line]
    assert said == [f"ragcontract.yml:{line}" for line in expected]


KEYS = limit_keys(BUILT_IN, [5])
RECORD = config_record(BUILT_IN, KEYS)
RECORDS: list[tuple[tuple[str, ...], type[Struct] | None]] = [
    ((), RECORD),
    *(((name,), record) for name, record in sections(RECORD).items()),
]
NAMES = [
    (*path, name)
    for path, record in RECORDS
    if record
    for name in record.__struct_fields__
    if name not in sections(record)
]


def test_no_setting_and_no_limit_goes_without_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    for path in NAMES:
        Path("ragcontract.yml").write_text("".join(f"{'  ' * depth}{key}:\n" for depth, key in enumerate(path)))
        [problem] = errors(refused(tmp_path))
        assert problem.startswith(f"ragcontract.yml:{len(path)}: {'.'.join(path)}: ")
        assert problem.endswith(MISSING)


def test_whole_sections_whose_keys_are_comments_are_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1")])
    write_jsonl(tmp_path / "current_run.jsonl", [run("q1")])
    text = "".join(f"{name}:\n#  nothing: 1\n" for name in sections(RECORD))
    lists = "answers: {refusal_phrases: }\nper_query: {different_documents: }\njudge: {metrics: }\n"
    for written in (text, lists):
        Path("ragcontract.yml").write_text(written)
        ended = rag_contract("check")
        assert (ended.code, ended.err) == (0, "")
    assert {"minimums", "fail_on", "tags", "waivers", "tiers", "allow_fields", "answers", "judge"} <= {
        *sections(RECORD)
    }


def test_a_waiver_is_added_to_an_empty_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1")])
    Path("ragcontract.yml").write_text("waivers:\nminimums:\n")
    ended = rag_contract("waive", "q1", "--until", "2099-12-31", "--reason", "r", "--owner", "o")
    assert ended.code == 0
    assert "query: q1" in Path("ragcontract.yml").read_text()
