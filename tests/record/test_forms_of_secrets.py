"""Each form of a secret that the page on security lists is in nothing that ``record`` writes or prints."""

import re
from pathlib import Path

import pytest

from tests.builders import golden, write_jsonl
from tests.process import files_in, spawn
from tests.runner import ROOT
from tests.secret_forms import SECRET, forms_of, pieces_in

FORMS = forms_of(SECRET)
APP = """
FORM = {form!r}
def find(query, context):
    if context.query_id == "q2":
        raise ValueError(FORM)
    results = [{{"doc_id": FORM, "text": FORM}}]
    return {{"results": results, "answer": "It is " + FORM, "model": FORM, "usage": {{FORM: 1}}}}
"""


def test_the_page_lists_these_forms() -> None:
    page = (ROOT / "docs" / "background" / "security.md").read_text(encoding="utf-8")
    listed = page.partition("## The forms of a secret that are removed")[2].partition("No other form")[0]
    assert re.findall(r"^- (.*)$", listed, re.MULTILINE) == list(FORMS)


@pytest.mark.parametrize("cut", ["whole", "its first characters", "its last characters"])
@pytest.mark.parametrize("form", [form for forms in FORMS.values() for form in forms])
def test_no_piece_of_a_secret_is_printed_or_written(form: str, cut: str, tmp_path: Path) -> None:
    echoed = {"whole": form, "its first characters": form[:24], "its last characters": form[-24:]}[cut]
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1"), golden("q2")])
    (tmp_path / "app.py").write_text(APP.format(form=echoed))
    outputs = ("--stream-out", "events.jsonl", "--stream-answer-chars", "1000", "--details", "details.json")
    options = ("--secret", "TOKEN", "--on-failure", "leave-out", "--retries", "0", *outputs)
    ended = spawn("record", "app.py:find", *options, cwd=tmp_path, environ={"TOKEN": SECRET})
    assert ended.code == 0, ended.err
    (tmp_path / "app.py").unlink()
    written = {name: data.decode(errors="replace") for name, data in files_in(tmp_path).items()}
    assert {"current_run.jsonl", "events.jsonl", "details.json"} <= {*map(str, written)}
    assert "***" in written["current_run.jsonl"]
    for text in (ended.out, ended.err, *written.values()):
        assert pieces_in(text, echoed) == []
