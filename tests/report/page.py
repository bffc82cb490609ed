"""Markdown as GitHub shows it: its own parser, and what it makes links of afterwards."""

import re
from html.parser import HTMLParser

import cmarkgfm  # type: ignore[import-untyped]
from cmarkgfm.cmark import Options  # type: ignore[import-untyped]

ZERO_WIDTH_SPACE = "\u200b"
# Raw HTML is let through, as GitHub does before it sanitizes: nothing here may rely on the sanitizer.
OPTIONS = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES

# What GitHub's pages make of text that is not in code, after the parser is done.
MADE_A_LINK = re.compile(
    r"(?<![\w`])@[a-z0-9][a-z0-9-]*"  # a user or a team
    r"|#\d+"  # an issue, also as owner/repository#1
    r"|\bgh-\d+|\bghsa-[a-z0-9]|\bcve-\d"
    r"|\b[0-9a-f]{7,40}\b"  # a commit
    r"|://|\bwww\.\w"
    r"|:[\w+-]+:",  # a picture
    re.IGNORECASE,
)


RESULTS = (["", "Before", "Now"], ["", "Now"])  # heads of what was retrieved and said for a broken query


class Page(HTMLParser):
    """The rendered page: its tags in order, the table rows, and the text outside of code.

    ``retrieved`` has the tables of what was retrieved, ``answered`` those of what was said, ``tables`` all others.
    """

    def __init__(self, markdown: str) -> None:
        """Render and take apart."""
        super().__init__()
        self.tags: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.items: list[str] = []
        self.broken: list[str] = []  # the items of broken queries, whose questions are bold
        self._of_query = False
        self.prose: list[str] = []
        self._in_code = 0
        self._open: list[str] = []
        self.html = cmarkgfm.github_flavored_markdown_to_html(markdown, OPTIONS)
        self.feed(self.html)
        self.close()
        both = [table for table in self.tables if table[0] in RESULTS]
        self.answered = [table for table in both if table[1][0].istitle()]
        self.retrieved = [table for table in both if table not in self.answered]
        self.tables = [table for table in self.tables if table[0] not in RESULTS]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if (tag == "span" and not attrs) or tag == "wbr":  # around a dollar sign; where an id may be broken
            return
        self.tags.append(" ".join([tag, *(f"{name}={value}" for name, value in attrs)]))
        self._in_code += tag == "code"
        if tag == "b" and self._open[-1:] == ["li"] and not self.items[-1]:
            self.broken.append(self.items.pop())
            self._of_query = True
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"td", "th"}:
            self.tables[-1][-1].append("")
        elif tag == "li":
            self.items.append("")
            self._of_query = False
        elif tag == "br" and self._of_query and "li" in self._open:
            self.broken[-1] += "\n"
        if tag != "br":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "span":
            return
        self.tags.append(f"/{tag}")
        self._in_code -= tag == "code"
        assert self._open.pop() == tag, self.html

    def handle_data(self, data: str) -> None:
        if not self._in_code:
            self.prose.append(data)
        data = data.replace(ZERO_WIDTH_SPACE, "")
        if {"td", "th"} & set(self._open):
            self.tables[-1][-1][-1] += data
        elif "li" in self._open:
            (self.broken if self._of_query else self.items)[-1] += data

    @property
    def text(self) -> str:
        """All text outside of code, zero-width spaces taken out."""
        return "".join(self.prose).replace(ZERO_WIDTH_SPACE, "")

    def links(self) -> list[str]:
        """Return what would become a link or a picture."""
        return MADE_A_LINK.findall("\n".join(self.prose))
