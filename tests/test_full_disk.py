"""A full disk under every command that writes: what was there stays whole, the exit code is 2, nothing is left over."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.builders import golden, good_workspace, run, stored_query, write_baseline, write_jsonl
from tests.judge_server import JudgeServer
from tests.process import Ended, files_in, spawn
from tests.small_disks import PAGE, room_left, small_disk, with_files_up_to

TARGET = """
from ragcontract import CallFailed

def search(query, context):
    return ["doc1", "doc2"]

def often_busy(query, context, tries=[]):
    tries.append(query)
    if tries.count(query) == 1:
        raise CallFailed("busy", "is busy " * 200, again=True)
    return ["doc1"]
"""
CLAIM = "Refunds take five days."
CONTEXT = f"Returns are accepted within 30 days of delivery. {CLAIM} "
PEOPLE = [
    {"task": "attribution", "question": f"{at}?", "contexts": [CONTEXT], "text": CLAIM, "label": True} for at in (1, 2)
]
REPORTS = ("--report-html", "report.html", "--report-v2", "v2.json")
PROGRAM = "import json\nprint(json.dumps({'results': [{'doc_id': 'doc1'}]}))\n"


KEY = "state/rag-contract/judge.key"


class Writing(NamedTuple):
    """A command, and whether it asks a judge.

    ``first`` is a file that is written whole before another one fails, ``saves`` one that is written with each answer.
    """

    argv: tuple[str, ...]
    asks: bool = False
    stdin: str | None = None
    first: str | None = None
    saves: str | None = None


WRITING = {
    "check": Writing(("check", *REPORTS)),
    "baseline": Writing(("baseline", "--out", "new/baseline.json")),
    "baseline --force": Writing(("baseline", "--force")),
    "baseline --update": Writing(("baseline", "--update", "--accept-regressions", "why")),
    "compare": Writing(("compare", "current_run.jsonl", "baseline.json", "--format", "html", "--out", "compared.html")),
    "convert": Writing(("convert", "--to", "trec", "--run", "current_run.jsonl", "--run-out", "run.trec")),
    "record": Writing(("record", "target.py:search")),
    "record --details": Writing(
        ("record", "target.py:search", "--out", "run.jsonl", "--details", "details.json"), first="run.jsonl"
    ),
    "record of a program": Writing(("record", "program.yml", "--out", "run.jsonl")),
    "record gzip": Writing(("record", "target.py:search", "--out", "run.jsonl.gz")),
    "record Parquet": Writing(("record", "target.py:search", "--out", "run.parquet")),
    "judge": Writing(("judge",), asks=True),
    "judge calibrate": Writing(("judge", "calibrate", "--labels", "people.jsonl"), asks=True),
    "judge label": Writing(("judge", "label"), stdin="y\ny\n", saves="labels.jsonl"),
    "label": Writing(("label",), stdin="y\ny\n", saves="golden.jsonl"),
    "label --ticked": Writing(("label", "--ticked", "ticked.txt")),
    "claims": Writing(("claims", "--golden", "references.jsonl"), asks=True),
    "waive": Writing(("waive", "q1", "--reason", "r", "--owner", "o", "--until", "2999-12-31")),
    "init": Writing(("init", "--force")),
}


def workspace(folder: Path) -> Path:
    good_workspace(folder)
    (folder / "target.py").write_text(TARGET)
    (folder / "program.py").write_text(PROGRAM)
    (folder / "program.yml").write_text(f"command: {{each: [{sys.executable}, program.py]}}\n")
    (folder / "ticked.txt").write_text("## q1\n- [x] doc9\n")
    write_jsonl(folder / "people.jsonl", PEOPLE)
    write_jsonl(folder / "labels.jsonl", PEOPLE)
    write_jsonl(folder / "golden.jsonl", [golden(f"q{at}", f"doc{at}", reference_claims=[CLAIM]) for at in (1, 2)])
    write_jsonl(folder / "references.jsonl", [golden(f"q{at}", f"doc{at}", reference=CLAIM) for at in (1, 2)])
    rows = [run(f"q{at}", f"doc{at}", "doc3", retrieved_contexts=[CONTEXT * 40]) for at in (1, 2)]
    write_jsonl(folder / "current_run.jsonl", rows)
    write_baseline(folder / "baseline.json", stored_query("q1", "doc9"), stored_query("q2", "doc2"))
    return folder


def sizes(least: int) -> Iterator[int]:
    """Yield nothing, then sizes that double."""
    yield 0
    size = least
    while size <= 128 << 10:
        yield size
        size *= 2


def arguments(writing: Writing, server: JudgeServer) -> tuple[str, ...]:
    return (*writing.argv, *(("--model", "toy", "--judge-url", server.openai) if writing.asks else ()))


def environ(folder: Path) -> Mapping[str, str]:
    """Return an environment in which everything that a command may write is on the same disk."""
    (folder / "tmp").mkdir(exist_ok=True)
    nothing = {"OPENAI_API_KEY": "", "RAG_CONTRACT_JUDGE_KEY": ""}
    return {**nothing, "TMPDIR": str(folder / "tmp"), "XDG_STATE_HOME": str(folder / "state")}


def assert_nothing_is_lost(
    writing: Writing, ended: Ended, before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> None:
    assert ended.code == 2, ended
    assert "Traceback" not in ended.err
    full = ("No space left on device", "File too large", "No usable temporary directory")
    assert any(f"cannot be written ({why}" in ended.err for why in full), ended
    changed = [name for name, data in before.items() if after[name] != data]
    assert changed in ([], [writing.saves])
    for name in changed:
        assert all(json.loads(line) for line in after[name].removesuffix(b"\n").split(b"\n"))
    new = set(after) - set(before) - {KEY, writing.first}
    assert all(name.endswith(".journal") for name in new), new
    assert len(after.get(KEY, b"k" * 32)) == 32


@pytest.mark.parametrize("writing", WRITING.values(), ids=WRITING.keys())
def test_files_that_cannot_grow_lose_nothing(writing: Writing, tmp_path: Path) -> None:
    """The limit grows until the command succeeds: so each of its files is the one that fails, at some place in it."""
    folder = workspace(tmp_path)
    before = files_in(folder)
    with JudgeServer() as server:
        for limit in sizes(200):
            argv = arguments(writing, server)
            ended = with_files_up_to(limit, *argv, cwd=folder, environ=environ(folder), stdin=writing.stdin)
            if ended.code == 0:
                break
            assert_nothing_is_lost(writing, ended, before, files_in(folder))
    assert ended.code == 0, ended
    assert limit > 0


@pytest.mark.parametrize("writing", WRITING.values(), ids=WRITING.keys())
def test_a_full_disk_loses_nothing(writing: Writing, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk) as mounted, JudgeServer() as server:
        if not mounted:
            pytest.skip("only root may mount a small disk; the same is tested with files that cannot grow")
        before = files_in(workspace(disk))
        given = environ(disk)
        for room in sizes(PAGE):
            with room_left(disk, room):
                ended = spawn(*arguments(writing, server), cwd=disk, environ=given, stdin=writing.stdin)
            if ended.code == 0:
                break
            assert_nothing_is_lost(writing, ended, before, files_in(disk))
        assert ended.code == 0, ended
        assert room > 0


def test_a_stream_of_events_ends_with_a_whole_event_and_the_run_is_written(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    argv = ("record", "target.py:often_busy", "--out", "run.jsonl", "--stream-out", "events.jsonl")
    for limit in (2_000, 2_400):  # more than the run and its journal have, which names files wherever they are
        ended = with_files_up_to(limit, *argv, cwd=folder, environ=environ(folder))
        assert ended.code == 0, ended
        assert "the stream of events ends here (File too large); the recording goes on" in ended.err
        assert len((folder / "run.jsonl").read_bytes().splitlines()) == 2
        events = (folder / "events.jsonl").read_bytes()
        assert {json.loads(line)["event"] for line in events.splitlines()} >= {"start", "retry"}
        assert events.endswith(b"\n")


def test_outputs_of_a_step_are_appended_whole_or_not_at_all(tmp_path: Path) -> None:
    """Half an output would end the job: the runner looks for its last line."""
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from ragcontract.github.runner_output import set_outputs\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n"
        "set_outputs(Path(sys.argv[1]), {'summary': 'x' * 400})\n"
    )
    for name, before in (("of others", b"a=1\n"), ("new", None)):
        if before is not None:
            (tmp_path / name).write_bytes(before)
        ended = spawn(name, cwd=tmp_path, command=(sys.executable, "-c", program), environ=environ(tmp_path))
        assert "File too large" in ended.err
        assert files_in(tmp_path).get(name) == before
