"""Finishes the site that MkDocs built: writes the schemas into it, then checks what its pages load and link to.

``make site`` runs ``python -m scripts.site build/site``. It fails if a page loads anything from another host, or links
to a file or a heading of the site that does not exist. Links to other sites are only followed by readers.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import TextIO
from urllib.parse import unquote, urlsplit

from ragcontract.contract.defaults import CONFIG_SCHEMA
from ragcontract.schemas import SCHEMAS, schema_of

POLICY = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
# Attributes with addresses that a browser asks for by itself, or sends to. Of <link>, these kinds only.
LOADED = {"src", "poster", "data", "background", "action", "formaction", "ping", "xlink:href"}
LINKED = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "manifest"}
# What the theme's script would ask GitHub and a host of packages for, if a page had it; the policy forbids that, too.
ASKING = {"data-md-component": {"source"}, "class": {"mermaid"}}
IN_STYLES = re.compile(r"""url\(\s*["']?(?P<url>[^"')]*)|@import\s+["'](?P<imported>[^"']*)""")
ABROAD = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//|(?:https?|wss?|ftp):", re.IGNORECASE)
OF_THEME = "assets/javascripts"  # names hosts that ASKING and the policy keep it from
# What the addresses on 404.html start with, which is shown in place of any page that does not exist.
BASE = urlsplit(CONFIG_SCHEMA).path.removesuffix("schemas/config.json")


class Page(HTMLParser):
    """What a page loads, what it links to, and the names it has for other links."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = set()
        self.policy = ""
        self.asks: list[str] = []
        self._in_style = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        self.loads += [given[name] for name in LOADED & given.keys()]
        self.loads += [one.split()[0] for one in given.get("srcset", "").split(",") if one.strip()]
        self.loads += addresses(given.get("style", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif "href" in given and (tag != "link" or LINKED & set(given.get("rel", "").split())):
            self.loads.append(given["href"])
        if given.get("http-equiv", "").lower() == "content-security-policy":
            self.policy = given.get("content", "")
        elif given.get("http-equiv", "").lower() == "refresh":
            self.loads.append(given.get("content", "").partition("url=")[2])
        self.names |= {given[name] for name in ("id", "name") if name in given}
        self.asks += [value for name, value in given.items() if ASKING.get(name, set()) & set(value.split())]

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.loads += addresses(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_style &= tag != "style"


def addresses(styles: str) -> list[str]:
    """Return the addresses in a style sheet."""
    return [found["url"] or found["imported"] or "" for found in IN_STYLES.finditer(styles)]


def problems(site: Path) -> Iterator[str]:
    """Yield what is wrong with a site."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    if site / "index.html" not in pages:
        yield "index.html: missing: the site has no front page"
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        if page.policy != POLICY:
            yield f"{name}: the policy that forbids requests to other hosts is {page.policy!r}, expected {POLICY!r}"
        yield from (f"{name}: {asking!r} has the theme's script ask another host" for asking in page.asks)
        yield from _loads(name, page.loads, path, site)
        yield from (f"{name}: {link} leads nowhere" for link in page.links if not _leads(link, path, pages, site))
    for path in sorted([*site.rglob("*.css"), *site.rglob("*.svg")]):
        svg = Page(path.read_text("utf-8")).loads if path.suffix == ".svg" else []
        yield from _loads(path.relative_to(site).as_posix(), svg + addresses(path.read_text("utf-8")), path, site)
    for path in sorted(set(site.rglob("*.js")) - set((site / OF_THEME).rglob("*.js"))):
        if found := re.search(r"""["'`](?:https?:|wss?:)?//[\w.-]+""", path.read_text("utf-8")):
            yield f"{path.relative_to(site).as_posix()}: names another host: {found[0][1:]}"


def _loads(name: str, loads: Sequence[str], path: Path, site: Path) -> Iterator[str]:
    """Yield what a file loads from another host, and what is not there."""
    for load in loads:
        if ABROAD.match(load):
            yield f"{name}: loads {load} from another host"
        elif not load.startswith("data:") and not _file(load, path, site).exists():
            yield f"{name}: loads {load}, which is not there"


def _leads(link: str, path: Path, pages: dict[Path, Page], site: Path) -> bool:
    """Say whether a link of a page leads somewhere: abroad, to a file, or to a name on a page."""
    if ABROAD.match(link) or link.startswith("mailto:"):
        return True
    file, fragment = _file(link, path, site), unquote(urlsplit(link).fragment)
    if file not in pages:
        return file.is_file() and not fragment
    return not fragment or fragment in pages[file].names


def _file(address: str, path: Path, site: Path) -> Path:
    """Return the file that an address within the site stands for."""
    target = unquote(urlsplit(address).path)
    if not target:
        return path
    file = site / target.removeprefix(BASE) if target.startswith("/") else path.parent / target
    file = file.resolve()
    return file / "index.html" if file.is_dir() else file


def write_schemas(folder: Path) -> None:
    """Write the schema of each format."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SCHEMAS:
        (folder / f"{name}.json").write_text(json.dumps(schema_of(name), indent=2) + "\n", "utf-8")


def main(argv: Sequence[str], *, stdout: TextIO = sys.stdout, stderr: TextIO = sys.stderr) -> int:
    """Finish a site and return the exit code: 1 where something is wrong with it."""
    parser = argparse.ArgumentParser(prog="python -m scripts.site", description="Add schemas to a site and check it.")
    parser.add_argument("site", type=Path, help="the folder that MkDocs wrote")
    site = parser.parse_args(argv).site.resolve()
    write_schemas(site / "schemas")
    found = list(problems(site))
    stderr.writelines(f"{problem}\n" for problem in found)
    stdout.write(f"{len(list(site.rglob('*.html')))} pages, {len(SCHEMAS)} schemas: {len(found)} problems\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
