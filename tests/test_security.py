"""The page on security: its commands find what a release has, its tests exist, its table is what is installed."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scripts import components, docs, release, requirements
from tests.needs import require

PAGE = (docs.ROOT / "docs/background/security.md").read_text()
IMAGE = "ghcr.io/org/rag-contract@sha256:" + "0123456789abcdef" * 4
# A stand-in for GitHub's command: hands out action.yml, and notes what it is asked.
GH = """#!{python}
import json, pathlib, sys
folder = pathlib.Path(__file__).parent
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == "api":
    print((folder / "action.yml").read_text())
"""


def run(name: str, folder: Path) -> tuple[str, list[list[str]]]:
    """Run a block of the page where gh is a stand-in; return what it prints and what gh was asked."""
    require("bash")
    require("jq")
    (folder / "gh").write_text(GH.format(python=sys.executable))
    (folder / "gh").chmod(0o755)
    command = ["bash", "-e", "-o", "pipefail", "-c", docs.block(PAGE, name)]
    path = f"{folder}:{Path(str(shutil.which('jq'))).parent}:/usr/bin:/bin"
    done = subprocess.run(command, cwd=folder, env={"PATH": path}, capture_output=True, text=True, check=True)
    return done.stdout, [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


def test_its_commands_verify_the_image_that_the_released_action_names(tmp_path: Path) -> None:
    name, _, digest = IMAGE.partition("@")
    (tmp_path / "action.yml").write_text(release.pin((docs.ROOT / "action.yml").read_text(), name, digest))
    _, (_, verify) = run("verify", tmp_path)
    assert verify[:3] == ["attestation", "verify", f"oci://{IMAGE}"]
    workflow = verify[verify.index("--signer-workflow") + 1].removeprefix("org/rag-contract/")
    assert (docs.ROOT / workflow).is_file()
    version = verify[verify.index("--source-ref") + 1].removeprefix("refs/tags/release/")
    assert str(release.Version.parse(version)) == version


def test_its_commands_list_the_packages_of_an_sbom(tmp_path: Path) -> None:
    sbom = {"packages": [{"name": "click", "versionInfo": "8.1", "licenseDeclared": "BSD-3-Clause"}, {"name": "x"}]}
    (tmp_path / "rag-contract-amd64.spdx.json").write_text(json.dumps(sbom))
    printed, _ = run("sbom", tmp_path)
    assert printed == "click\t8.1\tBSD-3-Clause\nx\t\t\n"


def test_every_test_that_it_names_exists() -> None:
    rows = re.findall(r"^\| \*\*.*\| (.*) \|$", PAGE, re.MULTILINE)
    assert rows
    for row in rows:
        for group in row.split(";"):
            path, *names = re.findall(r"`([\w/.-]+)`", group)
            assert (docs.ROOT / path).exists(), path
            for name in names:
                assert f"def {name}(" in (docs.ROOT / path).read_text(), name


def test_the_short_page_and_the_readme_lead_to_it() -> None:
    for name in ("SECURITY.md", "README.md"):
        assert "(docs/background/security.md)" in (docs.ROOT / name).read_text()


def test_every_package_of_the_image_has_a_row_with_its_licence_and_purpose() -> None:
    rows = components.components()
    locked = requirements.pins((docs.ROOT / requirements.IMAGE).read_text(), requirements.python(docs.ROOT))
    assert [name for name, _, _ in rows] == list(locked)
    assert all(licence not in {"", "not stated"} for _, licence, _ in rows)
    assert ["six", "MIT", "needed by junit-xml"] in rows


def test_the_purposes_are_those_of_what_the_package_asks_for() -> None:
    project = tomllib.loads((docs.ROOT / "pyproject.toml").read_text())["project"]
    extras = [one for extra in requirements.EXTRAS[1::2] for one in project["optional-dependencies"][extra]]
    wanted = [*project["dependencies"], *extras, *requirements.of_texts(docs.ROOT).splitlines()]
    assert set(components.PURPOSES) == components.requires(wanted, requirements.python(docs.ROOT))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("six==1.17.0", "six==1.0", "six: this environment has 1.17.0, the image 1.0"),
        (r"\Z", "packaging==26.3\n", "packaging: nothing in the image needs it"),
        (r"(?m)^markupsafe==.*\n(    --hash.*\n)+", "", "requirements/image.txt: jinja2 needs markupsafe: run"),
    ],
)
def test_a_table_of_something_else_than_the_image_is_refused(tmp_path: Path, old: str, new: str, problem: str) -> None:
    shutil.copytree(docs.ROOT / "requirements", tmp_path / "requirements")
    file = tmp_path / requirements.IMAGE
    file.write_text(re.sub(old, new, file.read_text(), count=1))
    with pytest.raises(ValueError, match=problem):
        components.components(tmp_path)
