"""All patterns of fitz-gov 4.1.0 mean on RE2 what they mean in Python, on texts that match and on their variants."""

import json
import random
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.regexes import compiled

FIELDS = ("forbidden_claims", "allowed_phrases", "required_elements", "forbidden_elements")
CHARS = {code.CATEGORY_DIGIT: "47٣", code.CATEGORY_SPACE: " \n\xa0\u3000", code.CATEGORY_WORD: "aé_9가"}
NOTHING, ANYTHING = "", "x é-9\xa0"
VARIANTS: tuple[tuple[str, dict[int, Any]], ...] = (
    ("as it is", str.maketrans({})),
    ("other blanks", str.maketrans({" ": "\xa0"})),
    ("other digits", str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")),
    ("accents", str.maketrans("eao", "éäø")),
    ("letters that fold", str.maketrans("sk", "ſ\u212a")),
)


def patterns() -> Iterator[str]:
    """Yield the patterns of the packaged cases that Python compiles."""
    found: dict[str, None] = {}
    for path in sorted(files("fitz_gov").joinpath("data").rglob("*.json")):  # type: ignore[attr-defined]
        data = json.loads(path.read_text("utf-8"))
        cases = data.get("cases", []) if isinstance(data, dict) else []
        for settings in [*(case.get("evaluation_config") or {} for case in cases), data if cases else {}]:
            found |= dict.fromkeys(settings.get("evaluation_config", settings).get("allowed_phrases", []))
        found |= dict.fromkeys(one for case in cases for field in FIELDS for one in case.get(field) or [])
    for pattern in found:
        try:
            re.compile(pattern)
        except re.error:
            continue
        yield pattern


def matching(tokens: Iterable[tuple[Any, Any]], dice: random.Random) -> str:
    """Return a text that a parsed pattern matches, or nearly."""
    return "".join(_one(kind, value, dice) for kind, value in tokens)


def _one(kind: Any, value: Any, dice: random.Random) -> str:
    if kind is code.LITERAL:
        return chr(value)
    if kind is code.IN:
        negated = value[0][0] is code.NEGATE
        inner, member = dice.choice([one for one in value if one[0] is not code.NEGATE])
        return dice.choice(ANYTHING) if negated else _member(inner, member, dice)
    if kind in {code.MAX_REPEAT, code.MIN_REPEAT}:
        least, most, inner = value
        return "".join(matching(inner, dice) for _ in range(dice.randint(least, min(int(most), least + 3))))
    if kind is code.SUBPATTERN:
        return matching(value[-1], dice)
    if kind is code.BRANCH:
        return matching(dice.choice(value[1]), dice)
    return dice.choice(ANYTHING) if kind in {code.ANY, code.NOT_LITERAL} else NOTHING


def _member(kind: Any, value: Any, dice: random.Random) -> str:
    if kind is code.CATEGORY:
        return dice.choice(CHARS.get(value, ANYTHING))
    return chr(dice.randint(*value) if kind is code.RANGE else value)


def test_all_patterns_of_fitz_gov_find_what_they_find_in_python() -> None:
    dice, compared, matched = random.Random(3), 0, 0
    for pattern in patterns():
        tokens, ours = parser.parse(pattern, re.IGNORECASE), compiled(pattern)
        for _ in range(3):
            text = f"{dice.choice(['', 'So: '])}{matching(tokens, dice)}{dice.choice(['', '.', ' x', chr(10)])}"
            for name, table in VARIANTS:
                subject = text.translate(table)
                expected = [found.span() for found in re.finditer(pattern, subject, re.IGNORECASE) if found[0]]
                found = [span for span in ours.matches(Answer(subject, compose=False)) if span[0] != span[1]]
                assert found == expected or r"\b" in pattern, (pattern, subject, name)  # \b is that of ASCII
                compared, matched = compared + 1, matched + bool(expected)
    assert compared > 40_000
    assert matched > compared / 2
