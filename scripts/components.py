"""The table of what the action's image installs, from the locked files and installed metadata.

It stands in docs/background/security.md.
"""

from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import requirements

# What the package itself imports, and for what. Everything else is there because one of these needs it.
PURPOSES = {
    "click": "the command line",
    "google-re2": "patterns in rules about answers",
    "jinja2": "the HTML report",
    "jsonschema": "validating configurations and reports",
    "junit-xml": "the JUnit report",
    "msgspec": "reading and writing JSON",
    "pyyaml": "reading the configuration",
    "rapidfuzz": "distances between texts",
    "requests": "GitHub's API",
    "sqlglot": "the rule that SQL parses",
}


def components(root: Path = requirements.ROOT) -> list[list[str]]:
    """Return a row for each package: name, licence, what for. Versions are left to the locked file.

    Raises ValueError where this environment has another version than the image, whose licence may differ, and where
    the image lacks a package that another one needs.
    """
    python = requirements.python(root)
    locked = requirements.pins((root / requirements.IMAGE).read_text("utf-8"), python)
    installed = {name: distribution(name) for name in locked}
    for name, pin in locked.items():
        if installed[name].version != pin.version:
            raise ValueError(f"{name}: this environment has {installed[name].version}, the image {pin.version}")
    users: dict[str, list[str]] = {name: [] for name in locked}
    for user, found in installed.items():
        for name in requires(found.requires or [], python):
            if name not in locked:
                raise ValueError(f"{requirements.IMAGE}: {user} needs {name}: run `make requirements`")
            users[name].append(user)
    return [[name, licence(found), _purpose(name, users[name])] for name, found in installed.items()]


def licence(found: Distribution) -> str:
    """Return the licence as the package states it: an expression, a short name, or its classifier."""
    metadata = found.metadata
    stated = metadata["License-Expression"] or metadata["License"] or ""
    classifiers = [one for one in metadata.get_all("Classifier") or [] if one.startswith("License :: ")]
    return stated or " or ".join(one.rpartition(" :: ")[2] for one in classifiers) or "not stated"


def _purpose(name: str, users: list[str]) -> str:
    if not users and name not in PURPOSES:
        raise ValueError(f"{name}: nothing in the image needs it; say in PURPOSES what it is for")
    return PURPOSES.get(name) or f"needed by {', '.join(users)}"


def requires(lines: Iterable[str], python: str) -> set[str]:
    """Return the packages that these requirements name for this version of Python on Linux, without those of extras."""
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(one.name) for one in found if requirements.applies(one, python)}
