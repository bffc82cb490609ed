"""Limits on the scores of other tools."""

import json

from ragcontract.answers.code_blocks import _Unparsable, _within_steps
from ragcontract.answers.leaked_values import values_in
from ragcontract.core.metric import Metric
from ragcontract.runs.scores_files import GivenScores, Wanted, read_scores
from tests.bounds.lab import Case, Cases, Lab, accepted, all_of
from tests.builders import Row, golden, run, write_jsonl


def an_end(lab: Lab, size: int) -> bool:
    refused = "expected a number from -1,000,000,000 to 1,000,000,000"
    rows = [run(scores={"cost": 5})]
    return all_of(
        accepted(lab.check([], rows, f"metrics: {{cost: {{from: scores, scale: [0, {size}]}}}}\n"), refused),
        accepted(lab.check([], rows, f"metrics: {{cost: {{from: scores, scale: [-{size}, 5]}}}}\n"), refused),
    )


def declared(lab: Lab, size: int) -> bool:
    names = [f"score{number}" for number in range(size)]
    config = "metrics:\n" + "".join(f"  {name}: {{from: scores}}\n" for name in names)
    return accepted(lab.check([], [run(scores=dict.fromkeys(names, 1))], config), "is one score too many")


def a_name(lab: Lab, size: int) -> bool:
    name = "x" * size
    config = f"metrics: {{{name}: {{from: scores}}}}\n"
    return accepted(lab.check([], [run(scores={name: 1})], config), "is not a name for a score")


def scored_by(lab: Lab, size: int) -> bool:
    by = [{"query_id": "q1", "checks": {f"c{number}": True}, "scored_by": f"v{number}"} for number in range(size)]
    write_jsonl(lab.folder / "scores.jsonl", by)
    assert lab.check([], [], "", "--scores", "scores.jsonl").code == 0
    return len(lab.report()["inputs"]["run"]["versions"]["scored_by"]) == size


def read(lab: Lab, reasons: list[str]) -> GivenScores:
    """Return what a scores file has for as many queries as there are reasons."""
    ids = [f"q{number}" for number in range(len(reasons))]
    rows = [
        {"query_id": query_id, "scores": {"f": 0.5}, "reasons": {"f": reason}}
        for query_id, reason in zip(ids, reasons, strict=True)
    ]
    path = write_jsonl(lab.folder / "scores.jsonl", rows)
    return read_scores([str(path)], Wanted(golden=ids, metrics={"f": Metric(key="f", label="f")}))


def limited_labels(lab: Lab, size: int) -> bool:
    names = [f"label{number}" for number in range(size)]
    queries = [golden(name, relevant_doc_ids=[], expected_label=name) for name in names]
    rows = [{"query_id": name, "results": [], "label": name} for name in names]
    config = f"minimums: {{label_recall: {json.dumps(dict.fromkeys(names, 1))}}}\n"
    return accepted(lab.check(queries, rows, config), "expected limits by label")


def listed_labels(lab: Lab, size: int) -> bool:
    names = [f"label{number}" for number in range(size)]
    queries = [golden(name, relevant_doc_ids=[], expected_label=name) for name in names]
    done = lab.check(queries, [{"query_id": name, "results": [], "label": name} for name in names])
    return "1 more label" not in done.out


def broken_by(lab: Lab, rule: Row, response: str, query: str = "Q?") -> set[str]:
    """Return the rules that an answer breaks."""
    lab.check([golden(query=query, relevant_doc_ids=[], rules=[rule])], [run(response=response)])
    return {violation["rule"] for asked in lab.report()["queries"] for violation in asked["violations"]}


def block(lab: Lab, size: int) -> bool:
    return not broken_by(lab, {"type": "code_parses", "language": "python"}, "a" * size)


def steps(_: Lab, size: int) -> bool:
    def call() -> None:
        pass

    def parse() -> None:
        for _ in range(size - 1):
            call()

    try:
        _within_steps(parse)
    except _Unparsable:
        return False
    return True


def allowed_values(lab: Lab, size: int) -> bool:
    allowed = [f"{number}@example.org" for number in range(size)]
    rule = {"type": "must_not_leak", "allowed": allowed}
    rows = [golden(relevant_doc_ids=[], rules=[rule])]
    return accepted(lab.check(rows, [run(response="x")]), "rules[0].allowed: expected")


def line_of_question(lab: Lab, size: int) -> bool:
    asked = "a@example.org" + " " * (size - len("a@example.org"))
    return not broken_by(lab, {"type": "must_not_leak"}, "a@example.org", asked)


def ends_of_value(_: Lab, size: int) -> bool:
    value = '"' + ", " * (size - 1) + '"@example.org'
    return value in values_in(f"{value}, b@example.org")


CASES: Cases = {
    "ALLOWED_VALUES": Case(allowed_values),
    "CODE": Case(block),
    "CODE_STEPS": Case(steps, small=1_000),
    "VALUE_LINE": Case(line_of_question),
    "VALUE_ENDS": Case(ends_of_value, small=10),
    "LABEL_LIMITS": Case(limited_labels),
    "LABELS_LISTED": Case(listed_labels),
    "SCORE": Case(an_end),
    "SCORES": Case(declared, small=3),
    "SCORE_NAME": Case(a_name),
    "SCORED_BY": Case(scored_by, small=3),
    "REASONS": Case(lambda lab, size: len(read(lab, ["low"] * size).reasons["f"]) == size),
    "REASON": Case(lambda lab, size: read(lab, ["x" * size]).reasons["f"][0].text == "x" * size),
}
