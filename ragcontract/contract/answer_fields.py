"""Converts the fields of a golden row about the answer: into rules, and into what the query expects of the answer."""

from collections.abc import Iterator

from msgspec import Struct

from ragcontract.contract.golden_row import ANSWER_FIELDS, GoldenRow
from ragcontract.core.golden import ExpectedAnswer
from ragcontract.core.rule import Rule
from ragcontract.files.schema import Mismatch
from ragcontract.rules.expected_mode import ExpectedMode


class AnswerFields(Struct, frozen=True, kw_only=True):
    """The rules made from the fields of a row and what it expects of the answer; ``mismatches`` if it is invalid."""

    rules: tuple[Rule, ...] = ()
    answer: ExpectedAnswer | None = None
    mismatches: tuple[Mismatch, ...] = ()


NO_FIELDS = AnswerFields()


def present(row: GoldenRow) -> list[str]:
    """Return the names of the row's fields about the answer."""
    return [name for name in ANSWER_FIELDS if getattr(row, name, None) is not None]


def answer_fields(row: GoldenRow) -> AnswerFields:
    """Convert the fields of a row about the answer, of which it has at least one."""
    mismatches = list(_contradictions(row))
    if mismatches:
        return AnswerFields(mismatches=tuple(mismatches))
    return AnswerFields(rules=tuple(_rules(row)), answer=_expected(row))


def _contradictions(row: GoldenRow) -> Iterator[Mismatch]:
    """Yield what is wrong with fields that are valid on their own."""
    if row.allowed_phrases is not None and row.forbidden_claims is None:
        yield Mismatch(("allowed_phrases",), "needs forbidden_claims, to allow some of them within these phrases")


def _rules(row: GoldenRow) -> Iterator[Rule]:
    """Yield the entries of ``rules``, then the rules made from other fields."""
    yield from getattr(row, "rules", None) or ()
    if row.expected_mode is not None:
        yield ExpectedMode(mode=row.expected_mode)


def _expected(row: GoldenRow) -> ExpectedAnswer | None:
    """Return what the row expects of the answer apart from its rules; None if that is nothing."""
    expected = ExpectedAnswer(
        reference=row.reference,
        reference_claims=_tuple(row.reference_claims),
        reference_contexts=_tuple(row.reference_contexts),
        expected_mode=row.expected_mode,
        expected_label=row.expected_label,
        tier=row.tier,
        as_evaluated=row.as_evaluated,
    )
    return None if expected == ExpectedAnswer() else expected


def _tuple(texts: list[str] | None) -> tuple[str, ...] | None:
    return None if texts is None else tuple(texts)
