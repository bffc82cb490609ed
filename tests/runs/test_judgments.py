"""Judgments files: one judgment a line, sorted, and read with everything that is wrong with them."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core.errors import OutputError
from ragcontract.core.ids import as_id
from ragcontract.judgments.items import asked_how
from ragcontract.judgments.judgments_file import Judgments, lines_of, read_judgments, write_judgments
from tests.builders import write_jsonl
from tests.runs.judgment_lines import AT, JUDGE, judgment


def read(folder: Path, *rows: Any) -> Judgments:
    return read_judgments([str(write_jsonl(folder / "j.jsonl", rows))])


def row(**fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(next(lines_of([judgment()])))
    return {**made, **fields}


ANOTHER = {"model": "another", "fingerprint": f"another{asked_how(JUDGE)}"}


def problems(given: Judgments, folder: Path) -> list[str]:
    return [problem.replace(f"{folder}/", "") for problem in given.problems.problems]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "judgments.jsonl")
    written = [
        judgment(1),
        judgment(2, verdict=False, quote=None, context=None, votes=(False, None, False), tokens_in=10, tokens_out=3),
        judgment(3, status="unsure", verdict=None, quote=None, context=None, votes=(None,), reason="said nothing"),
        judgment(
            4, task="confirmation", verdict="asserts_unsupported", context=None, votes=("asserts_unsupported",) * 2
        ),
        judgment(1, query_id="q2"),
        judgment(5, query_id=7, votes=(), verdict=False, quote=None, context=None),
    ]
    write_judgments(path, written)
    given = read_judgments([path])
    assert not given.problems
    assert sorted(map(repr, given.by_key.values())) == sorted(map(repr, written))
    assert repr(given.by_key["q1", written[0].key]) == repr(written[0])
    assert repr(given.by_key["7", written[5].key]) == repr(written[5])
    assert ("q3", written[0].key) not in given.by_key
    assert [file.path for file in given.files] == [path]


def test_a_line_has_these_names_in_this_order() -> None:
    assert list(row()) == [
        "key", "task", "query_id", "item", "verdict", "quote", "context", "reason", "votes", "status", "model",
        "fingerprint", "judge", "at", "tokens_in", "tokens_out", "usd", "calls", "retried",
        "compromised", "session",
    ]  # fmt: skip


def test_equal_judgments_make_equal_bytes_in_whatever_order_they_come() -> None:
    judgments = [judgment(3), judgment(1), judgment(2, query_id="q2"), judgment(2)]
    assert list(lines_of(judgments)) == list(lines_of(reversed(judgments)))
    assert [json.loads(line)["key"][-1] for line in lines_of(judgments)] == ["1", "2", "2", "3"]


def test_what_nobody_sees_in_a_review_is_written_as_an_escape() -> None:
    line = next(lines_of([judgment(reason="fine\u202e\u200b\x1b[31m ##[error]\n")]))
    assert json.loads(line)["reason"] == "fine\u202e\u200b\x1b[31m ##[error]\n"
    assert line.isascii()
    assert b"##[" not in line


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    write_judgments(str(path), [judgment(1)])
    before = path.read_bytes()

    def broken() -> Any:
        yield judgment(2)
        raise OSError(28, "No space left on device")

    with pytest.raises((OSError, OutputError)):
        write_judgments(str(path), broken())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_everything_that_is_wrong_is_reported_at_once(tmp_path: Path) -> None:
    bad = {
        "key": "x",
        "task": "nope",
        "verdict": "maybe",
        "quote": 3,
        "context": 0,
        "at": "yesterday",
        "status": "okay",
    }
    found = problems(read(tmp_path, row(), {**row(), **bad, "tokens_in": -1}, row(votes=[1])), tmp_path)
    fields = [problem.split(": ")[1] for problem in found if problem.startswith("j.jsonl:2")]
    assert fields == ["at", "context", "key", "quote", "status", "task", "tokens_in", "verdict"]
    assert any(problem.startswith("j.jsonl:3: votes[0]: ") for problem in found)
    assert any("expected 64 hexadecimal digits" in problem for problem in found)
    assert any("expected a time as 2026-01-31T12:00:00Z" in problem for problem in found)


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"verdict": None}, "verdict", "because the status is 'ok', found null"),
        ({"status": "unsure"}, "verdict", "expected null, because the status is 'unsure', found true"),
        ({"verdict": "supported_by_context"}, "verdict", "expected true or false, because the task is 'attribution'"),
        ({"task": "confirmation"}, "verdict", "expected one of 'asserts_unsupported', 'denies_or_reports_absence'"),
        ({"votes": [True, "asserts_unsupported"]}, "votes[1]", "expected true or false"),
        ({"votes": []}, "votes", "expected votes for the verdict true, found none"),
        ({"votes": [False, None]}, "votes", "[false,null] makes no verdict (3 votes, confirm: failures)"),
        (
            {"votes": [False, False]},
            "votes",
            "makes the verdict false (3 votes, confirm: failures), and the",
        ),
        ({"votes": [False] * 4}, "votes", "expected at most 3 votes, as the judge has, found 4"),
        ({"status": "unsure", "verdict": None}, "votes", "[true] makes the verdict true (3 votes, confirm: failures)"),
        ({"judge": {**row()["judge"], "votes": 2}}, "judge.votes", "expected an odd number, found 2"),
        ({"votes": [True, False, False]}, "votes", "[true,false,false] goes on after the verdict was settled"),
        (
            {"fingerprint": "m at models.example, protocol 1, 5 votes on failures"},
            "fingerprint",
            "expected 'm at models.example, protocol 1, 3 votes on failures', as its judge and model have it, found",
        ),
        ({"fingerprint": f"{row()['fingerprint']} and more"}, "fingerprint", "as its judge and model have it, found"),
        ({"model": "another"}, "fingerprint", "expected 'another at models.example, protocol 1, 3 votes on failures'"),
        ({"judge": {**row()["judge"], "host": "h"}}, "fingerprint", "expected 'm at h, protocol 1, 3 votes on fail"),
        ({"judge": {**row()["judge"], "confirm": "all"}}, "fingerprint", "protocol 1, 3 votes on everything', as its"),
        ({"judge": {**row()["judge"], "protocol": 2}}, "fingerprint", "expected 'm at models.example, protocol 2, "),
        ({"quote": None}, "quote", "expected the words that prove the verdict, found none"),
        ({"quote": ""}, "quote", "expected the words that prove the verdict, found none"),
        ({"context": None}, "context", "expected the rank of the text that proves the verdict, found none"),
    ],
)
def test_a_judgment_that_contradicts_itself_is_refused(
    fields: dict[str, Any], field: str, why: str, tmp_path: Path
) -> None:
    found = problems(read(tmp_path, row(**fields)), tmp_path)
    assert any(problem.startswith(f"j.jsonl:1: {field}: ") and why in problem for problem in found), found


def test_a_query_has_one_judgment_of_a_key(tmp_path: Path) -> None:
    given = read(tmp_path, row(), row(query_id="q2"), row(**ANOTHER))
    what = "query 'q1' has another judgment with this key, at j.jsonl:1: 'm at models.example, protocol 1, 3 vote…' "
    what += "and 'another at models.example, protocol 1, …'"
    assert problems(given, tmp_path) == [f"j.jsonl:3: key: {what}; leave one of them out"]
    no = {"verdict": False, "votes": [False, False], "quote": None, "context": None}
    assert problems(read(tmp_path, row(query_id="q2"), row(), row(**no), row(**no)), tmp_path) == [
        f"j.jsonl:{line}: key: query 'q1' has another judgment with this key, at j.jsonl:2: true and false; "
        "leave one of them out"
        for line in (3, 4)
    ]


def test_two_judgments_that_say_the_same_are_one_also_in_two_files(tmp_path: Path) -> None:
    given = read(tmp_path, row(), row(query_id="q2"), row(), row(query_id="q3"))
    assert (problems(given, tmp_path), len(given.by_key)) == ([], 3)
    said = [row(reason="because"), row(query_id="q4"), row(query_id="q2", **ANOTHER)]
    other = write_jsonl(tmp_path / "k.jsonl", said)
    both = read_judgments([str(tmp_path / "j.jsonl"), str(other)])
    (problem,) = problems(both, tmp_path)
    assert problem.startswith("k.jsonl:3: key: query 'q2' has another judgment with this key, at j.jsonl:2: ")
    assert both.by_key["q1", row()["key"]].reason == ""
    where = {as_id(one.query_id): str(both.lines.location(one)).rpartition("/")[2] for one in both.by_key.values()}
    assert where == {"q1": "j.jsonl:1", "q2": "j.jsonl:2", "q3": "j.jsonl:4", "q4": "k.jsonl:2"}


def test_a_judgment_of_the_future_is_refused_where_the_clock_is_given(tmp_path: Path) -> None:
    path = str(write_jsonl(tmp_path / "j.jsonl", [row()]))
    assert not read_judgments([path], now=AT - timedelta(hours=23)).problems
    assert not read_judgments([path]).problems
    (problem,) = read_judgments([path], now=AT - timedelta(hours=25)).problems.problems
    assert problem.endswith("j.jsonl:1: at: is in the future (2026-11-22); is the clock right?")


def test_a_number_that_is_none_or_absurd_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    line = json.dumps(row())
    for wrong, why in (("NaN", "NaN"), ("1e400", "too large"), ("9999999999999", "tokens_in")):
        path.write_text(line.replace('"tokens_in": 0', f'"tokens_in": {wrong}') + "\n")
        (problem,) = read_judgments([str(path)]).problems.problems
        assert "j.jsonl:1" in problem
        assert why in problem


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{"query_id": "q1", "results": []}], "is a run, not a judgments file; give what `rag-contract judge` writes"),
        ([{"query_id": "q1", "scores": {}, "scored_by": "x"}], "is a scores file, not a judgments file"),
    ],
)
def test_another_file_is_recognized(rows: list[Any], why: str, tmp_path: Path) -> None:
    found = problems(read(tmp_path, *rows), tmp_path)
    assert len(found) == 1
    assert why in found[0]


def test_an_empty_file_has_no_judgments(tmp_path: Path) -> None:
    given = read(tmp_path)
    assert (problems(given, tmp_path), given.by_key, len(given.files)) == ([], {}, 1)


def test_a_file_that_was_named_and_is_not_there_is_a_problem(tmp_path: Path) -> None:
    names = [str(tmp_path / "none.jsonl"), str(tmp_path / "none*.jsonl"), str(tmp_path), ""]
    found = read_judgments(names).problems.problems
    assert len(found) == 4
    assert [one.rpartition("/")[2] for one in found[:2]] == [
        "none.jsonl: no such file",
        "none*.jsonl: no file matches this pattern",
    ]
