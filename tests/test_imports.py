"""What an ordinary check loads: every import costs the start of every pull request's check.

What is imported anew here turns these tests red: import it where it is used, or add it to a list and say what it costs.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.builders import golden, good_workspace, run, write_jsonl
from tests.github.standin import GitHub
from tests.judgment_files import judged_workspace, write_judgments_on
from tests.process import spawn
from tests.runner import ROOT, Runner

# Names the modules that a program loads which its first argument does not name, after all that it prints itself.
PROGRAM = """
import sys
for name in sys.argv.pop(1).split():
    __import__(name)
before = set(sys.modules)
from ragcontract.guard import guarded
{main}
code = guarded(lambda: {call}, sys.stderr)
print("loaded:", *sorted(set(sys.modules) - before))
sys.exit(code)
"""
COMMAND = PROGRAM.format(main="from ragcontract.cli.main import main", call="main(sys.argv[1:])")
ACTION = PROGRAM.format(main="from ragcontract.action import from_runner", call="from_runner()")

ALWAYS = {"click", "junit_xml", "msgspec", "ragcontract", "six"}
TYPING = {"typing_extensions"}
CONFIG = {"yaml", "_yaml"}
# Of the standard library, beside what msgspec, yaml and click load; what these load themselves goes with them.
AT_THE_TOP = {
    "difflib",  # 1 ms: "did you mean", of fields, keys and files
    "gzip",  # 1 ms: inputs that are compressed
    "json",  # 2 ms: where in a file a mistake is
    "signal",  # under 1 ms: temporary files are removed when the process is stopped
    "logging",  # 4 ms, with string and traceback: what maintainers read with --verbose
    "random",  # 1 ms: sampling where a change may be noise
}
STANDARD = {"array", "bisect", "gc", "glob", "hashlib", "pathlib", "zlib"} | AT_THE_TOP
OF_CLICK = {"locale"}
OF_THE_ACTION = {
    "concurrent.futures",  # 4 ms: waiting for GitHub no longer than its timeout
    "mmap",  # under 1 ms: a byte that the check's process shares with the one that waits for it
    "resource",  # under 1 ms: how much memory a check that was killed had used
}
OF_JUNIT_XML = {"encodings.ascii", "importlib.util", "xml.dom.minidom", "xml.etree.ElementTree"}
OF_OTHERS_WITHIN = (
    *("api", "cluster", "convert", "github", "history", "judge", "labelling", "record", "report.html"),
    *("runs.run_writer", "schemas", "service"),
)
OF_OTHERS = tuple(f"ragcontract.{name}" for name in OF_OTHERS_WITHIN)

OF_ANSWERS = (  # what a check needs only if its contract, its run or its options are about more than documents
    *("answers.matchers", "answers.regexes", "answers.shown", "answers.tool_calls"),
    *("contract.answer_fields", "contract.named_metrics", "judgments.calibration", "judgments.check"),
    *("judgments.items", "judgments.judged_metrics", "judgments.judgments_file", "judgments.replay"),
    *("judgments.second_pass", "report.judge_section", "report.judged_items"),
    *("metrics.answers", "metrics.context_recall", "metrics.tool_use"),
    *("rules.answered", "rules.claims", "rules.scores", "rules.turns", "runs.scores_files"),
)


def modules(printed: str) -> set[str]:
    """Read what ``PROGRAM`` prints; what Cython loads beside a module of its making is left out."""
    last = printed.splitlines()[-1]
    assert last.startswith("loaded:"), printed
    return {name for name in last.split()[1:] if "cython" not in name}


def loaded_by(*argv: str, cwd: Path, beside: Iterable[str] = ()) -> set[str]:
    """Return the modules that a successful command loads, but for those that importing ``beside`` has loaded."""
    command = (sys.executable, "-c", COMMAND, " ".join(beside))
    ended = spawn(*argv, cwd=cwd, command=command)
    assert ended.code == 0, ended.err
    return modules(ended.out)


def third_party(names: Iterable[str]) -> set[str]:
    """Return the packages that are not the standard library's."""
    return {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)


def standard(names: Iterable[str]) -> set[str]:
    """Return the modules of the standard library."""
    return {name for name in names if name.partition(".")[0] in sys.stdlib_module_names}


@pytest.mark.parametrize("command", ["check", "validate", "score", "baseline", "diff", "lint"])
def test_a_command_on_good_input_loads_only_what_it_needs(command: str, tmp_path: Path) -> None:
    good_workspace(tmp_path)
    (tmp_path / "ragcontract.yml").unlink()
    loaded = loaded_by(*((command, "--force") if command == "baseline" else (command,)), cwd=tmp_path)
    allowed = ALWAYS if command == "check" else ALWAYS - {"junit_xml", "six"}
    assert allowed <= third_party(loaded) <= allowed | TYPING
    assert not [name for name in loaded if name.startswith(OF_OTHERS)]


def test_a_check_loads_these_standard_modules_and_no_others(tmp_path: Path) -> None:
    bare = {"click", "msgspec", "yaml"}
    listed = STANDARD | OF_CLICK | OF_JUNIT_XML
    loaded = loaded_by("check", cwd=good_workspace(tmp_path), beside=bare)
    assert listed <= loaded, "take what is not needed any more out of the list"
    assert not standard(loaded_by("check", cwd=tmp_path, beside=bare | listed))


def test_a_check_of_documents_loads_nothing_that_is_about_answers(tmp_path: Path) -> None:
    loaded = loaded_by("check", cwd=good_workspace(tmp_path))
    assert not loaded & {f"ragcontract.{name}" for name in OF_ANSWERS}


def test_what_a_check_of_documents_must_not_load_exists() -> None:
    files = {name: ROOT / "ragcontract" / name.replace(".", "/") for name in (*OF_ANSWERS, *OF_OTHERS_WITHIN)}
    assert not [name for name, path in files.items() if not path.with_suffix(".py").exists() and not path.is_dir()]


def test_yaml_is_loaded_with_a_configuration_only(tmp_path: Path) -> None:
    loaded = third_party(loaded_by("check", cwd=good_workspace(tmp_path)))
    assert ALWAYS | {"yaml"} <= loaded <= ALWAYS | TYPING | CONFIG


def test_junit_xml_is_loaded_with_its_report_only(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    assert not third_party(loaded_by("check", "--junit", "", cwd=tmp_path)) & {"junit_xml", "six"}


def test_warnings_load_no_schemas(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1", "doc1", weigth=2)])
    write_jsonl(tmp_path / "current_run.jsonl", [run("q1", "doc1"), run("q2")])
    assert "jsonschema" not in third_party(loaded_by("check", cwd=tmp_path))


def test_a_configuration_about_answers_loads_no_schemas(tmp_path: Path) -> None:
    text = "Refunds take five days."
    write_jsonl(tmp_path / "golden.jsonl", [{"id": "q1", "query": "How long?", "reference_contexts": [text]}])
    write_jsonl(tmp_path / "current_run.jsonl", [{"query_id": "q1", "results": [{"doc_id": "d", "text": text}]}])
    (tmp_path / "ragcontract.yml").write_text("minimums:\n  context_recall_text: 1\n")
    assert "jsonschema" not in third_party(loaded_by("check", "--config", "ragcontract.yml", cwd=tmp_path))


class Loading(Runner):
    """The action as a process; its child, which runs the check, names what it has loaded in its last line."""

    beside: Iterable[str] = ()

    def _execute(self, environ: dict[str, str]) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", ACTION, " ".join(self.beside)],
            cwd=self.workspace,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environ},
            capture_output=True,
            text=True,
            check=False,
        )
        *log, _parent = done.stdout.splitlines(keepends=True)
        return done.returncode, "".join(log)


def test_an_action_that_does_not_comment_loads_neither_click_nor_what_talks_to_github(
    tmp_path: Path, github: GitHub
) -> None:
    runner = Loading(tmp_path, github)
    good_workspace(runner.workspace)
    loaded = runner.run({"comment": "never"})
    assert loaded.exit_code == 0, loaded.log
    allowed = ALWAYS - {"click"}
    assert allowed | {"yaml"} <= third_party(modules(loaded.log)) <= allowed | TYPING | CONFIG
    runner.beside = {"msgspec", "yaml"} | STANDARD | OF_JUNIT_XML | OF_THE_ACTION
    assert not standard(modules(runner.run({"comment": "never"}).log))


TALKING = {"requests", "urllib3"}


@pytest.mark.parametrize("options", [(), ("--baseline", "history:last")])
def test_a_check_with_a_history_in_a_folder_loads_nothing_that_talks_to_github(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    good_workspace(tmp_path)
    loaded = loaded_by("check", "--history", "past", *options, cwd=tmp_path)
    assert "ragcontract.history.folder" in loaded
    assert not third_party(loaded) & TALKING
    assert not loaded & {"ragcontract.history.branch", "ragcontract.github.http"}


def test_an_action_loads_of_the_history_what_it_uses(tmp_path: Path, github: GitHub) -> None:
    runner = Loading(tmp_path, github)
    good_workspace(runner.workspace)
    event = {"repository": {"default_branch": "main"}}

    def loaded(inputs: dict[str, str]) -> set[str]:
        ran = runner.run(
            inputs | {"comment": "never"}, event=event, name="push", environ={"GITHUB_REF": "refs/heads/main"}
        )
        assert ran.exit_code == 0, ran.log
        return modules(ran.log)

    assert not [name for name in loaded({}) if name.startswith("ragcontract.history")]
    in_folder = loaded({"history": "past"})
    assert (runner.workspace / "past" / "entries").is_dir()
    assert "ragcontract.history.folder" in in_folder
    assert not third_party(in_folder) & TALKING
    assert not in_folder & {"ragcontract.history.branch", "ragcontract.github.http"}
    assert {"requests", "ragcontract.history.branch"} <= loaded({"history": "branch"})


def test_a_check_that_replays_judgments_loads_nothing_that_could_ask(tmp_path: Path) -> None:
    judged_workspace(tmp_path, "", ["Refunds take five days."])
    write_judgments_on(tmp_path, ["Refunds take five days."])
    loaded = loaded_by("check", "--judgments", "judgments.jsonl", cwd=tmp_path)
    assert {"ragcontract.judgments.check", "ragcontract.judgments.judged_metrics"} <= loaded
    assert not [name for name in loaded if name.startswith(("ragcontract.judge.", "ragcontract.net"))]
    assert not loaded & {"socket", "ssl", "http.client", "requests", "urllib3"}
