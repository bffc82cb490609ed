"""One or several texts or paths."""

from pathlib import Path

from ragcontract.core.ids import paths_of, several


def test_a_text_is_one_and_not_its_characters() -> None:
    assert several("billing") == ["billing"]
    assert several(("billing", "chat")) == ["billing", "chat"]
    assert several(()) == []


def test_a_path_is_one_in_every_form() -> None:
    assert paths_of("a.jsonl") == paths_of(Path("a.jsonl")) == ["a.jsonl"]
    assert paths_of(["a.jsonl", Path("b.jsonl")]) == ["a.jsonl", "b.jsonl"]
    assert paths_of([]) == []
