"""What the documentation says is what the code does."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from ragcontract.cli.main import COMMANDS
from ragcontract.contract.config import Config, read_config
from ragcontract.contract.golden_file import read_golden
from ragcontract.files.problems import Diagnostics
from ragcontract.github.settings import CommentWhen, Settings
from ragcontract.judging.gates import gates_of
from ragcontract.metrics.formulas import metrics_at
from ragcontract.runs.run_file import RunRows
from scripts import docs
from tests.builders import write_jsonl
from tests.process import rag_contract

README = docs.README.read_text()


def test_the_parts_of_the_readme_that_are_made_from_the_code_are_up_to_date() -> None:
    assert docs.render(README) == README, "run `make docs`"


def test_the_help_on_the_page_of_commands_is_what_the_commands_say() -> None:
    page = docs.HELP.read_text()
    assert docs.render_help(page) == page, "run `make docs`"
    assert re.findall(r"^## rag-contract (\w+)$", page, re.MULTILINE) == list(COMMANDS)
    assert rag_contract("convert", "--help").out.splitlines()[0] in page


def test_a_part_that_is_not_there_is_told() -> None:
    with pytest.raises(ValueError, match="has 0 parts 'help', not one"):
        docs.render_help("# Commands\n")


def test_the_first_section_fails_in_the_words_it_shows() -> None:
    output = docs.block(README, "quickstart output")
    assert (
        "FAIL refund_policy\n  Expected doc_refund_policy in top 3\n  Found: missing from top 5 (was rank 1)" in output
    )


def test_the_first_section_says_how_its_commands_end() -> None:
    with pytest.raises(ValueError, match="'quickstart commands' exits 1, not 0"):
        docs.quickstart(README.replace("The exit code is 1.", "The exit code is 0."))
    with pytest.raises(ValueError, match="'quickstart files' exits 9, not 0"):
        docs.quickstart(README.replace("cat > golden.jsonl <<'END'", "exit 9", 1))


def test_the_guide_shows_the_second_workflow_as_it_is() -> None:
    guide = docs.GUIDE.read_text()
    assert docs.render_guide(guide) == guide, "run `make docs`"
    assert "mode: post-comment" in guide


def test_every_input_of_the_action_is_a_setting_and_every_setting_an_input() -> None:
    inputs = {name.replace("-", "_") for name in yaml.safe_load((docs.ROOT / "action.yml").read_text())["inputs"]}
    assert inputs - {"github_token"} == set(Settings.__struct_fields__) - {"problems"}


def test_every_input_and_output_is_described() -> None:
    action = yaml.safe_load((docs.ROOT / "action.yml").read_text())
    assert all(spec["description"] for spec in [*action["inputs"].values(), *action["outputs"].values()])
    assert all(word in action["inputs"]["comment"]["description"] for word in get_args(CommentWhen))


def config_in_the_readme(start: str, folder: Path) -> tuple[str, Config]:
    """Return the example that starts so, and what it is read as; fails where anything is wrong with it."""
    example = next(text for text in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL) if text.startswith(start))
    (folder / "c.yml").write_text(example)
    diagnostics = Diagnostics()
    config = read_config(str(folder / "c.yml"), diagnostics).config
    diagnostics.raise_problems()
    return example, config


def test_the_config_in_the_readme_is_read_without_a_complaint(tmp_path: Path) -> None:
    example, config = config_in_the_readme("k: 5", tmp_path)
    assert config.per_query.forbidden_within == 20
    keys = set(re.findall(r"^ *(\w+):", example, re.MULTILINE))
    assert keys >= {*Config.__struct_fields__, *config.per_query.__struct_fields__}


def test_the_cut_offs_in_the_readme_are_what_its_comments_say(tmp_path: Path) -> None:
    example, config = config_in_the_readme("k: [1", tmp_path)
    said = dict(re.findall(r"^  (\w+): \S+ +# (\w+@\d+)", example, re.MULTILINE))
    limits = {gate.id.partition(".")[2]: gate.metric.label for gate in gates_of(config, metrics_at(config.k))}
    assert said == {name: label for name, label in limits.items() if name != "recall_at_5"}


@pytest.mark.parametrize("kind", ["golden", "run"])
def test_the_example_rows_in_the_readme_are_read_without_a_complaint(kind: str, tmp_path: Path) -> None:
    key = "relevant_doc_ids" if kind == "golden" else "results"
    row = next(row for text in re.findall(r"```json\n(.*?)```", README, re.DOTALL) if key in (row := json.loads(text)))
    path = str(write_jsonl(tmp_path / "rows.jsonl", [row]))
    diagnostics = Diagnostics()
    rows = read_golden([path], diagnostics).queries if kind == "golden" else list(RunRows([path], diagnostics))
    diagnostics.raise_problems()
    assert len(rows) == 1
    assert diagnostics.warnings == []


def test_every_link_inside_the_documents_leads_somewhere() -> None:
    for document in [*docs.ROOT.glob("*.md"), *docs.ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
            if not target.startswith("https://"):
                path, _, anchor = target.partition("#")
                leads_to = document.parent / path if path else document
                assert leads_to.exists(), f"{document.name}: {target}"
                assert not anchor or anchor in anchors_of(leads_to), f"{document.name}: {target}"


def anchors_of(document: Path) -> set[str]:
    """Return the names that GitHub gives a document's headings."""
    titles = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
