"""Rehearses two releases, an upgrade and a roll-back on this machine: ``make rehearse-release``.

In a temporary folder, a bare clone of this repository stands in for the one on GitHub. The jobs of the release workflow
run on it with their own shell, and a project runs the example's workflow with what they released. What is not committed
is not rehearsed. ``docs/contributing/releasing.md`` lists what only GitHub can show.
"""

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from ragcontract.schemas import SCHEMAS
from scripts.release import ROOT, Version
from tests import jobs, needs
from tests.container.base import base
from tests.github.standin import TOKEN, GitHub
from tests.jobs import OK, Action, Done
from tests.runner import InContainer

NAME = "org/rag-contract"  # as the README and the example call this repository
VERSION_FILE = "ragcontract/core/version.py"
BUILT = "rag-contract:built"  # as the workflow calls the image that it builds
ONLY_GITHUB = {  # jobs that are left out, and what is there instead of what they make
    "approve": "nobody is asked to approve",
    "image": "nothing is pushed to a registry",
    "index": "nothing is signed, the SBOM is an empty file, and the id of the image stands in for its digest",
    "pypi": "nothing is published, and pip finds the wheel in a folder",
    "pages": "the site is built and not published",
}
OF_THE_IMAGE = ("build", "try")
SBOM = "empty.spdx.json"
NO_ENGINE = "there is no Docker engine"
ROLL_BACK = "git fetch --tags --force && git push --force origin v{version}:refs/tags/v{version.major}"
NOT_RELEASED = re.compile(r"pip install \S+  # once 1\.0 is released: (.+)$", re.MULTILINE)
STORE = "rag-contract baseline --golden rag/golden.jsonl --run current_run.jsonl --config rag/ragcontract.yml --out"
GOOD, BROKEN = "full = Retriever(FULL)", "full = Retriever(LEAN)"  # lines of the example's search.py


class Failed(Exception):  # noqa: N818 (named for what happened)
    """A release does not go as it must; the message says what is wrong."""


def expect(condition: object, message: str) -> None:
    """Fail unless the condition holds."""
    if not condition:
        raise Failed(message)


def versions(package: str, tags: Iterable[str]) -> tuple[Version, Version]:
    """Return two versions to release: the package's own, or the next one that has no tag, and the one after it."""
    number = re.search(r"\d+\.\d+\.\d+", package)
    first = Version.parse(number[0] if number else package)
    line = rf"v{first.major}\.{first.minor}\.(\d+)"
    taken = [int(match[1]) for tag in tags if (match := re.fullmatch(line, tag))]
    patch = max([first.patch, *(patch + 1 for patch in taken)])
    return first._replace(patch=patch), first._replace(patch=patch + 1)


def dated(changelog: str, version: Version, day: date) -> str:
    """Return the change log with a dated heading for the version: instead of the unreleased one, or a new one."""
    head, heading, rest = re.split(r"^(## .*\n)", changelog, maxsplit=1, flags=re.MULTILINE)
    new = f"## {version} ({day})\n"
    if "unreleased" in heading or heading.startswith(f"## {version} "):
        return head + new + rest
    return f"{head}{new}\n- A rehearsal.\n\n{heading}{rest}"


def image_of(action: str) -> tuple[str, str]:
    """Return the name and the digest of the image that a released action.yml names."""
    image = str(yaml.safe_load(action)["runs"]["image"])
    match = re.fullmatch(r"docker://([^@]+)@(sha256:[0-9a-f]{64})", image)
    if not match:
        raise Failed(f"action.yml names no image by its digest, but `image: {image}`")
    return match[1], match[2]


def command(*words: str, cwd: Path, environ: Mapping[str, str] | None = None) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(words, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    expect(not done.returncode, f"{shlex.join(words)} exits {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def git(folder: Path, *words: str) -> str:
    """Run git as somebody who has no settings."""
    settings = ("user.name=rehearsal", "user.email=rehearsal@example.com", "commit.gpgsign=false", "tag.gpgsign=false")
    return command("git", *[word for setting in settings for word in ("-c", setting)], *words, cwd=folder)


def replace(file: Path, line: str, new: str) -> None:
    """Replace the one line in a file that matches."""
    text, count = re.subn(f"^{line}$", new, file.read_text("utf-8"), flags=re.MULTILINE)
    expect(count == 1, f"{file.name} must have one line {line}, and has {count}")
    file.write_text(text, "utf-8")


class Machine:
    """The folder in which all happens, with the commands that are stood in for, and the images that were built."""

    def __init__(self, folder: Path, github: GitHub, say: Callable[[str], None], *, engine: bool) -> None:
        self.folder, self.github, self.say, self.engine = folder, github, say, engine
        self.bare, self.kept, self.images, self._jobs = folder / "github.git", folder / "kept", set[str](), 0
        self.done: list[Done] = []  # how the action ended, each time
        outside = ("GITHUB_", "GIT_", "INPUT_", "PYTHON", "RUNNER_")
        self.environ = {name: text for name, text in os.environ.items() if not name.startswith(outside)}
        self.environ["PATH"] = f"{folder / 'tools'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        gh = [sys.executable, "-I", str(ROOT / "tests" / "github" / "gh.py"), str(self.bare)]
        self._tool("gh", f'exec {shlex.join(gh)} "$@"')
        if engine:  # gives `docker build` the options that it has in the tests of the container
            build = f'build) shift; set -- build --network host --build-arg BASE={base()} "$@" ;;'
            self._tool("docker", f'case $1 in {build} esac\nexec {shutil.which("docker")} "$@"')

    def _tool(self, name: str, script: str) -> None:
        file = self.folder / "tools" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def runner(self) -> InContainer:
        """Return the runner of a new job."""
        self._jobs += 1
        return InContainer(self.folder / f"job-{self._jobs}", self.github)

    def act(self, runner: InContainer, action: Path, inputs: dict[str, str]) -> Done:
        """Run the image that a released action.yml names, as GitHub's runner does."""
        _, runner.image = image_of(action.read_text("utf-8"))
        runner.action = action
        expect(runner.image in self.images, f"action.yml names {runner.image}, which was not built")
        result = runner.run(inputs, run=100 + self._jobs)
        self.done.append(Done(result.exit_code, result.log, result.outputs))
        return self.done[-1]


# The releases


class Origin:
    """The repository on GitHub, and a maintainer's clone of it."""

    def __init__(self, machine: Machine, source: Path) -> None:
        self._machine, self._bare, self._clone = machine, machine.bare, machine.folder / "maintainer"
        command("git", "clone", "--quiet", "--bare", str(source), str(self._bare), cwd=machine.folder)
        git(self._bare, "update-ref", "refs/heads/main", git(source, "rev-parse", "HEAD"))
        git(self._bare, "symbolic-ref", "HEAD", "refs/heads/main")
        git(self._bare, "config", "receive.shallowUpdate", "true")  # CI's clones are shallow
        command("git", "clone", "--quiet", str(self._bare), str(self._clone), cwd=machine.folder)
        left_out = "; what is not committed is left out" if git(source, "status", "--porcelain") else ""
        machine.say(f"rehearse the release of {git(source, 'log', '-1', '--format=%h %s')}{left_out}")
        self.versions = versions((self._clone / VERSION_FILE).read_text("utf-8"), git(self._bare, "tag").split())

    def release(self, version: Version) -> None:
        """Push the tag of a release, and run the jobs that it starts."""
        tag = f"release/{version}"
        self._machine.say(f"{version}: set the version, date the change log, push {tag}")
        replace(self._clone / VERSION_FILE, r'__version__ = ".*"', f'__version__ = "{version}"')
        log = self._clone / "CHANGELOG.md"
        log.write_text(dated(log.read_text("utf-8"), version, datetime.now(UTC).date()), "utf-8")
        git(self._clone, "commit", "--quiet", "--all", "--allow-empty", "--message", f"Version {version}")
        git(self._clone, "push", "--quiet", "origin", "HEAD:main")
        git(self._clone, "tag", tag)
        git(self._clone, "push", "--quiet", "origin", tag)
        workflow = yaml.safe_load(git(self._bare, "show", f"{tag}:.github/workflows/release.yml"))
        starts = workflow[True]["push"]["tags"]  # YAML 1.1 reads `on` so
        expect(any(fnmatch.fnmatch(tag, start) for start in starts), f"{tag} starts no release, only {starts} do")
        self._run(workflow["jobs"], version)
        self._look_at(version)

    def _run(self, all_jobs: Mapping[str, Any], version: Version) -> None:
        machine = self._machine
        context = {"github.token": TOKEN, "github.event_name": "push", "github.event.repository.default_branch": "main"}
        context |= {"github.ref_name": f"release/{version}", "inputs.version": ""}
        context["needs.index.outputs.digest"] = f"sha256:{'0' * 64}"  # until there is an image
        event = {"GITHUB_ACTOR": "octocat", "GITHUB_EVENT_NAME": "push", "GITHUB_REPOSITORY": NAME}
        for name, job in all_jobs.items():
            if name in ONLY_GITHUB or (name in OF_THE_IMAGE and not machine.engine):
                machine.say(f"{version}: {name} is left out: {ONLY_GITHUB.get(name, NO_ENGINE)}")
                continue
            machine.say(f"{version}: {name}: {job['name'].partition(' (')[0]}")
            runner = machine.runner()
            actions = self._actions(runner, version)
            ended = jobs.run(job, runner, context=context, environ=machine.environ | event, actions=actions)
            expect(not ended.failed, f"job {name!r}: {ended.failed}")
            context |= {f"needs.{name}.outputs.{key}": text for key, text in ended.outputs.items()}
            if name == "build":
                digest = command("docker", "image", "inspect", "--format", "{{.Id}}", BUILT, cwd=machine.folder)
                machine.images.add(digest)
                context["needs.index.outputs.digest"] = digest

    def _actions(self, runner: InContainer, version: Version) -> dict[str, Action]:
        """Return what stands in for the actions of the release workflow."""
        sbom = self._machine.kept / str(version) / "sbom"
        sbom.mkdir(parents=True, exist_ok=True)
        (sbom / SBOM).touch()

        def checkout(_: str, inputs: dict[str, str]) -> Done:
            git(self._machine.folder, "clone", "--quiet", "--no-checkout", str(self._bare), str(runner.workspace))
            git(runner.workspace, "checkout", "--quiet", inputs.get("ref", f"release/{version}"))
            return OK

        return {
            **jobs.artifacts(runner, sbom.parent),
            "actions/checkout": checkout,
            "actions/setup-python": jobs.nothing,
            "actions/configure-pages": jobs.nothing,
            "actions/upload-pages-artifact": jobs.nothing,
            "./": lambda _, inputs: self._machine.act(runner, runner.workspace / "action.yml", inputs),
        }

    def _look_at(self, version: Version) -> None:
        """Compare what was released with what must be."""
        tag, start = f"v{version}", f"release/{version}"
        changed = git(self._bare, "diff", "--numstat", start, tag)
        expect(changed == "1\t1\taction.yml", f"{tag} must differ from {start} in a line of action.yml, not: {changed}")
        image, _ = image_of(git(self._bare, "show", f"{tag}:action.yml"))
        expect(image == f"ghcr.io/{NAME}", f"action.yml of {tag} names the image of somebody else: {image}")
        self.look_at_major(version)
        release = json.loads((self._bare / f"release-{tag}.json").read_bytes())
        files = [f"rag_contract-{version}-py3-none-any.whl", f"rag_contract-{version}.tar.gz", SBOM]
        files += [f"rag-contract-{name}.schema.json" for name in sorted(SCHEMAS)]
        expect(release["files"] == files, f"the release {tag} must have the files {files}, and has {release['files']}")
        expect(release["notes"].strip(), f"the release {tag} has no notes")

    def look_at_major(self, version: Version) -> None:
        """Fail unless the major tag is at the version."""
        at = git(self._bare, "tag", "--points-at", f"v{version}").split()
        expect(f"v{version.major}" in at, f"v{version.major} must point to v{version}; there are {at}")

    def roll_back(self, version: Version) -> None:
        """Move the major tag back to a version, as the page on releases says."""
        move = ROLL_BACK.format(version=version)
        self._machine.say(f"roll back: {move}")
        command("sh", "-c", move, cwd=self._clone)
        self.look_at_major(version)


# A project that uses them


class Project:
    """A repository with the files of the example, its workflow, and a pull request."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._files = machine, machine.folder / "project"
        git(machine.folder, "clone", "--quiet", str(machine.bare), "start")
        shutil.copytree(machine.folder / "start" / "examples", self._files / "rag")
        self._baseline = self._files / "rag" / "baseline.json"

    def check(self, action: Version, package: Version, *, baseline: bytes = b"", breaks: bool = False) -> None:
        """Run the workflow for a good or a broken pull request, with these versions of the action and the package."""
        machine, runner, before = self._machine, self._machine.runner(), len(self._machine.done)
        about = f"check a {'broken' if breaks else 'good'} pull request, recorded with {package}"
        machine.say(f"{action}: {about}{'' if machine.engine else f'; the action is left out: {NO_ENGINE}'}")
        if baseline:
            self._baseline.write_bytes(baseline)
        shutil.copytree(self._files, runner.workspace, dirs_exist_ok=True)
        replace(runner.workspace / "rag" / "search.py", re.escape(GOOD), BROKEN if breaks else GOOD)
        python = machine.folder / f"python-{package}"
        if not python.exists():
            command(sys.executable, "-m", "venv", str(python), cwd=machine.folder)
        links = f"{os.environ.get('PIP_FIND_LINKS', '')} {machine.kept / str(package) / 'dist'}"
        path = {"PATH": f"{python}/bin:{os.environ['PATH']}"}
        self._environ = machine.environ | path | {"PIP_FIND_LINKS": links, "PIP_NO_COMPILE": "1"}
        workflow = NOT_RELEASED.sub(r"pip install \1", (self._files / "rag" / "workflow.yml").read_text("utf-8"))
        [job] = yaml.safe_load(workflow)["jobs"].values()
        self._machine.github.may_write = job["permissions"].get("pull-requests") == "write"

        def act(ref: str, inputs: dict[str, str]) -> Done:
            expect(ref == f"v{action.major}", f"examples/workflow.yml uses @{ref}, and v{action.major} is released")
            folder = runner.folder / "action"
            git(machine.folder, "clone", "--quiet", "--branch", ref, str(machine.bare), str(folder))
            return machine.act(runner, folder / "action.yml", inputs) if machine.engine else OK

        actions: dict[str, Action] = {"actions/checkout": jobs.nothing, "actions/setup-python": jobs.nothing, NAME: act}
        without_engine = {"actions/upload-artifact": jobs.nothing}
        actions |= jobs.artifacts(runner, runner.folder / "kept") if machine.engine else without_engine
        ended = jobs.run(job, runner, context={}, environ=self._environ, actions=actions)
        expect(not ended.failed or (breaks and machine.engine), ended.failed)
        self._recorded = runner.workspace
        if machine.engine:
            expect(len(machine.done) > before, f"the job did not come to the action: {ended.failed}")
            self._look_at(action, runner, breaks=breaks)

    def _look_at(self, version: Version, runner: InContainer, *, breaks: bool) -> None:
        """Compare what the action did with what it must do."""
        done, comments = self._machine.done[-1], self._machine.github.comments
        found = (done.exit_code, done.outputs.get("verdict"))
        expected, mark = ((1, "fail"), "❌") if breaks else ((0, "pass"), "✅")
        expect(found == expected, f"the action ends with {found}, expected {expected}\n{done.log}")
        expect(len(comments) == 1, f"the pull request must have one comment, and has {len(comments)}")
        expect(f"\n### {mark} " in comments[0]["body"], f"the comment must say {mark}, and says: {comments[0]['body']}")
        expect(done.outputs["comment-url"] == comments[0]["html_url"], "the output comment-url is not the comment's")
        report = json.loads((runner.workspace / done.outputs["report-json"]).read_bytes())
        expect(report["tool"]["version"] == str(version), f"the action is of version {report['tool']['version']}")
        read = report["inputs"]["baseline"]["files"][0]["sha256"]
        expect(read == sha256(self._baseline.read_bytes()).hexdigest(), "the action read another baseline")

    def store(self, version: Version) -> bytes:
        """Return a baseline that the package of a version stores for the last pull request."""
        self._machine.say(f"{version}: store a baseline")
        command(*shlex.split(STORE), "stored.json", cwd=self._recorded, environ=self._environ)
        stored = (self._recorded / "stored.json").read_bytes()
        found = json.loads(stored)["created_by"]["version"]
        expect(found == str(version), f"the baseline was stored by {found}: pip installed another version")
        return stored


def rehearse(machine: Machine, source: Path = ROOT) -> None:
    """Release, release again, upgrade, roll back; and check pull requests after each."""
    origin = Origin(machine, source)
    first, second = origin.versions
    origin.release(first)
    project = Project(machine)
    project.check(first, first)
    older = project.store(first)
    project.check(first, first, baseline=older, breaks=True)
    origin.release(second)
    project.check(second, second, baseline=older)
    newer = project.store(second)
    project.check(second, second, baseline=older, breaks=True)
    origin.roll_back(first)
    project.check(first, second, baseline=older)  # the package index still has the second version
    project.check(first, second, baseline=newer)
    project.check(first, second, baseline=newer, breaks=True)


def has_engine(*, ci: bool) -> bool:
    """Say whether there is a Docker engine; fail without what is needed, which in CI the engine is, too."""
    needed = ("bash", "jq", "docker", "npm") if ci else ("bash", "jq")
    missing = [needs.NEEDS[name].why for name in needed if not needs.program(name)]
    expect(not missing, "; ".join(missing))
    return needs.program("docker") is not None


def main() -> int:
    """Run the rehearsal and return its exit code."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:4.0f} s  {text}", flush=True)

    try:
        engine = has_engine(ci=bool(os.environ.get("CI")))
        with TemporaryDirectory(prefix="rehearsal-", ignore_cleanup_errors=True) as folder, GitHub() as github:
            machine = Machine(Path(folder), github, say, engine=engine)
            try:
                rehearse(machine)
            finally:
                for image in machine.images:
                    subprocess.run(["docker", "image", "rm", image], capture_output=True, check=False)
    except (Failed, jobs.Unknown, AssertionError) as failed:
        print(f"make rehearse-release: {failed}", file=sys.stderr)
        return 1
    say("rehearsed" if engine else f"rehearsed without the image: {NO_ENGINE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
