"""What is a pattern among the arguments of a rule on tool calls, what looks like one, and in what one is searched."""

import json
from collections.abc import Iterator

from ragcontract.core import bounds
from ragcontract.core.nearest import NearNames

PATTERN = "regex"
OPTIONS = frozenset({"ignore_case", "word", "dot_all"})
# Other names of a pattern, which no argument of a tool is likely to have.
MISNAMED = frozenset({"re", "reg", "regular_expression", "regex_pattern", "regexp_pattern"})
# How other fields and tools write what is searched for. A tool may have such an argument, too.
LIKELY = frozenset(
    {
        "text", "any", "any_of", "anyof", "all", "all_of", "allof", "one_of", "oneof", "in", "not", "pattern", "match",
        "matches", "contains", "contain", "icontains", "includes", "starts_with", "startswith", "ends_with", "endswith",
        "prefix", "suffix", "glob", "wildcard", "like", "equals", "eq", "value",
    }
)  # fmt: skip
AS_PATTERN = 'is compared as a value, not searched for; write {"regex": …}, which is also searched for within objects'


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
    """Yield the paths of keys in a value that look like matchers: patterns within it, and those of other fields."""
    key = _only_key(value)
    if key is not None and (key == PATTERN or _plain(key) in LIKELY or misspelled_pattern(value)):
        yield (key,)
        return
    if level > bounds.ARGUMENT_LEVELS:  # which is refused
        return
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        for path in likely_matchers(item, level + 1):
            yield (str(name), *path)


def texts_in(value: object) -> Iterator[str]:
    """Yield all that a value has as texts: numbers and booleans as JSON writes them, and the keys of objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)
    elif value is not None:
        yield json.dumps(value)
        if isinstance(value, float) and value.is_integer():  # 900.0 is 900
            yield str(int(value))


def _only_key(value: object) -> str | None:
    """Return the key of an object that has no other, but for the options of a matcher."""
    keys = [key for key in value if _plain(key) not in OPTIONS] if isinstance(value, dict) else []
    return keys[0] if len(keys) == 1 else None


def _plain(key: str) -> str:
    return key.casefold().replace("-", "_").replace(" ", "_")
