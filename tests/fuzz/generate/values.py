"""Values that go into generated files: plain ones from small pools, so that files refer to each other, and odd ones."""

from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import Any, TypeVar

from ragcontract.contract.limits import limit_keys
from ragcontract.registry import BUILT_IN

T = TypeVar("T")

ODD_TEXTS = (
    *("", " ", "\0", "\t", "\r\n", "\x1b[31mred", "\x7f", "\x85", "\u2028", "\u202e", "\u200b", "\u200b    code"),
    *(
        "\ufeff",
        "\ud800",
        "\udfff\ud800",
        "\ufffe",
        "\U000e0041",
        "\u0301",
        "\u3164",
        "é",
        "e\u0301",
        "😀",
        "漢字",
        "ﬀ",
    ),
    *("@octocat", "octo/app#1", "#1", "GH-1", "5ca1ab1e" * 5, "https://example.com/x", "www.example.com", ":bug:"),
    *(
        "<script>alert(1)</script>",
        "</script>",
        "<!--",
        "-->",
        "<!-- rag-contract name= run=9.9 -->",
        "]]>",
        "<img src=x>",
    ),
    *(
        "</details>",
        "</summary>",
        "&amp;",
        "&#64;",
        "[x](javascript:x)",
        "![x](y)",
        "a|b",
        "`",
        "``",
        "```",
        "$x$",
        "\\",
    ),
    *("\\|", "---", "# x", "- x", "1. x", "    x", "> x", "**x**", "~~x~~", "[^1]", "\n\n", "a\n::error::x"),
    *(
        "::error::x",
        "##[error]x",
        "#\x1b[0m#[error]x",
        "::set-output name=verdict::pass",
        "%0A::warning::",
        "a: b",
        "a, b",
    ),
    *("TODO", "null", "true", "NaN", "Infinity", "0", "00", "-0", "1_000", "0x10", "1e3", "10%", "-5%", "1e400%", "٣"),
    *("..", ".", "/", "../outside/secret", "a/b", "*", "[", "{", "}", "'", '"', "%s", "%n", "{0}", "${{ x }}", "=1+1"),
    *("sha256:" + "0" * 64, "a" * 79, "a" * 81, "x" * 301, "ab " * 400, "y" * 5_000, "\u202e" * 200, "😀" * 100),
    *("2026-12-31", "2026-02-30", "0000-00-00", "9999-12-31T23:59:59Z", "2026-01-02T03:04:05+00:00", "-1", "+1"),
)
ODD_NUMBERS: tuple[float, ...] = (
    *(0, -0.0, -1, 1, 2, 3, 10, 63, 64, 65, 100, 1_000_000_000, 1_000_000_001, 2**31, 2**53, 2**53 + 1, 2**63, 2**64),
    *(10**30, 10**400, 0.1, 0.30000000000000004, 0.5, 1e-9, 1e-10, 5e-324, 1e9, 1e300, 1.7976931348623157e308),
    *(float("nan"), float("inf"), float("-inf"), -1e-9, 0.9999999999, 1.0000000001),
)
DATES = ("2026-12-31", "2026-01-01", "2025-12-31", "9999-12-31", "0001-01-01")
GROWN = 1 / 1_500  # of the cases have very many of something, and take hundreds of times as long to check
# Fields of golden rows that no rule needs, each with metrics of its own.
REFERENCES = (
    *("reference", "reference_claims", "reference_contexts", "reference_tool_calls"),
    *("expected_mode", "expected_label", "criteria", "tier"),
)
QUESTION_WORDS = ("What", "refund", "policy", "for", "enterprise", "HIPAA", "How", "days", "ünïcode", "?")


@lru_cache
def gate_keys() -> tuple[str, ...]:
    """Return the keys of all limits: ``minimums.mrr_at_k``."""
    return tuple(f"{key.section}.{key.name}" for key in limit_keys(BUILT_IN, [1, 3, 5]))


@lru_cache
def rule_names() -> tuple[str, ...]:
    """Return the names of all rules."""
    return tuple(name for line in BUILT_IN.rules for name in line.names)


class Maker:
    """Makes the values of one case; all of them follow from ``random``.

    ``has_baseline`` says whether the case has one, without which no drop can be judged, and ``has_run_before`` whether
    it is a run, of which everything can be measured again. ``grown`` is what the
    case has very many of, in all of its files, so that stages that compare all with all show: ``many``.

    A case is ``about_answers`` or about documents only. Then ``expected`` are the fields that some golden rows have,
    ``turns`` how many turns a query has, ``tiers`` those of the configuration; with ``scores_apart``, some scores are
    in a file of their own.
    """

    def __init__(self, random: Random, oddness: float | None = None) -> None:
        """Choose the names of the case, how many there are, how odd, and how much of each record is filled in."""
        self.random = random
        self.has_baseline = self.has_run_before = True
        self.oddness = random.choice((0.0, 0.0, 0.02, 0.3)) if oddness is None else oddness
        self.fullness = random.choice((0.05, 0.3, 0.8))
        self.grown = random.choice(("queries", "documents", "tags", "waivers")) if self.chance(GROWN) else ""
        self.many = int(10 ** random.uniform(2, 3.3))
        if self.grown:
            self.oddness, self.fullness = 0.0, 0.05
        size = random.choice((1, 2, 3, 5, 8)) if self.chance(0.95) else random.randint(10, 120)
        self.queries = self._names("q", self.many if self.grown in {"queries", "waivers"} else size)
        self.documents = self._names(
            "doc", 4 * self.many if self.grown == "documents" else random.choice((1, 3, 6, 12))
        )
        self.tags = self._names("tag", self.many if self.grown == "tags" else random.choice((1, 2, 4)))
        self.cutoffs = [random.choice((1, 2, 3, 5, 10)) for _ in range(random.choice((1, 1, 1, 2, 3)))]
        self.about_answers = not self.grown and self.chance(0.5)
        self._expect_answers()

    def _expect_answers(self) -> None:
        """Choose what golden rows expect of answers, which run rows and the configuration must know."""
        pick, share = self.random.choice, self.random.choice((0.0, 0.3, 0.8))
        self.expected = {name for name in REFERENCES if self.chance(share)}
        several = self.chance(0.3)
        self.turns = {str(one): pick((0, 1, 2, 3)) for one in self.queries if several and self.chance(0.7)}
        self.tiers: list[str] = pick(([], [], ["sanity"], ["sanity", "core"]))[: len(self.queries)]
        self.scores_apart = self.chance(0.3)

    def _names(self, prefix: str, count: int) -> list[str | int]:
        names: dict[str, str | int] = {}
        for number in range(count):
            name: str | int = self.odd_text() if self.chance(self.oddness) else f"{prefix}{number}"
            if self.chance(0.02):
                name = number
            names.setdefault(str(name), name)
        return list(names.values())

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[int(self.random.random() * len(items))]

    def some(self, items: Sequence[T], most: int) -> list[T]:
        """Return up to ``most`` different items in any order; all of them if they are what the case has many of."""
        if self.grown == "documents" and items is self.documents:
            return self.random.sample(items, len(items))
        return self.random.sample(items, self.random.randint(0, min(most, len(items))))

    def odd_text(self) -> str:
        """Return a text that a format, a parser or a renderer may stumble over."""
        text = self.pick(ODD_TEXTS)
        while self.chance(0.2):
            text += self.pick(ODD_TEXTS)
        return text

    def text(self) -> str:
        """Return a few words."""
        if self.chance(self.oddness):
            return self.odd_text()
        return " ".join(self.pick(QUESTION_WORDS) for _ in range(self.random.randint(1, 6)))

    def whole(self, low: float = 0, high: float = 10) -> int:
        """Return a whole number, mostly a small one."""
        if self.chance(0.05):
            return int(self.random.choice((low, min(high, 10**9))))
        return self.random.randint(int(low), int(max(low, min(high, low + 10))))

    def number(self, low: float = 0.0, high: float = 1.0) -> float:
        """Return a number, mostly a short one, at times one of the bounds."""
        if self.chance(0.1):
            return self.random.choice((low, high))
        drawn = low + self.random.random() * min(high - low, 1000.0)
        return max(float(low), round(drawn, self.random.choice((1, 2, 12))))

    def anything(self, depth: int = 2) -> Any:
        """Return a JSON value of any type."""
        shape = self.random.random()
        if depth and shape < 0.15:
            return [self.anything(depth - 1) for _ in range(self.random.randint(0, 3))]
        if depth and shape < 0.3:
            return {self.odd_text(): self.anything(depth - 1) for _ in range(self.random.randint(0, 3))}
        if shape < 0.6:
            return self.odd_text()
        return self.pick(ODD_NUMBERS) if shape < 0.85 else self.pick((None, True, False))


def question(query_id: str | int) -> str:
    """Return the question of a query, which is the same in all files of a case."""
    return f"What about {query_id}?"
