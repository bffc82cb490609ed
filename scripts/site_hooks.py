"""What MkDocs calls to build the site from the pages that GitHub shows: navigation, links out of docs/, Markdown.

``mkdocs.yml`` names this module. The pages are written for GitHub, whose Markdown is another dialect than the site's:
:func:`on_page_content` warns where a page reads differently, and a warning fails ``make site``.
"""

import logging
import os
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FOLDERS = ("start", "guides", "reference", "background", "contributing")  # others come after these
FIRST = ("start/install.md", "start/first-check.md", "start/your-contract.md")  # others follow by their titles
FENCED = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})[^\n]*\n(?:.*?\n)??(?P=indent)(?P=fence)[ ]*$", re.MULTILINE | re.DOTALL
)
CODE = r"(?P<code>(?P<ticks>`+)(?!`)(?:.(?!\n\n))*?(?<!`)(?P=ticks)(?!`))"
CODE_OR_LINK = re.compile(rf"{CODE}|(?<=\]\()(?P<target>[^)\s]+)(?=\))", re.DOTALL)
MARKER = re.compile(r"(?:[-*+]|\d+[.)]) +(?=\S)")
SHOWN = {
    *("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "table", "tr", "th", "td", "pre", "blockquote"),
    *("code", "em", "strong", "del", "a", "img", "br", "hr", "input"),
}
log = logging.getLogger("mkdocs.hooks.site")  # below MkDocs's own, so that --strict counts what it warns of


def on_config(config: Any) -> None:
    """Set the navigation, and name headings as GitHub does."""
    config.nav = navigation(DOCS)
    config.mdx_configs["toc"]["slugify"] = anchor


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001 (MkDocs names them)
    """Return a page as the site's Markdown needs it."""
    return for_site(markdown, Path(page.file.abs_src_path), config.repo_url)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> None:  # noqa: ARG001 (MkDocs names them)
    """Warn if a page reads differently from GitHub's rendering of it."""
    import cmarkgfm  # type: ignore[import-untyped]

    as_it_is = cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE  # HTML among the Markdown stays
    github = cmarkgfm.github_flavored_markdown_to_html(page.file.content_string, as_it_is)
    if found := difference(html, github):
        log.warning("%s: the site shows %s where GitHub shows %s", page.file.src_uri, *found)


def navigation(docs: Path) -> list[Any]:
    """Return all pages, those of each folder as a section."""
    pages = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    folders = {page.partition("/")[0] for page in pages if "/" in page}
    sections = [
        {folder.capitalize(): sorted(inside, key=lambda page: (_rank(page, FIRST), title(docs / page).lower()))}
        for folder in sorted(folders, key=lambda folder: (_rank(folder, FOLDERS), folder))
        if (inside := [page for page in pages if page.startswith(f"{folder}/")])
    ]
    return [{"Home": "index.md"}, *(page for page in pages if "/" not in page and page != "index.md"), *sections]


def _rank(name: str, order: tuple[str, ...]) -> int:
    return order.index(name) if name in order else len(order)


def title(page: Path) -> str:
    """Return the title of a page, or its file name if it has none."""
    found = re.search(r"^# (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return found[1].replace("`", "") if found else page.stem


def anchor(heading: str, separator: str = "-") -> str:
    """Return the name that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def for_site(markdown: str, source: Path, repository: str) -> str:
    """Return the Markdown of a page in the site's dialect, with links out of docs/ leading to the repository."""
    markdown = in_prose(markdown, lambda text: re.sub(r"^<!--.*?-->$", "", text, flags=re.MULTILINE | re.DOTALL))
    markdown = in_prose(markdown, lambda text: CODE_OR_LINK.sub(lambda link: _led(link, source, repository), text))
    return "".join(indented(markdown))


def in_prose(markdown: str, change: Callable[[str], str]) -> str:
    """Return Markdown with everything changed but fenced code."""
    done, at = [], 0
    for fenced in FENCED.finditer(markdown):
        done += [change(markdown[at : fenced.start()]), fenced[0]]
        at = fenced.end()
    return "".join([*done, change(markdown[at:])])


def _led(link: re.Match[str], source: Path, repository: str) -> str:
    """Return where a link of a file leads from its page: within docs/ to the page, else to the repository.

    A link that leads nowhere stays as it is, and MkDocs reports it. Code in a table needs no backslash before ``|``.
    """
    target = link["target"]
    if target is None:
        in_table = link.string.startswith("|", link.string.rfind("\n", 0, link.start()) + 1)
        return link[0].replace("\\|", "|") if in_table else link[0]
    if re.match(r"[a-z]+:|#|/", target):
        return target
    path, hash_sign, fragment = target.partition("#")
    file = Path(os.path.normpath(source.parent / path))
    if file.is_relative_to(DOCS) or not file.exists() or not file.is_relative_to(ROOT):
        return target
    kind = "tree" if file.is_dir() else "blob"
    return f"{repository}/{kind}/main/{file.relative_to(ROOT).as_posix()}{hash_sign}{fragment}"


def indented(markdown: str) -> Iterator[str]:
    """Yield the lines of Markdown with four spaces for each list that a line is in, as the site's dialect has it.

    It also wants an empty line before the first item, and before the next one of items with empty lines.
    """
    columns: list[int] = []  # where the text of each open item starts
    fence, before, is_loose = "", "", False
    for line in markdown.splitlines(keepends=True):
        text = line.lstrip(" ")
        while not fence and text.strip() and columns and len(line) - len(text) < columns[-1]:
            columns.pop()
        depth, start = len(columns), columns[-1] if columns else 0
        rest = line[min(start, len(line) - len(text)) :]
        opening = re.match(r" *(`{3,}|~{3,})", rest)
        if opening and (not fence or opening[1].startswith(fence)):
            fence = "" if fence else opening[1]
        elif not fence and (marker := MARKER.match(rest)):
            is_first = not depth and not before.startswith(" ") and not MARKER.match(before)
            if before.strip() and (is_first or is_loose):
                yield "\n"
            columns.append(start + marker.end())
            is_loose = False
        is_loose |= bool(columns) and not text.strip()
        yield "    " * depth + rest if text.strip() else line
        before = line


def difference(site: str, github: str) -> tuple[str, str] | None:
    """Return the first place where one HTML shows something else than the other, of both; None if there is none."""
    for ours, theirs in zip_longest(shown_by(site), shown_by(github), fillvalue="nothing more"):
        if ours != theirs:
            return ours, theirs
    return None


def shown_by(html: str) -> list[str]:
    """Return what HTML shows: its elements and words, one after the other."""
    parser = _Shown()
    parser.feed(html)
    parser.close()
    return parser.shown


class _Shown(HTMLParser):
    """Notes elements and words. Within ``pre``, only text counts, tabs as spaces; links to their own heading do not."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []
        self._code = ""
        self._in_pre = self._in_permalink = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if ("class", "headerlink") in attrs:
            self._in_permalink = True
        elif tag in SHOWN and not self._in_pre:
            self.shown.append(f"<{tag}>")
        self._in_pre |= tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self.shown += self._code.strip("\n").expandtabs(4).split("\n")
            self._in_pre, self._code = False, ""
        if self._in_permalink:
            self._in_permalink = False
        elif tag in SHOWN and not self._in_pre:
            self.shown.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self._in_pre:
            self._code += data
        elif not self._in_permalink:
            self.shown += data.split()
