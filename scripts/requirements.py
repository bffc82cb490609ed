"""Locks what wheel, images and site are made from: every package by its hashes, the base image by its digest.

``make requirements`` runs it after a change to ``requirements/runtime.txt``, to what the team service needs in
``requirements/dev.txt``, to ``requirements/base.Dockerfile``, to the build backend in ``pyproject.toml`` or to
``SITE_TOOLS``. ``tests/test_requirements.py`` fails if they disagree with what was locked.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
NAMES = ("runtime", "dev", "image", "service", "build", "site")
RUNTIME, DEV, IMAGE, SERVICE, BUILD, SITE = (f"requirements/{name}.txt" for name in NAMES)
BASE, DOCKERFILES = "requirements/base.Dockerfile", ("Dockerfile", "Dockerfile.service")
PINNED_BASE = re.compile(r"python:(?P<python>\d+\.\d+)-slim@sha256:[0-9a-f]{64}")
# Only wheels: building a source distribution would run what no hash covers.
COMPILE = ("pip", "compile", "--quiet", "--no-config", "--no-header", "--no-annotate", "--generate-hashes")
WHEELS = ("--only-binary", ":all:", "--emit-build-options")
ANY_MACHINE = ("--universal", "--python-version", "3.11")  # of a contributor
EXTRAS = ("--extra", "answers", "--extra", "code")  # what a check of answers needs; the others are large
WITHOUT = {"sacrebleu"}  # of the extra "text": it needs numpy and lxml, 95 MB
OF_SERVICE = ("service", "postgres")  # extras; their versions are those that tests run with, of dev.txt
SITE_TOOLS = ("mkdocs-material", "cmarkgfm")  # the versions are those of site.txt
HEADERS = {
    IMAGE: "# What the image installs: the versions of runtime.txt, with hashes. `make requirements` writes it.\n",
    SERVICE: "# What the team service's image installs, with hashes. `make requirements` writes it.\n",
    BUILD: "# What builds the wheel, in the images and for a release, with hashes. `make requirements` writes it.\n",
    SITE: "# What builds the site and prints the schemas, with hashes. `make requirements` writes it.\n",
}


class Pin(NamedTuple):
    """One version of a package and the SHA-256 hashes of its files."""

    version: str
    hashes: tuple[str, ...]


def base(root: Path) -> str:
    """Return the base image, ``python:3.13-slim@sha256:…``; raises ValueError unless it is one, with a digest."""
    lines = re.findall(r"^FROM (.*)$", (root / BASE).read_text("utf-8"), re.MULTILINE)
    if len(lines) != 1 or not PINNED_BASE.fullmatch(lines[0]):
        raise ValueError(f"{BASE}: expected one line FROM python:3.13-slim@sha256:… (64 digits), found {lines}")
    return str(lines[0])


def python(root: Path) -> str:
    """Return the version of Python in the base image, such as ``3.13``."""
    match = PINNED_BASE.fullmatch(base(root))
    return match["python"] if match else ""


def backend(root: Path) -> list[str]:
    """Return the requirements of the build backend."""
    requires: list[str] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    return requires


def of_texts(root: Path) -> str:
    """Return what the images have of the extra that compares texts."""
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    return "\n".join(line for line in extras["text"] if canonicalize_name(Requirement(line).name) not in WITHOUT)


def of_service(root: Path) -> dict[str, str]:
    """Return what the team service needs, by normalized name, in the versions that tests run with."""
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    names = {canonicalize_name(Requirement(line).name) for extra in OF_SERVICE for line in extras[extra]}
    tested = pins((root / DEV).read_text("utf-8"), python(root))
    return {name: tested[name].version for name in sorted(names)}


def pins(text: str, python: str) -> dict[str, Pin]:
    """Return the packages that a file of requirements pins for this version of Python on Linux, by normalized name."""
    found: dict[str, Pin] = {}
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith(("#", "-")):
            continue
        specification, *hashes = re.split(r"\s+--hash=sha256:", line.strip())
        requirement = Requirement(specification)
        if applies(requirement, python):
            version = str(requirement.specifier).removeprefix("==")
            found[canonicalize_name(requirement.name)] = Pin(version, tuple(hashes))
    return found


def applies(requirement: Requirement, python: str) -> bool:
    """Say whether a requirement counts for this version of Python on Linux, without any extra."""
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux", "extra": ""}
    return requirement.marker is None or requirement.marker.evaluate(environment)


def disagreements(root: Path) -> Iterator[str]:
    """Yield how the locked files differ from what they are made from, and what to do about it."""
    files = {name: pins((root / name).read_text("utf-8"), python(root)) for name in (RUNTIME, *HEADERS)}
    wanted = {
        IMAGE: {name: pin.version for name, pin in files[RUNTIME].items()},
        SERVICE: {name: pin.version for name, pin in files[RUNTIME].items()} | of_service(root),
        BUILD: {name: pin.version for name, pin in pins("\n".join(backend(root)), python(root)).items()},
        SITE: {name: pin.version for name, pin in files[RUNTIME].items() if name in files[SITE]},
    }
    for file, versions in wanted.items():
        locked = files[file]
        for name, version in versions.items():
            if name not in locked or locked[name].version != version:
                found = locked[name].version if name in locked else "nothing"
                yield f"{file}: {name}: {found}, expected {version}: run `make requirements`"
        for name, pin in locked.items():
            if not pin.hashes or not all(re.fullmatch(r"[0-9a-f]{64}", one) for one in pin.hashes):
                yield f"{file}: {name}: no hashes, or not of SHA-256: run `make requirements`"
    for name in set(SITE_TOOLS) - files[SITE].keys():
        yield f"{SITE}: {name}: missing: run `make requirements`"
    for name in files[IMAGE].keys() - files[RUNTIME].keys():
        yield f"{RUNTIME}: {name}: missing, the package needs it: add {name}=={files[IMAGE][name].version}"
    for name in DOCKERFILES:
        if re.findall(r"^ARG BASE=(.*)$", (root / name).read_text("utf-8"), re.MULTILINE) != [base(root)]:
            yield f"{name}: ARG BASE is not {base(root)}: run `make requirements`"


def lock(uv: str, root: Path) -> None:
    """Write the hashes of all packages, and the base into the Dockerfiles; locked versions stay where they can."""
    lock_file(uv, root, BUILD, "-", given="\n".join(backend(root)))
    lock_file(uv, root, IMAGE, "pyproject.toml", *EXTRAS, "-", "--constraints", RUNTIME, given=of_texts(root))
    extras = (*EXTRAS, *(part for extra in OF_SERVICE for part in ("--extra", extra)))
    needed = "\n".join([of_texts(root), *(f"{name}=={version}" for name, version in of_service(root).items())])
    lock_file(uv, root, SERVICE, "pyproject.toml", *extras, "-", "--constraints", RUNTIME, given=needed)
    tools = "\n".join(SITE_TOOLS)
    lock_file(uv, root, SITE, "pyproject.toml", "--extra", "record", "-", "--constraints", RUNTIME, given=tools)
    for name in DOCKERFILES:
        dockerfile = (root / name).read_text("utf-8")
        (root / name).write_text(re.sub(r"(?m)^ARG BASE=.*$", f"ARG BASE={base(root)}", dockerfile), "utf-8")


def lock_file(uv: str, root: Path, file: str, *source: str, given: str = "") -> None:
    """Have uv write the packages that the source needs, with the hashes of all their files."""
    machine = ANY_MACHINE if file == SITE else ("--python-platform", "linux", "--python-version", python(root))
    command = [uv, *COMPILE, *WHEELS, *machine, "--output-file", file, *source]
    subprocess.run(command, cwd=root, input=given, text=True, stdout=subprocess.DEVNULL, check=True)
    (root / file).write_text(HEADERS[file] + (root / file).read_text("utf-8"), "utf-8")


def main(argv: Sequence[str], *, root: Path = ROOT, stderr: TextIO = sys.stderr) -> int:
    """Lock everything and return the exit code: 1 where the files then disagree."""
    parser = argparse.ArgumentParser(prog="python -m scripts.requirements", description="Lock wheel, images and site.")
    parser.add_argument("--uv", default="uv", help="the program uv, which finds the hashes")
    lock(parser.parse_args(argv).uv, root)
    problems = list(disagreements(root))
    stderr.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
