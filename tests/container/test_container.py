"""The real image, run as a runner would, talking HTTP to the stand-in for GitHub."""

import gzip
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from scripts import requirements
from tests import scenarios
from tests.container.base import base
from tests.github.standin import GitHub, Sent
from tests.golden_cases import CASES, copied
from tests.history.action_jobs import entries, pull_request, push
from tests.needs import require
from tests.runner import IMAGE, ROOT, InContainer, InProcess, Runner

pytestmark = pytest.mark.container


def build(*options: str, on: str = "", context: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    """Build the image on a base, by default the one that the Dockerfile names."""
    command = ["docker", "build", "--network", "host", "--build-arg", f"BASE={on or base()}", *options, str(context)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def image() -> str:
    """Build the image once."""
    require("docker")
    built = build("--tag", IMAGE)
    assert built.returncode == 0, built.stdout + built.stderr
    return IMAGE


@pytest.fixture
def runner(tmp_path: Path, github: GitHub, image: str) -> InContainer:
    assert image
    runner = InContainer(tmp_path, github)
    for path in (runner.workspace, *runner.folder.iterdir()):
        os.chown(path, 1001, 121)  # the ids of GitHub's own runners
    return runner


@pytest.fixture
def without_bytecode(image: str) -> Iterator[str]:
    """Build the image on a base without bytecode, which slim images are, whatever this machine's base has."""
    bare, tag = f"{image}-base-without-bytecode", f"{image}-without-bytecode"
    recipe = f"FROM {base()}\nRUN find / -xdev -name __pycache__ -prune -exec rm -r {{}} +\n"
    subprocess.run(["docker", "build", "--tag", bare, "-"], input=recipe.encode(), check=True)
    built = build("--tag", tag, on=bare)
    assert built.returncode == 0, built.stdout + built.stderr
    yield tag
    subprocess.run(["docker", "image", "rm", tag, bare], check=False)


def test_the_first_run_comments_and_the_second_updates_that_comment(runner: Runner, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    first = runner.run()
    assert first.exit_code == 0, first.log
    assert first.outputs["verdict"] == "pass"
    assert "✅" in github.bodies()[0]
    scenarios.failing(runner.workspace)
    second = runner.run()
    assert second.exit_code == 1, second.log
    assert second.outputs["comment-url"] == first.outputs["comment-url"]
    assert len(github.comments) == 1
    assert "❌" in github.bodies()[0]
    assert "❌" in second.summary


def test_broken_input_exits_2_and_says_so_in_the_summary_and_the_comment(runner: Runner, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    runner.run()
    scenarios.unusable(runner.workspace)
    result = runner.run()
    assert result.exit_code == 2, result.log
    assert "could not be judged" in result.summary
    assert len(github.comments) == 1
    assert "could not be judged" in github.bodies()[0]


def test_a_check_of_answers_says_what_it_says_outside_of_the_container(runner: InContainer, github: GitHub) -> None:
    outside = InProcess(runner.folder / "outside", github)
    reports = []
    for one in (runner, outside):
        scenarios.answers(one.workspace)
        result = one.run({"scores": "scores.jsonl", "comment": "never", "junit": "junit.xml"})
        assert result.exit_code == 1, result.log
        written = [(one.workspace / name).read_text() for name in ("report.json", "report.md", "junit.xml")]
        reports.append([re.sub(r"\d{4}-\d\d-\d\dT[\d:]{8}\+00:00", "", text) for text in (*written, result.summary)])
    assert reports[0] == reports[1]
    broken = json.loads((runner.workspace / "report.json").read_text())["failed_checks"]
    assert {"regex_must_match", "json_schema", "forbidden_claims"} <= set(re.findall(r"\w+", json.dumps(broken)))


@pytest.mark.parametrize(
    "case", ["claims-that-a-judge-finds-supported-pass", "claims-that-a-judge-does-not-find-supported-fail"]
)
def test_what_a_judge_said_is_replayed_to_the_same_report_as_outside_of_the_container(
    case: str, runner: InContainer, github: GitHub
) -> None:
    inputs = {"judgments": "judgments.jsonl", "calibration": "judge-calibration.json"}
    copied(CASES / case, runner.workspace)
    outside = InProcess(runner.folder / "outside", github)
    outside.now = datetime.now(UTC)
    shutil.copytree(runner.workspace, outside.workspace, dirs_exist_ok=True)
    expected, found = outside.run(inputs), runner.run(inputs)
    assert found.exit_code == expected.exit_code == int((CASES / case / "expected" / "exit_code").read_text())
    reports = [json.loads((one.workspace / "report.json").read_text()) for one in (outside, runner)]
    assert all(report.pop("created_at") for report in reports)
    assert reports[0] == reports[1]


def test_the_files_it_writes_belong_to_the_owner_of_the_workspace(runner: Runner) -> None:
    scenarios.passing(runner.workspace)
    result = runner.run({"junit": "new/folder/junit.xml"})
    assert result.exit_code == 0, result.log
    for name in ("report.md", "report.json", "new", "new/folder", "new/folder/junit.xml"):
        status = (runner.workspace / name).stat()
        assert (status.st_uid, status.st_gid) == (1001, 121), name


def test_no_module_of_the_workspace_is_imported(runner: Runner) -> None:
    scenarios.passing(runner.workspace)
    for name in ("json", "requests", "ragcontract", "click", "sitecustomize"):
        (runner.workspace / f"{name}.py").write_text("raise SystemExit(99)")
    result = runner.run()
    assert result.exit_code == 0, result.log


def test_an_import_that_fails_does_not_read_as_a_broken_contract(image: str) -> None:
    for module in ("msgspec/__init__.py", "ragcontract/core/version.py"):
        hide = f"/opt/venv/lib/python3.13/site-packages/{module}"
        done = subprocess.run(
            ["docker", "run", "--rm", "--network", "none", "--volume", f"/dev/null:{hide}:ro", image],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 3, done.stderr


def test_the_command_on_the_page_of_recipes_checks_without_github(image: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guides" / "recipes.md").read_text()
    [command] = re.findall(r"^docker run (?:.*\\\n)*.*", page, re.MULTILINE)
    command = command.replace(" rag-contract check", f" {image} check")
    assert image in command
    for prepare, code in ((scenarios.passing, 0), (scenarios.failing, 1), (scenarios.unusable, 2)):
        prepare(tmp_path)
        done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert "::error" not in done.stdout
        assert (tmp_path / "report.html").stat().st_uid == os.getuid()


def test_no_run_has_to_compile_a_module(runner: InContainer, without_bytecode: str) -> None:
    runner.image, runner.options = without_bytecode, ("--name", f"rag-contract-test-{os.getpid()}")
    origin = {"id": 100, "run_attempt": 1, "head_branch": "b", "head_repository": {"owner": {"login": "fork"}}}
    broken = "fail_on:\n  mmr_drop_gt: 1\n"
    steps: list[tuple[Callable[[Path], object], dict[str, str], dict[str, Any]]] = [
        (scenarios.passing, {"comment": "never"}, {}),
        (scenarios.failing, {"report-html": "report.html", "comment-body-file": "comment.md"}, {}),
        (scenarios.unusable, {}, {}),
        (lambda workspace: (workspace / "ragcontract.yml").write_text(broken), {}, {}),
        (_packed, {"config": ""}, {}),
        (scenarios.answers, {"scores": "scores.jsonl", "config": "ragcontract.yml"}, {}),
        (
            lambda _workspace: None,
            {"mode": "post-comment"},
            {"name": "workflow_run", "event": {"workflow_run": origin}},
        ),
    ]
    for prepare, inputs, how in steps:
        prepare(runner.workspace)
        try:
            result = runner.run(inputs, **how)
            changed = subprocess.run(["docker", "diff", runner.options[1]], capture_output=True, text=True, check=True)
        finally:
            subprocess.run(["docker", "rm", runner.options[1]], capture_output=True, check=False)
        assert result.exit_code in {0, 1, 2}, result.log
        assert ".pyc" not in changed.stdout, f"add to the Dockerfile what it imports:\n{changed.stdout}"


def _packed(workspace: Path) -> None:
    scenarios.passing(workspace)
    run = workspace / "current_run.jsonl"
    run.write_bytes(gzip.compress(run.read_bytes()))


def test_the_image_has_nothing_that_the_action_does_not_use(image: str) -> None:
    look = (
        "import os, importlib.util as u; "
        "print(*map(u.find_spec, ['pip', 'pytest', 'hatchling']), "
        "*map(os.path.exists, ['/src', '/wheel', '/opt/build']))"
    )
    done = subprocess.run(
        ["docker", "run", "--rm", "--network", "none", "--entrypoint", "/opt/venv/bin/python", image, "-I", "-c", look],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["None"] * 3 + ["False"] * 3


def test_the_image_has_no_team_service_and_says_how_to_get_it(image: str) -> None:
    command = ["docker", "run", "--rm", "--entrypoint", "/opt/venv/bin/rag-contract", image, "serve"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert 'is not installed here: ragcontract.service is missing; install it: pip install "rag-contract[service]"' in (
        ended.stderr
    )


def test_the_image_has_the_locked_versions_and_no_other_package(image: str) -> None:
    look = "from importlib.metadata import distributions as d; [print(i.metadata['Name'], i.version) for i in d()]"
    done = subprocess.run(
        ["docker", "run", "--rm", "--network", "none", "--entrypoint", "/opt/venv/bin/python", image, "-I", "-c", look],
        capture_output=True,
        text=True,
        check=True,
    )
    installed = dict(line.split() for line in done.stdout.splitlines())
    assert installed.pop("rag-contract")
    locked = requirements.pins((ROOT / requirements.IMAGE).read_text(), requirements.python(ROOT))
    assert {canonicalize_name(name): version for name, version in installed.items()} == {
        name: pin.version for name, pin in locked.items()
    }


def test_a_release_tries_the_image_with_success_and_anything_else_without(image: str) -> None:
    for name, code in ((image, 0), (base(), 1)):
        done = subprocess.run([ROOT / "scripts/try_image.sh", name], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr


@pytest.mark.parametrize("file", [requirements.IMAGE, requirements.BUILD])
def test_a_package_that_is_not_the_locked_one_is_not_installed(file: str, tmp_path: Path) -> None:
    require("docker")
    for name in (
        "Dockerfile",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "entrypoint.py",
        "requirements",
        "ragcontract",
    ):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    text, changed = re.subn(r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", (tmp_path / file).read_text())
    assert changed
    (tmp_path / file).write_text(text)
    built = build(context=tmp_path)
    assert built.returncode != 0
    assert "DO NOT MATCH THE HASHES" in built.stdout + built.stderr


def test_as_process_1_it_stops_when_it_is_told_to(runner: InContainer, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    asked = threading.Event()

    def hang(_sent: Sent) -> None:
        asked.set()
        time.sleep(60)

    github.meanwhile = hang
    name = f"rag-contract-stop-{os.getpid()}"
    runner.options = ("--rm", "--name", name)
    with ThreadPoolExecutor() as pool:
        running = pool.submit(runner.run)
        assert asked.wait(60)
        subprocess.run(["docker", "stop", "--time", "50", name], check=True, capture_output=True)
        assert running.result().exit_code == 130  # 137 would be the engine's kill, 50 seconds later


def test_a_check_that_runs_out_of_memory_leaves_no_green_comment(runner: InContainer, github: GitHub) -> None:
    scenarios.passing(runner.workspace)
    assert runner.run().exit_code == 0
    results = ",".join('{"doc_id":"a"}' for _ in range(3_000_000))
    (runner.workspace / "current_run.jsonl").write_text(f'{{"query_id": "refunds", "results": [{results}]}}\n')
    runner.options = ("--rm", "--memory", "100m", "--memory-swap", "100m")
    result = runner.run()
    assert result.exit_code == 2, result.log
    for text in (result.log, result.summary, github.bodies()[0]):
        assert "the check was killed, most likely because memory ran out" in text
        assert "of the 100 MiB that are allowed here" in text


def test_a_check_of_main_is_recorded_in_a_branch_and_a_pull_request_is_compared_with_it(
    runner: InContainer, github: GitHub
) -> None:
    commit = github.repository.commit("main", {"file": b"1"})
    scenarios.passing(runner.workspace)
    inputs = {"history": "branch", "name": "docs", "baseline": "history:last-pass"}
    first = push(commit).run(runner, inputs)
    assert first.exit_code == 0, first.log
    (entry,) = entries(github)
    assert first.outputs["history-entry"] == entry.id
    assert f"Recorded: entries/docs/{entry.created_at[:7]}/{entry.id}.json" in first.log
    scenarios.failing(runner.workspace)
    second = pull_request(commit).run(runner, inputs, run=101)
    assert second.exit_code == 1, second.log
    assert f"Compared with `main@{commit[:7]}`" in github.bodies()[0]
    assert len(entries(github)) == 1


def test_a_history_in_a_folder_belongs_to_the_owner_of_the_workspace(runner: InContainer) -> None:
    scenarios.passing(runner.workspace)
    result = push().run(runner, {"history": "history", "name": "docs"})
    assert result.exit_code == 0, result.log
    files = [path for path in (runner.workspace / "history").rglob("*") if path.is_file()]
    assert len(files) == 5  # with the badge
    assert {path.stat().st_uid for path in (runner.workspace / "history", *files)} == {1001}
