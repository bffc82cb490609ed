"""What a release would do, as far as it goes without GitHub: the checks, action.yml, the workflows and their shell."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragcontract.schemas import SCHEMAS, schema_of
from scripts import release, requirements, site
from tests.needs import require

WORKFLOWS = sorted((release.ROOT / ".github/workflows").glob("*.yml"))
TO_COPY = sorted((release.ROOT / "examples").rglob("*workflow*.yml"))
IMAGE = "ghcr.io/org/rag-contract"
DIGEST = "sha256:" + "0123456789abcdef" * 4
PIN = ("--image", IMAGE, "--digest", DIGEST)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository in which 1.2.3 can be released."""
    (tmp_path / "ragcontract/core").mkdir(parents=True)
    (tmp_path / "ragcontract/core/version.py").write_text('"""."""\n\n__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 1.2.3 (2026-01-02)\n\n- Better.\n\n## 1.2.2 (2026-01-01)\n\n- Good.\n"
    )
    shutil.copy(release.ROOT / "action.yml", tmp_path)
    return tmp_path


def call(root: Path, *options: str, version: str = "1.2.3") -> tuple[int, str, str]:
    stdout, stderr = io.StringIO(), io.StringIO()
    code = release.main(["--version", version, *options], root=root, stdout=stdout, stderr=stderr)
    return code, stdout.getvalue(), stderr.getvalue()


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_the_released_action_differs_in_exactly_the_line_that_names_the_image(root: Path) -> None:
    before = (root / "action.yml").read_text()
    code, diff, problems = call(root, *PIN)
    after = (root / "action.yml").read_text()
    assert (code, problems) == (0, "")
    changed = [pair for pair in zip(before.splitlines(), after.splitlines(), strict=True) if pair[0] != pair[1]]
    assert changed == [("  image: Dockerfile", f"  image: docker://{IMAGE}@{DIGEST}")]
    assert f"\n-  image: Dockerfile\n+  image: docker://{IMAGE}@{DIGEST}\n" in diff
    assert yaml.safe_load(after)["runs"] == {"using": "docker", "image": f"docker://{IMAGE}@{DIGEST}"}


def test_the_released_action_is_valid(root: Path) -> None:
    call(root, *PIN)
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml"]
    assert subprocess.run(command, cwd=root, check=False).returncode == 0


def test_comments_and_line_ends_are_kept(root: Path) -> None:
    before = b"# image: Dockerfile\r\nruns:\r\n  using: docker\r\n  image: Dockerfile  # built\r\n"
    (root / "action.yml").write_bytes(before)
    assert call(root, *PIN)[0] == 0
    after = before.replace(b"  image: Dockerfile  ", f"  image: docker://{IMAGE}@{DIGEST}  ".encode())
    assert (root / "action.yml").read_bytes() == after


def test_a_dry_run_shows_the_difference_and_changes_nothing(root: Path) -> None:
    before = contents(root)
    code, diff, _ = call(root, *PIN, "--dry-run")
    assert code == 0
    assert f"+  image: docker://{IMAGE}@{DIGEST}" in diff
    assert contents(root) == before


def test_anyone_can_do_a_dry_run_of_this_repository() -> None:
    command = [sys.executable, "-m", "scripts.release", "--dry-run", "--version", "1.0.0", *PIN]
    before = (release.ROOT / "action.yml").read_bytes()
    done = subprocess.run(command, cwd=release.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"+  image: docker://{IMAGE}@{DIGEST}" in done.stdout
    assert (release.ROOT / "action.yml").read_bytes() == before


@pytest.mark.parametrize(
    "version", ["", "1.2", "v1.2.3", "1.2.3.4", "01.2.3", "1.2.3-rc.1", "1.2.3.dev0", "1.2.3\n", "1.2.3rc"]
)
def test_a_version_that_is_none_is_refused(root: Path, version: str) -> None:
    before = contents(root)
    code, _, message = call(root, *PIN, "--dry-run", version=version)
    assert code == 1
    assert message.startswith(f"refused: version {version!r}: expected 1.2.3")
    assert contents(root) == before


@pytest.mark.parametrize(
    "digest", ["sha256:12", DIGEST[:-1], DIGEST + "0", DIGEST.upper(), DIGEST[7:], DIGEST + "\n", "md5:" + DIGEST[7:]]
)
def test_a_digest_that_is_none_is_refused(root: Path, digest: str) -> None:
    refuses(root, IMAGE, digest, f"refused: digest {digest!r}: expected sha256:")


@pytest.mark.parametrize(
    "image",
    [
        "rag-contract",
        "ghcr.io/Org/x",
        f"{IMAGE}:1",
        f"{IMAGE}@{DIGEST}",
        f"docker://{IMAGE}",
        f"{IMAGE} #",
        IMAGE + "\n",
    ],
)
def test_an_image_name_that_is_none_is_refused(root: Path, image: str) -> None:
    refuses(root, image, DIGEST, f"refused: image {image!r}: expected")


def refuses(root: Path, image: str, digest: str, message: str) -> None:
    before = contents(root)
    code, _, said = call(root, "--image", image, "--digest", digest)
    assert code == 1
    assert said.startswith(message)
    assert contents(root) == before


def test_an_image_without_a_digest_is_refused(root: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        call(root, "--image", IMAGE)
    assert stopped.value.code == 2


@pytest.mark.parametrize("action", ["runs:\n  image: docker://a/b\n", "  image: Dockerfile\n  image: Dockerfile\n"])
def test_an_action_without_one_line_to_change_is_refused(root: Path, action: str) -> None:
    (root / "action.yml").write_text(action)
    assert call(root, *PIN)[2].startswith("refused: action.yml: expected one line `  image: Dockerfile`, found ")
    assert (root / "action.yml").read_text() == action


def test_versions_that_disagree_are_all_named_and_nothing_is_written(root: Path, tmp_path: Path) -> None:
    before = contents(root)
    code, _, message = call(root, *PIN, "--outputs", str(tmp_path / "outputs"), version="1.2.4")
    assert code == 1
    assert message.splitlines() == [
        'refused: ragcontract/core/version.py: __version__ is "1.2.3", expected "1.2.4"',
        'refused: CHANGELOG.md: the first heading is "## 1.2.3 (2026-01-02)", expected "## 1.2.4 (YYYY-MM-DD)"',
    ]
    assert contents(root) == before


def test_a_change_log_without_a_date_is_refused_and_named_by_a_dry_run(root: Path) -> None:
    (root / "CHANGELOG.md").write_text("## 1.2.3 (unreleased)\n")
    assert call(root)[0] == 1
    code, _, message = call(root, "--dry-run")
    assert code == 0
    assert message.startswith("a release would be refused: CHANGELOG.md")


def tags(root: Path, *names: str) -> tuple[str, str]:
    (root / "tags").write_text("".join(f"refs/tags/{name}\n" for name in names))
    return "--tags", str(root / "tags")


def test_a_tag_that_is_there_is_refused(root: Path) -> None:
    code, _, message = call(root, *tags(root, "v1.2.30", "v1.2.3"))
    assert code == 1
    assert message.startswith("refused: tag v1.2.3: it exists already")


@pytest.mark.parametrize(
    ("version", "names", "major"),
    [
        ("1.2.3", [], "v1"),
        ("1.2.3", ["v1", "v1.2.2", "v1.2.4rc1", "v2.0.0", "v1.10", "vendored"], "v1"),
        ("1.2.3", ["v1.10.0"], ""),
        ("1.2.3rc1", ["v1.2.2"], ""),
        ("2.0.0", ["v1.10.0"], "v2"),
    ],
)
def test_the_major_tag_moves_to_the_newest_final_version_only(version: str, names: list[str], major: str) -> None:
    assert release.major_tag(release.Version.parse(version), names) == major


@pytest.mark.parametrize(
    ("version", "names", "newest"),
    [
        ("1.2.3", [], True),
        ("1.2.3", ["v1", "v1.2.2", "v1.2.4rc1", "vendored"], True),
        ("1.2.3", ["v1.10.0"], False),
        ("1.2.3", ["v2.0.0"], False),
        ("1.0.0rc1", [], True),
        ("1.0.0rc2", ["v1.0.0rc1"], True),
        ("1.2.3rc1", ["v1.2.2"], False),
    ],
)
def test_the_site_is_that_of_the_newest_final_version(version: str, names: list[str], newest: bool) -> None:
    assert release.is_newest(release.Version.parse(version), [f"refs/tags/{name}" for name in names]) == newest


def test_the_outputs_and_the_notes_are_what_the_workflow_reads(root: Path) -> None:
    call(root, *tags(root), "--outputs", str(root / "outputs"), "--notes", str(root / "notes"))
    assert (root / "outputs").read_text() == "version=1.2.3\ntag=v1.2.3\nmajor=v1\npre=\nnewest=yes\n"
    assert (root / "notes").read_text() == "- Better.\n"


# The workflows


def load(path: Path) -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load(path.read_text())
    return loaded


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_commit_with_its_version_beside_it(path: Path) -> None:
    lines = re.findall(r"^\s*(?:- )?[\"']?uses[\"']?:.*$", path.read_text(), re.MULTILINE)
    steps = [step for job in load(path)["jobs"].values() for step in [job, *job.get("steps", [])] if "uses" in step]
    assert len(lines) == len(steps), "a `uses:` that this test does not see"
    for line in lines:
        assert re.search(r"uses: (\./( # .*)?|[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$", line), line


@pytest.mark.parametrize("path", [*WORKFLOWS, *TO_COPY], ids=lambda path: path.name)
def test_a_workflow_has_no_permissions_and_each_job_has_a_name_and_permissions_of_its_own(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {}
    for key, job in workflow["jobs"].items():
        assert job.get("name"), key
        assert isinstance(job.get("permissions"), dict), key


@pytest.mark.parametrize("path", [*WORKFLOWS, *TO_COPY], ids=lambda path: path.name)
def test_every_permission_says_what_it_is_for(path: Path) -> None:
    granted = [scope for job in load(path)["jobs"].values() for scope in job["permissions"]]
    lines = re.findall(r"^      ([a-z-]+): (?:read|write)\b(.*)$", path.read_text(), re.MULTILINE)
    assert sorted(scope for scope, _ in lines) == sorted(granted), "a permission that this test does not see"
    assert [scope for scope, comment in lines if not re.match(r"\s+# \w", comment)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_expression_is_put_into_a_script_and_no_checkout_keeps_its_token(path: Path) -> None:
    for job in load(path)["jobs"].values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


RELEASE = load(release.ROOT / ".github/workflows/release.yml")


def test_a_release_cannot_start_a_release() -> None:
    triggers = RELEASE[True]  # YAML 1.1 reads `on` so
    assert triggers["push"] == {"tags": ["release/*"]}
    assert set(triggers) == {"push", "workflow_dispatch"}


def test_only_the_jobs_that_write_may_write() -> None:
    writers = {
        name: {scope for scope, level in job["permissions"].items() if level == "write"}
        for name, job in RELEASE["jobs"].items()
    }
    assert {name: scopes for name, scopes in writers.items() if scopes} == {
        "image": {"packages"},
        "index": {"packages", "id-token", "attestations"},
        "tag": {"contents"},
        "pypi": {"id-token"},
        "pages": {"pages", "id-token"},
        "announce": {"contents"},
    }


def test_nothing_is_published_before_the_environment_release_approves() -> None:
    jobs = RELEASE["jobs"]
    gates = {name for name, job in jobs.items() if job.get("environment") == "release"}
    assert gates == {"approve"}
    for name, job in jobs.items():
        if "write" in job["permissions"].values():
            assert gates & (before(name) | {name}), f"{name} can write before the approval"
    for name in before("approve"):
        assert "write" not in jobs[name]["permissions"].values(), name


def test_the_approval_waits_until_package_image_and_site_were_built_and_tried() -> None:
    assert before("approve") == {"check", "dist", "build", "site"}
    assert "scripts/try_image.sh" in script("build", TRY)


def test_a_rehearsal_publishes_nothing() -> None:
    jobs = RELEASE["jobs"]
    assert jobs["approve"]["if"] == "github.event_name == 'push'"
    stopped = {name for name in jobs if "approve" in before(name) | {name}}
    assert not any("if" in jobs[name] for name in stopped - {"approve"}), "an `if` could run it after all"
    assert set(jobs) - stopped == {"check", "dist", "build", "site"}


def before(name: str) -> set[str]:
    """Return the jobs that end before this one starts."""
    direct = needs(RELEASE["jobs"][name])
    return set(direct).union(*(before(other) for other in direct))


def needs(job: dict[str, Any]) -> list[str]:
    value = job.get("needs", [])
    return [value] if isinstance(value, str) else value


def test_what_a_job_reads_of_another_is_there() -> None:
    jobs = RELEASE["jobs"]
    for name, job in jobs.items():
        for other, output in re.findall(r"needs\.(\w+)\.outputs\.(\w+)", json.dumps(job)):
            assert other in needs(job), f"{name} does not need {other}"
            assert output in jobs[other]["outputs"], f"{name}: {other} has no output {output}"


def test_the_site_that_is_published_is_the_one_that_was_built_and_only_of_the_newest_version() -> None:
    built, published = RELEASE["jobs"]["site"]["steps"], RELEASE["jobs"]["pages"]["steps"]
    assert next(step["run"] for step in built if "run" in step) == "make site"
    (uploaded,) = (step["with"] for step in built if "upload-pages-artifact@" in step.get("uses", ""))
    assert uploaded == {"path": "build/site", "retention-days": 30}  # a deployment waits for an approval
    (deployed,) = published
    assert deployed["uses"].startswith("actions/deploy-pages@")
    assert deployed["if"] == "needs.check.outputs.newest != ''"


# Its shell, with stand-ins for docker and gh


def script(job: str, name: str) -> str:
    found = [step["run"] for step in RELEASE["jobs"][job]["steps"] if step.get("name", "").startswith(name)]
    assert len(found) == 1
    return str(found[0])


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Path]:
    require("bash")
    folder = tmp_path / "tools"
    folder.mkdir()
    return (yield folder)


def stand_in(tools: Path, name: str, text: str) -> None:
    (tools / name).write_text(f"#!{sys.executable}\n{text}")
    (tools / name).chmod(0o755)


def shell(code: str, cwd: Path, tools: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run a step as the runner does with ``shell: bash``."""
    path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", code]
    return subprocess.run(command, cwd=cwd, env={"PATH": path, **environ}, capture_output=True, text=True, check=False)


def docker_run(code: str) -> str:
    """Return a docker that runs the entry point in the mounted workspace and answers with this for its exit code."""
    return (
        "import os, subprocess, sys\n"
        "volume = sys.argv[sys.argv.index('--volume') + 1].split(':')[0]\n"
        "given = dict(sys.argv[i + 1].split('=') for i, word in enumerate(sys.argv) if word == '--env')\n"
        f"given |= {{'GITHUB_WORKSPACE': volume, 'PYTHONPATH': {str(release.ROOT)!r}}}\n"
        f"command = [sys.executable, {str(release.ROOT / 'entrypoint.py')!r}]\n"
        "code = subprocess.run(command, cwd=volume, env=os.environ | given).returncode\n"
        f"sys.exit({code})\n"
    )


TRY = "A kept contract exits 0"


def test_the_trial_of_an_image_passes_one_that_works(tools: Path) -> None:
    for job, image in (("build", "rag-contract:built"), ("image", "image@digest")):
        stand_in(tools, "docker", docker_run(f"code if sys.argv[-1] == {image!r} else 9"))
        done = shell(script(job, TRY), release.ROOT, tools, REF="image@digest")
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "wrong", ["0", "1", "2", "3 if code == 0 else code", "0 if code == 1 else code", "1 if code == 2 else code"]
)
def test_the_trial_of_an_image_fails_one_that_does_not(tools: Path, wrong: str) -> None:
    stand_in(tools, "docker", docker_run(wrong))
    done = shell(script("image", TRY), release.ROOT, tools, REF="image@digest")
    assert done.returncode == 1
    assert "::error::exit code" in done.stdout
    assert "Traceback" not in done.stdout


def gh(answers: dict[str, str], refused: str = "none") -> str:
    """Return a gh that keeps what it is sent, answers by the end of the path and refuses one path."""
    return (
        "import json, pathlib, sys\n"
        "words = sys.argv[1:]\n"
        "body = sys.stdin.read() if '--input' in words else ''\n"
        "with (pathlib.Path(__file__).parent / 'calls').open('a') as calls:\n"
        "    calls.write(json.dumps([words, body]) + '\\n')\n"
        "path = next((word for word in words if word.startswith('repos/')), '')\n"
        f"if path.endswith({refused!r}): sys.exit(1)\n"
        f"print(next((answer for end, answer in {answers!r}.items() if path.endswith(end)), ''))\n"
    )


def calls(tools: Path) -> list[tuple[list[str], str]]:
    return [(words, body) for words, body in map(json.loads, (tools / "calls").read_text().splitlines())]


@pytest.fixture
def repository(root: Path) -> Path:
    """Add the script to the repository, so that the workflow's own command finds it."""
    shutil.copytree(release.ROOT / "scripts", root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    return root


def tag_step(repository: Path, tools: Path) -> "subprocess.CompletedProcess[str]":
    require("jq")
    environ = {"DIGEST": DIGEST, "IMAGE": IMAGE, "PARENT": "parent", "TAG": "v1.2.3", "VERSION": "1.2.3"}
    files = {"GITHUB_REPOSITORY": "org/rag-contract", "GITHUB_OUTPUT": str(tools / "output")}
    return shell(script("tag", "Commit the action.yml"), repository, tools, **environ, **files)


PUSHED = """
import json, pathlib, sys
arguments = sys.argv[1:]
with (pathlib.Path(__file__).parent / "calls").open("a") as calls:
    calls.write(json.dumps([arguments, ""]) + "\\n")
if "--metadata-file" in arguments:
    built = {"containerimage.digest": "sha256:12"}
    pathlib.Path(arguments[arguments.index("--metadata-file") + 1]).write_text(json.dumps(built))
"""


def test_the_image_is_pushed_by_digest_and_names_the_base_that_the_dockerfile_pins(tools: Path) -> None:
    require("jq")
    stand_in(tools, "docker", PUSHED)
    environ = {
        "ARCH": "arm64",
        "COMMIT": "c",
        "IMAGE": IMAGE,
        "TOKEN": "t",
        "VERSION": "1.2.3",
        "RUNNER_TEMP": str(tools),
    }
    github = {"GITHUB_ACTOR": "a", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r"}
    output = {"GITHUB_OUTPUT": str(tools / "output")}
    done = shell(script("image", "Build and push"), release.ROOT, tools, **environ, **github, **output)
    assert done.returncode == 0, done.stderr
    arguments = calls(tools)[-1][0]
    labels = dict(
        arguments[index + 1].split("=", 1) for index, argument in enumerate(arguments) if argument == "--label"
    )
    base = requirements.base(release.ROOT)
    prefix = "org.opencontainers.image.base"
    assert f"{labels[f'{prefix}.name']}@{labels[f'{prefix}.digest']}" == base
    assert "--build-arg" not in arguments
    assert arguments[arguments.index("--output") + 1].split(",")[2:] == [
        "push-by-digest=true",
        "name-canonical=true",
        "push=true",
    ]
    assert (tools / "output").read_text() == f"arm64=sha256:12\nref={IMAGE}@sha256:12\n"


def registry(released: str, sbom: str) -> str:
    """Return a docker whose registry has two images with these manifests released under one name, and this SBOM."""
    manifests = {"a@sha256:1": ["sha256:11", "sha256:12"], "a@sha256:2": ["sha256:21"], f"a@{DIGEST}": released.split()}
    return (
        "import json, sys\n"
        "arguments = sys.argv[1:]\n"
        f"manifests = {manifests}\n"
        "if 'inspect' in arguments and '--raw' in arguments:\n"
        "    print(json.dumps({'manifests': [{'digest': one} for one in manifests[arguments[-1]]]}))\n"
        f"elif '{{{{.Manifest.Digest}}}}' in arguments: print({DIGEST!r})\n"
        f"elif 'inspect' in arguments: print({sbom!r})\n"
    )


SBOM = json.dumps({"spdxVersion": "SPDX-2.3", "packages": [{"name": "click"}]})


@pytest.mark.parametrize(
    ("released", "sbom", "code"),
    [
        ("sha256:21 sha256:12 sha256:11", SBOM, 0),
        ("sha256:21 sha256:12", SBOM, 1),
        ("sha256:21 sha256:12 sha256:11 sha256:31", SBOM, 1),
        ("sha256:21 sha256:12 sha256:13", SBOM, 1),
        ("sha256:21 sha256:12 sha256:11", "null", 1),
        ("sha256:21 sha256:12 sha256:11", '{"spdxVersion": "SPDX-2.3", "packages": []}', 1),
    ],
)
def test_what_is_signed_is_what_was_tried(tools: Path, released: str, sbom: str, code: int) -> None:
    require("jq")
    stand_in(tools, "docker", registry(released, sbom))
    github = {"GITHUB_ACTOR": "a", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r"}
    environ = {"AMD64": "sha256:1", "ARM64": "sha256:2", "IMAGE": "a", "TOKEN": "t", "VERSION": "1.2.3"}
    files = {"RUNNER_TEMP": str(tools), "GITHUB_OUTPUT": str(tools / "output")}
    done = shell(script("index", "Put both images"), tools, tools, **github, **environ, **files)
    assert done.returncode == code, done.stdout + done.stderr
    assert (tools / "output").exists() == (code == 0)
    uploaded = [step["with"]["path"] for step in RELEASE["jobs"]["index"]["steps"] if "upload" in step.get("uses", "")]
    assert uploaded == ["${{ runner.temp }}/rag-contract-*.spdx.json"]
    if code == 0:
        assert {path.name for path in tools.glob("rag-contract-*.spdx.json")} == {
            "rag-contract-amd64.spdx.json",
            "rag-contract-arm64.spdx.json",
        }


ANSWERS = {"git/commits/parent": "old-tree", "git/trees": "new-tree", "git/commits": "new-commit"}


def test_the_release_commit_is_the_tagged_one_with_the_image_in_action_yml(repository: Path, tools: Path) -> None:
    stand_in(tools, "gh", gh(ANSWERS))
    before = (repository / "action.yml").read_text()
    done = tag_step(repository, tools)
    assert done.returncode == 0, done.stderr
    _, (_, tree), (_, commit), (ref, _) = calls(tools)
    content = release.pin(before, IMAGE, DIGEST)
    entry = {"path": "action.yml", "mode": "100644", "type": "blob", "content": content}
    assert json.loads(tree) == {"base_tree": "old-tree", "tree": [entry]}
    assert json.loads(commit) == {"message": "Release v1.2.3", "tree": "new-tree", "parents": ["parent"]}
    assert ref[1:] == [
        "repos/org/rag-contract/git/refs",
        "--raw-field",
        "ref=refs/tags/v1.2.3",
        "--raw-field",
        "sha=new-commit",
    ]
    assert (tools / "output").read_text() == "commit=new-commit\n"


@pytest.mark.parametrize("refused", ["git/commits/parent", "git/trees", "git/commits", "git/refs"])
def test_a_release_commit_that_github_refuses_fails_the_job(repository: Path, tools: Path, refused: str) -> None:
    stand_in(tools, "gh", gh(ANSWERS, refused))
    assert tag_step(repository, tools).returncode == 1
    assert calls(tools)[-1][0][1].endswith(refused)
    assert not (tools / "output").exists()


@pytest.mark.parametrize(("refused", "method"), [("none", "PATCH"), ("git/ref/tags/v1", "POST")])
def test_the_major_tag_is_moved_or_made(tools: Path, refused: str, method: str) -> None:
    stand_in(tools, "gh", gh({}, refused))
    environ = {"COMMIT": "new-commit", "MAJOR": "v1", "GITHUB_REPOSITORY": "o/r"}
    assert shell(script("announce", "Move the major tag"), tools, tools, **environ).returncode == 0
    words = calls(tools)[-1][0]
    if method == "PATCH":
        assert words[1:4] == ["--method", "PATCH", "repos/o/r/git/refs/tags/v1"]
        assert words[4:] == ["--raw-field", "sha=new-commit", "--field", "force=true"]
    else:
        assert words[1:] == ["repos/o/r/git/refs", "--raw-field", "ref=refs/tags/v1", "--raw-field", "sha=new-commit"]


@pytest.mark.parametrize("pre", ["", "rc1"])
def test_the_github_release_has_the_change_log_and_the_image(repository: Path, tools: Path, pre: str) -> None:
    stand_in(tools, "gh", gh({}))
    environ = {"PRE": pre, "REF": f"{IMAGE}@{DIGEST}", "TAG": "v1.2.3", "VERSION": "1.2.3", "RUNNER_TEMP": str(tools)}
    done = shell(script("announce", "Create the GitHub release"), repository, tools, GITHUB_REPOSITORY="o/r", **environ)
    assert done.returncode == 0, done.stderr
    words = calls(tools)[0][0]
    assert words[:3] == ["release", "create", "v1.2.3"]
    assert "--verify-tag" in words
    assert words[-3:] == ["dist/*", "sbom/*", "schemas/*"]
    assert ("--prerelease" in words) == bool(pre)
    assert (tools / "notes.md").read_text() == f"- Better.\n\nThe image: `{IMAGE}@{DIGEST}`\n"


def test_a_release_has_the_schemas_as_files_of_their_own(tmp_path: Path, tools: Path) -> None:
    site.write_schemas(tmp_path / "build/site/schemas")
    assert shell(script("site", "Name the schemas"), tmp_path, tools).returncode == 0
    named = {path.name: json.loads(path.read_text()) for path in (tmp_path / "schemas").iterdir()}
    assert named == {f"rag-contract-{name}.schema.json": json.loads(json.dumps(schema_of(name))) for name in SCHEMAS}
    (uploaded,) = (
        step["with"] for step in RELEASE["jobs"]["site"]["steps"] if "upload-artifact@" in step.get("uses", "")
    )
    downloaded = [step["with"] for step in RELEASE["jobs"]["announce"]["steps"] if "download" in step.get("uses", "")]
    assert {"name": uploaded["name"], "path": uploaded["path"]} in downloaded


ON_MAIN = "The commit is on the default branch"


@pytest.mark.parametrize(
    ("status", "passed", "code"),
    [("identical", "1", 0), ("behind", "2", 0), ("ahead", "1", 1), ("diverged", "1", 1), ("behind", "0", 1)],
)
def test_only_a_tested_commit_of_the_default_branch_is_released(
    tools: Path, status: str, passed: str, code: int
) -> None:
    stand_in(tools, "gh", f"import sys\nprint({status!r} if sys.argv[1] == 'api' else {passed!r})")
    environ = {"BRANCH": "main", "COMMIT": "c", "GITHUB_REPOSITORY": "o/r"}
    assert shell(script("check", ON_MAIN), tools, tools, **environ).returncode == code
