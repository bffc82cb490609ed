"""code_parses as a check tries it: what it says of an answer, and where."""

from pathlib import Path

import pytest

from tests.rules.answers import broken, refusal, rule, says


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("Here:\n```python\nx = 1\n```\n", []),
        ("x = 1", []),
        ("Here:\n```python\nx = (\n```\n", ["expected Python that parses; found: line 3: '(' was never closed"]),
        ("```sh\nls\n```", ["expected Python that parses; found: an answer without a block of Python: ```sh ls ```"]),
    ],
)
def test_what_an_answer_breaks(answer: str, found: list[str], tmp_path: Path) -> None:
    assert broken(tmp_path, rule("code_parses", language="python"), says(answer)) == [
        f"fail code_parses: {sentence}" for sentence in found
    ]


def test_empty_json_is_an_answer(tmp_path: Path) -> None:
    assert broken(tmp_path, rule("code_parses", language="json"), says("[]")) == []


def test_no_answer_has_no_code(tmp_path: Path) -> None:
    (found,) = broken(tmp_path, rule("code_parses", language="json"), says(None))
    assert found.startswith("fail answered: ")


def test_a_dialect_is_one_of_sql(tmp_path: Path) -> None:
    (found,) = refusal(tmp_path, rule("code_parses", language="json", dialect="postgres"), says("x"))
    assert "rules[0].dialect: is only for SQL; leave it out" in found
    (found,) = refusal(tmp_path, rule("code_parses", language="sql", dialect="postgress"), says("x"))
    assert "rules[0].dialect: expected one of athena" in found
