"""``rag-contract waive``: a broken query is accepted until a date, in the configuration."""

from pathlib import Path

import pytest

from tests.builders import as_jsonl, golden, run
from tests.process import files_in, rag_contract

UNTIL = ("--owner", "ann", "--until", "2999-12-31")
WHY = ("--reason", "indexed in the next release", *UNTIL)


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder with a contract of two queries, of which one is broken."""
    monkeypatch.chdir(tmp_path)
    Path("golden.jsonl").write_text(as_jsonl(golden("q1", "doc1"), golden("refunds", "doc2")))
    Path("current_run.jsonl").write_text(as_jsonl(run("q1", "doc1"), run("refunds", "x")))
    return tmp_path


def test_a_broken_query_no_longer_fails_and_comments_stay() -> None:
    Path("ragcontract.yml").write_text("# ours\nk: 5  # the prompt has five\n")
    assert rag_contract("check").code == 1
    ended = rag_contract("waive", "refunds", *WHY)
    assert ended == (0, "added a waiver for refunds until 2999-12-31 to ragcontract.yml\n", "")
    assert Path("ragcontract.yml").read_text() == (
        "# ours\nk: 5  # the prompt has five\n"
        "waivers:\n  - query: refunds\n    reason: indexed in the next release\n    owner: ann\n"
        "    expires: '2999-12-31'\n"
    )
    assert "WAIVED refunds" in rag_contract("check").out
    assert rag_contract("check").code == 0


def test_without_a_configuration_one_is_written() -> None:
    assert rag_contract("waive", "refunds", "--rule", "must_include", *WHY).code == 0
    assert "    rule: must_include\n" in Path("ragcontract.yml").read_text()
    assert rag_contract("check").code == 0


def test_a_byte_order_mark_and_the_lines_of_windows_stay() -> None:
    Path("ragcontract.yml").write_bytes(b"\xef\xbb\xbfk: 5\r\n")
    assert rag_contract("waive", "refunds", *WHY).code == 0
    data = Path("ragcontract.yml").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfk: 5\r\nwaivers:\r\n  - query: refunds\r\n")


@pytest.mark.parametrize(
    ("args", "config", "said"),
    [
        (("refund", *WHY), "k: 5\n", "no golden query has the id 'refund'; did you mean 'refunds'?"),
        (("refunds", *WHY), "k: five\n", "ragcontract.yml:1: k: expected a whole number"),
        (("refunds", "--reason", " ", *UNTIL), "k: 5\n", "Invalid value for '--reason': must not be empty"),
        (("refunds", "--reason", "\u200b", *UNTIL), "k: 5\n", "Invalid value for '--reason': must not be empty"),
        (("refunds", "--reason", "r", "--owner", "a", "--until", "2020-01-01"), "k: 5\n", "2020-01-01 is in the past"),
        (
            ("refunds", "--reason", "r", "--owner", "a", "--until", "soon"),
            "k: 5\n",
            "'soon' is not a date such as 2026-12-31",
        ),
        (("refunds", "--rule", "all", *WHY), "k: 5\n", "Invalid value for '--rule'"),
        (("refunds", *UNTIL), "k: 5\n", "Missing option '--reason'"),
        (
            ("refunds", *WHY),
            "{k: 5}\n",
            "cannot be added to; add to its waivers: {query: refunds, reason: ",
        ),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(
    args: tuple[str, ...], config: str, said: str, workspace: Path
) -> None:
    Path("ragcontract.yml").write_text(config)
    before = files_in(workspace)
    ended = rag_contract("waive", *args)
    assert ended.code == 2
    assert said in ended.err
    assert files_in(workspace) == before


def test_a_reason_cannot_act_on_a_terminal_or_on_the_configuration() -> None:
    reason = "\x1b[31m'}\nk: 1"
    assert rag_contract("waive", "refunds", "--reason", reason, *UNTIL).code == 0
    assert rag_contract("check").code == 0
    assert "\x1b" not in Path("ragcontract.yml").read_text()
