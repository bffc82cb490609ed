"""Several programs that write one file at the same time: nothing that one of them wrote is lost."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.builders import golden, good_workspace, run, stored_query, write_baseline, write_jsonl
from tests.judge_characters import CHARACTERS, Answer, Asked
from tests.judge_server import JudgeServer
from tests.process import COMMAND, AtATerminal, Ended, files_in, spawn

# It says that all modules are loaded, and begins when it is told to.
_READY = """
import sys
import ragcontract.cli.commands.waive
from ragcontract.guard import entry_point
print("ready", flush=True)
sys.stdin.readline()
entry_point()
"""
CHANGED = "was changed by another program since it was read, so it is not overwritten"
CONTEXT = "Returns are accepted within 30 days of delivery. Refunds take five days."
CLAIM = "Refunds take five days."
LABELS = [
    {"task": "attribution", "question": f"{at}?", "contexts": [CONTEXT], "text": CLAIM, "label": True} for at in (1, 2)
]


def all_at_once(commands: Sequence[tuple[str, ...]], cwd: Path) -> list[Ended]:
    """Run commands that begin when all of them can."""
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    started = [
        subprocess.Popen([sys.executable, "-c", _READY, *argv], cwd=cwd, text=True, **pipe)  # type: ignore[call-overload]
        for argv in commands
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    ended = [process.communicate() for process in started]
    return [Ended(process.returncode, *said) for process, said in zip(started, ended, strict=True)]


def workspace(folder: Path) -> Path:
    rows = [golden(f"q{at}", f"doc{at}", reference_claims=[CLAIM]) for at in (1, 2)]
    write_jsonl(folder / "golden.jsonl", rows)
    runs = [run(f"q{at}", f"doc{at}", retrieved_contexts=[CONTEXT]) for at in (1, 2)]
    write_jsonl(folder / "current_run.jsonl", runs)
    return folder


def ask(folder: Path, server: JudgeServer, *argv: str) -> Ended:
    environ = {"XDG_STATE_HOME": str(folder.parent / "state"), "OPENAI_API_KEY": "", "RAG_CONTRACT_JUDGE_KEY": ""}
    return spawn(*argv, "--model", "toy", "--judge-url", server.openai, cwd=folder, environ=environ)


def honest_but_first(act: Callable[[], object]) -> Answer:
    """Return a model that answers as an honest one; before it answers first, something else happens."""
    once = [act]

    def answer(prompt: Asked) -> str:
        if once:
            once.pop()()
        return CHARACTERS["honest"](prompt)

    return answer


@pytest.mark.parametrize("config", ["k: 5\n", None])
def test_waivers_that_are_added_at_the_same_time_are_all_there(config: str | None, tmp_path: Path) -> None:
    names = [f"q{number}" for number in range(4)]
    write_jsonl(tmp_path / "golden.jsonl", [golden(name) for name in names])
    waive = [("waive", name, "--reason", "r", "--owner", "o", "--until", "2999-12-31") for name in names]
    for _ in range(3):
        (tmp_path / "ragcontract.yml").unlink(missing_ok=True)
        if config:
            (tmp_path / "ragcontract.yml").write_text(config)
        assert [ended.code for ended in all_at_once(waive, tmp_path)] == [0] * 4
        written = (tmp_path / "ragcontract.yml").read_text()
        assert [written.count(f"query: {name}\n") for name in names] == [1] * 4
    assert sorted(files_in(tmp_path)) == ["golden.jsonl", "ragcontract.yml"]


def test_judgments_that_another_program_wrote_while_it_judged_stay(tmp_path: Path) -> None:
    (theirs := tmp_path / "theirs").mkdir()
    write_jsonl(workspace(theirs) / "golden.jsonl", [golden("elsewhere", reference_claims=[CLAIM])])
    write_jsonl(theirs / "current_run.jsonl", [run("elsewhere", retrieved_contexts=[CONTEXT])])
    (ours := tmp_path / "ours").mkdir()
    file = workspace(ours) / "judgments.jsonl"
    with JudgeServer() as server:
        assert ask(theirs, server, "judge").code == 0
        written = (theirs / "judgments.jsonl").read_bytes()
        server.answer = honest_but_first(lambda: file.write_bytes(written))
        assert ask(ours, server, "judge").code == 0
        queries = {json.loads(line)["query_id"] for line in file.read_text().splitlines()}
        assert queries == {"elsewhere", "q1", "q2"}
        assert written in file.read_bytes()
        asked = len(server.asked)
        assert (ask(ours, server, "judge").code, len(server.asked)) == (0, asked)


def test_a_verdict_that_another_program_wrote_while_it_judged_is_not_replaced(tmp_path: Path) -> None:
    file = workspace(tmp_path) / "judgments.jsonl"
    with JudgeServer() as server:
        assert ask(tmp_path, server, "judge").code == 0
        theirs = [json.loads(line) | {"at": "2020-01-01T00:00:00Z"} for line in file.read_text().splitlines()]
        further = theirs[0] | {"key": "0" * 64, "at": "2999-01-01T00:00:00Z"}
        server.answer = honest_but_first(lambda: write_jsonl(file, [*theirs, further]))
        assert ask(tmp_path, server, "judge", "--refresh").code == 0
    assert sorted(json.loads(line)["at"] for line in file.read_text().splitlines()) == [
        *(judgment["at"] for judgment in theirs),
        further["at"],
    ]


def test_what_was_reused_is_in_the_file_even_if_another_program_took_it_out(tmp_path: Path) -> None:
    file = workspace(tmp_path) / "judgments.jsonl"
    with JudgeServer() as server:
        assert ask(tmp_path, server, "judge", "--max-calls", "1", "--votes", "1", "--concurrency", "1").code == 2
        assert file.read_text().count("\n") == 1
        server.answer = honest_but_first(lambda: file.write_text(""))
        assert ask(tmp_path, server, "judge", "--votes", "1").code == 0
    assert file.read_text().count("\n") == 2


def test_judgments_that_became_unreadable_are_left_as_they_are_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    file = workspace(tmp_path) / "judgments.jsonl"
    with JudgeServer(honest_but_first(lambda: file.write_text("{"))) as server:
        ended = ask(tmp_path, server, "judge")
        assert (ended.code, file.read_text()) == (2, "{")
        assert "judgments.jsonl:1: " in ended.err
        file.unlink()
        asked = len(server.asked)
        assert (ask(tmp_path, server, "judge").code, len(server.asked)) == (0, asked)


def test_a_calibration_that_another_program_wrote_meanwhile_stays_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "labels.jsonl", LABELS)
    with JudgeServer() as server:
        assert ask(tmp_path, server, "judge", "calibrate", "--out", "theirs.json").code == 0
        theirs, file = (tmp_path / "theirs.json").read_bytes(), tmp_path / "judge-calibration.json"
        server.answer = honest_but_first(lambda: file.write_bytes(theirs))
        ended = ask(tmp_path, server, "judge", "calibrate")
        assert (ended.code, file.read_bytes()) == (2, theirs)
        assert f"error: judge-calibration.json: {CHANGED}; run the command again" in ended.err
        asked = len(server.asked)
        assert ask(tmp_path, server, "judge", "calibrate").code == 0
        assert len(server.asked) == asked
    assert sorted(files_in(tmp_path)) == ["judge-calibration.json", "labels.jsonl", "theirs.json"]


def test_claims_leave_a_golden_file_that_somebody_edited_meanwhile_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "golden.jsonl", [golden("q1", reference=CLAIM)])
    edited = file.read_text().replace("doc1", "doc2")
    with JudgeServer(honest_but_first(lambda: file.write_text(edited))) as server:
        ended = ask(tmp_path, server, "claims")
        assert (ended.code, file.read_text()) == (2, edited)
        assert f"error: golden.jsonl: {CHANGED}" in ended.err
        asked = len(server.asked)
        assert ask(tmp_path, server, "claims").code == 0
        assert len(server.asked) == asked
    assert '"doc2"' in file.read_text()


BASELINES = {
    "updated": ("--update", "--accept-regressions", "better"),
    "replaced": ("--force",),
    "new": (),
}


def fed(pipe: Path, data: bytes, process: "subprocess.Popen[str]", first: Callable[[], object]) -> None:
    """Do something as soon as a process reads a pipe, and write data into it; what it reads later is empty."""
    while process.poll() is None:
        try:
            descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # it does not read now
            time.sleep(0.01)
            continue
        first()
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        first, data = bool, b""


@pytest.mark.parametrize("options", BASELINES.values(), ids=BASELINES.keys())
def test_a_baseline_that_another_program_wrote_meanwhile_stays(options: tuple[str, ...], tmp_path: Path) -> None:
    """The configuration is a pipe, so that the command waits for it, and the baseline is written at this moment."""
    file = good_workspace(tmp_path) / "baseline.json"
    write_baseline(file, stored_query("q1", "other"), stored_query("q2", "doc2"))
    theirs = file.read_bytes().replace(b"other", b"theirs")
    if not options:
        file.unlink()
    os.mkfifo(tmp_path / "pipe")
    command = [*COMMAND, "baseline", "--config", "pipe", *options]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    fed(tmp_path / "pipe", b"# no limits\n", process, lambda: file.write_bytes(theirs))
    _, said = process.communicate()
    assert (process.returncode, file.read_bytes()) == (2, theirs)
    assert f"error: baseline.json: {CHANGED}" in said


def test_baselines_that_are_updated_at_the_same_time_are_one_of_them_whole(tmp_path: Path) -> None:
    names = [f"run{number}.jsonl" for number in range(4)]
    for name in names:
        write_jsonl(tmp_path / name, [run(f"q{at}", f"doc{at}", f"only in {name}") for at in range(200)])
    write_jsonl(tmp_path / "golden.jsonl", [golden(f"q{at}", f"doc{at}") for at in range(200)])
    update = [("baseline", "--update", "--run", name) for name in names]
    for _ in range(3):
        write_baseline(tmp_path / "baseline.json", *(stored_query(f"q{at}", "other") for at in range(200)))
        ended = all_at_once(update, tmp_path)
        assert {one.code for one in ended} <= {0, 2}
        assert all(one.err.startswith("error: baseline.json: ") and "changed" in one.err for one in ended if one.code)
        written = (tmp_path / "baseline.json").read_text()
        assert sorted(written.count(f'"only in {name}"') for name in names) == [0, 0, 0, 200]
        of_winner = next(number for number, name in enumerate(names) if f'"only in {name}"' in written)
        assert ended[of_winner].code == 0
    assert sorted(files_in(tmp_path)) == ["baseline.json", "golden.jsonl", *names]


def test_a_label_is_not_added_to_labels_that_another_program_wrote_meanwhile(tmp_path: Path) -> None:
    file = workspace(tmp_path) / "labels.jsonl"
    with AtATerminal("judge", "label", cwd=tmp_path) as person:
        person.expect("1 of 2 items")
        person.expect("[q]uit")
        person.type("y")
        person.expect("2 of 2 items")
        person.expect("[q]uit")
        theirs = file.read_text() + json.dumps(LABELS[0]) + "\n"
        file.write_text(theirs)
        person.type("n")
        assert person.end() == 2
        assert "labels.jsonl: was changed by another program" in " ".join(person.shown.split())
    assert file.read_text() == theirs


def test_two_people_who_label_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    file = workspace(tmp_path) / "labels.jsonl"
    with AtATerminal("judge", "label", cwd=tmp_path) as one, AtATerminal("judge", "label", cwd=tmp_path) as other:
        for person in (one, other):
            person.expect("[q]uit")
        one.type("y")
        one.expect("2 of 2 items")
        other.type("y")
        assert other.end() == 2
        one.expect("[q]uit")
        one.type("y")
        assert one.end() == 0
    assert len({json.loads(line)["question"] for line in file.read_text().splitlines()}) == 2


def test_a_file_that_somebody_made_meanwhile_is_not_overwritten_by_one_that_is_converted(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    os.mkfifo(tmp_path / "pipe")
    argv = ("convert", "--from", "trec", "--run", "pipe", "--run-out", "run.jsonl")
    process = subprocess.Popen([*COMMAND, *argv], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    fed(tmp_path / "pipe", b"q1 Q0 doc1 1 2.5 tag\n", process, lambda: file.write_text("theirs"))
    assert process.communicate()[1] == "error: run.jsonl: exists already; use --force to overwrite it\n"
    assert (process.returncode, file.read_text()) == (2, "theirs")


def test_a_file_that_somebody_made_meanwhile_is_not_overwritten_by_init(tmp_path: Path) -> None:
    file = tmp_path / "ragcontract.yml"
    os.mkfifo(tmp_path / "pipe")
    argv = ("init", "--questions", "pipe")
    process = subprocess.Popen([*COMMAND, *argv], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    fed(tmp_path / "pipe", b"How long does a refund take?\n", process, lambda: file.write_text("# theirs\n"))
    assert process.communicate()[1] == "error: ragcontract.yml: exists already; use --force to overwrite it\n"
    assert (process.returncode, files_in(tmp_path)) == (2, {"ragcontract.yml": b"# theirs\n"})


@pytest.mark.parametrize(
    ("command", "journal", "advice"),
    [
        (("judge",), ".judgments.jsonl.journal", "wait for its end, or give another --judgments"),
        (
            ("judge", "calibrate", "--labels", "people.jsonl"),
            ".judge-calibration.json.1.journal",
            "wait for its end, or give another --out",
        ),
        (("claims",), ".golden.jsonl.journal", "wait for its end"),
    ],
    ids=["judge", "calibrate", "claims"],
)
def test_the_second_of_two_judgings_is_told_what_it_can_do(
    command: tuple[str, ...], journal: str, advice: str, tmp_path: Path
) -> None:
    workspace(tmp_path)
    write_jsonl(tmp_path / "people.jsonl", LABELS)
    if command == ("claims",):
        write_jsonl(tmp_path / "golden.jsonl", [golden("q1", reference=CLAIM)])
    second: list[Ended] = []
    with JudgeServer() as server:
        server.answer = honest_but_first(lambda: second.append(ask(tmp_path, server, *command)))
        first = ask(tmp_path, server, *command)
    assert [(ended.code, ended.err) for ended in second] == [
        (2, f"error: {journal}: another judging writes it; {advice}\n")
    ]
    assert first.code == 0, first.err
