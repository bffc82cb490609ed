"""An option that takes one value and is given two of them is a mistake: which one was meant, nobody knows."""

from pathlib import Path

import click
import pytest

from ragcontract.cli.main import COMMANDS, cli
from tests.builders import golden, good_workspace, write_jsonl
from tests.process import rag_contract


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))


def test_the_last_of_two_configurations_does_not_win() -> None:
    Path("strict.yml").write_text("minimums: {precision_at_k: 1}\n")
    Path("empty.yml").write_text("k: 5\n")
    assert rag_contract("check", "--config", "strict.yml").code == 1
    ended = rag_contract("check", "--config", "strict.yml", "--config", "empty.yml")
    message = "--config takes one value and is given 2, as 'strict.yml' and 'empty.yml'; give it once"
    assert (ended.code, message in ended.err) == (2, True)


def test_all_repeated_options_are_reported_at_once_however_they_are_written() -> None:
    ended = rag_contract("check", "--k", "1", "--junit=a.xml", "--k=5", "--junit", "b\x1b[31m.xml")
    assert ended.code == 2
    assert "--k takes one value and is given 2, as '1' and '5'" in ended.err
    assert "--junit takes one value and is given 2, as 'a.xml' and 'b\\x1b[31m.xml'" in ended.err


def test_the_same_value_twice_and_options_that_repeat_are_accepted() -> None:
    write_jsonl(Path("more.jsonl"), [golden("q3")])
    assert rag_contract("score", "--k", "5", "--k", "5").code == 0
    for between in ((), ("--golden",)):
        ended = rag_contract("validate", "--without-run", "--golden", "golden.jsonl", *between, "more.jsonl")
        assert ended.code == 0


def commands(group: click.Group, words: tuple[str, ...]) -> list[tuple[tuple[str, ...], click.Command]]:
    """Return the commands of a group and of its groups, by the words that call them."""
    context = click.Context(group)
    found: list[tuple[tuple[str, ...], click.Command]] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found.append(((*words, name), command))
        found += commands(command, (*words, name)) if isinstance(command, click.Group) else []
    return found


def test_no_option_of_any_command_takes_the_last_of_two_values() -> None:
    listed = commands(cli, ())
    tried = 0
    for words, command in listed:
        for option in command.params:
            if isinstance(option, click.Option) and not option.multiple and not option.is_flag:
                ended = rag_contract(*words, option.opts[0], "1", option.opts[0], "2")
                assert (ended.code, f"{option.opts[0]} takes one value" in ended.err) == (2, True), (words, option.name)
                tried += 1
    assert (len(listed) > len(COMMANDS), tried > 100) == (True, True)
