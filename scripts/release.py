"""Checks that a version can be released, and pins the image in the release's ``action.yml`` by its digest.

``.github/workflows/release.yml`` runs it. This shows what it would do and changes nothing::

    python -m scripts.release --dry-run --version 1.0.0 --image ghcr.io/org/rag-contract --digest sha256:…
"""

import argparse
import difflib
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

ROOT = Path(__file__).parent.parent
DOCKERFILE = "Dockerfile"
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)((?:a|b|rc)(?:0|[1-9]\d*))?")
IMAGE = re.compile(r"[a-z0-9.-]+(:\d+)?(/[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*)+")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Refused(Exception):  # noqa: N818 (named for what happened)
    """The release is refused; the message says why."""


class Version(NamedTuple):
    """A version that can be released: ``1.2.3``, or a pre-release such as ``1.2.3rc1`` (also a, b)."""

    major: int
    minor: int
    patch: int
    pre: str

    @classmethod
    def parse(cls, text: str) -> "Version":
        """Parse a version as Python packages write it, so that tags and package have the same version."""
        match = VERSION.fullmatch(text)
        if not match:
            raise Refused(f"version {text!r}: expected 1.2.3, or 1.2.3rc1 (also a1, b1) for a pre-release, without a v")
        return cls(int(match[1]), int(match[2]), int(match[3]), match[4] or "")

    def __str__(self) -> str:
        """Return the version as it was parsed."""
        return f"{self.major}.{self.minor}.{self.patch}{self.pre}"


def disagreements(version: Version, root: Path) -> list[str]:
    """Return how the package and the change log differ from the version."""
    found = []
    package = re.search(
        r'^__version__ = "(.*)"$', (root / "ragcontract/core/version.py").read_text("utf-8"), re.MULTILINE
    )
    if not package or package[1] != str(version):
        found.append(f'ragcontract/core/version.py: __version__ is "{package and package[1]}", expected "{version}"')
    heading = re.search(r"^## .*$", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    if not heading or not re.fullmatch(rf"## {re.escape(str(version))} \(\d{{4}}-\d\d-\d\d\)", heading[0]):
        expected = f"## {version} (YYYY-MM-DD)"
        found.append(f'CHANGELOG.md: the first heading is "{heading and heading[0]}", expected "{expected}"')
    return found


def major_tag(version: Version, refs: Iterable[str]) -> str:
    """Return the tag to move, such as ``v1``; empty for a pre-release and for a fix of an older line.

    ``refs`` are the existing tags. Version tags never move: raises Refused if the version's tag exists already.
    """
    names = [ref.strip().removeprefix("refs/tags/") for ref in refs]
    if f"v{version}" in names:
        raise Refused(f"tag v{version}: it exists already, and version tags never move; release a new version")
    released = [Version.parse(name[1:]) for name in names if VERSION.fullmatch(name[1:]) and name.startswith("v")]
    newer = [other for other in released if other.major == version.major and not other.pre and other > version]
    return "" if version.pre or newer else f"v{version.major}"


def is_newest(version: Version, refs: Iterable[str]) -> bool:
    """Say whether the site may be that of this version: no final one is newer, or exists before a pre-release."""
    names = [ref.strip().removeprefix("refs/tags/v") for ref in refs]
    final = [other for name in names if VERSION.fullmatch(name) and not (other := Version.parse(name)).pre]
    return not final if version.pre else all(other[:3] <= version[:3] for other in final)


def pin(action: str, image: str, digest: str) -> str:
    """Return the text of action.yml with the image instead of the Dockerfile, and nothing else changed."""
    if not IMAGE.fullmatch(image):
        raise Refused(f"image {image!r}: expected a lower-case name with its registry and no tag, ghcr.io/owner/name")
    if not DIGEST.fullmatch(digest):
        raise Refused(f"digest {digest!r}: expected sha256: and 64 digits from 0-9a-f")
    lines = action.splitlines(keepends=True)
    places = [index for index, line in enumerate(lines) if re.match(rf"  image: {DOCKERFILE}\s*(#.*)?$", line)]
    if len(places) != 1:
        raise Refused(f"action.yml: expected one line `  image: {DOCKERFILE}`, found {len(places)}")
    lines[places[0]] = lines[places[0]].replace(f"image: {DOCKERFILE}", f"image: docker://{image}@{digest}", 1)
    return "".join(lines)


def notes(changelog: str) -> str:
    """Return the text of the first version in the change log."""
    return re.split(r"^## .*\n", changelog, flags=re.MULTILINE)[1].strip() + "\n"


def run(options: argparse.Namespace, root: Path, stdout: TextIO, stderr: TextIO) -> None:
    """Check everything, then write the requested files; if anything is refused, nothing is written."""
    version = Version.parse(options.version)
    problems = disagreements(version, root)
    if problems and not options.dry_run:
        raise Refused("\n".join(problems))
    refs = options.tags.read_text("utf-8").splitlines() if options.tags else []
    outputs = {"version": version, "tag": f"v{version}", "major": major_tag(version, refs), "pre": version.pre}
    outputs["newest"] = "yes" if is_newest(version, refs) else ""
    action = root / "action.yml"
    before = action.read_bytes().decode()
    after = pin(before, options.image, options.digest) if options.image else before
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), "a/action.yml", "b/action.yml", lineterm="")
    stdout.writelines(f"{line}\n" for line in diff)
    stderr.writelines(f"a release would be refused: {problem}\n" for problem in problems)
    if options.outputs:
        with options.outputs.open("a", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in outputs.items())
    if options.notes:
        options.notes.write_text(notes((root / "CHANGELOG.md").read_text("utf-8")), "utf-8")
    if not options.dry_run and after != before:
        action.write_bytes(after.encode())


def main(argv: Sequence[str], *, root: Path = ROOT, stdout: TextIO = sys.stdout, stderr: TextIO = sys.stderr) -> int:
    """Run the script and return its exit code: 0, or 1 if the release is refused."""
    parser = argparse.ArgumentParser(prog="python -m scripts.release", description="Check a version, pin action.yml.")
    parser.add_argument("--version", required=True, help="as in ragcontract/core/version.py, without a v")
    parser.add_argument("--image", help="write this image into action.yml, as ghcr.io/owner/name")
    parser.add_argument("--digest", help="the image's digest, sha256:…")
    parser.add_argument("--tags", type=Path, help="a file with the existing tags, one per line")
    parser.add_argument("--outputs", type=Path, help="append version and tags to this file, as name=value")
    parser.add_argument("--notes", type=Path, help="write the change log of this version to this file")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done; leave action.yml unchanged")
    options = parser.parse_args(argv)
    if bool(options.image) != bool(options.digest):
        parser.error("--image and --digest go together")
    try:
        run(options, root, stdout, stderr)
    except Refused as refused:
        stderr.write("".join(f"refused: {line}\n" for line in str(refused).splitlines()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
