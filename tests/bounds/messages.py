"""Limits on messages about input, and on what the commands other than check write."""

import difflib
import io
import json
from collections import Counter
from pathlib import Path

import pytest

from ragcontract.cli.commands.init import WORKFLOW, workflow_file
from ragcontract.core import nearest
from ragcontract.core.ids import some
from ragcontract.files.problems import Problem
from tests.bounds.lab import Case, Cases, Lab, all_of
from tests.builders import golden, run, stored_query, write_baseline, write_jsonl
from tests.process import rag_contract


def refused(lab: Lab, row: dict[str, object] | bytes) -> str:
    """Return the message on a wrong golden row."""
    ended = lab.check(row if isinstance(row, bytes) else [row])
    assert ended.code == 2
    return ended.err


def problems(lab: Lab, size: int) -> bool:
    lab.check()
    wrong = rag_contract("check", "--golden", *(f"none{number}" for number in range(size)))
    assert wrong.err.count("no such file") == min(size, 50)
    return "… and 1 more like these" not in wrong.err


def line_ranges(lab: Lab, size: int) -> bool:
    odd = [golden(f"q{number}", weight=0 if number % 2 else 1) for number in range(2 * size)]
    return "…" not in lab.check(odd).err


def lint_repeated(lab: Lab, size: int) -> bool:
    lab.check([golden(f"q{number}", f"lost{number}") for number in range(size)], [run(f"q{n}") for n in range(size)])
    return "…" not in rag_contract("lint").out


def compared_ids(lab: Lab, size: int) -> bool:
    wanted = [golden("q0", "wanted"), golden("q1", "lost")]
    found = [run("q0", *(f"x{number}" for number in range(size - 1))), run("q1", "WANTED")]
    lab.check(wanted, found)
    return "in other case (WANTED for wanted)" in str(lab.report()["warnings"])


def former_labels(lab: Lab, size: int) -> bool:
    """Return whether it is known that the label before was not among so many results either."""
    config = f"k: {size}\nper_query: {{fail_on: new}}\n"
    results = [run("q1", *(f"x{number}" for number in range(size)))]
    lab.check([golden("q1", "hard")], results, config)
    assert rag_contract("baseline", "--force").code == 0
    return lab.check([golden("q1", "harder")], results, config).code == 0


def faults(lab: Lab, size: int) -> bool:
    of_a_row = refused(lab, golden(relevant_doc_ids=[1.5] * size))
    of_config = lab.check(config="".join(f"x{number}: 1\n" for number in range(size))).err
    return all_of(*("has more faults than" not in text for text in (of_a_row, of_config)))


def problems_of_questions(lab: Lab, size: int) -> bool:
    (lab.folder / "questions.txt").write_text("{}\n" * size)
    return "more like these" not in rag_contract("init", "--questions", "questions.txt").err


def a_message(_: Lab, size: int) -> bool:
    long = "m" * size
    return all_of(str(Problem("f", long)) == f"f: {long}", str(Problem(long, "m")) == f"{long}: m")


def a_value(lab: Lab, size: int) -> bool:
    value = ["a" * 30, "b" * (size - 38)]
    written = json.dumps(value)
    assert len(written) == size
    return f"found {written}" in refused(lab, golden(query=value))


def a_text(lab: Lab, size: int) -> bool:
    return f'found "{"x" * size}"' in refused(lab, golden(must_rank_at_most="x" * size))


def items(lab: Lab, size: int) -> bool:
    return all_of(
        f"found {list(range(size))}" in refused(lab, golden(query=list(range(size)))),
        "…" not in refused(lab, golden(query={f"k{number}": 1 for number in range(size)})),
    )


def a_name(_: Lab, size: int) -> bool:
    return "i" * size in some(["i" * size])


def what_follows(lab: Lab, size: int) -> bool:
    return repr("x" * size) in refused(lab, b'{"id": ' + b"x" * size)


def already_broken(lab: Lab, size: int) -> bool:
    write_jsonl(lab.folder / "golden.jsonl", [golden(f"q{number}") for number in range(size)])
    write_jsonl(lab.folder / "current_run.jsonl", [run(f"q{number}", "x") for number in range(size)])
    ended = rag_contract("baseline", "--out", "new.json")
    (lab.folder / "new.json").unlink()
    return all_of(", 1 more\n" not in ended.out, "# … and 1 more waiver" not in ended.out)


def names(lab: Lab, size: int) -> bool:
    unknown = lab.check([], [run(), *(run(f"u{number}") for number in range(size))])
    versions = [run(f"q{number}", index_version=f"v{number}") for number in range(size)]
    disagree = lab.check([golden(f"q{number}") for number in range(size)], versions)
    strange = refused(lab, {"id": "q", "relevant_doc_ids": [], **{f"{letter}{letter}": 1 for letter in "vwxyz"[:size]}})
    return all_of(
        " more" not in unknown.err,
        " more" not in disagree.out,
        repr("vwxyz"[size - 1] * 2) in strange.partition("error: ")[2].partition("\n")[0],
    )


def spell_checked(lab: Lab, size: int) -> bool:
    ids = [f"q{number}" for number in range(size)]
    rows = [*map(run, ids[:-1]), run(ids[-1], latency_mss=1)]
    return "did you mean 'latency_ms'" in lab.check(list(map(golden, ids)), rows).err


def unread_fields(lab: Lab, count: int) -> bool:
    ended = lab.check([golden() | {f"x{number}": 1 for number in range(count)}])
    assert (ended.code, "unknown field 'x0' is not read" in ended.err) == (0, True)
    return "different fields are not read" not in ended.err


def before_a_doubled_key(row: dict[str, object], doubled: str, size: int) -> bytes:
    """Return a row with its line end, of which the last byte that is compared is the last but one, and another row."""
    line = json.dumps(row | {"metadata": {"x": ""}})
    return (line.replace('""', f'"{"x" * (size - len(line) - 1)}"') + "\n" + doubled + "\n").encode()


def compared_keys_of_a_run(lab: Lab, size: int) -> bool:
    doubled = '{"query_id": "q2", "results": [], "results": []}'
    ended = lab.check([golden(), golden("q2")], before_a_doubled_key(run(), doubled, size))
    return "current_run.jsonl:2: duplicate key 'results' in one object" in ended.err


def compared(lab: Lab, known: list[str], word: str) -> tuple[int, int]:
    """Return how many characters of a misspelled name are compared, and with how many names."""
    found: list[tuple[int, int]] = []

    def spy(plain: str, candidates: list[str], **_: object) -> list[str]:
        found.append((len(plain), len(candidates)))
        return []

    lab.patch.setattr(difflib, "get_close_matches", spy)
    nearest.nearest(word, known)
    return found[0]


def known_names(_: Lab, size: int) -> bool:
    return nearest.nearest("targat", [*(f"{number}" for number in range(size - 1)), "target"]) == "target"


def shared_pairs(lab: Lab, size: int) -> bool:
    votes: list[Counter[str]] = []

    class Spy(Counter[str]):
        def __init__(self) -> None:
            super().__init__()
            votes.append(self)

    lab.patch.setattr(nearest, "Counter", Spy)
    nearest.nearest("a", [f"a{number}" for number in range(size)])
    return votes[0].total() == size


def a_slug(lab: Lab, size: int) -> bool:
    (lab.folder / "questions.txt").write_text("a" * size)
    rag_contract("init", "--questions", "questions.txt")
    written: str = json.loads((lab.folder / "golden.jsonl").read_text())["id"]
    return written == "a" * size


def workflow_of(lab: Lab, folder: str) -> str:
    """Return the name of the workflow that init writes for a folder of a repository that has one already."""
    here, workflow = lab.folder / folder, lab.folder / WORKFLOW
    for path in (lab.folder / ".git", here, workflow.parent):
        path.mkdir(parents=True, exist_ok=True)
    (lab.folder / ".git" / "HEAD").touch()
    workflow.touch()
    return Path(workflow_file(here).path).name


def lint(lab: Lab, queries: list[dict[str, object]], rows: list[dict[str, object]]) -> str:
    """Return what lint says of a golden file and a run."""
    write_jsonl(lab.folder / "golden.jsonl", queries)
    write_jsonl(lab.folder / "current_run.jsonl", rows)
    return rag_contract("lint", "--run", "current_run.jsonl").out


def labelled_text(lab: Lab, text: str, question: str = "?") -> str:
    """Return what label shows on a very wide terminal, of a result and of its question."""
    write_jsonl(lab.folder / "golden.jsonl", [golden("q1", "TODO", query=question)])
    write_jsonl(lab.folder / "current_run.jsonl", [{"query_id": "q1", "results": [{"doc_id": "a", "text": text}]}])
    lab.patch.setenv("COLUMNS", "5000" if " " not in question else "40")
    lab.patch.setattr("sys.stdin", io.StringIO())
    return rag_contract("label").out


def text_in_label(lab: Lab, size: int) -> bool:
    return all_of("x" * size in labelled_text(lab, "x" * size), "y" * size in labelled_text(lab, "x", "y" * size))


def lines_in_label(lab: Lab, size: int) -> bool:
    return "…" not in labelled_text(lab, "", " ".join(["x" * 30] * size)).partition("(q1)")[0]


def candidate_text(lab: Lab, size: int) -> bool:
    write_jsonl(lab.folder / "golden.jsonl", [golden("q1", "TODO", query="y" * size)])
    write_jsonl(lab.folder / "r.jsonl", [{"query_id": "q1", "results": [{"doc_id": "a", "text": "x" * size}]}])
    assert rag_contract("init", "--from-run", "r.jsonl", "--force").code == 0
    written = (lab.folder / "candidates.txt").read_text()
    return all_of("x" * size in written, "y" * size in written)


def measured_documents(lab: Lab, size: int) -> bool:
    write_jsonl(lab.folder / "golden.jsonl", [golden("q1", "a", must_include_any=True)])
    write_jsonl(lab.folder / "current_run.jsonl", [run("q1", *(f"d{number}" for number in range(size)))])
    options = "--k", str(size), "--top", str(size), "--format", "jsonl"
    lines = rag_contract("unjudged", *options).out.splitlines()
    return all(json.loads(line)["move"] for line in lines)


def tagged(lab: Lab, size: int) -> bool:
    queries = [golden(f"q{number}", query=f"Question {number}?", tags=["t"]) for number in range(size)]
    return "small-tag" not in lint(lab, queries, [run()])


def collected_ids(lab: Lab, size: int) -> bool:
    rows = [run("q1", *(str(number) for number in range(size - 1))), run("q2", "document")]
    return "did you mean 'document'" in lint(lab, [golden("q1", "documemt")], rows)


def letters(number: int) -> str:
    """Return a name for a number, without digits."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number)) * 3


def suggested_ids(lab: Lab, size: int) -> bool:
    queries = [
        golden(f"q{number}", f"{letters(number)}-handbok", query=f"Question {number}?") for number in range(size)
    ]
    rows = [run("q0", *(f"{letters(number)}-handbook" for number in range(size)))]
    return lint(lab, queries, rows).count("did you mean") == size


def compared_elements(lab: Lab, size: int) -> bool:
    elements = [*(f"element {number:05}." for number in range(size - 1)), "element"]
    return "[repeated-element]" in lint(lab, [{"id": "q", "query": "?", "required_elements": elements}], [run("q")])


def accept(lab: Lab, broken: int, before: int) -> list[dict[str, list[str]]]:
    """Accept a run in which some queries are broken, after ``before`` others; returns the records in the baseline."""
    ids = [f"q{number}" for number in range(broken)]
    record = {"reason": "r", "at": "2026-01-01", "failed": 1, "failed_checks": ["c"]}
    write_jsonl(lab.folder / "golden.jsonl", map(golden, ids))
    write_jsonl(lab.folder / "current_run.jsonl", [run(one, "x") for one in ids])
    stored = [stored_query(one) for one in ids]
    write_baseline(lab.folder / "baseline.json", *stored, accepted=[record] * before)
    ended = rag_contract("baseline", "--update", "--accept-regressions", "they are known")
    assert ended.code == 0, ended
    found: list[dict[str, list[str]]] = json.loads((lab.folder / "baseline.json").read_text())["accepted"]
    return found


def versions_on_spark(_: Lab, size: int) -> bool:
    pytest.importorskip("pyspark")
    from ragcontract.cluster.spark_source import few_versions
    from ragcontract.files.problems import Collector

    problems = Collector()
    found = few_versions({"index_version": list(map(str, range(size)))}, "run", problems)
    return all_of(*(len(values) == size for values in found.values()), not problems.collected().warnings)


def unknown_ids(lab: Lab, size: int) -> bool:
    lab.check([], [run(), *(run(f"u{number}") for number in range(size))])
    found = lab.report()["inputs"]["run"]
    assert found["queries"] == size + 1
    return len(found["unknown"]) == size


CASES: Cases = {
    "PROBLEMS": Case(problems),
    "LINE_RANGES": Case(line_ranges),
    "COMPARED_IDS": Case(compared_ids, small=20),
    "FORMER_LABELS": Case(former_labels, small=20),
    "LINT_REPEATED": Case(lint_repeated),
    "FAULTS": Case(faults),
    "QUESTION_PROBLEMS": Case(problems_of_questions),
    "MESSAGE": Case(a_message),
    "VALUE": Case(a_value),
    "VALUE_TEXT": Case(a_text),
    "VALUE_ITEMS": Case(items),
    "NAME": Case(a_name),
    "JSON_REST": Case(what_follows),
    "NAMES": Case(names),
    "UNREAD_FIELDS": Case(unread_fields),
    "SPELL_CHECKED": Case(spell_checked),
    "RUN_KEYS_COMPARED": Case(compared_keys_of_a_run, small=1_000),
    "NEAR_LENGTH": Case(lambda lab, size: compared(lab, ["known"], "x" * size)[0] == size),
    "NEAR_KNOWN": Case(known_names, small=50),
    "NEAR_SHARED": Case(shared_pairs, small=50),
    "NEAR_COMPARED": Case(lambda lab, size: compared(lab, [f"a{one}" for one in range(size)], "a")[1] == size),
    "LABEL_TEXT": Case(text_in_label),
    "LABEL_LINES": Case(lines_in_label),
    "CANDIDATE_TEXT": Case(candidate_text),
    "UNJUDGED": Case(measured_documents),
    "SLUG": Case(a_slug),
    "FOLDER_NAME": Case(lambda lab, size: workflow_of(lab, "a" * size) == f"rag-contract-{'a' * size}.yml"),
    "TAGGED": Case(tagged, past=lambda fewest: fewest - 1),
    "LINT_ELEMENTS": Case(compared_elements),
    "LINT_IDS": Case(collected_ids, small=20),
    "LINT_SUGGESTED": Case(suggested_ids),
    "ACCEPTED": Case(lambda lab, size: len(accept(lab, broken=1, before=size - 1)) == size),
    "BROKEN_LISTED": Case(already_broken),
    "FAILED_CHECKS": Case(lambda lab, size: len(accept(lab, broken=size, before=0)[-1]["failed_checks"]) == size),
    "UNKNOWN": Case(unknown_ids, small=20),
    "VERSIONS": Case(versions_on_spark),
}
