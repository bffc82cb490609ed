"""Takes pictures of the comment as GitHub shows it: ``python -m scripts.screenshots [FOLDER]``.

GitHub's own parser (cmarkgfm) and published stylesheet (npm's github-markdown-css), in headless Chromium, for a
contract that holds, one that is broken, a huge one and a hostile one, on a wide and a narrow screen.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import cmarkgfm  # type: ignore[import-untyped]
from cmarkgfm.cmark import Options  # type: ignore[import-untyped]

from ragcontract import pipeline
from ragcontract.github.body import fitting
from ragcontract.github.comment import MAX_BODY
from ragcontract.model import Report
from ragcontract.reports import markdown
from tests.builders import golden, run, write_jsonl

ROOT = Path(__file__).parent.parent
STYLESHEET = "github-markdown-css@5.9.0"
WIDTHS = {"wide": 900, "narrow": 400}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
HOSTILE = "`|</td></table></details><img src=x>![x](x) [a](http://b.example) @octocat #1 \x1b[31m\u202e **x** ```"
NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def comments(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield a name and the comment's Markdown for each kind of contract."""
    example = ROOT / "examples"
    for name, setting in (("passing", "full"), ("failing", "lean")):
        out = folder / f"{setting}.jsonl"
        command = [sys.executable, str(example / "export_retrieval_run.py"), "--setting", setting, "--out", str(out)]
        subprocess.run(command, check=True, capture_output=True)
        paths = pipeline.Paths(
            golden=[str(example / "golden.jsonl")],
            run=[str(out)],
            baseline=[str(example / "baseline.json")],
            config=str(example / "ragcontract.yml"),
        )
        yield name, _comment(pipeline.check(paths, clock=lambda: NOW))
    ids = [f"question-{number}" for number in range(3000)]
    yield "huge", _comment(_broken(folder, ids))
    yield "hostile", _comment(_broken(folder, [f"{number} {HOSTILE}" for number in range(4)]))


def _broken(folder: Path, ids: list[str]) -> Report:
    asked = write_jsonl(folder / "golden.jsonl", [golden(name, f"{name} doc", query=name) for name in ids])
    returned = write_jsonl(folder / "run.jsonl", [run(name, "another") for name in ids])
    return pipeline.check(pipeline.Paths(golden=[str(asked)], run=[str(returned)]), clock=lambda: NOW)


def _comment(report: Report) -> str:
    return fitting(lambda detail: markdown.render(report, detail=detail), MAX_BODY)


def page(comment: str, width: int, stylesheet: str) -> str:
    """Return the HTML page that shows a comment as wide as that."""
    body = cmarkgfm.github_flavored_markdown_to_html(comment, Options.CMARK_OPT_UNSAFE)
    style = f"{stylesheet} body {{ box-sizing: border-box; max-width: {width}px; margin: 0; padding: 24px }}"
    return f"<!doctype html><meta charset=utf-8><style>{style}</style><body class=markdown-body>{body}"


def stylesheet() -> str:
    """Return GitHub's light stylesheet, fetched once into ``build/``."""
    folder = ROOT / "build" / "stylesheet"
    file = folder / "package" / "github-markdown-light.css"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", STYLESHEET], cwd=folder, check=True, capture_output=True)
        archive = next(folder.glob("*.tgz"))
        subprocess.run(["tar", "xzf", archive.name], cwd=folder, check=True)
        archive.unlink()
    return file.read_text()


def shoot(html: str, picture: Path, width: int, height: int) -> None:
    """Take the picture with the first browser that is there."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        sys.exit(f"screenshots need one of {', '.join(BROWSERS)} on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(html)
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync"]
        flags += ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={folder}/profile"]
        size = [f"--window-size={width},{height}", f"--screenshot={picture.resolve()}"]
        subprocess.run([browser, *flags, *size, file.as_uri()], check=True, capture_output=True)


def main(target: Path) -> None:
    """Write all pictures into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    style = stylesheet()
    with tempfile.TemporaryDirectory() as folder:
        for name, comment in comments(Path(folder)):
            for screen, width in WIDTHS.items():
                picture = target / f"{name}-{screen}.png"
                shoot(page(comment, width, style), picture, width, 1100)
                print(picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "screenshots")
