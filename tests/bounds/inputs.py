"""Limits on input: text, numbers and sizes. Beyond them, a check exits with 2 and says why."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout, suppress

from ragcontract.cli.main import main
from ragcontract.contract.golden_file import read_golden
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.run import row_type
from ragcontract.runs.readers import RunFiles
from tests.bounds.lab import Case, Cases, Lab, accepted, all_of, packed, row
from tests.builders import baseline, golden, run, stored_query, write_jsonl
from tests.process import Ended, rag_contract
from tests.toys import REGISTRY as TOYS

SAY = {"type": "must_say", "phrase": "A"}


def an_id(lab: Lab, size: int) -> bool:
    name = "i" * size
    return all_of(
        accepted(lab.check([golden(name)], [run(name)]), "id: expected text of 1 to 2,000 characters"),
        accepted(lab.check(rows=[run("q1", "doc1", name)]), "doc_id: expected text of 1 to 2,000 characters"),
        accepted(lab.check([golden(relevance={name: 1}, relevant_doc_ids=None)]), "has a key of more than 2000"),
    )


def a_tag(lab: Lab, size: int) -> bool:
    name, refusal = "t" * size, "expected text of 1 to 200 characters"
    return all_of(
        accepted(lab.check([golden(tags=[name])]), refusal),
        accepted(lab.check([golden(tier=name)]), refusal),
        accepted(lab.check([golden(expected_label=name)], [run(label=name)]), refusal),
    )


def tiers(lab: Lab, count: int) -> bool:
    names = [f"t{number}" for number in range(count)]
    config = "tiers:\n" + "".join(f"- {{name: {name}, minimum: 1}}\n" for name in names)
    queries = [golden(name, tier=name) for name in names]
    return accepted(lab.check(queries, [run(name) for name in names], config), "tiers: expected ")


def a_key(lab: Lab, size: int) -> bool:
    refused = "has a key of more than"
    known = lab.check(config=f"{'x' * size}: 1\n")
    assert known.code == 2
    waiver = f"waivers: [{{gate: {'x' * size}, reason: r, owner: o, expires: 2030-01-01}}]\n"
    of_a_gate = lab.check(config=waiver)
    return all_of(refused not in known.err, "gate: expected text of 1 to" not in of_a_gate.err)


def an_answer(lab: Lab, size: int) -> bool:
    text = "a" * size
    path = write_jsonl(lab.folder / "run.jsonl", [run(response=text)])
    events = [*RunFiles(paths=[str(path)]).events(row_type(frozenset({"response"})))]
    return all_of(
        accepted(lab.check([golden(reference=text)]), "reference: expected text of 1 to 1,048,576 characters"),
        not any("expected text of at most 1,048,576 characters" in str(event) for event in events),
    )


def turns_of_a_row(lab: Lab, size: int) -> bool:
    path = write_jsonl(lab.folder / "turns.jsonl", [golden(turns=[{"query": "?", "rules": [SAY]}] * size)])
    problems = read_golden([str(path)], TOYS).problems.problems
    return not any("turns: expected a list of 1 to 1,000 turns" in problem for problem in problems)


def levels_of_the_config(lab: Lab, size: int) -> bool:
    ended = lab.check(config="{a: " * size + "1" + "}" * size)
    assert ended.code == 2
    return "is nested more than" not in ended.err


def levels_of_json(lab: Lab, size: int) -> bool:
    nested = json.dumps(baseline(stored_query()))[:-1] + ', "x": ' + "[" * (size - 1) + "]" * (size - 1) + "}"
    (lab.folder / "baseline.json").write_text(nested)
    return accepted(lab.check(), "is nested too deeply: more than 100 levels")


def a_rank(lab: Lab, size: int) -> bool:
    refused = "expected a whole number of at least 1, at most a billion"
    return all_of(
        accepted(lab.check([golden(must_rank_at_most=size)]), refused),
        accepted(lab.check(config=f"k: {size}\n"), refused),
        accepted(lab.check(config=f"max_baseline_age: {size}\n"), refused),
        accepted(lab.check([], [], "", "--k", str(size)), "1<=x<=1000000000"),
    )


def cutoffs(lab: Lab, size: int) -> bool:
    return accepted(lab.check(config=f"k: {list(range(1, size + 1))}\n"), "a list of up to 10 of them")


def a_weight(lab: Lab, weight: float) -> bool:
    return accepted(lab.check([golden(weight=weight)]), "expected a number from 1e-9 to a billion")


def a_grade(lab: Lab, grade: float) -> bool:
    return accepted(lab.check([golden(relevance={"doc1": grade})]), "a number of at least 0, at most a billion")


def an_exponent(lab: Lab, grade: float) -> bool:
    graded = [golden(relevance={"doc1": grade})]
    return accepted(lab.check(graded, [], "gain: exponential\n"), "has a grade over 64, too much for")


def milliseconds(lab: Lab, number: float) -> bool:
    measured = [run(latency_ms=5)]
    return all_of(
        accepted(lab.check(rows=[run(latency_ms=number)]), "latency_ms: expected a number from 0 to a billion"),
        accepted(lab.check([], measured, f"latency: {{p95_ms: {number}}}\n"), "above 0, at most a billion"),
    )


def an_alpha(lab: Lab, alpha: float) -> bool:
    config = f"fail_on: {{mode: significant, alpha: {alpha}}}\n"
    return accepted(lab.check(config=config), "expected a number from 0.001 up to 1")


def _a_rise(lab: Lab, percentage: str) -> bool:
    (lab.folder / "good.jsonl").write_text(json.dumps(run(latency_ms=5)))
    config = f'latency: {{p95_increase_gt: "{percentage}%"}}\n'
    ended = lab.check([], [run(latency_ms=5)], config, "--baseline", "good.jsonl")
    return accepted(ended, "expected a number of milliseconds of at least 0, at most a billion or a percentage")


def a_line(lab: Lab, size: int) -> bool:
    following = json.dumps(golden("q2")).encode()
    rows = [run("q1"), run("q2")]
    return all_of(
        *(
            accepted(lab.check(data, rows), "golden.jsonl:1: the line is longer than")
            for data in (row(size) + b"\n" + following, packed(row(size) + b"\n" + following))
        )
    )


def the_config(lab: Lab, size: int) -> bool:
    return accepted(lab.check(config="k: 5\n#".ljust(size, "x")), "ragcontract.yml: is larger than")


def unpacked(lab: Lab, size: int) -> bool:
    refused = "which is too much for a gzip file of its size; give it unpacked"
    of_a_line = accepted(lab.check(packed(row(size))), refused)
    (lab.folder / "baseline.json").write_bytes(packed(json.dumps(baseline()).encode().ljust(size)))
    return all_of(of_a_line, accepted(lab.check(), refused))


def unpacked_by_size(lab: Lab, times: int) -> bool:
    lab.make_smaller("UNPACKED", 1)
    refused = "which is too much for a gzip file of its size; give it unpacked"
    return accepted(lab.check(packed(row(500 * times), 500)), refused)


def unpacked_in_total(lab: Lab, size: int) -> bool:
    data = row(200) + b"\n" * (size - 200)
    return accepted(lab.check(packed(data)), "which is too much for a gzip file of its size; give it unpacked")


def unpacked_in_total_by_size(lab: Lab, times: int) -> bool:
    lab.make_smaller("UNPACKED_TOTAL", 1)
    return unpacked_by_bytes(lab, 500 * times)


def unpacked_by_bytes(lab: Lab, size: int) -> bool:
    data = row(200) + b"\n" * (size - 200)
    return accepted(lab.check(packed(data, 500)), "which is too much for a gzip file of its size; give it unpacked")


def questions(lab: Lab, size: int) -> bool:
    (lab.folder / "questions.txt").write_text("Why?".ljust(size))
    return accepted(rag_contract("init", "--questions", "questions.txt"), "the limit for a list of questions")


def candidates(lab: Lab, size: int) -> bool:
    write_jsonl(lab.folder / "golden.jsonl", [golden("q1", "TODO")])
    written, argv = lab.folder / "candidates.txt", ("init", "--from-run", "r.jsonl", "--force")
    write_jsonl(lab.folder / "r.jsonl", [run("q1", "a")])
    assert rag_contract(*argv).code == 0
    write_jsonl(lab.folder / "r.jsonl", [run("q1", "a" * (size - written.stat().st_size + 1))])
    is_written = accepted(rag_contract(*argv), "candidates.txt: would be larger than")
    written.write_text("## q1\n- [x] a".ljust(size))
    return all_of(is_written, accepted(rag_contract("label", "--ticked", "candidates.txt"), "the limit for candidates"))


def a_cell(lab: Lab, size: int) -> bool:
    (lab.folder / "q.csv").write_text(f"question,doc_ids,notes\nWhy?,a,{'x' * size}\n")
    argv = ("--from", "csv", "--csv", "q.csv", "--golden-out", "out.jsonl", "--force")
    return accepted(rag_contract("convert", *argv), "a cell is longer than")


def cases(lab: Lab, size: int) -> bool:
    case = {"id": "q1", "query": "?", "contexts": [], "expected_mode": "abstain"}
    (lab.folder / "dispute.json").write_text(json.dumps({"cases": [case]}).ljust(size))
    argv = ("--from", "fitz-gov", "--cases", "dispute.json", "--golden-out", "out.jsonl", "--force")
    return accepted(rag_contract("convert", *argv), "dispute.json: is larger than")


def results(lab: Lab, size: int) -> bool:
    (lab.folder / "r.json").write_bytes(b'[{"id": "a", "f": 1}]'.ljust(size))
    (lab.folder / "run.json").write_bytes(
        b'{"testCases": [{"name": "a", "metricsData": [{"name": "f", "score": 1}]}]}'.ljust(size)
    )
    return all_of(
        accepted(_scores("table", "r.json", "--score", "f"), "is larger than"),
        accepted(_scores("deepeval", "run.json"), "is larger than"),
    )


def a_name_of_a_score(lab: Lab, size: int) -> bool:
    write_jsonl(lab.folder / "r.jsonl", [{"id": "a", "s" * size: 1}])
    return accepted(_scores("ragas", "r.jsonl"), "cannot be the name of a metric")


def names_of_scores(lab: Lab, size: int) -> bool:
    write_jsonl(lab.folder / "r.jsonl", [{"id": "a"} | {f"s{number}": 1 for number in range(size)}])
    return accepted(_scores("ragas", "r.jsonl"), "is one name too many; expected at most 1,000")


def a_reason(lab: Lab, size: int) -> bool:
    metric = {"name": "f", "score": 1, "reason": "r" * size}
    (lab.folder / "run.json").write_text(json.dumps({"testCases": [{"name": "a", "metricsData": [metric]}]}))
    assert _scores("deepeval", "run.json").code == 0
    return bool(json.loads((lab.folder / "scores.jsonl").read_text())["reasons"] == {"f": "r" * size})


def _scores(form: str, path: str, *options: str) -> Ended:
    argv = ("--from", form, "--results", path, "--scores-out", "scores.jsonl", "--force")
    return rag_contract("convert", *argv, *options)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def without_progress(lab: Lab, size: int) -> bool:
    written = write_jsonl(lab.folder / "golden.jsonl", [golden()])
    (lab.folder / "run.jsonl").write_bytes(b" " * (size - written.stat().st_size))
    terminal = _Terminal()
    with redirect_stderr(terminal), redirect_stdout(io.StringIO()), suppress(InputError):
        main(["validate", "--golden", "golden.jsonl", "--run", "run.jsonl"])
    return "reading" not in terminal.getvalue()


def explained(lab: Lab, size: int) -> bool:
    ended = lab.check(row(size, query=1, weight="x"))
    assert ended.code == 2
    return ended.err.count("golden.jsonl:1: ") == 2


def values_of_the_config(lab: Lab, count: int) -> bool:
    numbers = ", ".join(map(str, range(1, count - 2)))  # beside the mapping, the key and the list
    return "has more than" not in lab.check(config=f"k: [{numbers}]\n").err


def a_question(lab: Lab, size: int) -> bool:
    return accepted(lab.check([golden(query="?" * size)]), "query: expected text of 1 to 20,000 characters")


def tags_of_all(lab: Lab, count: int) -> bool:
    queries = [golden(f"q{number}", tags=[f"t{number}"]) for number in range(count)]
    rows = [run(f"q{number}") for number in range(count)]
    return accepted(lab.check(queries, rows), "tags: more than 10 different tags")


def faulty_rows(lab: Lab, count: int) -> bool:
    ended = lab.check(b"{}\n" * (bounds.PROBLEMS // 2 + count))  # two problems each
    assert ended.code == 2
    return f"… and {count} more like these" in ended.err


def names_like_the_config(lab: Lab, count: int) -> bool:
    for number in range(count - 3):  # beside the golden file, the run and the near name
        (lab.folder / f"a{number}").touch()
    (lab.folder / "ragcontract.YML").touch()
    write_jsonl(lab.folder / "golden.jsonl", [golden()])
    write_jsonl(lab.folder / "current_run.jsonl", [run()])
    return "ragcontract.YML: looks like a configuration" in rag_contract("check").err


CASES: Cases = {
    "ID": Case(an_id),
    "TAG": Case(a_tag),
    "KEY": Case(a_key),
    "QUESTION": Case(a_question),
    "ANSWER": Case(an_answer),
    "TIERS": Case(tiers),
    "TURNS": Case(turns_of_a_row),
    "TAGS": Case(tags_of_all, small=10),
    "CONFIG_VALUES": Case(values_of_the_config, small=20),
    "CONFIG_DEPTH": Case(levels_of_the_config),
    "NESTING": Case(levels_of_json),
    "RANK": Case(a_rank),
    "CUTOFFS": Case(cutoffs),
    "WEIGHT_LEAST": Case(a_weight, past=lambda least: least / 2),
    "WEIGHT": Case(a_weight),
    "GRADE": Case(a_grade),
    "EXPONENT": Case(an_exponent),
    "MILLISECONDS": Case(milliseconds),
    "ALPHA_LEAST": Case(an_alpha, past=lambda least: least / 2),
    "PERCENT_DIGITS": Case(lambda lab, digits: _a_rise(lab, "9" * digits)),
    "PERCENT_DECIMALS": Case(lambda lab, digits: _a_rise(lab, "1." + "9" * digits)),
    "LINE": Case(a_line, small=1_000),
    "CONFIG": Case(the_config, small=200),
    "UNPACKED": Case(unpacked, small=20_000),
    "UNPACKED_RATIO": Case(unpacked_by_size),
    "UNPACKED_TOTAL": Case(unpacked_in_total, small=20_000),
    "UNPACKED_TOTAL_RATIO": Case(unpacked_in_total_by_size),
    "QUESTIONS": Case(questions, small=100),
    "TICKED": Case(candidates, small=600),
    "CASES": Case(cases, small=200),
    "CSV_CELL": Case(a_cell),
    "RESULTS": Case(results, small=100),
    "SCORE_NAME": Case(a_name_of_a_score),
    "SCORE_NAMES": Case(names_of_scores),
    "SCORE_REASON": Case(a_reason),
    "PROGRESS": Case(without_progress, small=100),
    "EXPLAINED": Case(explained, small=1_000),
    "CONFIG_SEARCHED": Case(names_like_the_config, small=10),
    "FAULTY_ROWS": Case(faulty_rows, small=100, past=lambda limit: limit + 2),  # that there are others counts as one,
}
