"""The rule that answers cite what was retrieved: must_cite."""

import re
from collections.abc import Iterator
from typing import ClassVar

from msgspec import Struct

from ragcontract.answers.normalising import plain
from ragcontract.answers.shown import cited as shown
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name, excerpt
from ragcontract.core.rule import RowContext, Violation
from ragcontract.core.run import RunRow
from ragcontract.rules.answered import AnswerRule, answer_in, begins

_BRACKETED = re.compile(r"[\[【〔]([^\[\]【】〔〕]+)[\]】〕]")
_BETWEEN = r"(?:[\s,;、，；&/|+^*_~·•‐‑‒–—―−-]|\.\.|…|and|or|to|und|bis|et|y)"
# A word or a sign before the number of a source: [Source 9], [doc9], [cite: 9], [#9]; in normal form, № is No.
_SOURCE = (
    r"(?:(?:sources?|src|ref(?:erence)?s?|doc(?:ument)?s?|contexts?|ctx|passages?|chunks?|citations?|cite|snippets?|excerpts?"
    r"|search results?|quellen?|fuentes?|fonti|fonte|来源|出典|引用|参考|文献|n[or]\.?|\#)(?:\(s\)|_?id)?[\s.:#_-]*)++"
)
_NUMBERS = re.compile(
    rf"[\s^*_~]*(?P<source>{_SOURCE})?+(?P<numbers>\d{{1,3}}(?:{_BETWEEN}++(?:{_SOURCE})?+\d{{1,3}})*)[\s,;*_~]*"
    r"(?(source)(?:[†:,|(].*)?|(?:†.*|(?:pp?\.|pages?\b|§).*)?)",
    re.IGNORECASE | re.DOTALL,
)
# The form of OpenAI's assistants: the step that found the texts, and the number of one of them, counted from 0.
_STEP = re.compile(r"[\s*_~]*(?P<step>\d{1,3})\s*:\s*(?P<number>\d{1,6})[\s*_~]*(?P<source>†.*)?", re.DOTALL)
_LINKED = re.compile(r"""\bhref=["']?([^"'\s<>]+)""", re.IGNORECASE)
_COMMENT = re.compile("<!--.*?(?:-->|\\Z)", re.DOTALL)
_WORD = r"[^\s\[\](){}<>\"'“”‘’,;]+"


class _Citation(Struct, frozen=True, gc=False):
    """A number that cites a text."""

    number: int
    first: int = 1  # the number of the first text
    before: str = ""  # what is written before the number

    def as_written(self, number: int) -> str:
        """Return how a number is written in this form."""
        return f"[{self.before}{number}]"

    def last(self, texts: int) -> int:
        """Return the number of the last of all texts."""
        return texts - 1 + self.first


class MustCite(AnswerRule, frozen=True, kw_only=True, gc=False, tag="must_cite"):
    """The answer cites what was retrieved: ``[2]`` is the second text that the model saw, or the id of a document.

    The model saw ``retrieved_contexts``, or else the ``results``. Numbers in brackets have one to three digits,
    also several of them (``[1, 3]``, ``[1-3]``, ``[^2]``, ``【2】``) or after a word for a source (``[Source 2]``).
    The second number of ``【4:1†source】`` counts from 0. The id of a retrieved document counts where it stands as a
    word or in brackets. Brackets in code and text that a page does not show, as a footnote that nothing refers to,
    cite nothing. A number without a text breaks the rule, whatever else is cited.
    """

    needs: ClassVar[frozenset[str]] = AnswerRule.needs | {"retrieved_contexts"}

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        answer = answer_in(row).text
        traced = shown(answer)
        doc_ids = frozenset(row.doc_ids)
        texts = len(row.results) if row.retrieved_contexts is None else len(row.retrieved_contexts)
        cited, id_beginnings = False, _before_numbers(doc_ids)
        for bracketed in _BRACKETED.finditer(traced.text):
            citations = [] if bracketed[1].strip() in doc_ids else list(_citations(bracketed, id_beginnings))
            if beyond := next((each for each in citations if not each.first <= each.number <= each.last(texts)), None):
                last = beyond.as_written(beyond.last(texts))
                expected = (f"citations up to {last}" if texts else "no citation of a text",)
                number = Name(beyond.as_written(beyond.number), said=True)
                around = excerpt(answer, *traced.span(*bracketed.span()))
                yield self.broken(expected, (number, " in ", around), "points to nothing")
                return
            cited = cited or bool(citations)
        if (
            not cited
            and not _names_any(doc_ids, traced.text)
            and doc_ids.isdisjoint(_LINKED.findall(_COMMENT.sub("", answer)))
        ):
            expected = ("a citation: [1], or the id of a retrieved document",)
            yield self.broken(expected, begins(answer_in(row)), "cites nothing")


def _before_numbers(doc_ids: frozenset[str]) -> frozenset[str]:
    """Return how the ids of documents begin that have a number."""
    beginnings = map(re.compile(r"\D+(?=\d)").match, doc_ids)
    return frozenset(beginning[0].casefold() for beginning in beginnings if beginning)


def _citations(bracketed: re.Match[str], id_beginnings: frozenset[str]) -> Iterator[_Citation]:
    """Yield the numbers in brackets that cite a text; a number after what ids begin with belongs to an id."""
    inner = bracketed[1]
    step = _STEP.fullmatch(inner)
    if step and (step["source"] or bracketed[0][0] == "【"):  # [12:30] is a time
        yield _Citation(int(step["number"]), first=0, before=f"{int(step['step'])}:")
    elif listed := _NUMBERS.fullmatch(inner):
        source = listed["source"] or ""
        is_link = source[:1] == "#" and bracketed.string.startswith("(", bracketed.end())  # [#9](…), as of an issue
        if not is_link and source.casefold() not in id_beginnings:
            yield from (_Citation(int(number)) for number in re.findall(r"\d+", listed["numbers"]))


def _names_any(doc_ids: frozenset[str], answer: str) -> bool:
    """Return whether a document is named, as a word or in brackets."""
    doc_ids = frozenset(map(plain, doc_ids))
    if any(bracketed[1].strip() in doc_ids for bracketed in _BRACKETED.finditer(answer)):
        return True
    words = (match[0] for match in re.finditer(_WORD, answer))
    return any(word in doc_ids or word.rstrip(".:!?") in doc_ids for word in words)
