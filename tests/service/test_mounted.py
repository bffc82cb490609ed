"""The projects that an operator mounts: what project.yml may say, and what is refused, all at once."""

import os
import re
from pathlib import Path

import pytest
from sqlalchemy import select

from ragcontract.core.errors import InputError
from ragcontract.service.database import Database
from ragcontract.service.mounted import mounted_projects
from ragcontract.service.tables import projects
from tests.service.served import Served

EXAMPLE = """\
name: Docs search
python: /venvs/docs/bin/python     # has rag-contract and the application; default: this one
secrets: [SEARCH_TOKEN]            # variables of the service's environment that record.yml may use
schedule: "03:00"                  # nightly run, UTC
timeout: 3600
sampling: {ok: 0.2, error: 1.0, flagged: 1.0}
flag: {latency_ms: auto, confidence_lt: 0.5}   # auto: over twice yesterday's p95
redact: [email, phone, card, iban, key, "order-[0-9]{8}"]
keep_days: 60
keep_runs: 2000                    # 0 for all; default: `serve --keep-runs`, 1000
"""


def mount(folder: Path, **files: str) -> Path:
    """Write the project.yml of projects and return the folder."""
    for slug, text in files.items():
        (folder / slug).mkdir(parents=True)
        (folder / slug / "project.yml").write_text(text, encoding="utf-8")
    return folder


def problems(folder: Path) -> list[str]:
    """Return what is wrong with mounted projects, with paths within their folder."""
    with pytest.raises(InputError) as refused:
        mounted_projects(folder)
    return [problem.replace(f"{folder}/", "") for problem in refused.value.problems]


def test_the_documented_file_is_mounted_projects(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (project,) = mounted_projects(mount(tmp_path, docs=EXAMPLE))
    file = project.file
    assert (project.slug, project.name, project.folder) == ("docs", "Docs search", tmp_path / "docs")
    assert (file.python, file.secrets, file.schedule) == ("/venvs/docs/bin/python", ["SEARCH_TOKEN"], "03:00")
    assert (file.timeout, file.keep_days, file.keep_runs, file.redact[-1]) == (3_600, 60, 2_000, "order-[0-9]{8}")
    assert (file.sampling.ok, file.flag.latency_ms, file.flag.confidence_lt) == (0.2, "auto", 0.5)


def test_every_key_is_optional(tmp_path: Path) -> None:
    first, second = mounted_projects(mount(tmp_path, a="# nothing yet\n", b="redact: []\nschedule: 03:00\nname: 007\n"))
    assert (first.name, first.file.redact, first.file.keep_days) == (
        "a",
        ("email", "phone", "card", "iban", "key"),
        60,
    )
    assert (second.name, second.file.redact, second.file.schedule) == ("007", (), "03:00")


FAULTS = {
    "nam: x": "nam: unknown key; did you mean 'name'?",
    'name: ""': 'name: expected text that is not empty, found ""',
    "python: bin/python": 'python: expected an absolute path, found "bin/python" (text)',
    "secrets: [1X]": 'secrets[0]: expected the name of an environment variable, found "1X" (text)',
    "schedule: 3am": 'schedule: expected a time of day as "03:00", UTC, found "3am" (text)',
    "schedule: 24:00": 'schedule: expected a time of day as "03:00", UTC, found "24:00" (text)',
    "timeout: 0": "timeout: expected a whole number from 1 to 86,400, found 0",
    "sampling: {ok: 20}": "sampling.ok: expected a number from 0 to 1, found 20; write 0.2",
    "sampling: {odd: 1}": "sampling.odd: unknown key; known here: ok, error, flagged",
    "flag: {latency_ms: fast}": 'flag.latency_ms: expected "auto" or a number of at least 0, found "fast" (text)',
    'redact: ["(?=x)"]': "redact[0]: is none of email, phone, card, iban, key, and is not an RE2 pattern",
    "keep_days: 3651": "keep_days: expected a whole number from 1 to 3,650, found 3651",
    "name: &a x": None,
    "name: *a": "is not YAML: found undefined alias 'a'",
    "name: !!python/name:os.system": "name: has a tag",
    "- x": "is not a mapping of keys to values",
    "name: [": "is not YAML",
    " ": "is empty; write at least `name:`",
}


@pytest.mark.parametrize(("text", "problem"), FAULTS.items(), ids=FAULTS.keys())
def test_a_fault_is_named_with_its_line_and_field(tmp_path: Path, text: str, problem: str | None) -> None:
    folder = mount(tmp_path, docs=f"# first line\n{text}\n" if text.strip() else text)
    if problem is None:
        assert mounted_projects(folder)
        return
    (fault,) = problems(folder)
    assert re.match("docs/project.yml(:[23])?: ", fault)
    assert problem in fault


def test_all_faults_of_all_projects_are_named_at_once(tmp_path: Path) -> None:
    folder = mount(tmp_path, a="timeout: 0\nkeep_days: 0\n", b="nam: x\n", c=EXAMPLE)
    assert [fault.partition(": ")[0] for fault in problems(folder)] == [
        "a/project.yml:1",
        "a/project.yml:2",
        "b/project.yml:1",
    ]


def test_links_and_strange_files_are_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    folder = tmp_path / "projects"
    mount(outside, docs=EXAMPLE)
    mount(folder, fine=EXAMPLE)
    (folder / "linked").symlink_to(outside / "docs")
    for slug in ("file-linked", "missing", "piped", "folder"):
        (folder / slug).mkdir()
    (folder / "file-linked/project.yml").symlink_to(outside / "docs/project.yml")
    os.mkfifo(folder / "piped/project.yml")
    (folder / "folder/project.yml").mkdir()
    (folder / "project.yml").write_text(EXAMPLE)
    (folder / "Upper Case").mkdir()
    letters = "lower-case letters, digits, dots, hyphens and underscores, 60 at most"
    not_regular = "is a link, or no regular file, which is not read; put the file itself there"
    assert problems(folder) == [
        f"Upper Case: is not the name of a contract's folder ({letters}); rename it",
        f"file-linked/project.yml: {not_regular}",
        f"folder/project.yml: {not_regular}",
        "linked: is a link, which is not followed; mount the folder itself",
        "missing/project.yml: no such file; write at least `name:` and how the project is called",
        f"piped/project.yml: {not_regular}",
        "project.yml: is not a folder; each project has a folder of its own, with project.yml in it",
    ]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert problems(tmp_path / "none") == [f"{tmp_path / 'none'}: cannot be read (No such file or directory)"]


def test_a_mounted_project_is_served_under_the_name_in_its_file(database: Database, tmp_path: Path) -> None:
    row = {"slug": "docs", "name": "docs", "branch": "main", "secret": "s", "created_at": 1}
    database.write(lambda connection: connection.execute(projects.insert().values(row)))
    folder = mount(tmp_path / "projects", docs=EXAMPLE, other="name: Other\n")
    for _ in range(2):  # it may be started again
        served = Served(database, projects=folder)
    listed = served.get("/projects")["items"]
    assert [(each["slug"], each["name"], each["branch"]) for each in listed] == [
        ("docs", "Docs search", "main"),
        ("other", "Other", None),
    ]
    with database.read() as connection:
        secrets = [*connection.execute(select(projects.c.secret).order_by(projects.c.id)).scalars()]
    assert (secrets[0], len(secrets[1])) == ("s", 64)


def test_the_service_does_not_start_with_a_fault_in_a_mounted_project(database: Database, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"docs/project\.yml:1: timeout: "):
        Served(database, projects=mount(tmp_path / "projects", docs="timeout: 0\n"))
