"""The real image, run as a runner would, talking HTTP to the stand-in for GitHub."""

import gzip
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests import scenarios
from tests.github.standin import GitHub, Sent
from tests.needs import require
from tests.runner import IMAGE, ROOT, InContainer, Runner

BASE = "python:3.13-slim"
pytestmark = pytest.mark.container


@pytest.fixture(scope="session")
def image() -> str:
    """Build the image once."""
    require("docker")
    subprocess.run(["docker", "build", "--network", "host", "--tag", IMAGE, str(ROOT)], check=True)
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
    base, tag = f"{image}-base-without-bytecode", f"{image}-without-bytecode"
    recipe = f"FROM {BASE}\nRUN find / -xdev -name __pycache__ -prune -exec rm -r {{}} +\n"
    subprocess.run(["docker", "build", "--tag", base, "-"], input=recipe.encode(), check=True)
    build = ["docker", "build", "--network", "host", "--build-arg", f"BASE={base}"]
    subprocess.run([*build, "--tag", tag, str(ROOT)], check=True)
    yield tag
    subprocess.run(["docker", "image", "rm", tag, base], check=False)


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
    look = "import os, importlib.util as u; print(u.find_spec('pip'), u.find_spec('pytest'), os.path.exists('/src'))"
    done = subprocess.run(
        ["docker", "run", "--rm", "--network", "none", "--entrypoint", "/opt/venv/bin/python", image, "-I", "-c", look],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["None", "None", "False"]


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
