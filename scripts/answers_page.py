"""The generated parts of docs/guides/answers.md: what its examples print, and the tables of rules and metrics."""

import inspect
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ragcontract.core.metric import MetricSettings, SwitchedOn
from ragcontract.core.rule import RowRule, Rule, names_of
from ragcontract.registry import BUILT_IN

# <!-- example: NAME -->, prose and fenced files, then what the check prints, as text.
_EXAMPLE = re.compile(r"(<!-- example: [\w-]+ -->\n(.*?))```text\n.*?```\n", re.DOTALL)

OF_DOCUMENTS = {SwitchedOn.ALWAYS, SwitchedOn.BY_BASELINE}


def render_examples(page: str) -> str:
    """Return the page with what `rag-contract check` prints for the files of each example."""
    return _EXAMPLE.sub(lambda found: f"{found[1]}```text\n{_printed(found[2])}```\n", page)


def _printed(files: str) -> str:
    """Return what a check of the files prints, errors and warnings first.

    JSON rows with a ``query_id`` are the run's, other rows the golden queries; YAML is the configuration.
    """
    with tempfile.TemporaryDirectory() as folder:
        for language, text in re.findall(r"```(json|yaml)\n(.*?)```\n", files, re.DOTALL):
            rows = "current_run.jsonl" if '"query_id"' in text else "golden.jsonl"
            Path(folder, rows if language == "json" else "ragcontract.yml").write_text(text)
        command = [sys.executable, "-m", "ragcontract", "check"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1, 2}:
        raise ValueError(f"an example exits {done.returncode}: {done.stderr}")
    return done.stderr + done.stdout


def rules() -> Iterator[list[str]]:
    """Yield the cells of a row for each rule about answers: its name, where it is written, when it holds."""
    for line in BUILT_IN.rules:
        rule = line.load()
        if issubclass(rule, RowRule):
            yield [" or ".join(f"`{name}`" for name in names_of(rule)), _written(rule), _first_sentence(rule)]


def _written(rule: type[Rule]) -> str:
    if rule.in_rows:
        fields = [f"`{name}`" for name in rule.__struct_fields__ if name != "in_turns"]
        return f"`rules`{': ' if fields else ''}{', '.join(fields)}"
    return "automatic" if names_of(rule)[0] == "answered" else "a field of the row"


def _first_sentence(rule: type[Rule]) -> str:
    """Return the first paragraph of the docstring, on one line."""
    text = " ".join((inspect.getdoc(rule) or "").partition("\n\n")[0].split())
    return text.replace("``", "`")


def metrics() -> Iterator[list[str]]:
    """Yield the cells of a row for each metric of answers: its key, which is better, the field that switches it on."""
    for provider in BUILT_IN.providers:
        for family in provider(MetricSettings(cutoffs=(5,))):
            switch = "a limit on it" if family.switch is SwitchedOn.BY_LIMIT else f"`{family.switch}`"
            for metric in () if family.switch in OF_DOCUMENTS else family.metrics:
                yield [f"`{metric.key}`", metric.label, metric.better, switch]
