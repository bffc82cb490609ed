"""What would be too long for a row of a run fails its question, before memory is spent on it."""

import re
import sys
from pathlib import Path

import pytest

from ragcontract import InputError, RunWriter
from tests.builders import golden, write_jsonl
from tests.process import spawn

# The texts of an answer are one text in memory, and 3 GB once they are written one after the other.
APP = """
TEXT = "x" * 1_000_000
def find(query):
    return {returned} if "q2" in query else {{"results": ["doc1"], "response": "Yes."}}
"""
RETURNED = {
    "results": '{"results": [{"doc_id": str(n), "text": TEXT} for n in range(3000)]}',
    "metadata of results": '{"results": [{"doc_id": str(n), "metadata": {"text": [TEXT]}} for n in range(3000)]}',
    "contexts": '{"response": "Yes.", "contexts": [TEXT] * 3000}',
    "tool calls": '{"response": "", "tool_calls": [{"name": "find", "arguments": {"text": [TEXT] * 3000}}]}',
    "messages": '{"messages": [{"role": "user", "content": "?"}, *[{"role": "assistant", "content": TEXT}] * 3000]}',
    "usage": '{"results": ["doc1"], "usage": {"text": [TEXT] * 3000}}',
    "other fields": '{"results": ["doc1"], "pages": [TEXT] * 3000}',
}
LIMITED = """
import resource, sys
import ragcontract.cli.commands.record
from pathlib import Path
from ragcontract.guard import entry_point
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 30),) * 2)
entry_point()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
@pytest.mark.parametrize("how", [(), ("--isolate",)], ids=["here", "isolated"])
@pytest.mark.parametrize("returned", RETURNED.values(), ids=list(RETURNED))
def test_it_fails_its_question(returned: str, how: tuple[str, ...], tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden(f"q{number}") for number in range(1, 4)])
    (tmp_path / "app.py").write_text(APP.format(returned=returned))
    details = ("--details", "details.json", "--stream-out", "events.jsonl", "--retries", "0")
    ended = spawn("record", "app.py:find", *details, *how, cwd=tmp_path, command=(sys.executable, "-c", LIMITED))
    assert (ended.code, "1 of 3 questions failed, so no run is written" in ended.err) == (2, True), ended.err
    assert re.search(r"such as query 'q2': .*longer than \d+ MiB", ended.err), ended.err


def test_a_writer_refuses_it(tmp_path: Path) -> None:
    text = "x" * 1_000_000
    results = [{"doc_id": str(number), "text": text} for number in range(70)]
    refused = pytest.raises(InputError, match=r'run.jsonl: query "q1": the row is longer than 64 MiB')
    with refused, RunWriter(tmp_path / "run.jsonl") as run:
        run.write("q1", results)
