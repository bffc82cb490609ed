"""Converts the fields of a golden row about the answer: into rules, and into what the query expects of the answer."""

from collections.abc import Iterator, Sequence
from itertools import product

from msgspec import Struct

from ragcontract.answers.known_modes import ABSTAIN
from ragcontract.contract.criteria import SAYS_NOTHING, criteria_faults, criteria_of
from ragcontract.contract.element_fields import element_faults, element_rules
from ragcontract.contract.golden_row import AnswerFields, GoldenRow
from ragcontract.core import bounds
from ragcontract.core.golden import ExpectedAnswer
from ragcontract.core.rule import RowRule, Rule
from ragcontract.files.schema import Mismatch
from ragcontract.rules.answering import Answered, AnswerRule
from ragcontract.rules.expected_mode import ExpectedMode
from ragcontract.rules.refusing import MustNotRefuse, MustRefuse


def answer_fields(row: GoldenRow) -> AnswerFields:
    """Convert the fields of a row about the answer, or options of them; it has at least one."""
    mismatches = list(_contradictions(row))
    calls = _reference_calls(row)
    if isinstance(calls, list):
        mismatches += calls
    if mismatches or isinstance(calls, list):
        return AnswerFields(mismatches=tuple(mismatches))
    rules = tuple(_rules(row))
    sought = sum(rule.sought for rule in rules if isinstance(rule, AnswerRule))
    if sought > bounds.TEXTS:
        message = f"search the answer for {sought:,} texts and patterns, at most {bounds.TEXTS:,}; search in your own "
        return AnswerFields(mismatches=(Mismatch(("rules",), f"{message}code, and export `checks`"),))
    return AnswerFields(rules=rules, answer=_expected(row, calls))


def _contradictions(row: GoldenRow) -> Iterator[Mismatch]:
    """Yield what is wrong with fields that are valid on their own."""
    for number, rule in enumerate(_entries(row)):
        for path, message in rule.faults():
            yield Mismatch(("rules", number, *path), message)
    yield from element_faults(row)
    yield from _nothing_to_see(row)
    yield from _refusing_and_answering(row)
    if row.reference_contexts is not None and not row.reference_contexts:
        yield Mismatch(("reference_contexts",), "is empty; give the texts that must be retrieved, or leave it out")
    if row.reference_claims is not None and not row.reference_claims:
        yield Mismatch(("reference_claims",), "is empty; give the claims of the reference, or leave it out")
    if row.criteria is not None:
        yield from criteria_faults(row.criteria)


def _nothing_to_see(row: GoldenRow) -> Iterator[Mismatch]:
    """Yield texts that an answer cannot be compared with."""
    texts: list[tuple[tuple[str | int, ...], str]] = [] if row.reference is None else [(("reference",), row.reference)]
    for field in ("reference_claims", "reference_contexts"):
        texts += [((field, number), text) for number, text in enumerate(getattr(row, field) or ())]
    if not texts or row.as_evaluated is not None:
        return
    from ragcontract.answers.answer_text import Answer
    from ragcontract.answers.matchers import text_fault
    from ragcontract.answers.saying import says_something

    for path, text in texts:
        first = text[:1]
        is_plain = first.isascii() and first.isalnum()  # the common case: no markup removes it
        if is_plain:
            continue
        if fault := text_fault(text):
            yield Mismatch(path, fault)
        elif path[0] == "reference_claims" and not says_something(Answer(text)):
            yield Mismatch(path, f"{SAYS_NOTHING} a claim of the reference")


def _refusing_and_answering(row: GoldenRow) -> Iterator[Mismatch]:
    """Yield rules that no answer can keep together, as one wants a refusal and the other none."""
    entries = _entries(row)
    refusing = [(index, rule) for index, rule in enumerate(entries) if isinstance(rule, MustRefuse)]
    answering = [(index, rule) for index, rule in enumerate(entries) if isinstance(rule, MustNotRefuse)]
    for (first, refuse), (second, answer) in product(refusing, answering):
        if row.turns is None or _in_one_turn(refuse.in_turns, answer.in_turns):
            message = f"must_not_refuse contradicts must_refuse in rules[{first}]; take one of them out"
            yield Mismatch(("rules", second), message)
    if row.expected_mode == ABSTAIN and row.turns is None:
        for index, _ in answering:
            yield Mismatch(("rules", index), "must_not_refuse contradicts expected_mode, abstain; take one of them out")


def _in_one_turn(one: str | None, other: str | None) -> bool:
    """Return whether two rules with these ``in`` are about the same turn, whatever the turns have of their own."""
    return "each" in {one, other} or (one == other != "any")


def _reference_calls(row: GoldenRow) -> tuple[Struct, ...] | list[Mismatch] | None:
    """Return the tool calls that must be made, or what is wrong with them; None if the row does not have the field."""
    if row.reference_tool_calls is None:
        return None
    from ragcontract.contract.reference_calls import reference_calls

    return reference_calls(row.reference_tool_calls)


def _rules(row: GoldenRow) -> Iterator[Rule]:
    """Yield the rules: that there is an answer, the entries of ``rules``, then those made from other fields."""
    rules = [*_entries(row), *element_rules(row)]
    if any(isinstance(rule, RowRule) and rule.about_answer for rule in rules):
        refusal_answers = any(isinstance(rule, MustRefuse) for rule in rules)
        yield Answered(refusal_answers=refusal_answers, blank_answers=row.as_evaluated is not None)
    yield from rules
    if row.expected_mode is not None:
        yield ExpectedMode(mode=row.expected_mode)


def _entries(row: GoldenRow) -> Sequence[Rule]:
    return getattr(row, "rules", None) or ()


def _expected(row: GoldenRow, calls: tuple[Struct, ...] | None) -> ExpectedAnswer | None:
    """Return what the row expects of the answer apart from its rules; None if that is nothing."""
    expected = ExpectedAnswer(
        reference=row.reference,
        reference_claims=_tuple(row.reference_claims),
        reference_contexts=_tuple(row.reference_contexts),
        reference_tool_calls=calls,
        expected_mode=row.expected_mode,
        expected_label=row.expected_label,
        criteria=None if row.criteria is None else criteria_of(row.criteria),
        tier=row.tier,
        as_evaluated=row.as_evaluated,
    )
    return None if expected == ExpectedAnswer() else expected


def _tuple(texts: list[str] | None) -> tuple[str, ...] | None:
    return None if texts is None else tuple(texts)
