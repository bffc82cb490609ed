"""What the documentation says is what the code does."""

import json
import re
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
import yaml

from benchmarks.page import CONTRIBUTORS, USERS
from ragcontract.cli.main import COMMANDS
from ragcontract.contract.config_file import ConfigFile, read_config
from ragcontract.contract.golden_file import read_golden
from ragcontract.core.rule import RowRule
from ragcontract.files.problems import Problems
from ragcontract.github.settings import ActionSettings, CommentWhen
from ragcontract.registry import BUILT_IN
from ragcontract.runs.readers import read_doc_ids
from scripts import answers_page, docs
from tests.builders import write_jsonl
from tests.process import rag_contract

README = docs.README.read_text()
FILES = (docs.ROOT / "docs" / "reference" / "files.md").read_text()
CONFIG = (docs.ROOT / "docs" / "reference" / "config.md").read_text()
REPORTS = (docs.ROOT / "docs" / "reference" / "reports.md").read_text()
WORKFLOWS = ("workflow.yml", "workflow-comment.yml")
DOCUMENTS = sorted([*docs.ROOT.glob("*.md"), *docs.ROOT.glob("docs/**/*.md"), *docs.ROOT.glob("examples/*.md")])


@pytest.mark.parametrize("name", docs.PAGES)
def test_the_generated_parts_of_every_page_are_up_to_date(name: str) -> None:
    page = (docs.ROOT / name).read_text()
    assert docs.PAGES[name](page) == page, "run `make docs`"


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(docs.ROOT)))
def test_every_part_that_a_page_marks_as_generated_is_generated(page: Path) -> None:
    name = str(page.relative_to(docs.ROOT))
    marked = re.findall(r"^<!-- begin: (.*) -->$", page.read_text(), re.MULTILINE)
    by_a_benchmark: dict[str, Collection[str]] = {
        "docs/background/performance.md": [*USERS, "recording"],
        "docs/contributing/performance.md": CONTRIBUTORS,
        "docs/contributing/growth.md": ["growth"],
        "docs/background/history.md": ["level-alarms", "false-points", "found-steps", "rebuilt-history"],
        "docs/background/drift.md": ["drift", "drift-measured"],
    }
    if name in by_a_benchmark:
        assert set(marked) == set(by_a_benchmark[name])
    elif marked and name != "docs/background/statistics.md":  # its tables are written by benchmarks
        generated = "(?!simulated )"  # those parts are written by benchmarks
        emptied = re.sub(rf"(<!-- begin: {generated}.* -->\n)[^<]*?(?=<!-- end -->)", r"\1", page.read_text())
        assert docs.PAGES[name](emptied) == page.read_text()


def test_the_page_of_commands_has_every_command_and_what_its_help_says() -> None:
    page = (docs.ROOT / "docs" / "reference" / "commands.md").read_text()
    assert re.findall(r"^## rag-contract (\w+)$", page, re.MULTILINE) == list(COMMANDS)
    assert rag_contract("convert", "--help").out.splitlines()[0].removeprefix("Usage: ") in page
    for command in COMMANDS:
        section = page.partition(f"\n## rag-contract {command}\n")[2].partition("\n## ")[0]
        options = set(re.findall(r"^  (--[\w-]+)(?= |$|,)", rag_contract(command, "--help").out, re.MULTILINE))
        assert {option for option in options - {"--help"} if f"`{option}" not in section} == set(), command


def test_an_example_of_the_page_of_answers_shows_what_a_check_prints() -> None:
    files = """```json
{"id": "q", "query": "?", "answer_must_include": ["yes"]}
```

```json
{"query_id": "q", "answer": "Yes."}
```
"""
    page = f"<!-- example: x -->\n{files}\n```text\nold\n```\n"
    printed = answers_page.render_examples(page).partition(files)[2]
    assert printed.startswith("\n```text\nwarning: current_run.jsonl:1: unknown field 'answer' is not read; ")
    assert printed.endswith(
        'query "q" has no response, which rules about its answer need; export it, as null if there was none\n```\n'
    )


def test_a_missing_part_is_reported_and_no_page_is_written(tmp_path: Path) -> None:
    broken = docs.parts({"help": lambda: "new\n"})
    with pytest.raises(ValueError, match="has 0 parts 'help', not one"):
        broken("# Commands\n")
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text("<!-- begin: help -->\n<!-- end -->\n")
    bad.write_text("# Commands\n")
    with pytest.raises(ValueError, match="has 0 parts"):
        docs.main({str(good): broken, str(bad): broken})
    assert "new" not in good.read_text()
    docs.main({str(good): broken})
    assert good.read_text() == "<!-- begin: help -->\nnew\n<!-- end -->\n"


def test_the_first_section_fails_with_the_message_it_shows() -> None:
    output = docs.block(README, "quickstart output")
    assert (
        "FAIL refund_policy (new)\n  Expected doc_refund_policy in top 3\n  Found: missing from top 3 (was rank 1)"
        in output
    )


def test_the_first_section_says_how_its_commands_end() -> None:
    with pytest.raises(ValueError, match="'quickstart commands' exits 1, not 0"):
        docs.quickstart(README.replace("The exit code is 1.", "The exit code is 0."))
    with pytest.raises(ValueError, match="'quickstart files' exits 9, not 0"):
        docs.quickstart(README.replace("cat > golden.jsonl <<'END'", "exit 9", 1))


def test_the_second_workflow_reads_what_the_first_one_uploads() -> None:
    first, second = (yaml.safe_load((docs.ROOT / "examples" / name).read_text()) for name in WORKFLOWS)
    assert second[True]["workflow_run"]["workflows"] == [first["name"]]  # YAML reads the key `on` as true
    upload = first["jobs"]["rag-contract"]["steps"][-1]["with"]
    download, post = (step["with"] for step in second["jobs"]["comment"]["steps"])
    assert download["name"] == upload["name"]
    assert post["mode"] == "post-comment"
    folder, _, file = post["report-json"].partition("/")
    assert folder == download["path"]
    assert file in upload["path"].split()


def test_every_input_of_the_action_is_a_setting_and_every_setting_an_input() -> None:
    inputs = {name.replace("-", "_") for name in yaml.safe_load((docs.ROOT / "action.yml").read_text())["inputs"]}
    of_check = {
        *["golden", "run", "baseline", "config", "judgments", "calibration"],
        "scores",
        "k",
        "tag",
        "repeats",
        "no_answers",
    }
    assert inputs - {"github_token"} == (set(ActionSettings.__struct_fields__) - {"problems", "inputs"}) | of_check


def test_every_input_and_output_is_described() -> None:
    action = yaml.safe_load((docs.ROOT / "action.yml").read_text())
    assert all(spec["description"] for spec in [*action["inputs"].values(), *action["outputs"].values()])
    assert all(word in action["inputs"]["comment"]["description"] for word in get_args(CommentWhen))


def config_on_the_page(start: str, folder: Path) -> tuple[str, ConfigFile]:
    """Return the example that starts so, and what it is read as; fails where anything is wrong with it."""
    example = next(text for text in re.findall(r"```yaml\n(.*?)```", CONFIG, re.DOTALL) if text.startswith(start))
    (folder / "c.yml").write_text(example)
    read = read_config(str(folder / "c.yml"), BUILT_IN)
    assert read.problems == Problems()
    return example, read


def test_the_config_on_its_page_is_read_without_a_complaint(tmp_path: Path) -> None:
    example, read = config_on_the_page("k: 5", tmp_path)
    config = read.config
    assert config.per_query.forbidden_within == 20
    keys = set(re.findall(r"^ *(\w+):", example, re.MULTILINE))
    of_answers = {f"enforce_{line.names[0]}" for line in BUILT_IN.rules if issubclass(line.load(), RowRule)}
    assert keys >= {*config.__struct_fields__, *config.per_query.__struct_fields__} - of_answers


def test_every_key_of_the_config_is_in_its_table() -> None:
    definitions = json.loads(rag_contract("schema", "config").out)["$defs"]
    table = CONFIG.partition("\n## All keys\n")[2].partition("\n## ")[0]
    keys = {key for definition in definitions.values() for key in definition["properties"]} - {"rule"}
    metrics = {name.removesuffix("_drop_gt") for name in keys if name.endswith("_drop_gt")}
    assert metrics
    of_metrics = {f"{metric}{end}" for metric in metrics for end in ("_drop_gt", "_at_k")}
    assert {key for key in keys - of_metrics if f"{key}`" not in table and f"`{key}." not in table} <= {"tags"}
    assert {metric for metric in metrics if f"`{metric}`" not in CONFIG and f".{metric}`" not in CONFIG} == set()


def test_every_key_of_the_report_is_on_its_page() -> None:
    schema = json.loads(rag_contract("schema", "report").out)
    judged, error = (schema["$defs"][one["$ref"].rpartition("/")[2]]["properties"] for one in schema["anyOf"])
    assert {key for key in {**judged, **error} if f"| `{key}` |" not in REPORTS} == set()


def test_the_cut_offs_on_the_page_of_the_config_are_what_its_comments_say(tmp_path: Path) -> None:
    example, read = config_on_the_page("k: [1", tmp_path)
    said = dict(re.findall(r"^  (\w+): \S+ +# (\w+@\d+)", example, re.MULTILINE))
    limits = {gate.id.partition(".")[2]: gate.quantity.label for gate in read.gates}
    assert said == {name: label for name, label in limits.items() if name != "recall_at_5"}


@pytest.mark.parametrize("kind", ["golden", "run"])
def test_the_example_rows_on_the_page_of_files_are_read_without_a_complaint(kind: str, tmp_path: Path) -> None:
    key = "relevant_doc_ids" if kind == "golden" else "results"
    row = next(row for text in re.findall(r"```json\n(.*?)```", FILES, re.DOTALL) if key in (row := json.loads(text)))
    path = str(write_jsonl(tmp_path / "rows.jsonl", [row]))
    golden = read_golden([path], BUILT_IN)
    rows, problems = (golden.queries, golden.problems) if kind == "golden" else read_doc_ids([path])
    assert len(rows) == 1
    assert problems == Problems()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(docs.ROOT)))
def test_every_link_inside_a_document_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if not target.startswith("https://"):
            path, _, anchor = target.partition("#")
            leads_to = document.parent / path if path else document
            assert leads_to.exists(), target
            assert not anchor or anchor in anchors_of(leads_to), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda page: str(page.relative_to(docs.ROOT)))
def test_a_blank_line_or_a_comment_stands_around_every_table(document: Path) -> None:
    """Without it, GitHub shows the next paragraph as a row of the table."""
    text = re.sub(r"^ *```.*?^ *```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    lines = ["", *text.splitlines(), ""]
    edges = [pair for pair in pairwise(lines) if pair[0].startswith("|") != pair[1].startswith("|")]
    besides = {before if after.startswith("|") else after for before, after in edges}
    assert [line for line in besides if line and not line.startswith("<!--")] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, todo = set[Path](), [docs.README]
    while todo:
        page = todo.pop()
        reached.add(page)
        links = re.findall(r"\]\(([^)#\s]+\.md)", page.read_text())
        todo += {(page.parent / link).resolve() for link in links if not link.startswith("https://")} - reached
    assert {page for page in DOCUMENTS if "docs" in page.relative_to(docs.ROOT).parts} <= reached


def anchors_of(document: Path) -> set[str]:
    """Return the names that GitHub gives a document's headings."""
    titles = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


MOST_WORDS = 58_200  # of all pages but the contributors': docs fit in a head; 7,000 are of the team service


def test_the_docs_fit_in_a_head() -> None:
    pages = [page for page in docs.ROOT.glob("docs/**/*.md") if "contributing" not in page.parts]
    words = {page: sum(bool(re.search(r"\w", word)) for word in page.read_text().split()) for page in pages}
    assert sum(words.values()) <= MOST_WORDS, sorted((number, page.name) for page, number in words.items())
    assert words[docs.ROOT / "docs" / "guides" / "judge.md"] <= 3_000


def test_the_first_page_explains_what_the_readme_shows() -> None:
    page = (docs.ROOT / "docs" / "start" / "first-check.md").read_text()
    shown = docs.block(README, "quickstart output")
    quoted = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert len(quoted) == 3
    assert [part for part in quoted if part not in shown] == []
