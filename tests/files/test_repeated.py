"""Problems that repeat from row to row."""

import re

from ragcontract.core.phrase import Location, Message, Name
from ragcontract.files.problems import Collector, MoreProblems, Problems


def at(text: str) -> Location:
    """Return the location with this text."""
    path, _, field = text.partition(": ")
    parts = [int(part) if part.isdecimal() else part for part in re.findall(r"\w+", field)]
    return Location.of_report(path).at(*parts)


def collected(*problems: tuple[str, str], more: int = 0) -> Problems:
    found = Collector()
    for location, message in problems:
        found.problem(at(location), message)
    if more:
        found.add(MoreProblems(more))
    return found.collected()


def test_up_to_three_problems_of_a_sort_are_each_described_in_their_order() -> None:
    problems = [("a:1: x", "is 1"), ("a:2: y", "is 2"), ("a:3: x", "is 3"), ("a:4: x", "is 4")]
    assert collected(*problems).problems == tuple(f"{location}: {message}" for location, message in problems)


def test_more_are_described_once_with_their_lines() -> None:
    found = collected(*((f"a:{line}: x[{line}].y", f"is {line}") for line in (1, 2, 3, 5, 7, 8)), ("b", "other"))
    assert found.problems == ("a:1: x[1].y: is 1 (and 5 more like this, in lines 1 to 3, 5, 7 to 8)", "b: other")
    assert found.more == 0


def test_files_fields_and_messages_are_distinguished() -> None:
    problems = [(f"{file}:{line}: {field}", message) for file in "ab" for field in "xy" for message in ("is", "has")
                for line in (1,)]  # fmt: skip
    assert len(collected(*problems).problems) == 8


def test_what_was_only_counted_is_of_the_only_sort_there_is() -> None:
    found = collected(*((f"a:{line}", "is bad") for line in range(1, 5)), more=90)
    assert (found.problems, found.more) == (("a:1: is bad (and 93 more like this, in lines 1 to 4, …)",), 0)
    found = collected(*((f"a:{line}", "is bad") for line in range(1, 5)), ("b", "x"), more=90)
    assert (len(found.problems), found.more) == (2, 90)


def test_a_sort_that_repeats_leaves_room_for_others() -> None:
    found = collected(*((f"a:{line}", "is bad") for line in range(1, 200)), *((f"f{n}", "no such file") for n in "xyz"))
    assert (len(found.problems), found.more) == (4, 0)


def test_problems_in_one_line_are_in_this_line() -> None:
    found = collected(*((f"a:1: x[{n}]", "is bad") for n in range(5)))
    assert found.problems == ("a:1: x[0]: is bad (and 4 more like this, in this line)",)


def test_what_different_queries_lack_is_distinguished_by_what_it_is_and_not_by_the_query() -> None:
    fields = enumerate(["label", "mode"] * 4)
    lacking = [Message.quoting(Name(f'query "q{line}" '), f"has no {field}; export it") for line, field in fields]
    found = collected(*((f"a:{line}", message) for line, message in enumerate(lacking, 1)))
    assert [problem.partition(" (and")[2] for problem in found.problems] == [
        f" 3 more like this, in lines {lines})" for lines in ("1, 3, 5, 7", "2, 4, 6, 8")
    ]
