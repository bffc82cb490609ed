"""Converts the answer fields of a golden row into rules, and into what the query expects of the answer.

A turn of a conversation is converted as if it were a row. The rules of the row then apply to the turns that ``in``
names; without ``in``, to the turns that have no rules of their own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.answers.metric_options import ABSTAIN
from ragcontract.answers.tool_calls import ARGUMENTS, NAMES, ToolCall, tool_calls
from ragcontract.contract.golden_row import NO_FIELDS, TURN_FIELDS, AnswerFields, CriterionJson, GoldenRow
from ragcontract.core import bounds
from ragcontract.core.config_sections import AsWritten, Matcher, Reading
from ragcontract.core.golden import PLACEHOLDER, Criterion, ExpectedAnswer
from ragcontract.core.lines import Line
from ragcontract.core.nearest import nearest
from ragcontract.core.rule import RowRule, Rule
from ragcontract.files.schema import Mismatch, shown
from ragcontract.rules.answered import Answered, AnswerRule, ExpectedMode
from ragcontract.rules.claims import ForbiddenClaims, ForbiddenElements, RequiredElements
from ragcontract.rules.refusal import MustNotRefuse, MustRefuse
from ragcontract.rules.text import AnswerMustInclude
from ragcontract.rules.turns import InTurns, is_of_turns

# Few fields need these.
MATCHERS: Line[Any] = Line(home="ragcontract.answers.matchers")
TEXTS: Line[Any] = Line(home="ragcontract.answers.answer_text")
NO_RULES = "no turn has rules, and neither has the row; write what must hold into `rules` of a turn or of the row"
ALL_OWN = (
    "all have rules of their own, so those of the row apply to none; give entries of `rules` an `in` (each, any or "
    "last), and write fields such as forbidden_claims into the turns"
)
OF_THE_ROW = "is about the whole row, not about a turn; write it into the row's rules"

NOT_IN_ANY = (
    'is "any", with which the rule would hold as soon as one turn keeps to it; write "each" for what no turn may have '
    "or exceed, or write the rule into the turns that it is for"
)


def fields_of(row: GoldenRow, *, is_turn: bool = False) -> AnswerFields:
    """Convert the fields about the answer of a row and of its turns, and their options; the row has any of them.

    With ``is_turn``, the row is a turn of another row.
    """
    wrong = list(_contradictions(row))
    calls = None if row.reference_tool_calls is None else reference_calls(row.reference_tool_calls)
    if isinstance(calls, list):
        wrong += calls
    rules = () if wrong else tuple(_rules(row))
    if (sought := sum(rule.sought for rule in rules if isinstance(rule, AnswerRule))) > bounds.TEXTS:
        message = f"search the answer for {sought:,} texts and patterns, at most {bounds.TEXTS:,}; search in your own "
        rules, wrong = (), [Mismatch(("rules",), f"{message}code, and export `checks`")]
    answer = None if wrong or isinstance(calls, list) else _expected(row, calls)
    if not is_turn:
        wrong += _in_faults(row)
    if row.turns is None or wrong:
        return AnswerFields(rules=rules, answer=answer, mismatches=tuple(wrong))
    return _with_turns(row, row.turns, rules, answer)


def _with_turns(
    row: GoldenRow, turns: Sequence[Any], rules: Sequence[Rule], answer: ExpectedAnswer | None
) -> AnswerFields:
    """Convert the fields of the turns of a row, and apply the rules of the row to them."""
    own = [_own_rules(row, number, turn) for number, turn in enumerate(turns)]
    wrong = [mismatch for turn in own for mismatch in turn.mismatches]
    of_turns = [
        InTurns(rule=rule, turns=(number,))
        for number, turn in enumerate(own)
        for rule in turn.rules
        if isinstance(rule, RowRule)
    ]
    without = [number for number, turn in enumerate(own) if not turn.rules]
    of_row = list(_of_row(rules, without, len(own)))
    if not wrong and not of_turns and not of_row:
        wrong = [Mismatch(("turns",), ALL_OWN if rules else NO_RULES)]
    if not wrong and not without and any(rule.in_turns is None for rule in _written(rules)):
        wrong = [Mismatch(("turns",), ALL_OWN)]
    return AnswerFields(
        rules=(*of_row, *of_turns),
        answer=replace(answer or ExpectedAnswer(), turns=tuple(turn.query for turn in turns)),
        mismatches=tuple(wrong),
    )


def _own_rules(row: GoldenRow, number: int, turn: Any) -> AnswerFields:
    """Convert the fields of a turn as if it were a row."""
    values = {name: getattr(turn, name) for name in ("rules", *TURN_FIELDS) if hasattr(turn, name)}
    as_row = type(row)(id=row.id, query=turn.query, as_evaluated=row.as_evaluated, **values)
    fields = NO_FIELDS if all(value is None for value in values.values()) else fields_of(as_row, is_turn=True)
    wrong = [*fields.mismatches, *_turn_faults(values.get("rules") or ())]
    moved = tuple([Mismatch(("turns", number, *mismatch.path), mismatch.message) for mismatch in wrong])
    return AnswerFields(rules=() if wrong else fields.rules, mismatches=moved)


def _turn_faults(rules: Sequence[Rule]) -> Iterator[Mismatch]:
    for number, rule in enumerate(rules):
        if isinstance(rule, RowRule) and not is_of_turns(rule):
            yield Mismatch(("rules", number), OF_THE_ROW)
        elif isinstance(rule, RowRule) and rule.in_turns is not None:
            yield Mismatch(("rules", number, "in"), "is for the rules of the row; this one is about its turn")


def _in_faults(row: GoldenRow) -> Iterator[Mismatch]:
    for number, rule in enumerate(row.rules or ()):
        if rule.in_turns is None:
            continue
        if row.turns is None:
            yield Mismatch(("rules", number, "in"), "needs `turns`, which this row does not have")
        elif not is_of_turns(rule):
            yield Mismatch(("rules", number, "in"), "does not apply: the rule is about the whole row")
        elif rule.in_turns == "any" and not rule.in_any_turn:
            yield Mismatch(("rules", number, "in"), NOT_IN_ANY)


def _written(rules: Iterable[Rule]) -> Iterator[RowRule]:
    """Yield the rules about turns that somebody wrote, as entries of ``rules`` or as other fields."""
    for rule in rules:
        if isinstance(rule, RowRule) and is_of_turns(rule) and not isinstance(rule, Answered):
            yield rule


def _of_row(rules: Sequence[Rule], without: Sequence[int], turns: int) -> Iterator[Rule]:
    """Yield the rules of the row, applied to turns; without ``in``, to those that have no rules of their own.

    Nobody writes the rule that there is an answer. If all other rules apply to the last turn only, it does so, too.
    """
    hows = [rule.in_turns for rule in _written(rules)]
    only_last = bool(hows) and set(hows) == {"last"}
    for rule in rules:
        if not isinstance(rule, RowRule) or not is_of_turns(rule):
            yield rule
            continue
        how = "last" if only_last else rule.in_turns
        chosen = {"last": [turns - 1], None: without}.get(how, range(turns))
        if chosen:
            yield InTurns(rule=replace(rule, in_turns=None), turns=tuple(chosen), how="any" if how == "any" else "each")


def _contradictions(row: GoldenRow) -> Iterator[Mismatch]:
    """Yield the faults of fields that are valid on their own."""
    for number, rule in enumerate(row.rules or ()):
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


def _says_something(text: str) -> bool:
    texts = TEXTS.load()
    return bool(texts.says_something(texts.Answer(text)))


def _nothing_to_see(row: GoldenRow) -> Iterator[Mismatch]:
    """Yield texts that an answer cannot be compared with."""
    texts: list[tuple[tuple[str | int, ...], str]] = [] if row.reference is None else [(("reference",), row.reference)]
    for field in ("reference_claims", "reference_contexts"):
        texts += [((field, number), text) for number, text in enumerate(getattr(row, field) or ())]
    if not texts or row.as_evaluated is not None:
        return
    for path, text in texts:
        first = text[:1]
        is_plain = first.isascii() and first.isalnum()  # the common case: no markup removes it
        if is_plain:
            continue
        if fault := MATCHERS.load().text_fault(text):
            yield Mismatch(path, fault)
        elif path[0] == "reference_claims" and not _says_something(text):
            yield Mismatch(path, f"{SAYS_NOTHING} a claim of the reference")


def _refusing_and_answering(row: GoldenRow) -> Iterator[Mismatch]:
    """Yield rules that contradict each other, because one wants a refusal and the other wants an answer."""
    entries = row.rules or ()
    refusing = [(index, rule) for index, rule in enumerate(entries) if isinstance(rule, MustRefuse)]
    answering = [(index, rule) for index, rule in enumerate(entries) if isinstance(rule, MustNotRefuse)]
    for (first, refuse), (second, answer) in product(refusing, answering):
        if row.turns is None or _in_one_turn(refuse.in_turns, answer.in_turns):
            message = f"must_not_refuse contradicts must_refuse in rules[{first}]; take one of them out"
            yield Mismatch(("rules", second), message)
    if row.expected_mode == ABSTAIN and row.turns is None:
        for index, _ in answering:
            yield Mismatch(("rules", index), "must_not_refuse contradicts expected_mode, abstain; take one of them out")


def _in_one_turn(first: str | None, second: str | None) -> bool:
    """Return whether two rules with these values of ``in`` always share a turn."""
    return "each" in {first, second} or (first == second != "any")


def _rules(row: GoldenRow) -> Iterator[Rule]:
    """Yield the rule that there is an answer, then the entries of ``rules``, then the rules made from other fields."""
    rules = [*(row.rules or ()), *element_rules(row)]
    if any(isinstance(rule, RowRule) and rule.about_answer for rule in rules):
        refusal_answers = any(isinstance(rule, MustRefuse) for rule in rules)
        yield Answered(refusal_answers=refusal_answers, blank_answers=row.as_evaluated is not None)
    yield from rules
    if row.expected_mode is not None:
        yield ExpectedMode(mode=row.expected_mode)


def _expected(row: GoldenRow, calls: tuple[Struct, ...] | None) -> ExpectedAnswer | None:
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


READINGS: dict[str, Reading] = {  # how a bare text is read
    "answer_must_include": "text",
    "forbidden_claims": "regex",
    "allowed_phrases": "regex",
    "required_elements": "text",
    "forbidden_elements": "text",
}
MATCHED = READINGS.keys() - {"answer_must_include"}  # fields that may have matchers; the other has texts only
FILL_IN = (
    'write a text that a right answer contains; or, if nothing answers it, only "rules": [{"type": "must_refuse"}]'
)
OPTIONS = {  # fields that need another field, and the reason
    "allowed_phrases": ("forbidden_claims", "to allow some of them within these phrases"),
    "min_required": ("required_elements", "to say how many of them are enough"),
}


def element_faults(row: GoldenRow) -> Iterator[Mismatch]:
    """Yield the faults of claims, elements and texts; if imported ``as_evaluated``, only what cannot be searched."""
    for field, reading in READINGS.items():
        elements: Sequence[AsWritten] | None = getattr(row, field)
        if elements is None:
            continue
        if not elements and row.as_evaluated is None:
            yield Mismatch((field,), "is empty; leave it out, or give at least one")
        if field == "answer_must_include" and PLACEHOLDER in elements:
            yield Mismatch((field, elements.index(PLACEHOLDER)), f"still is the placeholder {PLACEHOLDER!r}; {FILL_IN}")
        first: dict[AsWritten, int] = {}
        for number, element in enumerate(elements):
            yield from _faults_of(element, reading, (field, number), as_evaluated=row.as_evaluated is not None)
            if first.setdefault(element, number) != number and row.as_evaluated is None:
                yield Mismatch((field, number), f"repeats {field}[{first[element]}]; leave one of them out")
    for field, (needed, why) in OPTIONS.items():
        if getattr(row, field) is not None and getattr(row, needed) is None:
            yield Mismatch((field,), f"needs {needed}, {why}")
    least, elements = row.min_required, row.required_elements
    if least is not None and elements is not None and row.as_evaluated is None and least > len(elements):
        yield Mismatch(("min_required",), f"is {least}, more than the {len(elements)} in required_elements")


def _faults_of(
    element: AsWritten, reading: Reading, path: tuple[str | int, ...], *, as_evaluated: bool
) -> Iterator[Mismatch]:
    if isinstance(element, str) and path[0] in MATCHED and (fault := MATCHERS.load().matcher_as_text(element)):
        yield Mismatch(path, fault)
        return
    if as_evaluated and _is_plain(element, reading):
        return  # an empty text counts, too
    for inner, message in MATCHERS.load().faults(element, reading, of_answers=not as_evaluated):
        yield Mismatch((*path, *inner), message)


def _is_plain(element: AsWritten, reading: Reading) -> bool:
    """Return whether an element is a text or an empty pattern, which cannot be wrong."""
    if isinstance(element, str):
        return reading == "text"
    return element.any is None and not element.regex and (element.text is None) != (element.regex is None)


def element_rules(row: GoldenRow) -> Iterator[Rule]:
    """Yield the rules that are made from claims, elements and texts."""
    as_evaluated = row.as_evaluated is not None
    if row.answer_must_include is not None:
        yield AnswerMustInclude(value=tuple(row.answer_must_include))
    if row.forbidden_claims is not None:
        yield ForbiddenClaims(
            claims=_matchers(row, "forbidden_claims"),
            allowed=_matchers(row, "allowed_phrases"),
            as_evaluated=as_evaluated,
        )
    if row.required_elements is not None:
        elements = _matchers(row, "required_elements")
        least = len(elements) if row.min_required is None else row.min_required
        yield RequiredElements(elements=elements, least=least, as_evaluated=as_evaluated)
    if row.forbidden_elements is not None:
        yield ForbiddenElements(elements=_matchers(row, "forbidden_elements"), as_evaluated=as_evaluated)


def _matchers(row: GoldenRow, field: str) -> tuple[Matcher, ...]:
    """Return the matchers of a field; in a row imported ``as_evaluated``, they stay as they are written."""
    matcher = MATCHERS.load().matcher
    written: Sequence[AsWritten] = getattr(row, field) or ()
    return tuple(matcher(element, READINGS[field], compose=row.as_evaluated is None) for element in written)


SAYS_NOTHING = "has no letter, digit or symbol that a reader sees; write"
Written = Sequence[str | CriterionJson]


def criteria_of(written: Written) -> tuple[Criterion, ...]:
    """Return the statements that a judge is asked about; a criterion without an ``id`` has its number, from 1."""
    return tuple(
        Criterion(id=str(number), text=entry) if isinstance(entry, str) else Criterion(id=entry.id, text=entry.text)
        for number, entry in enumerate(written, 1)
    )


def criteria_faults(written: Written) -> Iterator[Mismatch]:
    """Yield the faults of criteria: none, too many, some that say nothing or share an id or a text."""
    criteria = criteria_of(written)
    if not criteria:
        yield Mismatch(("criteria",), "is empty; give at least one criterion, or leave it out")
    if len(criteria) > bounds.CRITERIA:
        yield Mismatch(("criteria",), f"has {len(criteria):,} criteria; at most {bounds.CRITERIA} can be judged")
        return
    ids, texts = dict[str, int](), dict[str, int]()
    for at, criterion in enumerate(criteria):
        has_id = not isinstance(written[at], str)
        if not _says_something(criterion.text):
            yield Mismatch(("criteria", at, *(("text",) if has_id else ())), f"{SAYS_NOTHING} what the answer must be")
        if (first := ids.setdefault(criterion.id, at)) != at:
            path = ("criteria", at, *(("id",) if has_id else ()))
            yield Mismatch(
                path, f"has the id {criterion.id!r} of criteria[{first}]; without an id, a criterion has its number"
            )
        if (first := texts.setdefault(criterion.text, at)) != at:
            yield Mismatch(("criteria", at), f"repeats criteria[{first}]; leave one of them out")


FIELD = "reference_tool_calls"
FLAT: tuple[str, ...] = (*NAMES, *ARGUMENTS, "id", "type")
NESTED = ("name", "arguments")
EXAMPLE = 'as {"name": "get_order", "arguments": {"id": "1234"}}'


def reference_calls(written: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...] | list[Mismatch]:
    """Return the calls of ``reference_tool_calls``, written in any form that calls of run rows have, or the faults."""
    if len(written) > bounds.REFERENCE_CALLS:
        message = f"has {len(written):,} calls; expected at most {bounds.REFERENCE_CALLS:,}"
        return [Mismatch((FIELD,), message)]
    wrong = [mismatch for number, call in enumerate(written) for mismatch in _wrong(call, (FIELD, number))]
    if wrong:
        return wrong
    calls = tool_calls(written)
    if (count := sum(len(call.arguments or {}) for call in calls)) > bounds.ARGUMENTS:
        return [Mismatch((FIELD,), f"has {count:,} arguments in all; expected at most {bounds.ARGUMENTS:,}")]
    return calls


def _wrong(call: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Mismatch]:
    known: tuple[str, ...] = FLAT
    inner: Any = call
    if "function" in call:
        path, known, inner = (*path, "function"), NESTED, call["function"]
        if not isinstance(inner, dict):
            yield Mismatch(path, f"expected an object with name and arguments, found {shown(inner)}")
            return
    unknown = [name for name in inner if name not in known]
    for name in unknown:
        near = nearest(name, known)
        advice = f"did you mean {near!r}?" if near else f"expected one of {', '.join(known)}"
        yield Mismatch((*path, name), f"unknown key; {advice}")
    if not unknown:
        yield from _wrong_values(inner, path)


def _wrong_values(call: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Mismatch]:
    names = [name for name in NAMES if call.get(name) is not None]
    keys = [name for name in ARGUMENTS if call.get(name) is not None]
    for several in (names, keys):
        if len(several) > 1:
            yield Mismatch((*path, several[1]), f"stands beside {several[0]}; leave one of them out")
            return
    if not names:
        yield Mismatch((*path, "name"), f"is missing; write a call {EXAMPLE}")
        return
    name = call[names[0]]
    if not isinstance(name, str) or not 1 <= len(name) <= bounds.ID:
        yield Mismatch((*path, names[0]), f"expected text of 1 to {bounds.ID:,} characters, found {shown(name)}")
    elif tool_calls([call])[0].arguments is None:
        value = shown(call[keys[0]])
        expected = f"expected a JSON object of at most {bounds.ARGUMENT_LEVELS} levels, or its text"
        yield Mismatch((*path, keys[0]), f"{expected}, found {value}")
