"""Judgments files that somebody edited: a judgment that no judge made counts for nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.judgments.judgments_file import write_judgments
from tests.builders import write_jsonl
from tests.judged_checks import BOTH, check, errors
from tests.judgment_files import (
    FALSE,
    TRUE,
    asked,
    case_of,
    judged_workspace,
    judgments_on,
    write_good_calibration,
    write_judgments_on,
)
from tests.process import rag_contract
from tests.runs.judgment_lines import JUDGE as AS_JUDGED

MINIMUM = "minimums: {context_recall: 0.75}\n"
RUN = "rag-contract judge"


@pytest.fixture(name="folder")
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit(folder: Path, line: int, **fields: Any) -> None:
    """Change a judgment, as a person with an editor can."""
    path = folder / "judgments.jsonl"
    lines = [json.loads(one) for one in path.read_text().splitlines()]
    lines[line - 1] |= fields
    write_jsonl(path, lines)


def line_of(folder: Path, query_id: str) -> int:
    ids = [json.loads(line)["query_id"] for line in (folder / "judgments.jsonl").read_text().splitlines()]
    return ids.index(query_id) + 1


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (
            {"verdict": True, "votes": [True], "quote": "Refunds take a year.", "context": 1},
            "quote: is not a proof, because its quote is not in the text that it names, letter by letter",
        ),
        (
            {"verdict": True, "votes": [True], "quote": "Refunds", "context": 1},
            "quote: is not a proof, because its quote has less than 8 characters",
        ),
        (
            {"verdict": True, "votes": [True], "quote": "Refunds take five days.", "context": 2},
            "quote: is not a proof, because its context is not the id of a text",
        ),
        ({"item": "claim:2"}, "item: its key is that of 'claim:1'"),
    ],
)
def test_a_judgment_that_somebody_edited_is_none(folder: Path, fields: dict[str, Any], why: str) -> None:
    judged_workspace(folder, MINIMUM, [TRUE], [FALSE])
    write_judgments_on(folder, [TRUE], [FALSE])
    write_good_calibration(folder)
    assert check(*BOTH).code == 1
    line = line_of(folder, "q2")
    edit(folder, line, **fields)
    (error,) = errors(check(*BOTH))
    assert error.startswith('current_run.jsonl:2: query "q2" has a judgment on claim:'), error
    assert f"that no judge made: judgments.jsonl:{line}: {why}; run `{RUN}` again" in error


def test_a_quote_is_found_as_a_judge_s_quotes_are(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE])
    write_judgments_on(folder, [TRUE], quote="returns are  ACCEPTED **within** 30 days")
    write_good_calibration(folder)
    assert check(*BOTH).code == 0


def test_a_judgment_that_contradicts_itself_is_refused_with_its_line(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE], [FALSE])
    write_judgments_on(folder, [TRUE], [FALSE])
    write_good_calibration(folder)
    edit(folder, line_of(folder, "q2"), verdict=True)
    edit(folder, line_of(folder, "q1"), at="2999-01-01T00:00:00Z", status="unsure")
    found = errors(check(*BOTH))
    lines = {line_of(folder, "q2"): ("votes", "quote", "context"), line_of(folder, "q1"): ("verdict", "at")}
    for line, fields in lines.items():
        for field in fields:
            assert any(one.startswith(f"judgments.jsonl:{line}: {field}: ") for one in found), found


JUDGE = {
    "protocol": 1, "instructions": "abc", "model": "m", "host": "models.example", "votes": 3, "confirm": "failures",
}  # fmt: skip
FINGERPRINT = "toy at models.example, protocol 1, 3 votes on failures"


@pytest.mark.parametrize("command", ["check", "validate"])
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"votes": [True, False, False]}, "votes: [true,false,false] goes on after the verdict was settled"),
        ({"votes": [False, False]}, "votes: [false,false] makes the verdict false (3 votes, confirm: failures)"),
        (
            {"fingerprint": "great at models.example, protocol 1, 3 votes on failures"},
            f"fingerprint: expected '{FINGERPRINT}', as its judge and model have it, found 'great at models.example, ",
        ),
        ({"fingerprint": ""}, f"fingerprint: expected '{FINGERPRINT}', as its judge and model have it, found ''"),
        ({"fingerprint": f"{FINGERPRINT} without temperature"}, f"fingerprint: expected '{FINGERPRINT}', as its"),
        ({"model": "great"}, "fingerprint: expected 'great at models.example, protocol 1, 3 votes on failures', as"),
        ({"judge": {**JUDGE, "host": "other.example"}}, "fingerprint: expected 'toy at other.example, protocol 1, 3 "),
        ({"judge": {**JUDGE, "votes": 5}}, "fingerprint: expected 'toy at models.example, protocol 1, 5 votes on fai"),
    ],
)
def test_a_judgment_that_does_not_follow_from_itself_is_refused_with_its_line(
    folder: Path, fields: dict[str, Any], why: str, command: str
) -> None:
    judged_workspace(folder, MINIMUM, [TRUE], [TRUE])
    write_judgments_on(folder, [TRUE], [TRUE])
    write_good_calibration(folder)
    line = line_of(folder, "q2")
    edit(folder, line, **fields)
    ended = rag_contract(command, *BOTH)
    assert ended.code == 2
    assert f"judgments.jsonl:{line}: {why}" in ended.err


def test_a_fingerprint_that_names_what_an_endpoint_did_not_take_is_read(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE])
    fingerprint = f"{FINGERPRINT}, without seed, temperature"
    write_judgments_on(folder, [TRUE], fingerprint=fingerprint)
    write_good_calibration(folder, fingerprint=fingerprint)
    assert check(*BOTH).code == 0


@pytest.mark.parametrize(("field", "other"), [("model", "toy-alias"), ("instructions", "be kind")])
def test_judgments_of_one_fingerprint_that_were_asked_for_otherwise_are_not_mixed(
    folder: Path, field: str, other: str
) -> None:
    """A calibration vouches for who replied, and not for a line that somebody had made with other instructions."""
    judged_workspace(folder, MINIMUM, [TRUE], [TRUE])
    lenient = replace(AS_JUDGED, **{field: other})
    made = [judgments_on(case_of(asked(1, [TRUE])))[0], judgments_on(case_of(asked(2, [TRUE])), judge=lenient)[0]]
    assert len({judgment.fingerprint for judgment in made}) == 1
    write_judgments(str(folder / "judgments.jsonl"), made)
    write_good_calibration(folder)
    (error,) = errors(check(*BOTH))
    line, before = line_of(folder, "q2"), getattr(AS_JUDGED, field)
    assert f"judgments.jsonl:{line}: judge.{field}: is {other!r}, and {before!r} at judgments.jsonl:" in error
    assert (
        "which has the same fingerprint; keep those of one judge, or run `rag-contract judge` with --refresh" in error
    )
    write_judgments_on(folder, [TRUE], [TRUE], judge=lenient)
    assert check(*BOTH).code == 0
