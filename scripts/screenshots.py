"""Takes screenshots of what people see: ``python -m scripts.screenshots [FOLDER]``.

The comment is rendered by GitHub's parser (cmarkgfm) and stylesheet (npm's github-markdown-css) in headless Chromium.
The screenshots show the comment and the HTML report of a passing, a failing, a huge and a hostile contract, and each
page of the team service with its demo, on a wide and a narrow screen.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import cmarkgfm  # type: ignore[import-untyped]
from cmarkgfm.cmark import Options  # type: ignore[import-untyped]
from sqlalchemy import select

from ragcontract import pipeline, record_run
from ragcontract.core import bounds
from ragcontract.evaluation.source import Local
from ragcontract.github.runner_output import fitting
from ragcontract.report import markdown
from ragcontract.report.html import page as html
from ragcontract.report.record import Report
from ragcontract.runs.readers import open_baseline, open_run
from ragcontract.service.database import Database, database_url
from ragcontract.service.demo.demo_database import fill, mount
from ragcontract.service.migrate import migrate
from ragcontract.service.projects_and_runs import NEWEST
from ragcontract.service.tables import runs
from tests.browser import Browser
from tests.builders import golden, run, write_jsonl
from tests.service.askers import new_session, new_user
from tests.service.running import running

ROOT = Path(__file__).parent.parent
STYLESHEET = "github-markdown-css@5.9.0"
WIDTHS = {"wide": 900, "narrow": 400}
PAGE_WIDTHS = {"wide": 1200, "narrow": 400}
HOSTILE = "`|</td></table></details><img src=x>![x](x) [a](http://b.example) @octocat #1 \x1b[31m\u202e **x** ```"
PAGES = {
    "overview": "",
    "project": "p/docs-answers",
    "runs": "p/support-agent/runs",
    "queries": "p/shop-chatbot/queries",
    "query": "p/shop-chatbot/query?id=gift_wrapping",
    "run": "runs/{failed}",
    "compare": "runs/{failed}/compare/last-pass",
    "playground": "p/docs-answers/playground?golden_id=invite_teammate",
    "settings": "settings",
    "alerts": "settings/alerts",
    "login": "login",
}
NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def reports(folder: Path) -> Iterator[tuple[str, Report]]:
    """Yield the name and the report of each contract."""
    example = ROOT / "examples"
    for name, setting in (("passing", "full"), ("failing", "lean")):
        out = folder / f"{setting}.jsonl"
        record_run(f"{example / 'search.py'}:{setting}", golden=example / "golden.jsonl", out=out)
        request = pipeline.Inputs(
            golden=[str(example / "golden.jsonl")],
            run=Local(open_run([str(out)])),
            baseline=Local(open_baseline([str(example / "baseline.json")])),
            config=str(example / "ragcontract.yml"),
        )
        yield name, pipeline.check(request, now=NOW).report
    ids = [f"question-{number}" for number in range(3000)]
    yield "huge", _broken(folder, ids)
    yield "hostile", _broken(folder, [f"{number} {HOSTILE}" for number in range(4)])


def _broken(folder: Path, ids: list[str]) -> Report:
    asked = write_jsonl(folder / "golden.jsonl", [golden(name, f"{name} doc", query=name) for name in ids])
    returned = write_jsonl(folder / "run.jsonl", [run(name, "another") for name in ids])
    request = pipeline.Inputs(golden=[str(asked)], run=Local(open_run([str(returned)])))
    return pipeline.check(request, now=NOW).report


def _comment(report: Report) -> str:
    return fitting(lambda layout: markdown.render(report, layout=layout), bounds.COMMENT)


def page(comment: str, width: int, stylesheet: str) -> str:
    """Return an HTML page that shows a comment (Markdown) with this width in pixels."""
    body = cmarkgfm.github_flavored_markdown_to_html(comment, Options.CMARK_OPT_UNSAFE)
    style = f"{stylesheet} body {{ box-sizing: border-box; max-width: {width}px; margin: 0; padding: 24px }}"
    return f"<!doctype html><meta charset=utf-8><style>{style}</style><body class=markdown-body>{body}"


def stylesheet() -> str:
    """Return GitHub's light stylesheet; it is downloaded once into ``build/``."""
    folder = ROOT / "build" / "stylesheet"
    file = folder / "package" / "github-markdown-light.css"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", STYLESHEET], cwd=folder, check=True, capture_output=True)
        archive = next(folder.glob("*.tgz"))
        subprocess.run(["tar", "xzf", archive.name], cwd=folder, check=True)
        archive.unlink()
    return file.read_text()


def shoot(browser: Browser, content: str, picture: Path, width: int, scheme: str = "light") -> None:
    """Take a screenshot of a page in a window of this width, in the light or the dark colour scheme."""
    file = picture.with_suffix(".html")
    file.write_text(content, encoding="utf-8")
    browser.resize(width, 1100)
    browser.media(scheme=scheme)
    browser.open(file)
    picture.write_bytes(browser.picture())
    file.unlink()
    print(picture)


def shoot_service(browser: Browser, folder: Path, target: Path) -> None:
    """Take screenshots of the pages of the team service."""
    with closing(Database(database_url(str(folder / "service.db")))) as database:
        migrate(database)
        fill(database, datetime.now(UTC))  # pages show the last 90 days
        key = database.write(lambda connection: new_user(connection, "ana"))
        cookie = database.write(lambda connection: new_session(connection, key))
        with database.read() as connection:
            newest = select(runs.c.id).where(runs.c.verdict == "fail", runs.c.branch == "main").order_by(*NEWEST)
            failed = connection.execute(newest).scalars().first()
        with running(database, mount(folder / "projects", datetime.now(UTC))) as service:
            for (name, path), scheme, (screen, width) in product(PAGES.items(), ("light", "dark"), PAGE_WIDTHS.items()):
                browser.resize(width, 900)
                browser.media(scheme=scheme)
                browser.send("Network.setCookie", name="session", value=cookie, url=service.url)
                browser.send("Page.navigate", url="about:blank")
                browser.send("Page.navigate", url=f"{service.url}/{path.format(failed=failed)}")
                browser.wait("location.protocol === 'http:' && document.readyState === 'complete'")
                if name == "playground":
                    browser.js("document.querySelector('select[name=golden_id]').form.submit()")
                    browser.wait("document.querySelector('#judged') && document.readyState === 'complete'")
                picture = target.resolve() / f"service-{name}-{scheme}-{screen}.png"
                picture.write_bytes(browser.picture())
                print(picture)


def main(target: Path) -> None:
    """Write all screenshots into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    style = stylesheet()
    with tempfile.TemporaryDirectory() as folder, closing(Browser()) as browser:
        for name, report in reports(Path(folder)):
            for screen, width in WIDTHS.items():
                shoot(browser, page(_comment(report), width, style), target.resolve() / f"{name}-{screen}.png", width)
            for scheme, (screen, width) in product(("light", "dark"), PAGE_WIDTHS.items()):
                picture = target.resolve() / f"{name}-report-{scheme}-{screen}.png"
                shoot(browser, html.render(report).decode(), picture, width, scheme)
        shoot_service(browser, Path(folder), target)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "screenshots")
