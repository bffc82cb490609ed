"""The rehearsal of a release: what it is made of, and that it fails when a release would go wrong."""

import os
import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragcontract.schemas import SCHEMAS
from scripts import rehearse
from scripts.rehearse import Failed, Machine, Origin
from scripts.release import ROOT, Version
from tests import jobs
from tests.github.standin import GitHub
from tests.jobs import Done, Unknown
from tests.needs import require
from tests.process import spawn
from tests.runner import Runner

RELEASE = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
DIGEST = "sha256:" + "0123456789abcdef" * 4


# Its parts


@pytest.mark.parametrize(
    ("package", "tags", "expected"),
    [
        ('"1.0.0.dev0"', [], "1.0.0 1.0.1"),
        ('"1.0.0"', ["v1", "release/1.0.0", "v1.0.0rc1", "v2.0.0", "v1.1.7"], "1.0.0 1.0.1"),
        ('"1.0.0"', ["v1.0.0"], "1.0.1 1.0.2"),
        ('"1.0.1rc1"', ["v1.0.9", "v1.0.10"], "1.0.11 1.0.12"),
    ],
)
def test_versions_are_released_that_have_no_tag(package: str, tags: list[str], expected: str) -> None:
    assert " ".join(map(str, rehearse.versions(f"__version__ = {package}\n", tags))) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# C\n\n## 1.0.0 (unreleased)\n\n- A.\n", "# C\n\n## 1.0.0 (2026-01-02)\n\n- A.\n"),
        ("## 1.0.0 (2025-12-24)\n\n- A.\n", "## 1.0.0 (2026-01-02)\n\n- A.\n"),
        (
            "## 0.9.0 (2025-12-24)\n\n- A.\n",
            "## 1.0.0 (2026-01-02)\n\n- A rehearsal.\n\n## 0.9.0 (2025-12-24)\n\n- A.\n",
        ),
    ],
)
def test_the_change_log_gets_a_date_or_a_new_heading(before: str, after: str) -> None:
    assert rehearse.dated(before, Version(1, 0, 0, ""), date(2026, 1, 2)) == after


def test_the_image_of_a_released_action_is_named_by_its_digest() -> None:
    assert rehearse.image_of(f"runs:\n  image: docker://a/b@{DIGEST}\n") == ("a/b", DIGEST)


@pytest.mark.parametrize("image", ["Dockerfile", "docker://a/b:1", f"a/b@{DIGEST}", f"docker://a/b@{DIGEST[:-1]}"])
def test_an_action_that_names_no_image_fails(image: str) -> None:
    with pytest.raises(Failed, match="names no image by its digest"):
        rehearse.image_of(f"runs:\n  image: {image}\n")


def test_an_image_that_was_not_built_is_not_run(tmp_path: Path, github: GitHub) -> None:
    (tmp_path / "action.yml").write_text(f"runs:\n  image: docker://a/b@{DIGEST}\n")
    machine = Machine(tmp_path, github, print, engine=False)
    with pytest.raises(Failed, match=f"names {DIGEST}, which was not built"):
        machine.act(machine.runner(), tmp_path / "action.yml", {})


def test_the_jobs_that_are_left_out_are_of_the_workflow() -> None:
    assert set(rehearse.ONLY_GITHUB) < set(RELEASE["jobs"])
    assert set(rehearse.OF_THE_IMAGE) < set(RELEASE["jobs"])


def test_the_page_has_the_command_that_rolls_back() -> None:
    command = rehearse.ROLL_BACK.format(version=Version(1, 2, 2, ""))
    assert f"\n{command}\n" in (ROOT / "docs/contributing/releasing.md").read_text()


def test_the_example_can_be_used_as_it_will_be_once_the_package_is_released() -> None:
    text = rehearse.NOT_RELEASED.sub(r"pip install \1", (ROOT / "examples/workflow.yml").read_text())
    assert '\n          pip install "rag-contract>=1"\n' in text
    assert f"uses: {rehearse.NAME}@v1" in text


def test_in_ci_a_rehearsal_fails_without_an_engine(tmp_path: Path) -> None:
    for name in ("bash", "jq", "npm"):
        (tmp_path / name).symlink_to(str(shutil.which("true")))
    command = (sys.executable, "-m", "scripts.rehearse")
    ended = spawn(cwd=ROOT, command=command, environ={"PATH": str(tmp_path), "CI": "true"})
    assert (ended.code, ended.out) == (1, "")
    assert "none answers `docker info`" in ended.err


# The jobs of a workflow


def ended(tmp_path: Path, github: GitHub, text: str, **actions: Any) -> jobs.Ended:
    """Run a job, given by its steps."""
    require("bash")
    job = yaml.safe_load(text)
    context = {"github.event_name": "push", "inputs.version": "", "github.ref_name": "release/1"}
    runner = Runner(tmp_path / "job", github)
    return jobs.run(job, runner, context=context, environ={"PATH": os.environ["PATH"]}, actions=actions)


def test_steps_hand_values_on_and_conditions_are_obeyed(tmp_path: Path, github: GitHub) -> None:
    job = """
    steps:
      - id: one
        env: {VERSION: "${{ inputs.version || github.ref_name }}"}
        run: echo "said=$VERSION" >>"$GITHUB_OUTPUT"
      - if: github.event_name != 'push'
        run: exit 7
      - id: two
        if: github.event_name == 'push'
        uses: act@v1
        with: {text: "${{ steps.one.outputs.said }}", flag: true}
      - id: three
        continue-on-error: true
        run: exit 5
    outputs: {found: "${{ steps.two.outputs.found }} ${{ steps.three.outcome }}"}
    """

    def act(version: str, inputs: dict[str, str]) -> Done:
        return Done(0, "", {"found": f"{version} {inputs}"})

    assert ended(tmp_path, github, job, act=act) == jobs.Ended(
        "", {"found": "v1 {'text': 'release/1', 'flag': 'true'} failure"}
    )


def test_a_step_that_fails_ends_the_job_but_for_what_always_runs(tmp_path: Path, github: GitHub) -> None:
    job = """
    steps:
      - {name: First, run: "echo why; false | cat; exit 9"}
      - {run: touch not-run}
      - {if: always(), run: touch run}
    outputs: {found: "${{ steps.none.outputs.none }}"}
    """
    assert ended(tmp_path, github, job).failed == "step 'First' exits 1\nwhy"
    assert [path.name for path in (tmp_path / "job/workspace").iterdir()] == ["run"]


@pytest.mark.parametrize(
    "step",
    [
        "uses: other/action@v1",
        "run: x\n    shell: sh",
        "run: x\n    if: failure()",
        'run: x\n    env: {A: "${{ a.b }}"}',
    ],
)
def test_what_is_not_known_is_not_passed_over(step: str, tmp_path: Path, github: GitHub) -> None:
    with pytest.raises(Unknown):
        ended(tmp_path, github, f"steps:\n  - {step}\n")


def test_files_that_are_missing_cannot_be_uploaded(tmp_path: Path, github: GitHub) -> None:
    runner = Runner(tmp_path / "job", github)
    (runner.workspace / "a.txt").touch()
    actions = jobs.artifacts(runner, tmp_path / "kept")
    assert actions["actions/upload-artifact"]("v1", {"name": "one", "path": "a.txt\n"}).exit_code == 0
    assert (
        actions["actions/upload-artifact"]("v1", {"name": "two", "path": "a.txt\nb.txt\n"}).log == "there is no b.txt"
    )
    actions["actions/download-artifact"]("v1", {"name": "one", "path": "got"})
    assert (runner.workspace / "got" / "a.txt").is_file()


# A whole release of a small repository, with the workflow's own shell

BUILD = re.compile(r' {10}python -m venv "\$RUNNER_TEMP/build".*?--version\n', re.DOTALL)
QUICK = """\
          version=$(sed -n 's/__version__ = "\\(.*\\)"/\\1/p' ragcontract/core/version.py)
          mkdir dist && touch "dist/rag_contract-$version.tar.gz" "dist/rag_contract-$version-py3-none-any.whl"
"""
SCHEMA_FILES = " ".join(f"build/site/schemas/{name}.json" for name in SCHEMAS)
SITE = f"site:\n\t@mkdir -p build/site/schemas && touch {SCHEMA_FILES}\n"
PIN = 'lines[places[0]].replace(f"image: {DOCKERFILE}", f"image: docker://{image}@{digest}", 1)'
FORCED = '--raw-field "sha=$COMMIT" --field force=true'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a repository whose package is quick to build."""
    require("bash")
    require("jq")
    root = tmp_path / "source"
    (root / "ragcontract/core").mkdir(parents=True)
    (root / "ragcontract/core/version.py").write_text('__version__ = "1.2.3.dev0"\n')
    (root / "CHANGELOG.md").write_text("## 1.2.3 (unreleased)\n\n- Better.\n")
    shutil.copytree(ROOT / "scripts", root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "action.yml", root)
    (root / "Makefile").write_text(SITE)
    workflow, changed = BUILD.subn(lambda _: QUICK, (ROOT / ".github/workflows/release.yml").read_text())
    assert changed == 1
    (root / ".github/workflows").mkdir(parents=True)
    (root / ".github/workflows/release.yml").write_text(workflow)
    rehearse.git(root, "init", "--quiet")
    return root


def released(source: Path, github: GitHub) -> list[str]:
    """Release 1.2.3 and 1.2.4, roll back, and return what is said."""
    rehearse.git(source, "add", "--all")
    rehearse.git(source, "commit", "--quiet", "--message", "All")
    said: list[str] = []
    folder = source.parent / "rehearsal"
    folder.mkdir()
    origin = Origin(Machine(folder, github, said.append, engine=False), source)
    for version in origin.versions:
        origin.release(version)
    origin.roll_back(origin.versions[0])
    return said


def test_two_releases_move_the_major_tag_and_a_roll_back_moves_it_back(source: Path, github: GitHub) -> None:
    said = released(source, github)
    bare = source.parent / "rehearsal" / "github.git"
    tags = rehearse.git(bare, "for-each-ref", "--format=%(refname:short) %(parent:)", "refs/tags").split("\n")
    assert [tag.split()[0] for tag in tags] == ["release/1.2.3", "release/1.2.4", "v1", "v1.2.3", "v1.2.4"]
    assert rehearse.git(bare, "rev-parse", "v1") == rehearse.git(bare, "rev-parse", "v1.2.3")
    assert rehearse.git(bare, "log", "-1", "--format=%s", "v1.2.4") == "Release v1.2.4"
    assert rehearse.git(bare, "rev-parse", "v1.2.4~") == rehearse.git(bare, "rev-parse", "main")
    assert "1.2.3: build is left out: there is no Docker engine" in said
    assert any(line.startswith("1.2.4: pypi is left out: nothing is published") for line in said)
    assert said[-1].startswith("roll back: git fetch")


WORKFLOW = ".github/workflows/release.yml"


@pytest.mark.parametrize(
    ("file", "change", "why"),
    [
        ("scripts/release.py", (PIN, "lines[places[0]]"), r"in a line of action\.yml, not: $"),
        ("scripts/release.py", ("docker://{image}@{digest}", "docker://{image}:1"), "names no image by its digest"),
        ("scripts/release.py", ("docker://{image}@", "docker://a/b@"), "names the image of somebody else: a/b"),
        ("action.yml", ("  image: Dockerfile", "  image: docker://a/b"), r"refused: action\.yml: expected one line"),
        ("ragcontract/core/version.py", ("__version__", "version"), r"version\.py must have one line"),
        (WORKFLOW, ("release/*", "releases/*"), r"release/1\.2\.3 starts no release"),
        (WORKFLOW, ("refs/tags/$TAG", "refs/tags/v0"), r"v1\.2\.3"),
        (WORKFLOW, ("refs/tags/$MAJOR", "refs/tags/v0"), r"v1 must point to v1\.2\.3"),
        (WORKFLOW, (FORCED, '--raw-field "sha=$COMMIT"'), r"'Move the major tag' exits 1"),
        (WORKFLOW, ("-py3-none-any.whl", ".zip"), "must have the files"),
        (WORKFLOW, ("mkdir dist", "exit 3"), r"job 'dist': step .* exits 3"),
        (WORKFLOW, ("# v7.0.0\n        with:\n", "# v7.0.0\n        shell: sh\n        with:\n"), "has {'shell'}"),
    ],
)
def test_a_release_that_goes_wrong_fails_and_says_why(
    file: str, change: tuple[str, str], why: str, source: Path, github: GitHub
) -> None:
    text = (source / file).read_text()
    assert change[0] in text
    (source / file).write_text(text.replace(*change))
    with pytest.raises((Failed, Unknown), match=why):
        released(source, github)


def test_what_github_refuses_is_refused(source: Path) -> None:
    rehearse.git(source, "add", "--all")
    rehearse.git(source, "commit", "--quiet", "--message", "One")
    rehearse.git(source, "tag", "v1")
    rehearse.git(source, "commit", "--quiet", "--allow-empty", "--message", "Two")
    new, old = rehearse.git(source, "rev-parse", "HEAD", "HEAD~").split()
    rehearse.git(source, "tag", "v2")

    def gh(*words: str) -> int:
        command = [sys.executable, "-I", str(ROOT / "tests/github/gh.py"), str(source / ".git"), *words]
        return subprocess.run(command, cwd=source, capture_output=True, check=False).returncode

    make, move = ("api", "repos/o/r/git/refs"), ("api", "--method", "PATCH")
    assert gh(*make, "--raw-field", "ref=refs/tags/v3", "--raw-field", f"sha={old}") == 0
    assert gh(*make, "--raw-field", "ref=refs/tags/v3", "--raw-field", f"sha={new}") == 1
    assert gh(*move, "repos/o/r/git/refs/tags/v1", "--raw-field", f"sha={new}") == 0
    assert gh(*move, "repos/o/r/git/refs/tags/v1", "--raw-field", f"sha={old}") == 1
    assert gh(*move, "repos/o/r/git/refs/tags/v1", "--raw-field", f"sha={old}", "--field", "force=true") == 0
    assert gh(*move, "repos/o/r/git/refs/tags/v4", "--raw-field", f"sha={new}", "--field", "force=true") == 1
    assert gh("api", "repos/o/r/git/ref/tags/v4", "--silent") == 1
    assert gh("api", "repos/o/r/unknown") == 1
    assert gh("release", "create", "v4", "--notes-file", "CHANGELOG.md") == 1
    assert gh("release", "create", "v3", "--notes-file", "CHANGELOG.md", "sbom/*") == 1
    assert gh("release", "create", "v3", "--notes-file", "CHANGELOG.md", "CHANGELOG.md") == 0
