"""Ids that name the same thing in two forms, as a check reports them."""

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract import check
from tests.builders import golden, run, write_jsonl


class Reported(NamedTuple):
    """How many of the wanted ids have another form in the run, which one, and an example of it."""

    number: int
    form: str
    example: str


def reported(wanted: Sequence[str], found: Sequence[str]) -> Reported | None:
    """Check a query that wants documents and gets others; None if no id is in another form."""
    with TemporaryDirectory() as folder:
        asked = write_jsonl(Path(folder) / "golden.jsonl", [golden("q", *wanted)])
        answered = write_jsonl(Path(folder) / "run.jsonl", [run("q") | {"results": [{"doc_id": one} for one in found]}])
        warnings = check(golden=asked, run=answered).warnings
    matches = [re.search(r"; (\d+) would match ((?:with|in ).*?) \((.*?)\): ", warning) for warning in warnings]
    return next((Reported(int(match[1]), match[2], match[3]) for match in matches if match), None)


@pytest.mark.parametrize(
    ("wanted", "found", "expected"),
    [
        ("doc", "doc#3", "without the suffix #n of the run's ids"),
        ("doc", "doc#a8f3", "without the suffix #anfn of the run's ids"),
        ("doc", "doc:3", "without the suffix :n of the run's ids"),
        ("doc", "doc::chunk-12", "without the suffix ::chunk-n of the run's ids"),
        ("doc_1", "doc_1_0", "without the suffix _n of the run's ids"),
        ("doc", "doc.md", "without the extension .md of the run's ids"),
        ("doc", "kb/doc", "without the folder of the run's ids"),
        ("doc", "kb\\doc.pdf", "without the folder and extension of the run's ids"),
        ("doc", "kb/doc.md#3", "without the suffix, folder and extension of the run's ids"),
        ("doc", "DOC", "in other case"),
        ("doc", "Doc.MD", "without the extension of the run's ids and in other case"),
        ("doc", "doc ", "without the blanks of the run's ids"),
        ("doc ", "doc", "without their blanks"),
        ("doc#3", "doc", "without their suffix #n"),
        ("doc.md", "doc", "without their extension .md"),
        ("007", "7", "without their leading zeros"),
        ("7", "007", "without the leading zeros of the run's ids"),
        ("doc_1", "doc_2", None),
        ("doc", "doc1", None),
        ("doc", "document", None),
        ("v1.2", "v1", None),
        ("0", "00", "without the leading zeros of the run's ids"),
        ("a", "#", None),
        ("crypto/hash.md", "docs/crypto/hash.md", "without the folder of the run's ids"),
        ("docs/en/crypto/hash.md", "crypto/hash", "without their folder and extension"),
        ("guide#set-up", "guide#set-up-0", "without the suffix -n of the run's ids"),
        ("guide#set-up", "guide#set-up-chunk-3", "without the suffix -chunk-n of the run's ids"),
        ("guide#set-up", "guide#set-up/0", "without the suffix /n of the run's ids"),
    ],
)
def test_the_form_of_an_id_is_named(wanted: str, found: str, expected: str | None) -> None:
    report = reported([wanted], [found])
    assert (report and report.form) == expected


def test_an_id_that_may_stand_for_several_is_left_out() -> None:
    assert reported(["Doc", "DOC"], ["doc"]) is None
    assert (report := reported(["Doc"], ["doc", "DOC"])) is not None
    assert report.number == 1


def test_a_file_name_that_several_folders_have_is_left_out() -> None:
    assert reported(["pay/README.md", "tax/README.md"], ["README.md"]) is None
    assert reported(["README.md"], ["pay/README.md", "tax/README.md"]) is None
    for wanted, found in (("pay/README.md", ["README.md"]), ("doc", ["kb/doc#1", "kb/doc#2"])):
        assert (report := reported([wanted], found)) is not None
        assert report.number == 1


def test_an_id_whose_form_the_run_has_itself_is_another_document() -> None:
    assert reported(["report_2023"], ["report", "report_2022"]) is None
    assert reported(["guide.v2"], ["guide", "guide.v1"]) is None
    assert (report := reported(["doc#3"], ["doc", "doc_3"])) is not None
    assert report.example == "doc for doc#3"


def test_the_most_frequent_form_is_the_example() -> None:
    report = reported(["a", "b", "c"], ["a.md", "b#1", "c#2"])
    assert report == Reported(2, "without the suffix #n of the run's ids", "b#1 for b")


IDS = st.lists(st.text(alphabet="abAB01.#/\\_: é", min_size=1, max_size=6), max_size=6)


@given(IDS.filter(bool), IDS)
def test_whatever_the_ids_each_wanted_one_is_matched_at_most_once_and_never_with_itself(
    wanted: list[str], found: list[str]
) -> None:
    report = reported(list(dict.fromkeys(wanted)), found)
    if report:
        assert 1 <= report.number <= len({*wanted} - {*found})
        assert len({*report.example.split(" for ")}) == 2
