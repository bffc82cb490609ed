import json
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragcontract.files.json_text import JsonLocator

TEXT = """
{
  "a": 1, "b\\"{": [
    {"c": "]}"},
    {"c": [
      2,
      {"d": null}]}
  ],
  "": {}
}"""


def test_values_are_found_by_line() -> None:
    locate = JsonLocator(TEXT)
    assert locate.line(()) == 2
    assert locate.line(("a",)) == 3
    assert locate.line(('b"{', 0, "c")) == 4
    assert locate.line(('b"{', 1, "c", 0)) == 6
    assert locate.line(('b"{', 1, "c", 1, "d")) == 7
    assert locate.line(("",)) == 9


def test_what_is_not_there_is_looked_for_where_it_should_be() -> None:
    locate = JsonLocator(TEXT)
    assert locate.line(('b"{', 0, "missing")) == 4
    assert locate.line(('b"{', 9)) == 3
    assert locate.line(("a", "in a number")) == 3
    assert locate.line(("nothing", "at", "all")) == 2


def test_a_number_may_have_any_number_of_digits() -> None:
    assert JsonLocator(f'{{"a": {"9" * 5_000},\n"b": 1}}').line(("b",)) == 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    found = [(path, value)]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        found += paths(inner, (*path, name))
    return found


@given(json_values)
def test_the_line_of_a_value_begins_with_it(value: Any) -> None:
    text = json.dumps(value, indent=1)
    locate, lines = JsonLocator(text), text.split("\n")
    for path, inner in paths(value):
        start = json.dumps(inner, indent=1).split("\n")[0]
        name = f"{json.dumps(path[-1])}: " if path and isinstance(path[-1], str) else ""
        assert lines[locate.line(path) - 1].strip().rstrip(",") == (name + start).strip()


class Counted(str):
    """Text that counts the characters that are searched for line feeds."""

    __slots__ = ()
    searched = 0

    def count(self, sub: str, start: int = 0, end: int = sys.maxsize) -> int:  # type: ignore[override]
        Counted.searched += end - start
        return super().count(sub, start, end)


def test_what_precedes_many_values_is_searched_once() -> None:
    text = Counted("\n" * 10_000 + json.dumps([{"a": number} for number in range(100)]))
    locate = JsonLocator(text)
    assert {locate.line((number, "a")) for number in range(100)} == {10_001}
    assert locate.line(()) == 10_001  # also where an earlier one follows
    assert Counted.searched < 3 * len(text)
