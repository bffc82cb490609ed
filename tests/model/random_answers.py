"""Random answers, tool calls and the rules on them: few words in many forms, so that rules meet what they name."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.model.answers import MODES
from tests.model.workspace import Row

WORDS = ("refund", "30 days", "price", "free", "secret", "order", "café", "цена", "5", "don't", "two-day", "Straße")
ASCII_WORDS = ("refund", "days", "price", "free", "secret", "order", "paid", "later")
PATTERNS = (
    r"\bfree\b",
    r"refund.*days",
    r"\d+ days",
    "price|cost",
    "secret",
    r"[0-9]",
    "order.",
    r"(?:pri)ce\s",
    "x",
    r"^(?:free|no)\b",
    r"\w+ days$",
)
AROUND = (("# ", ""), ("- ", ""), ("1. ", "\n\n"), ("\n\n", ""), (" ", "  "), ("<p>", "</p>"), ("&nbsp;", "\n"))
BETWEEN = (" ", " ", " ", ". ", ", ", "\n", " [1-2] ", " [2026] ", " [Source 2] ", " [#1] ")
ALLOWED = (r"not .*", r"never free", r"refund.{0,30}days", "no price")
REFUSALS = ("I can't help with that.", "Well, I can’t  help with `this`.", "That is none of my business.")
OWN_PHRASE = "none of my business"
INVISIBLE = ("\u200b", "\u00ad", "\u2060", "\u202e", "\u034f", "\ufe0f", "\u115f", "\U000e0041", "\x07")
SAYS_NOTHING = (
    "None",
    "null",
    "<p>None</p>",
    "**null**",
    '"None"',
    "- NaN\n- NaN",
    "[object Object], [object Object]",
    ".",
    "-",
    "**",
    "```\n```",
    "\u200b",
    "...",
    "<br>",
    "&shy;",
    "&nbsp;",
    "\u034f!",
    "---",
    "``",
    "<b></b>",
)
SAYS_SOMETHING = ("🙂", "価格", "€", "&euro;", "<b>1</b>", "√", "é")
TOOLS = ("find", "refund", "send_mail")
VALUES: tuple[Any, ...] = (1, 1.0, "1", True, "true", None, "a", [1, "a"], {"x": 1}, 0)
SCHEMAS: tuple[Row, ...] = (
    {"type": "object", "required": ["price"], "properties": {"price": {"type": "number"}}},
    {"enum": [1, "a", None]},
    {"type": "array", "maxItems": 1},
)
JSON_ANSWERS = (
    '{"price": 5}',
    '{"price": "5"}',
    "1",
    "[1, 2]",
    "```json\n[1]\n```",
    "```\n{}\n```",
    '{"price": 5',
    "null",
)


def decorated(rng: random.Random, word: str) -> str:
    """Return a word in a form that makes no difference when texts are compared."""
    forms = (
        lambda: word,
        lambda: word.upper() if "ß" not in word else word,
        lambda: f"**{word}**",
        lambda: f"`{word}`",
        lambda: word.replace(" ", "  "),
        lambda: word.replace("'", "’").replace("-", "–"),
        lambda: f"{word[:1]}\u200b{word[1:]}",
        lambda: word.replace("3", "３").replace("e", "e\u200d"),
        lambda: f"[{word}](https://example.com/{rng.choice(('free', 'secret', 'x'))})",
        *_hidden_forms(rng, word),
    )
    return rng.choice(forms)() if rng.random() < 0.5 else word


def _hidden_forms(rng: random.Random, word: str) -> tuple[Callable[[], str], ...]:
    """Return makers of forms that a page shows as the word, although it is written in another way."""
    first, rest = word[:1], word[1:]
    return (
        lambda: first + rng.choice(INVISIBLE) + rest,
        lambda: f"{first}<b>{rest}</b>",
        lambda: f"{first}<!-- x -->{rest}",
        lambda: f"<td>{word}</td>",
        lambda: word.replace(" ", "<br>"),
        lambda: f"&#{ord(first)};{rest}",
        lambda: f"{first}&amp;shy;{rest}",
        lambda: f"[{word}](target and {rng.choice(WORDS)})",
        lambda: f'[x](target "{word}")',
        lambda: f"_{word}_",
        lambda: f"*{word}*",
        lambda: f"~~{word}~~",
        lambda: f"{first}\\_{rest}",
    )


def answer(rng: random.Random) -> str | None:
    """Return an answer, a refusal, JSON, or nothing that counts as an answer."""
    kind = rng.random()
    if kind < 0.04:
        return rng.choice((None, "", "  ", "\n"))
    if kind < 0.12:
        return rng.choice(REFUSALS)
    if kind < 0.16:
        return rng.choice(JSON_ANSWERS)
    if kind < 0.2:
        return rng.choice(SAYS_NOTHING + SAYS_SOMETHING)
    return sentence_of(rng)


def sentence_of(rng: random.Random) -> str:
    """Return some words in one or several sentences, sometimes with citations."""
    parts = []
    for _ in range(rng.randint(1, 7)):
        word = rng.choice((*WORDS, "not", "never", "is", "no", "therefunding", "a_free_b"))
        parts.append(decorated(rng, word))
        parts.append(rng.choice((*BETWEEN, f" [{rng.randint(0, 4)}] ")))
    before, after = rng.choice(AROUND) if rng.random() < 0.2 else ("", "")
    return f"{before}{''.join(parts).strip()}{after}"


def text(rng: random.Random) -> str:
    """Return a text that a rule names."""
    word = decorated(rng, rng.choice(WORDS))
    return word if rng.random() < 0.8 else f"{word} {rng.choice(WORDS)}"


def single(rng: random.Random) -> Row:
    """Return a matcher of a text or a pattern."""
    if rng.random() < 0.3:
        return {"regex": rng.choice(PATTERNS), **_flags(rng, "ignore_case", "dot_all")}
    return {"text": text(rng), **_flags(rng, "ignore_case", "word")}


def _flags(rng: random.Random, *names: str) -> Row:
    return {name: rng.random() < 0.5 for name in names if rng.random() < 0.4}


def element(rng: random.Random) -> str | Row:
    """Return an element of a golden row: a text, a matcher or alternatives."""
    kind = rng.random()
    if kind < 0.5:
        return text(rng)
    if kind < 0.8:
        return single(rng)
    return {"any": different([text(rng) if rng.random() < 0.5 else single(rng) for _ in range(rng.randint(1, 3))])}


def different(items: Sequence[Any]) -> list[Any]:
    """Return the items without those that repeat another one."""
    return list({json.dumps(item, sort_keys=True): item for item in items}.values())


def answer_fields(rng: random.Random) -> Row:
    """Return the fields of a golden row that say what its answer must be."""
    fields: Row = {}
    if rng.random() < 0.25:
        fields["answer_must_include"] = different([text(rng) for _ in range(rng.randint(1, 2))])
    if rng.random() < 0.25:
        fields["forbidden_claims"] = rng.sample(PATTERNS, rng.randint(1, 2))
        if rng.random() < 0.3:
            fields["forbidden_claims"].append({"regex": rng.choice(PATTERNS), **_flags(rng, "ignore_case")})
        if rng.random() < 0.5:
            fields["allowed_phrases"] = [rng.choice(ALLOWED)]
    if rng.random() < 0.25:
        fields["required_elements"] = different([element(rng) for _ in range(rng.randint(1, 3))])
        if rng.random() < 0.6:
            fields["min_required"] = rng.randint(1, len(fields["required_elements"]))
    if rng.random() < 0.2:
        fields["forbidden_elements"] = different([element(rng) for _ in range(rng.randint(1, 2))])
    if rng.random() < 0.2:
        fields["expected_mode"] = rng.choice(MODES)
    if rng.random() < 0.1:
        fields["expected_label"] = rng.choice(("a", "b", "c"))
    return fields


def similarity_fields(rng: random.Random) -> Row:
    """Return what metrics on texts compare the answer or the contexts with."""
    fields: Row = {}
    if rng.random() < 0.2:
        fields["reference"] = " ".join(rng.choices(ASCII_WORDS, k=rng.randint(1, 6)))
    if rng.random() < 0.2:
        fields["reference_contexts"] = [context(rng) for _ in range(rng.randint(1, 3))]
    return fields


def context(rng: random.Random) -> str:
    """Return a passage of ASCII words."""
    return " ".join(rng.choices(ASCII_WORDS, k=rng.randint(1, 6)))


def rule(rng: random.Random, scores: Sequence[str]) -> Row:
    """Return a rule of a golden row."""
    makers = (_contents, _contents, _contents, _regex, _refusal, _other, _tool, _tool, _score if scores else _other)
    return rng.choice(makers)(rng, scores)


def _contents(rng: random.Random, _: Sequence[str]) -> Row:
    made: Row = {"type": rng.choice(("must_contain", "must_not_contain"))}
    listed = different([text(rng) for _ in range(rng.randint(1, 3))])
    made |= rng.choice(({"value": listed[0]}, {"value": listed}, {"any": listed}))
    return made | _flags(rng, "ignore_case", "word")


def _regex(rng: random.Random, _: Sequence[str]) -> Row:
    kind = rng.choice(("regex_must_match", "regex_must_not_match"))
    return {"type": kind, "pattern": rng.choice(PATTERNS), **_flags(rng, "ignore_case", "dot_all")}


def _refusal(rng: random.Random, _: Sequence[str]) -> Row:
    return {"type": rng.choice(("must_refuse", "must_not_refuse", "must_not_refuse"))}


def _other(rng: random.Random, _: Sequence[str]) -> Row:
    return rng.choice(
        (
            {"type": "json_schema", "schema": rng.choice(SCHEMAS)},
            {"type": "max_chars", "value": rng.choice((3, 10, 40, 100))},
            {"type": "must_cite"},
            {"type": "check", "name": rng.choice(("pii", "style"))},
        )
    )


def _tool(rng: random.Random, _: Sequence[str]) -> Row:
    kind = rng.choice(("must_call_tool", "must_call_tool", "must_not_call_tool", "tool_arguments_valid"))
    if kind == "tool_arguments_valid":
        return {"type": kind}
    made: Row = {"type": kind, "tool": rng.choice(TOOLS)}
    if rng.random() < 0.6:
        made["arguments"] = {
            name: {"regex": rng.choice(("^[0-9]+$", "a", "^tr"))} if rng.random() < 0.2 else rng.choice(VALUES)
            for name in rng.sample(("id", "to", "n"), rng.randint(0, 2))
        }
    if kind == "must_call_tool" and rng.random() < 0.5:
        made["at_least"] = rng.randint(1, 2)
        if rng.random() < 0.5:
            made["at_most"] = rng.randint(made["at_least"], 3)
    return made


def _score(rng: random.Random, scores: Sequence[str]) -> Row:
    kind = rng.choice(("min_score", "max_score", "max_hallucination_risk", "composite"))
    higher = [name for name in scores if name != "toxicity"]
    if kind == "max_score" and "toxicity" in scores:
        return {"type": kind, "metric": "toxicity", "value": rng.choice((0.25, 0.5, 0.75))}
    if kind == "max_hallucination_risk" and "faithfulness" in scores:
        return {"type": kind, **({"threshold": rng.choice((0.25, 0.5, 0.7, 0.75))} if rng.random() < 0.7 else {})}
    if kind == "composite" or not higher:
        return {"type": "composite", "minimum": rng.choice((0.25, 0.5, 0.75)), "metrics": list(scores)}
    name = rng.choice(higher)
    return {"type": "min_score", "metric": name, "value": rng.choice((2, 3) if name == "rating" else (0.25, 0.5, 0.75))}
