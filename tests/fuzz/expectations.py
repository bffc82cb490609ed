"""What every execution must satisfy, whatever it was given. Each function raises :class:`Broken` for what does not."""

import re
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec

from ragcontract.report.formats import FORMATS
from ragcontract.report.record import ErrorReport, Report
from ragcontract.report.report_v2 import ReportV2File
from tests.fuzz.sandbox import Ended, Sandbox
from tests.records import rendered
from tests.report.everything import everything
from tests.report.page import Page

ALLOWED = {0, 1, 2, 4}
LARGE_PAGE = 20_000  # characters; a page that is larger is not parsed, which takes long
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
COMMAND = re.compile(r"^\s*::|##\[", re.MULTILINE)


class Broken(Exception):  # noqa: N818 (a broken expectation)
    """An expectation that does not hold; the message is the same for all cases with the same cause."""


def expect(holds: object, message: str) -> None:
    """Raise :class:`Broken` unless something holds."""
    if not holds:
        raise Broken(message)


def ended_well(ended: Ended, allowed: set[int] = ALLOWED) -> None:
    """Expect an allowed exit code, and an explanation of an input that cannot be judged."""
    if ended.code == 3:
        raise Broken(f"exit code 3: {crash_in(ended.err)}")
    expect(ended.code in allowed, f"exit code {ended.code}")
    expect("Traceback" not in ended.err.splitlines(), "a traceback was printed")


def crash_in(text: str) -> str:
    """Return the exception in a traceback and where it was raised, without what depends on the input."""
    frames = re.findall(r'File ".*?/(ragcontract/[\w/]+\.py)", line (\d+), in (\w+)', text)
    inner = f" in {frames[-1][0]}:{frames[-1][1]} ({frames[-1][2]})" if frames else ""
    errors = re.findall(r"^([\w.]+(?:Error|Exception|Interrupt|Exit|Warning))\b", text, re.MULTILINE)
    return f"{errors[-1] if errors else 'unknown'}{inner}"


def is_plain(printed: str) -> None:
    """Expect that a terminal and a runner's log show the text as text."""
    if found := CONTROL.search(printed):
        raise Broken(f"printed control character U+{ord(found[0]):04X}")
    expect(not COMMAND.search(printed), "printed a command of the runner")


def stays_inside(sandbox: Sandbox) -> None:
    """Expect that nothing outside of the workspace was changed."""
    if escaped := sandbox.escaped():
        raise Broken(f"outside of the workspace: {escaped}")


def report_json(path: Path) -> Report | ErrorReport:
    """Expect a report.json that fits its record, whose schema is printed."""
    data = path.read_bytes()
    try:
        if msgspec.json.decode(data)["verdict"] == "error":
            return msgspec.json.decode(data, type=ErrorReport)
        return msgspec.json.decode(data, type=Report)
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
        raise Broken(f"report.json is invalid: {re.sub('[0-9]+', '0', str(error))}") from error


def junit_xml(path: Path) -> None:
    """Expect XML that a strict parser reads."""
    try:
        ET.parse(path)
    except ET.ParseError as error:
        raise Broken(f"junit.xml is invalid: {re.sub('[0-9]+', '0', str(error))}") from error


def report_md(path: Path) -> None:
    """Expect Markdown of which GitHub makes only what the report is made of, with no link, mention or picture."""
    page = parsed(path.read_bytes().decode())
    if page is not None:
        links = [link for link in page.links() if not link.isdecimal()]  # a large number of ours is no commit
        expect(links == [], "report.md has a link")


def parsed(markdown: str) -> Page | None:
    """Parse Markdown as GitHub does, and expect no tags but those of reports; None if it is too long."""
    if len(markdown) > LARGE_PAGE:
        return None
    try:
        page = Page(markdown)
    except (AssertionError, IndexError) as error:
        raise Broken("Markdown has tags that are not closed") from error
    if strange := {tag.split()[0] for tag in page.tags} - own_tags():
        raise Broken(f"Markdown has the tags {sorted(strange)}")
    return page


def report_html(path: Path) -> None:
    """Expect a page with as many scripts as every page has."""
    data = path.read_bytes()
    expect(data.lower().count(b"<script") == _scripts(), "report.html has another number of scripts")
    data.decode()


def report_v2(path: Path) -> None:
    """Expect a report that fits its records."""
    try:
        msgspec.json.decode(path.read_bytes(), type=ReportV2File)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Broken(f"report-v2.json is invalid: {re.sub('[0-9]+', '0', str(error))}") from error


@lru_cache
def own_tags() -> frozenset[str]:
    """Return the tags of a report that has everything in it, and of the comment around it."""
    page = Page(rendered(everything())["report-md"].decode())
    return frozenset(
        {tag.split()[0] for tag in page.tags} | {"a", "/a", "sub", "/sub", "li", "/li", "ul", "/ul", "p", "/p"}
    )


@lru_cache
def _scripts() -> int:
    return rendered(everything())["report-html"].lower().count(b"<script")


CHECKS = {
    "report-md": report_md,
    "report-json": report_json,
    "junit": junit_xml,
    "report-html": report_html,
    "report-v2": report_v2,
}
assert set(CHECKS) == {form.name for form in FORMATS}, "a format of reports has no expectation here"
