"""The journal: what is in it is not asked again, whatever happened to the process that wrote it."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from ragcontract import CallFailed, Context, InputError, OutputError, Response, __version__
from ragcontract.net.journal import Lines, opened
from ragcontract.record.events import Start
from ragcontract.record.recording_journal import Entry, Journal
from tests.builders import golden
from tests.record.workplace import Toy, Workplace, always, finds


def interrupted(place: Workplace, *failing: str, **how: object) -> list[bytes]:
    """Record all questions but some, and return the lines of the journal."""

    def answer(_query: str, context: Context) -> Response:
        if context.query_id in failing:
            raise CallFailed("busy", "is busy")
        return finds()

    assert place.record(answer, **how).error  # type: ignore[arg-type]
    return place.journal.read_bytes().splitlines(keepends=True)


def asked_next(place: Workplace, **how: object) -> list[str]:
    """Return what the next recording asks."""
    toy = Toy()
    assert place.record(toy, **how).error is None  # type: ignore[arg-type]
    return toy.ids


def test_the_first_line_says_what_is_recorded_and_the_others_what_came_of_each_question(tmp_path: Path) -> None:
    header, used, prepared, *lines = map(json.loads, interrupted(Workplace(tmp_path, 2), "q2"))
    assert header == {
        "target": "toy",
        "target_sha256": "1",
        "git": None,
        "top": 10,
        "repeats": 1,
        "tool": __version__,
        "doc_id": None,
        "watch": None,
        "versions": None,
        "journal": 2,
    }
    files = {source["module"]: source["file"] for source in used["sources"]}
    assert files[__name__] == "tests/record/loop/test_journal.py"
    assert prepared == {"versions": {}}
    answered, failed = lines
    assert answered["row"]["results"] == [{"doc_id": "doc1"}]
    assert (answered["query_id"], answered["repeat"], answered["attempts"]) == ("q1", 1, 1)
    assert failed["failure"] == {"kind": "busy", "message": "is busy", "detail": None}
    assert "row" not in failed


def test_failures_are_asked_again_and_answers_are_not(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    interrupted(place, "q2")
    assert asked_next(place) == ["q2"]


@pytest.mark.parametrize("cut", [1, 30])
def test_a_line_that_was_written_in_part_is_asked_again(tmp_path: Path, cut: int) -> None:
    place = Workplace(tmp_path)
    lines = interrupted(place, "q3")
    place.journal.write_bytes(b"".join(lines[:5])[:-cut])
    assert asked_next(place) == ["q2", "q3"]


def test_a_header_that_was_written_in_part_is_no_journal(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.journal.write_bytes(interrupted(place, "q3")[0][:-1])
    assert asked_next(place) == ["q1", "q2", "q3"]


def test_a_line_that_a_disk_lost_is_asked_again(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    lines = interrupted(place, "q3")
    place.journal.write_bytes(b"".join(lines[:3]) + b"\0" * 20 + b"\n" + lines[4])
    assert asked_next(place) == ["q1", "q3"]


def test_a_question_that_has_changed_is_asked_again(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    interrupted(place, "q3")
    changed = [golden("q1"), golden("q2", metadata={"lang": "de"}), golden("q3"), golden("q4"), golden("q0")]
    place.write([changed[4], *changed[:4]])
    assert asked_next(place) == ["q0", "q2", "q3", "q4"]


def test_what_must_hold_for_an_answer_may_change(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    interrupted(place, "q3")
    place.write([golden("q1", "doc9", weight=2), golden("q2"), golden("q3")])
    assert asked_next(place) == ["q3"]


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({"manner": {"top": 5}}, "top was '10' and is '5'"),
        ({"sha256": "2"}, "the content of the target has changed"),
        ({"sha256": "2", "name": "other.py:find"}, "target was 'toy' and is 'other.py:find'"),
        ({"doc_id": "metadata.url"}, "--doc-id was none and is 'metadata.url'"),
    ],
)
def test_a_journal_of_something_else_is_refused_with_what_differs(
    tmp_path: Path, changed: dict[str, object], differs: str
) -> None:
    place = Workplace(tmp_path)
    before = interrupted(place, "q2")
    with pytest.raises(InputError) as raised:
        place.record(always, **changed)  # type: ignore[arg-type]
    has = f"{place.journal}: has 2 answers of a recording that did not end"
    assert raised.value.problems == [f"{has}, but {differs}; undo that to go on, or throw them away with --fresh"]
    assert place.journal.read_bytes().splitlines(keepends=True) == before
    assert asked_next(place, fresh=True, **changed) == ["q1", "q2", "q3"]


def test_another_index_behind_the_same_target_is_something_else(tmp_path: Path) -> None:
    place = Workplace(tmp_path)

    def fails_for_q2(_query: str, context: Context) -> Response:
        if context.query_id == "q2":
            raise CallFailed("busy", "is busy")
        return finds()

    assert place.record(Toy(fails_for_q2, versions={"index_version": "chroma:1:40"})).error
    other = Toy(versions={"index_version": "chroma:1:41"})
    error = place.record(other).error
    assert isinstance(error, InputError)
    assert ", but index_version was 'chroma:1:40' and is 'chroma:1:41'; undo that" in error.problems[0]
    assert (other.asked, other.calls) == ([], ["setup", "teardown"])
    same = Toy(versions={"index_version": "chroma:1:40"})
    assert place.record(same).error is None
    assert same.ids == ["q2"]


def test_a_system_whose_versions_are_not_known_yet_is_recorded(tmp_path: Path) -> None:
    class Late(Toy):
        def versions(self) -> Mapping[str, str]:
            if not self.asked:
                raise RuntimeError("ask first")
            return {"llm_model": "m-7"}

    place = Workplace(tmp_path)
    assert place.record(Late()).error is None
    assert json.loads(place.out.read_text().splitlines()[0])["llm_model"] == "m-7"


def test_a_file_that_is_no_journal_is_not_thrown_away(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    lines = interrupted(place, "q2")
    place.journal.write_bytes(b'{"journal":3}\n' + b"".join(lines[1:]))
    with pytest.raises(InputError, match="not a journal that this version of rag-contract can go on with"):
        place.record(always)


def test_a_journal_without_an_answer_stands_in_nobodys_way(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 1)
    assert place.record(lambda *_: Response(), sha256="0").error
    assert place.journal.exists()
    place.journal.write_bytes(b'{"journal":3}\n')
    assert asked_next(place) == ["q1"]


def test_a_run_of_a_part_does_not_throw_away_the_answers_to_the_other_questions(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    before = interrupted(place, "q3")
    with pytest.raises(InputError, match=r"has 2 answers to other questions.*give this part another --out"):
        place.record(always, queries=("q3",))
    assert place.journal.read_bytes().splitlines(keepends=True) == before
    assert asked_next(place) == ["q3"]


def test_two_recordings_do_not_share_a_journal(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    held = opened(place.journal, "recording")
    with pytest.raises(InputError, match=r"another recording writes it; wait for its end, or give another --out"):
        place.record(always)
    held.close(remove=True)
    assert asked_next(place) == ["q1", "q2", "q3"]


def test_what_repeats_are_lacking_is_known(tmp_path: Path) -> None:
    place = Workplace(tmp_path, 2)

    def answer(_query: str, context: Context) -> Response:
        if (context.query_id, context.repeat) == ("q1", 2):
            raise CallFailed("busy", "is busy")
        return finds()

    assert place.record(answer, repeats=2).error
    toy = Toy()
    assert place.record(toy, repeats=2).error is None
    assert [(context.query_id, context.repeat) for _, context in toy.asked] == [("q1", 2)]
    assert place.of_kind(Start)[-1].kept == 3


def test_a_full_disk_is_reported_and_what_was_written_is_kept(tmp_path: Path) -> None:
    full = Path("/dev/full").open("r+b")  # noqa: SIM115 (the journal closes it)
    journal = Journal(Lines(full, tmp_path / "journal", read_only=True))
    with pytest.raises(OutputError, match=r"journal: cannot be written \(No space left on device\)"):
        journal.add(Entry(query_id="q1", question_sha="0", repeat=1, attempts=1, ms=1.0))
    journal.close()
