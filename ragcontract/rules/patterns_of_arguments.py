"""What is a pattern among the arguments of a rule on tool calls, what looks like one, and in what one is searched."""

import re
from collections.abc import Iterator

from ragcontract.core import bounds
from ragcontract.core.nearest import NearNames

PATTERN = "regex"
OPTIONS = frozenset({"ignorecase", "word", "dotall"})
# Other names of a pattern, which no argument of a tool is likely to have.
MISNAMED = frozenset({"re", "reg", "regularexpression", "regexpattern", "regexppattern"})
# How other fields and tools compare numbers and describe values; without what joins words.
COMPARING = frozenset(
    {
        "gt", "gte", "ge", "lt", "lte", "le", "ne", "neq", "nin", "notin", "min", "max", "minimum", "maximum",
        "between", "range", "greaterthan", "greaterthanorequal", "greaterthanorequals", "lessthan", "lessthanorequal",
        "lessthanorequals", "exclusiveminimum", "exclusivemaximum", "above", "below", "over", "under", "atleast",
        "atmost", "minlength", "maxlength", "enum", "const", "exists", "operator", "op", "pattern",
    }
)  # fmt: skip
# How they write what is searched for. A tool may have such an argument, too.
LIKELY = COMPARING | {
    "text", "any", "anyof", "all", "allof", "oneof", "in", "not", "match", "matches", "contains", "contain",
    "icontains", "includes", "startswith", "endswith", "prefix", "suffix", "glob", "wildcard", "like", "ilike",
    "equals", "eq", "value", "type",
}  # fmt: skip
# Texts that compare numbers (">100"), or that have what only patterns have: a star at an end, ".*", "^", classes.
_COMPARES = re.compile(r"\s*(?:[<>]=?|[!=]=|[≤≥≠])\s*[-+$€£]?[0-9.]")
_AS_PATTERN = re.compile(r"%|%\S*%|\S*\*|\*\S*|\^.*|.*\.[*+].*|.*\\[bdswBDSW](?![A-Za-z]).*", re.DOTALL)
AS_PATTERN = (
    'is compared as a value, not searched for; write {"regex": …}, which is also searched for within objects, as in '
    r'{"regex": "^[0-9]{3,}$"} for numbers from 100, or {"regex": "^\\*$"} for a star'
)


def is_pattern(value: object) -> bool:
    """Return whether the value of an argument is a pattern for texts."""
    return isinstance(value, dict) and PATTERN in value


def misspelled_pattern(value: object) -> str | None:
    """Return the key of an object that is nearly that of a pattern, where nothing but options is beside it."""
    key = _only_key(value)
    if key is None or key == PATTERN:
        return None
    return key if _plain(key) in MISNAMED or NearNames((PATTERN,)).misspelled(key) else None


def likely_matchers(value: object, level: int = 0) -> Iterator[tuple[str, ...]]:
    """Yield the paths in a value of what looks like a matcher: patterns, and how other fields and tools write them."""
    if isinstance(value, str) and (_COMPARES.match(value) or _AS_PATTERN.fullmatch(value)):
        yield ()
        return
    if (key := _key_of_matcher(value)) is not None:
        yield (key,)
        return
    if level > bounds.ARGUMENT_LEVELS:  # which is refused
        return
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        for path in likely_matchers(item, level + 1):
            yield (str(name), *path)


def _key_of_matcher(value: object) -> str | None:
    """Return the key that makes an object look like a matcher: its only one, or one that compares beside others."""
    key = _only_key(value)
    if key is not None:
        return key if key == PATTERN or _plain(key) in LIKELY or misspelled_pattern(value) else None
    names = [key for key in value if _plain(key) not in OPTIONS] if isinstance(value, dict) else []
    if not all(_plain(name) in LIKELY for name in names):
        return next((name for name in names if name.startswith("$")), None)
    return next((name for name in names if _plain(name) in COMPARING), None)


def _only_key(value: object) -> str | None:
    """Return the key of an object that has no other, but for the options of a matcher."""
    keys = [key for key in value if _plain(key) not in OPTIONS] if isinstance(value, dict) else []
    return keys[0] if len(keys) == 1 else None


def _plain(key: str) -> str:
    return re.sub(r"[\W_]+", "", key.casefold())
