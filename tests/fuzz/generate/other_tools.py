"""The files of other tools that ``convert`` and ``init`` read: tables, samples, and the results of evaluations."""

import csv
import io
from collections.abc import Callable
from typing import Any

from tests.fuzz.generate.expected_answers import different, pattern, sought_text
from tests.fuzz.generate.values import Maker, question

Kind = Callable[[Maker], Any]
MEASURES = ("faithfulness", "Exact Match", "rouge_score(mode=fmeasure)", "G-Eval [x]", "context_recall")


def columns(*fields: Callable[[Maker], object], between: str = " ", head: str = "") -> Kind:
    """Return a kind whose lines have these columns."""

    def make(maker: Maker) -> str:
        rows = range(maker.pick((1, 2, 5, 20)))
        return head + "".join(between.join(str(field(maker)) for field in fields) + "\n" for _ in rows)

    return make


def query_of(maker: Maker) -> object:
    return maker.pick(maker.queries)


def document_of(maker: Maker) -> object:
    return maker.pick(maker.documents)


def grade_of(maker: Maker) -> object:
    return maker.pick((-1, "1.0", "x", 10**10)) if maker.chance(0.05) else maker.pick((0, 1, 1, 2))


def samples(maker: Maker) -> list[Any]:
    """Return samples of ragas."""
    return [
        {
            "user_input": question(query_id),
            "retrieved_context_ids": maker.some(maker.documents, 8),
            "reference_context_ids": maker.some(maker.documents, 3),
            **({"id": query_id} if maker.chance(0.5) else {}),
        }
        for query_id in maker.queries
    ]


def table(maker: Maker) -> str:
    """Return CSV with questions and expected ids, as spreadsheets write it, or as anyone does."""
    between, inside = maker.pick((",", ";", "\t")), maker.pick(("|", ";", ","))
    head = maker.pick((("question", "expected_ids"), ("id", "query", "doc_ids"), ("question", "text", "ids")))
    file = io.StringIO()
    writer = csv.writer(file, delimiter=between)
    writer.writerow(head)
    for query_id in maker.queries:
        ids = inside.join(map(str, maker.some(maker.documents, 3)))
        writer.writerow(
            [str(query_id), question(query_id), ids][-len(head) :] if maker.chance(0.9) else [maker.odd_text()]
        )
    return file.getvalue()


def ticked(maker: Maker) -> str:
    """Return a file of candidates in which some are ticked."""
    lines = []
    for query_id in maker.queries:
        lines += [f"## {query_id}", f"Q: {question(query_id)}"]
        lines += [f"- [{maker.pick((' ', 'x', 'X', 'y'))}] {one}  0.5  x" for one in maker.some(maker.documents, 3)]
        lines += [f"- [{maker.pick((' ', ' ', 'x'))}] (nothing answers it)", maker.pick(("", "", maker.odd_text()))]
    return "\n".join(lines)


def measure(maker: Maker) -> str:
    """Return what a tool calls a metric."""
    return maker.odd_text() if maker.chance(maker.oddness / 3) else maker.pick(MEASURES)


def measured(maker: Maker) -> Any:
    """Return a value as tools write it."""
    value = maker.pick((maker.number(), maker.number(), maker.number(), 1, True, None))
    return maker.anything() if maker.chance(maker.oddness / 10) else value


def named(maker: Maker) -> dict[str, Any]:
    """Return values by the names of some metrics."""
    return {measure(maker): measured(maker) for _ in range(maker.pick((1, 2, 3)))}


def ragas_scores(maker: Maker) -> list[Any]:
    """Return the table of ragas' results."""
    measures = list(dict.fromkeys(measure(maker) for _ in range(3)))
    return [
        {"user_input": question(one), "response": sought_text(maker), **({"id": one} if maker.chance(0.5) else {})}
        | {name: measured(maker) for name in measures}
        for one in maker.queries
    ]


def deepeval(maker: Maker) -> dict[str, Any]:
    """Return a test run of deepeval."""
    cases = [
        {
            "name": maker.pick((str(one), "test_case_0")),
            "input": question(one),
            "metricsData": [
                {"name": name, "score": value, "success": True, "reason": maker.text(), "evaluationModel": "m"}
                for name, value in named(maker).items()
            ],
        }
        for one in maker.queries
    ]
    return {"testCases": cases, **({"conversationalTestCases": cases[:1]} if maker.chance(0.1) else {})}


def promptfoo(maker: Maker) -> dict[str, Any]:
    """Return the output of promptfoo."""
    results = [
        {
            "vars": {"query_id": one, "question": question(one)},
            "testCase": {"description": maker.text(), "metadata": {"query_id": one}},
            "namedScores": named(maker),
            "gradingResult": {
                "componentResults": [
                    {"pass": maker.chance(0.5), "reason": maker.text(), "assertion": {"metric": measure(maker)}}
                    for _ in range(maker.pick((0, 1, 2)))
                ]
            },
            "promptIdx": 0,
        }
        for one in maker.queries
    ]
    return {"results": {"version": 3, "results": results}, "metadata": {"promptfooVersion": "0.121.20"}}


def inspect_log(maker: Maker) -> dict[str, Any]:
    """Return a log of Inspect."""

    def scored(value: Any) -> dict[str, Any]:
        other = maker.pick(("C", "I", "P", "N", "yes", {"a": 1, "b": "C"}))
        return {"value": other if maker.chance(0.3) else value, "explanation": maker.text()}

    samples = [
        {"id": one, "epoch": epoch, "input": question(one), "scores": {x: scored(y) for x, y in named(maker).items()}}
        for one in maker.queries
        for epoch in range(maker.pick((1, 1, 2)))
    ]
    packages = {"packages": {"inspect_ai": "0.3.285"}}
    return {"version": 2, "status": maker.pick(("success", "success", "error")), "eval": packages, "samples": samples}


def score_table(maker: Maker) -> str:
    """Return CSV with ids and scores."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=maker.pick((",", ";", "\t")))
    writer.writerow(
        maker.pick((("query_id", "faithfulness"), ("id", "faithfulness", "x"), ("question", "faithfulness")))
    )
    for one in maker.queries:
        value = maker.pick((maker.number(), "nan", "", "true", "0,5", maker.odd_text()))
        writer.writerow([maker.pick((str(one), str(one), question(one))), value, *maker.pick(((), ("x",)))])
    return file.getvalue()


def fitz_gov(maker: Maker) -> dict[str, Any]:
    """Return a file of fitz-gov's cases."""
    categories = ("abstention", "dispute", "trustworthy_hedged", "trustworthy_direct", "grounding", "relevance")

    def settings() -> dict[str, Any]:
        made: dict[str, Any] = {"use_regex": maker.chance(0.5), "case_insensitive": maker.chance(0.8)}
        made |= {"min_required": maker.pick((0, 1, 2, 9))} if maker.chance(0.4) else {}
        return made | ({"allowed_phrases": [pattern(maker)]} if maker.chance(0.5) else {})

    cases = [
        {
            "id": one,
            "query": question(one),
            "contexts": different(maker, sought_text),
            "expected_mode": maker.pick(("trustworthy", "disputed", "abstain")),
            "category": maker.pick(categories),
            "difficulty": maker.text() or "easy",
            "forbidden_claims": [pattern(maker) for _ in range(maker.pick((0, 1, 2)))],
            "required_elements": [sought_text(maker) for _ in range(maker.pick((0, 1, 3)))],
            "forbidden_elements": [sought_text(maker) for _ in range(maker.pick((0, 0, 1)))],
            **({"evaluation_config": settings()} if maker.chance(0.5) else {}),
        }
        for one in maker.queries
    ]
    return {"category": maker.pick(categories), "tier": "core", "evaluation_config": settings(), "cases": cases}
