"""The examples of the page on rules and gates are read as it says, and what it says of forms of names is so."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ragcontract.contract.config_file import read_config
from ragcontract.contract.golden_file import read_golden
from ragcontract.files.problems import Problems
from ragcontract.registry import BUILT_IN
from scripts import docs
from tests.builders import write_jsonl
from tests.process import rag_contract

PAGE = (docs.ROOT / "docs" / "reference" / "rules-and-gates.md").read_text(encoding="utf-8")
ROWS = [json.loads(text) for text in re.findall(r"^```json\n(.*?)```$", PAGE, re.DOTALL | re.MULTILINE)]
CONFIGS = re.findall(r"^```yaml\n(.*?)```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: next(iter(row)))
def test_every_golden_row_on_the_page_is_read_without_a_complaint(row: dict[str, Any], tmp_path: Path) -> None:
    path = str(write_jsonl(tmp_path / "golden.jsonl", [{"id": "q", "query": "?"} | row]))
    assert read_golden([path], BUILT_IN).problems == Problems()


@pytest.mark.parametrize("text", CONFIGS, ids=lambda text: text.partition(":")[0])
def test_every_configuration_on_the_page_is_read_without_a_complaint(text: str, tmp_path: Path) -> None:
    declared = "metrics: {faithfulness: {from: scores}, answer_relevancy: {from: scores}}\n"
    (tmp_path / "c.yml").write_text(text + (declared if "composite" in text else ""))
    assert read_config(str(tmp_path / "c.yml"), BUILT_IN).problems == Problems()


def test_a_forbidden_tool_is_found_in_every_form_that_the_page_names_and_a_wanted_one_only_as_written(
    tmp_path: Path,
) -> None:
    forms = re.findall(r"`([^`]+)`", PAGE.partition("**Forms of a tool's name**")[2].partition("refund_status")[0])
    shown = [form for form in forms if "refund" in form or "delete" in form.lower()]
    assert {"deleteUser", "functions.refund", "mcp__refund", "refund()", "refund:0"} <= set(shown)
    for number, form in enumerate(shown):
        tool = "refund" if "refund" in form else "delete_user"
        for kind, code in (("must_not_call_tool", 1), ("must_call_tool", int(form != tool))):
            folder = tmp_path / f"{number} {kind}"
            folder.mkdir()
            golden = [{"id": "q", "query": "?", "rules": [{"type": kind, "tool": tool}]}]
            run = [{"query_id": "q", "tool_calls": [{"name": form, "arguments": {}}]}]
            options = [
                *("--golden", str(write_jsonl(folder / "golden.jsonl", golden))),
                *("--run", str(write_jsonl(folder / "run.jsonl", run))),
                *(part for name in ("md", "json") for part in (f"--report-{name}", "")),
                *("--junit", "", "--quiet"),
            ]
            assert rag_contract("check", *options).code == code, (kind, form)
