"""judge-calibration.json: written so that people can read it, and read with everything that is wrong with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core.config_sections import LabelCounts
from ragcontract.core.errors import InputError
from ragcontract.judgments.calibration import (
    FORMAT_VERSION,
    CalibrationFile,
    calibrated,
    read_calibration,
    write_calibration,
)
from tests.runs.judgment_lines import AT

ONE = calibrated(
    "attribution", LabelCounts(tp=45, fp=5, fn=5, tn=45), fingerprint="m", at=AT, unjudged=2, self_agreement=0.98
)
OTHER = calibrated("criteria", LabelCounts(tp=9, fp=0, fn=0, tn=0), fingerprint="m", at=AT)


def as_written(folder: Path) -> dict[str, Any]:
    file = CalibrationFile(format_version=FORMAT_VERSION, calibrations=(ONE, OTHER))
    write_calibration(str(folder / "c.json"), file)
    found: dict[str, Any] = json.loads((folder / "c.json").read_text())
    return found


def problems(folder: Path, content: object) -> list[str]:
    path = folder / "c.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InputError) as raised:
        read_calibration(str(path))
    return [problem.replace(f"{folder}/", "") for problem in raised.value.problems]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    as_written(tmp_path)
    file = read_calibration(str(tmp_path / "c.json"))
    assert file.calibrations == (ONE, OTHER)
    assert (tmp_path / "c.json").read_text().count("\n") > 20, "a key a line, for reviews"


def test_everything_that_is_wrong_is_reported_at_once(tmp_path: Path) -> None:
    content = as_written(tmp_path)
    content["calibrations"][0] |= {"task": "x", "at": "yesterday", "n": -1, "kappa": 2}
    content["calibrations"][0]["counts"]["tp"] = "many"
    fields = [problem.split(": ")[1] for problem in problems(tmp_path, json.dumps(content, indent=1))]
    assert fields == [f"calibrations[0].{name}" for name in ("at", "counts.tp", "kappa", "n", "task")]


def test_a_problem_says_the_line(tmp_path: Path) -> None:
    content = as_written(tmp_path)
    content["calibrations"][0]["unjudged"] = -1
    assert problems(tmp_path, json.dumps(content, indent=1))[0].startswith("c.json:15: calibrations[0].unjudged: ")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "c.json: is empty; make it with `rag-contract judge calibrate`"),
        ("{", "c.json:1: "),
        ("[]", "c.json:1: expected an object, found []"),
        ('{"format_version": 2}', "c.json: has format version 2, and this rag-contract reads version 1"),
        ('{"format_version": 1, "calibrations": []}', "c.json:1: calibrations: expected a list that is not empty"),
        ("[" * 1000, "is nested too deeply"),
    ],
)
def test_another_file_is_refused(content: str, why: str, tmp_path: Path) -> None:
    assert why in problems(tmp_path, content)[0]


def test_bytes_that_are_no_text_are_a_problem_with_a_line(tmp_path: Path) -> None:
    content = as_written(tmp_path)
    content["calibrations"][0] |= {"kappa": "x", "fingerprint": "caf\u00e9"}
    (tmp_path / "c.json").write_bytes(json.dumps(content, ensure_ascii=False).encode("latin-1"))
    with pytest.raises(InputError) as raised:
        read_calibration(str(tmp_path / "c.json"))
    assert "c.json:1" in raised.value.problems[0]


def test_a_task_has_one_calibration(tmp_path: Path) -> None:
    content = as_written(tmp_path)
    content["calibrations"] *= 2
    assert problems(tmp_path, content) == [
        "c.json: has two calibrations for 'attribution'; make it with `rag-contract judge calibrate`",
        "c.json: has two calibrations for 'criteria'; make it with `rag-contract judge calibrate`",
    ]


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_calibration(str(tmp_path / "none.json"))
