"""The page as what it consists of, and reports with texts that want out of it."""

import json
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

from msgspec import Struct
from msgspec.structs import fields, replace

from ragcontract.core.run import VERSION_FIELDS
from ragcontract.report.html.page import render
from ragcontract.report.record import Report
from tests.records import Rows, query, report
from tests.report.everything import everything, is_literal

HOSTILE = "</script><img src=x onerror=alert(1)>`|\"'&amp; {{data}} \x1b[31m\u202eabc\u2028 --><!-- ]]>"
VOID = {"meta", "link", "input", "br"}


class Parsed(HTMLParser):
    """The page's elements, text without scripts and styles, and every script and style."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self._text: list[str] = []
        self._open: list[str] = []
        self.feed(page.decode())
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in {"script", "style"}:
            self.raw.append((tag, dict(attrs), ""))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in {"script", "style"}:
            tag, attrs, text = self.raw[-1]
            self.raw[-1] = (tag, attrs, text + data)
        else:
            self._text.append(data)

    @property
    def source(self) -> str:
        """All text, with the line breaks and indents of the templates."""
        return "".join(self._text)

    @property
    def text(self) -> str:
        """All text, as a browser would run it together."""
        return " ".join(self.source.split())

    def data(self) -> Any:
        """What the page's script reads."""
        return json.loads(next(text for _, attrs, text in self.raw if attrs.get("id") == "data"))

    def having(self, attribute: str, value: str) -> int:
        """Count the elements with an attribute that begins like that."""
        return sum((attrs.get(attribute) or "").startswith(value) for _, attrs in self.elements)


def parsed(made: Report) -> Parsed:
    """Render a report and take the page apart."""
    return Parsed(render(made))


def hostile() -> Report:
    """Return a report in which every text from a file wants out."""
    return everything(mark=lambda name: f"{HOSTILE} {name}")


def hostile_pair() -> Report:
    """Return a report on two queries that want out, one of which is lost."""
    names = [HOSTILE, f"{HOSTILE} 2"]
    queries = [query(name, f"{name} doc", query=HOSTILE, tags=(HOSTILE,), location=HOSTILE) for name in names]
    run = Rows(
        docs={names[0]: ["x"], names[1]: [f"{names[1]} doc"]}, name=HOSTILE, versions={"index_version": [HOSTILE]}
    )
    docs = {names[0]: [f"{names[0]} doc"], "gone " + HOSTILE: ["y"]}
    before = Rows(docs=docs, name="b", versions={"index_version": ["1"]})
    return report(queries, run, before, warnings=[HOSTILE], path=HOSTILE)


def marked(value: Any, mark: Callable[[str], str]) -> Any:
    """Return a report, or a part of one, with every text changed that is not one of a few known ones."""
    if isinstance(value, str):
        return mark(value)
    if isinstance(value, dict):
        return {key if key in VERSION_FIELDS else marked(key, mark): marked(each, mark) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(marked(each, mark) for each in value)
    if isinstance(value, Struct):
        free = [field.name for field in fields(value) if not is_literal(field.type)]
        return replace(value, **{name: marked(getattr(value, name), mark) for name in free})
    return value
