from pathlib import Path

from ragcontract.github.runner_output import annotation, append_summary, set_outputs
from tests.runner import parse_file_command


def test_an_annotation_is_one_line_whatever_the_message_says() -> None:
    line = annotation("error", "50% off\n::error::x\r\x1b[31m", title="a,b:c")
    assert line == "::error title=a%2Cb%3Ac::50%25 off\\n::error::x\\r\\x1b[31m\n"


def test_outputs_are_read_back_as_they_were_whatever_they_hold(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("earlier=1\n")
    outputs = {"a": "1", "b": "two\nlines", "c": "", "d": "x<<end\nend\nverdict=pass"}
    set_outputs(file, outputs)
    assert parse_file_command(file.read_text()) == {"earlier": "1", **outputs}


def test_the_summary_is_appended_to_what_other_steps_wrote(tmp_path: Path) -> None:
    file = tmp_path / "summary"
    file.write_text("# Before\n")
    append_summary(file, "ours ✅")
    assert file.read_text(encoding="utf-8") == "# Before\nours ✅\n"
