"""What docs/guides/judge.md says of asking a model is what happens."""

import re
from pathlib import Path

import pytest

from ragcontract.judge.calibration_run import LabelRow
from ragcontract.judge.endpoint import KEY, OLLAMA_PORT, OPENAI, OPENAI_KEY, URL
from ragcontract.judge.judging_run import JudgeOptions
from ragcontract.judge.judging_session import USUAL_DAYS
from ragcontract.net.sending import AGAIN_STATUSES
from tests.builders import golden, write_jsonl
from tests.judge_server import JudgeServer
from tests.process import shell
from tests.runner import ROOT

PAGE = (ROOT / "docs" / "guides" / "judge.md").read_text()
ASKING = PAGE.partition("## Ask a model\n")[2].partition("\n## How often")[0]


def test_the_way_from_labels_to_a_gate_can_be_gone_by_pasting_its_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (URL, KEY, OPENAI_KEY):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    context = "Refunds take five days."
    write_jsonl(
        tmp_path / "golden.jsonl", [golden(reference=f"{context} They take a year.", relevant_doc_ids=["doc_a"])]
    )
    found = {"doc_id": "doc_a", "text": context}
    write_jsonl(tmp_path / "current_run.jsonl", [{"query_id": "q1", "results": [found]}])
    label = {"task": "attribution", "contexts": [context]}
    texts = {True: context, False: "They take a year."}
    rows = [{**label, "question": f"{at}?", "text": texts[yes], "label": yes} for at in range(30) for yes in texts]
    write_jsonl(tmp_path / "labels.jsonl", rows)  # in place of a person at `judge label`
    steps = dict(re.findall(r"<!-- walk: (\w+) -->\n```bash\n(.*?)```", PAGE, re.DOTALL))
    assert list(steps) == ["server", "model", "claims", "judge", "calibrate", "check"]
    script = "set -e\n" + "".join(commands for name, commands in steps.items() if name != "server")
    with JudgeServer() as server:
        ended = shell(script.replace("http://127.0.0.1:8089", server.origin), cwd=tmp_path)
    assert "warning: attribution" not in ended.err
    assert (ended.code, "\nContext recall (judged)  0.50  PASS  minimum 0.50\n" in ended.out) == (0, True), ended


def test_the_page_names_the_variables_the_port_and_the_defaults() -> None:
    usual = JudgeOptions(model="toy")
    for text in (f"`{URL}`", f"`{KEY}`", f"`{OPENAI_KEY}`", f"port {OLLAMA_PORT}", OPENAI.removesuffix("/v1")):
        assert text in ASKING
    assert f"`--max-calls` ({usual.max_calls:,})" in ASKING
    assert f"`--concurrency` ({usual.concurrency})" in ASKING
    assert f"`--retries` ({usual.retries})" in ASKING
    assert f"`--max-age-days` ({USUAL_DAYS})" in ASKING
    assert f"After {', '.join(map(str, sorted(AGAIN_STATUSES)))}, 5xx" in ASKING


def test_the_page_names_every_field_of_a_label() -> None:
    about = ASKING.partition("A line of `labels.jsonl`")[2]
    assert [name for name in LabelRow.__struct_fields__ if f"`{name}`" not in about] == []
