"""What the wheel and the image are made from is locked, and a build installs nothing else."""

import io
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from scripts import requirements

ROOT = requirements.ROOT
FILES = ("pyproject.toml", *requirements.DOCKERFILES, "requirements")
DIGEST = "0123456789abcdef" * 4


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a copy of what is locked and of what it is made from."""
    for name in FILES:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    return tmp_path


def edit(root: Path, file: str, old: str, new: str) -> None:
    """Replace a pattern that must be there."""
    text, count = re.subn(old, new, (root / file).read_text(), flags=re.MULTILINE)
    assert count
    (root / file).write_text(text)


def test_what_is_locked_is_what_was_asked_for() -> None:
    assert list(requirements.disagreements(ROOT)) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        (
            "requirements/runtime.txt",
            "^click==.*$",
            "click==8.1.7",
            r"requirements/image.txt: click: [\d.]+, expected 8.1.7: run `make requirements`",
        ),
        (
            "requirements/runtime.txt",
            "^six==.*\n",
            "",
            r"requirements/runtime.txt: six: missing, the package needs it: add six==[\d.]+",
        ),
        (
            "requirements/runtime.txt",
            r"\Z",
            "more==1\n",
            "requirements/image.txt: more: nothing, expected 1: run `make requirements`",
        ),
        (
            "requirements/image.txt",
            r"^junit-xml==1.9 \\\n(    --hash=.*\n)+",
            "junit-xml==1.9\n",
            "requirements/image.txt: junit-xml: no hashes, or not of SHA-256: run `make requirements`",
        ),
        (
            "requirements/dev.txt",
            r"^uvicorn==.*$",
            "uvicorn==0.1",
            r"requirements/service.txt: uvicorn: [\d.]+, expected 0.1: run `make requirements`",
        ),
        (
            "requirements/build.txt",
            r"--hash=sha256:\w+",
            "--hash=sha256:12",
            "requirements/build.txt: hatchling: no hashes, or not of SHA-256: run `make requirements`",
        ),
        (
            "requirements/site.txt",
            r"^msgspec==[\d.]+",
            "msgspec==0.1",
            r"requirements/site.txt: msgspec: 0.1, expected [\d.]+: run `make requirements`",
        ),
        (
            "requirements/site.txt",
            r"^mkdocs-material==.*\n(    --hash=.*\n)+",
            "",
            "requirements/site.txt: mkdocs-material: missing: run `make requirements`",
        ),
        (
            "pyproject.toml",
            r"hatchling==[\d.]+",
            "hatchling==1.0.0",
            r"requirements/build.txt: hatchling: [\d.]+, expected 1.0.0: run `make requirements`",
        ),
        (
            "requirements/base.Dockerfile",
            "sha256:.*$",
            f"sha256:{DIGEST}",
            f"Dockerfile: ARG BASE is not python:3.13-slim@sha256:{DIGEST}: run `make requirements`",
        ),
        (
            "Dockerfile",
            "^ARG BASE=.*$",
            "ARG BASE=python:3.13-slim",
            "Dockerfile: ARG BASE is not python:3.13-slim@sha256:[0-9a-f]{64}: run `make requirements`",
        ),
        (
            "Dockerfile.service",
            "^ARG BASE=.*$",
            "ARG BASE=python:3.13-slim",
            "Dockerfile.service: ARG BASE is not python:3.13-slim@sha256:[0-9a-f]{64}: run `make requirements`",
        ),
    ],
)
def test_every_disagreement_is_reported_with_what_to_do(
    root: Path, file: str, old: str, new: str, expected: str
) -> None:
    edit(root, file, old, new)
    assert re.fullmatch(expected, next(requirements.disagreements(root)))


@pytest.mark.parametrize("base", ["python:3.13-slim", "python:3.13-slim@sha256:12", f"python@sha256:{DIGEST}"])
def test_a_base_without_tag_and_digest_is_refused(root: Path, base: str) -> None:
    edit(root, "requirements/base.Dockerfile", "^FROM .*$", f"FROM {base}")
    with pytest.raises(ValueError, match=r"requirements/base.Dockerfile: expected one line FROM python:3.13-slim@"):
        requirements.base(root)


def test_packages_that_another_python_needs_are_left_out() -> None:
    text = 'a==1\nB_b==2; python_version < "3.13"\n# c==3\n--only-binary :all:\nd==4 \\\n    --hash=sha256:12\n'
    assert requirements.pins(text, "3.13") == {"a": ("1", ()), "d": ("4", ("12",))}
    assert set(requirements.pins(text, "3.12")) == {"a", "b-b", "d"}


# A stand-in for uv, which needs the network: writes what it is asked for, and with what.
UV = """#!{python}
import pathlib, sys
arguments, given = sys.argv[1:], sys.stdin.read()
for option in ("--generate-hashes", "--no-config"):
    assert option in arguments
assert arguments[arguments.index("--only-binary") + 1] == ":all:"
output = pathlib.Path(arguments[arguments.index("--output-file") + 1])
lines = [line for line in output.read_text().splitlines(keepends=True) if not line.startswith("#")]
pathlib.Path("asked").open("a").write(f"{{arguments[arguments.index('--output-file') + 2:]}} {{given}}\\n")
output.write_text("".join(lines))
"""


def stand_in(root: Path) -> str:
    (root / "uv").write_text(UV.format(python=sys.executable))
    (root / "uv").chmod(0o755)
    return str(root / "uv")


def test_locking_writes_the_base_into_the_dockerfile_and_asks_for_backend_and_package(root: Path) -> None:
    before = {name: (root / name).read_text() for name in requirements.HEADERS}
    edit(root, "requirements/base.Dockerfile", "sha256:.*$", f"sha256:{DIGEST}")
    stderr = io.StringIO()
    assert requirements.main(["--uv", stand_in(root)], root=root, stderr=stderr) == 0, stderr.getvalue()
    for name in requirements.DOCKERFILES:
        assert f"\nARG BASE=python:3.13-slim@sha256:{DIGEST}\n" in (root / name).read_text()
    assert {name: (root / name).read_text() for name in before} == before
    alembic, *others = [f"{name}=={version}" for name, version in requirements.of_service(root).items()]
    assert [line.partition("==")[0] for line in others] == [
        *("litestar", "prometheus-client", "psycopg", "sqlalchemy", "uvicorn")
    ]
    extras, constraints = "'--extra', 'answers', '--extra', 'code'", "'--constraints', 'requirements/runtime.txt'"
    assert (root / "asked").read_text().splitlines() == [
        f"['-'] {requirements.backend(root)[0]}",
        f"['pyproject.toml', {extras}, '-', {constraints}] rapidfuzz>=3.9",
        f"['pyproject.toml', {extras}, '--extra', 'service', '--extra', 'postgres', '-', {constraints}] rapidfuzz>=3.9",
        alembic,
        *others,
        f"['pyproject.toml', '--extra', 'record', '-', {constraints}] mkdocs-material",
        "cmarkgfm",
    ]


def test_locking_fails_where_the_files_then_disagree(root: Path) -> None:
    edit(root, "requirements/runtime.txt", "^six==.*\n", "")
    stderr = io.StringIO()
    assert requirements.main(["--uv", stand_in(root)], root=root, stderr=stderr) == 1
    assert stderr.getvalue().startswith("requirements/runtime.txt: six: missing")


# What uses the locked files


def commands(text: str) -> list[str]:
    """Return the shell commands of a text, each with its continuation lines."""
    return [one.strip() for one in re.split(r"&&|\n", text.replace("\\\n", " "))]


@pytest.mark.parametrize("name", requirements.DOCKERFILES)
def test_an_image_installs_nothing_without_a_hash_and_builds_without_isolation(name: str) -> None:
    dockerfile = re.sub(r"(?m)^#.*\n", "", (ROOT / name).read_text())
    found = [one for one in commands(dockerfile) if re.match(r"(RUN )?pip ", one)]
    assert len(found) == len(re.findall(r"(?<!without-)pip\b", dockerfile)) == 4
    for command in found:
        assert "--no-deps" in command
        assert ("--require-hashes" in command) != ("--no-index" in command), command
    assert [("--no-build-isolation" in one) for one in found if " wheel " in one] == [True]


def test_a_release_installs_nothing_without_a_hash_and_builds_without_isolation() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    scripts = "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    found = [one for one in commands(scripts) if re.search(r"\bpip\b", one)]
    assert len(found) == 4
    for command in found:
        assert "--no-deps" in command
        assert ("--require-hashes" in command) != ("--no-index" in command), command
    assert [("--no-build-isolation" in one) for one in found if " wheel " in one] == [True]
    assert "-m build" not in scripts


def test_the_site_is_built_of_nothing_without_a_hash() -> None:
    found = commands((ROOT / "Makefile").read_text())
    (command,) = (one for one in found if "pip install" in one and "requirements/site.txt" in one)
    assert "--no-deps" in command
    assert "--require-hashes" in command


def test_an_image_is_built_on_the_base_by_its_digest() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert re.findall(r"^ARG BASE=(.*)$", dockerfile, re.MULTILINE) == [requirements.base(ROOT)]


def test_a_build_gets_the_files_that_it_copies() -> None:
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    allowed = {line.lstrip("!").rstrip("/") for line in (ROOT / ".dockerignore").read_text().splitlines()}
    assert {name for line in copied for name in line.split()} <= allowed


def test_the_build_backend_has_one_exact_version() -> None:
    assert re.fullmatch(r"\['hatchling==[\d.]+'\]", str(requirements.backend(ROOT)))
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["build-backend"] == "hatchling.build"


def test_no_file_names_the_host_of_a_package_index() -> None:
    paths = [*(ROOT / "requirements").iterdir()]
    assert len(paths) > 3
    for path in paths:
        assert not re.search(r"://|index-url|find-links", path.read_text()), path.name


def test_the_base_is_updated_by_a_pull_request_of_its_own() -> None:
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    docker = [one for one in updates if one["package-ecosystem"] == "docker"]
    assert [one["directory"] for one in docker] == ["/requirements"]
    assert [path.name for path in (ROOT / "requirements").glob("*ockerfile*")] == ["base.Dockerfile"]
    assert list(docker[0]["groups"]) == ["base-image"]
