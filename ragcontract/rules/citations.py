"""The rule that answers cite what was retrieved: must_cite."""

import re
from collections.abc import Iterator
from typing import ClassVar

from ragcontract.answers.normalising import plain
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name, excerpt
from ragcontract.core.rule import RowContext, Violation
from ragcontract.core.run import RunRow
from ragcontract.rules.answered import AnswerRule, answer_in, begins

_BRACKETED = re.compile(r"[\[【〔]([^\[\]【】〔〕]+)[\]】〕]")
_BETWEEN = r"(?:[\s,;、，；&/|+^*_~·•‐‑‒–—―−-]|\.\.|…|and|or|to|und|bis|et|y)"
_NUMBERS = re.compile(rf"[\s^*_~]*(\d{{1,3}}(?:{_BETWEEN}++\d{{1,3}})*)[\s,;*_~]*(?:†.*)?", re.IGNORECASE | re.DOTALL)
_LINKED = re.compile(r"""\bhref=["']?([^"'\s<>]+)""", re.IGNORECASE)
_WORD = r"[^\s\[\](){}<>\"'“”‘’,;]+"


class MustCite(AnswerRule, frozen=True, kw_only=True, gc=False, tag="must_cite"):
    """The answer cites what was retrieved: ``[2]`` is the second text that the model saw, or the id of a document.

    The model saw ``retrieved_contexts``, or else the ``results``. Numbers in brackets have one to three digits, also
    several of them (``[1, 3]``, ``[1-3]``, ``[^2]``, ``【2】``). The id of a retrieved document counts where it stands
    as a word or in brackets. Brackets in code and text that a page does not show cite nothing. A number without a text
    breaks the rule, whatever else is cited.
    """

    needs: ClassVar[frozenset[str]] = AnswerRule.needs | {"retrieved_contexts"}

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation for the first number that points to nothing, or if nothing is cited."""
        from ragcontract.answers.shown import cited as shown

        answer = answer_in(row).text
        traced = shown(answer)
        doc_ids = frozenset(row.doc_ids)
        texts = len(row.results) if row.retrieved_contexts is None else len(row.retrieved_contexts)
        cited = False
        for bracketed in _BRACKETED.finditer(traced.text):
            listed = _NUMBERS.fullmatch(bracketed[1])
            if not listed or bracketed[1].strip() in doc_ids:
                continue
            numbers = [int(number) for number in re.findall(r"\d+", listed[1])]
            beyond = next((number for number in numbers if not 1 <= number <= texts), None)
            if beyond is not None:
                yield Violation(
                    rule="must_cite",
                    expected=(f"citations up to [{texts}]" if texts else "no citation of a text",),
                    actual=(
                        Name(f"[{beyond}]", said=True),
                        " in ",
                        excerpt(answer, *traced.span(*bracketed.span())),
                    ),
                    causes=("points to nothing",),
                )
                return
            cited = True
        if not cited and not _names_any(doc_ids, traced.text) and doc_ids.isdisjoint(_LINKED.findall(answer)):
            yield Violation(
                rule="must_cite",
                expected=("a citation: [1], or the id of a retrieved document",),
                actual=begins(answer_in(row)),
                causes=("cites nothing",),
            )


def _names_any(doc_ids: frozenset[str], answer: str) -> bool:
    """Return whether a document is named, as a word or in brackets."""
    doc_ids = frozenset(map(plain, doc_ids))
    if any(bracketed[1].strip() in doc_ids for bracketed in _BRACKETED.finditer(answer)):
        return True
    words = (match[0] for match in re.finditer(_WORD, answer))
    return any(word in doc_ids or word.rstrip(".:!?") in doc_ids for word in words)
