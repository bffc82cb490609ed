"""Prints what ragas computes for cases: the metrics without a model, of JSON from the standard input.

It runs in the environment that `make test-oracles` sets up, and imports nothing of ours.
"""

import asyncio
import json
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")  # ragas says on import that these classes move, and of every trace that lengths differ

from ragas import MultiTurnSample, SingleTurnSample  # noqa: E402
from ragas.messages import AIMessage, ToolCall  # noqa: E402
from ragas.metrics import (  # noqa: E402
    DistanceMeasure,
    IDBasedContextRecall,
    NonLLMContextRecall,
    ToolCallAccuracy,
    ToolCallF1,
)

MEASURES = {
    "levenshtein": DistanceMeasure.LEVENSHTEIN,
    "hamming": DistanceMeasure.HAMMING,
    "jaro": DistanceMeasure.JARO,
    "jaro_winkler": DistanceMeasure.JARO_WINKLER,
}


async def by_ids(case: dict[str, Any]) -> float:
    """Return the recall of a case with `retrieved_context_ids` and `reference_context_ids`."""
    return float(await IDBasedContextRecall().single_turn_ascore(SingleTurnSample(**case)))


async def by_text(case: dict[str, Any]) -> float:
    """Return the recall of a case with `retrieved_contexts`, `reference_contexts`, `measure` and `threshold`."""
    metric = NonLLMContextRecall(threshold=case["threshold"])
    metric.distance_measure = MEASURES[case["measure"]]
    texts = {name: case[name] for name in ("retrieved_contexts", "reference_contexts")}
    return float(await metric.single_turn_ascore(SingleTurnSample(**texts)))


async def tools(case: dict[str, Any]) -> list[float]:
    """Return accuracy in order, accuracy in any order and F1 of a case with `called` and `wanted`."""
    called, wanted = ([ToolCall(**call) for call in case[side]] for side in ("called", "wanted"))
    sample = MultiTurnSample(user_input=[AIMessage(content="", tool_calls=called)], reference_tool_calls=wanted)
    metrics = (ToolCallAccuracy(), ToolCallAccuracy(strict_order=False), ToolCallF1())
    return [float(await metric.multi_turn_ascore(sample)) for metric in metrics]


async def answers(cases: list[dict[str, Any]]) -> list[object]:
    """Return a value for each case, by its `kind`."""
    kinds = {"ids": by_ids, "text": by_text, "tools": tools}
    return [await kinds[case.pop("kind")](case) for case in cases]


json.dump(asyncio.run(answers(json.load(sys.stdin))), sys.stdout)
