"""The journal of a judging: what was replied is not asked again, whoever ended it, and nobody else can add to it."""

from pathlib import Path

import pytest

from ragcontract.core.errors import InputError, OutputError
from ragcontract.judge.judging_run import expected_judging
from ragcontract.judge.judgment_journal import open_journal
from ragcontract.judge.model_calls import Budget
from tests.judge.desk import Desk, a_case, cases
from tests.judge_server import JudgeServer


def test_a_case_that_was_under_way_goes_on_with_the_reply_that_is_missing(tmp_path: Path) -> None:
    many = a_case(1, *(f"Refund {at} takes a year." for at in range(45)))
    with JudgeServer() as server:
        desk = Desk(tmp_path, server.openai)
        assert desk.judge([many], budget=Budget(max_calls=2)).judged.unjudged
        outcome = desk.judge([many])
    assert (outcome.spent.calls, len(server.asked), len(set(server.asked))) == (1, 3, 3)


def test_a_journal_that_somebody_else_made_does_not_count(tmp_path: Path) -> None:
    with JudgeServer() as server:
        desk = Desk(tmp_path, server.openai)
        desk.judge(cases(10), budget=Budget(max_calls=4))
        desk.file.unlink()
        stranger = {"XDG_STATE_HOME": str(tmp_path / "another")}
        assert desk.judge(cases(10), environ=stranger).spent.calls == 10


def test_only_lines_of_ones_own_count_even_behind_a_first_line_that_somebody_copied(tmp_path: Path) -> None:
    """A journal that was published by mistake has a first line that is good on its machine."""
    with JudgeServer() as server:
        desk = Desk(tmp_path, server.openai)
        desk.judge(cases(10), budget=Budget(max_calls=4))
        desk.file.unlink()
        first, *lines = desk.journal.read_bytes().splitlines(keepends=True)
        forged = [line.replace(b'"verdict":true', b'"verdict":false') for line in lines]
        assert forged != lines
        unsealed = [line.rstrip(b"\n").partition(b"\t")[0] + b"\n" for line in lines]
        for planted in (forged, unsealed):
            desk.journal.write_bytes(b"".join([first, *planted]))
            to_ask, _ = expected_judging(cases(10), desk.settings)
            assert len(to_ask.cases) > 6
        outcome = desk.judge(cases(10))
    assert {row["verdict"] for row in desk.rows() if row["item"] == "claim:1"} == {True}
    assert outcome.judged.unjudged == 0


@pytest.mark.parametrize(
    "damage", [b"", b'{"line": "repl', b"\x00\x00\n", b'{"line": "other"}\n', b"[]\n", b"\t\xff\n"]
)
def test_what_was_only_written_in_part_is_asked_again(tmp_path: Path, damage: bytes) -> None:
    with JudgeServer() as server:
        desk = Desk(tmp_path, server.openai)
        desk.judge(cases(10), budget=Budget(max_calls=4))
        desk.file.unlink()
        desk.journal.write_bytes(desk.journal.read_bytes() + damage)
        assert desk.judge(cases(10)).spent.calls == 6


def test_two_cannot_write_one_file_at_a_time(tmp_path: Path) -> None:
    with JudgeServer() as server:
        desk = Desk(tmp_path, server.openai)
        open_one = open_journal(desk.journal, key=b"1", refresh=False)
        with pytest.raises(InputError, match="another judging writes it"):
            desk.judge(cases(1))
        open_one.close(remove=False)


def test_a_refresh_that_was_ended_goes_on_but_not_with_what_was_there_before_it(tmp_path: Path) -> None:
    with JudgeServer() as server:
        desk = Desk(tmp_path, server.openai)
        desk.judge(cases(10), budget=Budget(max_calls=4))
        assert desk.judge(cases(10), refresh=True, budget=Budget(max_calls=3)).judged.cached == 0
        outcome = desk.judge(cases(10), refresh=True)
    assert (outcome.judged.cached, outcome.spent.calls) == (6, 7)


def test_a_journal_that_is_a_link_is_refused_and_what_it_leads_to_is_neither_read_nor_changed(tmp_path: Path) -> None:
    target = tmp_path / "key"
    target.write_text("somebody's key")
    with JudgeServer() as server:
        desk = Desk(tmp_path, server.openai)
        desk.journal.symlink_to(target)
        with pytest.raises(OutputError, match=r"\.judgments\.jsonl\.journal: cannot be written \(it is a link"):
            desk.judge(cases(1))
        expected_judging(cases(1), desk.settings)
    assert (target.read_text(), server.asked) == ("somebody's key", [])
