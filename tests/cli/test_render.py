"""``render`` writes what the check wrote, from its report.json alone."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.builders import good_workspace
from tests.golden_cases import CASES, copied
from tests.process import rag_contract, spawn


def read(name: str) -> bytes:
    return Path(name).read_bytes()


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_every_format_has_the_bytes_that_the_check_wrote(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(case, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    args = Path("args")
    own = shlex.split(args.read_text() if args.exists() else "")
    checked = rag_contract("check", "--report-html", "page.html", "--no-answers", *own)
    if not Path("report.json").exists():
        return
    for form, file in {"markdown": "report.md", "html": "page.html", "junit": "junit.xml"}.items():
        assert rag_contract("render", "report.json", "--format", form, "--out", "again").code == 0
        assert read("again").decode() == read(file).decode()
    shown = rag_contract("render", "report.json", "--format", "text")
    assert shown.out == checked.out.replace("see report.md", "see report.json")


def test_it_is_printed_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert rag_contract("check").code == 0
    assert spawn("render", "report.json", cwd=tmp_path).out == Path("report.md").read_text()
    assert spawn("render", "report.json", "--format", "text", "--out", "text", cwd=tmp_path).out == ""
    assert Path("text").read_text().endswith("1 limit hold\n")


def test_a_report_on_input_that_cannot_be_judged_is_rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert rag_contract("check").code == 0
    Path("golden.jsonl").write_text("{}\n")
    assert rag_contract("check").code == 2
    markdown = spawn("render", "report.json", cwd=tmp_path)
    assert (markdown.code, markdown.out) == (0, Path("report.md").read_text())
    text = spawn("render", "report.json", "--format", "text", cwd=tmp_path)
    assert text.out.startswith("error: golden.jsonl:1: id: is missing")
    assert text.out.endswith("\nThe input cannot be judged\n")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"schema_version": 2}, "report.json: schema_version: expected 1, found 2"),
        ({"verdict": "fail"}, 'report.json: verdict: is "fail", but nothing in it failed'),
        ({"k": []}, "report.json: k: "),
        ({"metrics": {}}, "report.json: its parts are inconsistent"),
        ({"k": [7]}, "report.json: its parts are inconsistent"),
    ],
)
def test_a_report_of_another_version_or_an_edited_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], why: str
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert rag_contract("check").code == 0
    Path("report.json").write_text(json.dumps(json.loads(read("report.json")) | change))
    ended = rag_contract("render", "report.json", "--format", "html", "--out", "page.html")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {why}")


def test_the_report_itself_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert rag_contract("check").code == 0
    before = read("report.json")
    assert rag_contract("render", "report.json", "--out", "report.json").code == 2
    assert read("report.json") == before


@pytest.mark.parametrize(("named", "page"), [((), "report.html"), (("--report-html", "a page.html"), "a page.html")])
def test_check_opens_its_page_in_the_browser(tmp_path: Path, named: tuple[str, ...], page: str) -> None:
    good_workspace(tmp_path)
    browser = tmp_path / "browser.py"
    browser.write_text("import sys, pathlib\npathlib.Path('opened').write_text(sys.argv[1])\n")
    environ = {"BROWSER": f"{sys.executable} {browser} %s"}
    ended = spawn("check", "--open", *named, cwd=tmp_path, environ=environ)
    assert (ended.code, ended.err) == (0, "")
    assert (tmp_path / "opened").read_text() == (tmp_path / page).as_uri()


def test_check_says_where_the_page_is_if_there_is_no_browser(tmp_path: Path) -> None:
    good_workspace(tmp_path)
    ended = spawn("check", "--open", cwd=tmp_path, environ={"BROWSER": "/no/such/browser"})
    assert ended.code == 0
    assert ended.err == "warning: --open: no browser can be opened here; the page is report.html\n"
    assert (tmp_path / "report.html").is_file()
