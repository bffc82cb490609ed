"""The hidden first line of a comment, read back."""

import hashlib

import pytest

from ragcontract.core import bounds
from ragcontract.github.marker import NO_RUN, SEVERAL, Marker, Result, head, line

OTHERS = (Result("b" * 16, 1, "error", "0"), Result("", 2, "pass", "1" * 16), Result(SEVERAL, 3, "fail", "2"))
MARKER = Marker(run=(100, 2), state="fail", content="abc", contract="a" * 16, others=OTHERS)


def test_what_is_written_is_read_back() -> None:
    assert Marker.of(line("a name=x state=pass", MARKER) + "\nrun=9.9 state=pass", (100, 2)) == MARKER


def test_what_two_fingerprints_of_an_earlier_version_distinguish_is_unknown() -> None:
    found = Marker.of(f"{head('')} run=1.1 state=pass content=0 contract={'a' * 16}.{'b' * 16} -->", (1, 2))
    assert (found.state, found.contract) == ("pass", "")


@pytest.mark.parametrize(
    "body", ["", "hello", "<!-- rag-contract name= -->", " run=1. ", " run=.1 ", " run=1.1.1 ", " state=x"]
)
def test_what_is_not_there_is_unknown(body: str) -> None:
    assert Marker.of(body, (1, 1)) == Marker(run=NO_RUN, state=None, content="")


def test_numbers_have_a_limit_on_their_digits() -> None:
    own = (10**18 - 1, 1)
    assert Marker.of(f"<!-- run={10**18 - 1}.{10**9 - 1} ", own).run == (10**18 - 1, 10**9 - 1)
    assert Marker.of(f"<!-- run={10**18}.1 ", own).run == NO_RUN
    assert Marker.of(f"<!-- run=1.{10**9} ", own).run == NO_RUN


def test_a_line_without_end_is_not_searched_to_its_end() -> None:
    assert Marker.of("<!--" + " " * 60_000 + " run=1.1 ", (1, 1)).run == NO_RUN


def test_a_run_that_does_not_know_its_own_number_believes_every_other() -> None:
    assert Marker.of(line("", MARKER), NO_RUN).run == (100, 2)


def test_long_names_are_distinguished() -> None:
    assert head("n" * 1000 + "a") != head("n" * 1000 + "b")


@pytest.mark.parametrize("form", ["sha256:{}", ":sha256:{}", "sha256%3A{}"])
def test_no_name_stands_for_a_long_one(form: str) -> None:
    long = "n" * (bounds.COMMENT_NAME + 1)
    assert head(form.format(hashlib.sha256(long.encode()).hexdigest())) != head(long)


def test_the_longest_name_that_is_written_out_and_one_character_more() -> None:
    assert head("n" * bounds.COMMENT_NAME).endswith("n" * bounds.COMMENT_NAME)
    assert len(head("n" * (bounds.COMMENT_NAME + 1))) < 100
