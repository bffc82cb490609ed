"""Ids that name the same thing in two forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.id_forms import difference, matches, most_common
from ragcontract.core.phrase import render


def said(wanted: str, found: str) -> str | None:
    match, _ = most_common(matches([wanted], [found]))
    return render(difference(match)).partition(" (")[0] if match else None


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
        ("", "#3", None),
    ],
)
def test_the_form_of_an_id_is_named(wanted: str, found: str, expected: str | None) -> None:
    assert said(wanted, found) == expected


def test_an_id_that_may_stand_for_several_is_left_out() -> None:
    assert matches(["Doc", "DOC"], ["doc"]) == []
    assert [match.wanted for match in matches(["Doc"], ["doc", "DOC"])] == ["Doc"]


def test_a_file_name_that_several_folders_have_is_left_out() -> None:
    assert matches(["pay/README.md", "tax/README.md"], ["README.md"]) == []
    assert matches(["README.md"], ["pay/README.md", "tax/README.md"]) == []
    assert [match.wanted for match in matches(["pay/README.md"], ["README.md"])] == ["pay/README.md"]
    assert [match.wanted for match in matches(["doc"], ["kb/doc#1", "kb/doc#2"])] == ["doc"]


def test_an_id_whose_form_the_run_has_itself_is_another_document() -> None:
    assert matches(["report_2023"], ["report", "report_2022"]) == []
    assert matches(["guide.v2"], ["guide", "guide.v1"]) == []
    assert [match.actual for match in matches(["doc#3"], ["doc", "doc_3"])] == ["doc"]


def test_the_most_frequent_form_is_the_example() -> None:
    match, number = most_common(matches(["a", "b", "c"], ["a.md", "b#1", "c#2"]))
    assert match is not None
    assert (match.wanted, number) == ("b", 2)
    assert most_common([]) == (None, 0)


@given(st.lists(st.text(max_size=6), max_size=6), st.lists(st.text(max_size=6), max_size=6))
def test_whatever_the_ids_each_wanted_one_is_matched_at_most_once_and_never_with_itself(
    wanted: list[str], found: list[str]
) -> None:
    matched = matches(dict.fromkeys(wanted), found)
    assert len({match.wanted for match in matched}) == len(matched)
    assert all(match.wanted in wanted and match.actual in found and match.wanted != match.actual for match in matched)
    assert all(render(difference(match)) for match in matched)
