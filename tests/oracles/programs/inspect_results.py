"""Evaluates the rows on standard input with Inspect and a model that repeats the responses; logs into a folder.

Run by the environment of `make test-oracles`. The last line of the output has the means by scorer, as JSON.
"""

import json
import sys
from typing import Any

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, includes, mean, scorer
from inspect_ai.solver import generate

folder, rows = sys.argv[1], json.load(sys.stdin)
answers = {row["user_input"]: row["response"] for row in rows}


def answer(messages: Any, *_: Any) -> ModelOutput:
    output = ModelOutput.from_content("mockllm/model", answers[messages[-1].text])
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else it is counted over the network
    return output


@scorer(metrics=[mean()])
def shared_words() -> Any:
    async def score(state: Any, target: Any) -> Score:
        found, wanted = set(state.output.completion.split()), set(target.text.split())
        return Score(value=len(found & wanted) / len(wanted) if found else float("nan"), explanation="counted")

    return score


@scorer(metrics={"found": [mean()], "wanted": [mean()]})
def words() -> Any:
    async def score(state: Any, target: Any) -> Score:
        return Score(value={"found": len(state.output.completion.split()), "wanted": len(target.text.split())})

    return score


@scorer(metrics=[accuracy()])
def grade() -> Any:
    async def score(state: Any, target: Any) -> Score:
        return Score(value="C" if state.output.completion == target.text else "P" if state.output.completion else "N")

    return score


samples = [Sample(id=row.get("id"), input=row["user_input"], target=row["reference"]) for row in rows]
task = Task(
    dataset=MemoryDataset(samples),
    solver=generate(),
    scorer=[includes(), shared_words(), words(), grade()],
    epochs=2,
)
model = get_model("mockllm/model", custom_outputs=answer)
(log,) = evaluate(task, model=model, log_dir=folder, log_format="json", display="none")
metrics = {score.name: score.metrics for score in log.results.scores}
means = {name: next(iter(found.values())).value for name, found in metrics.items()}
sys.stdout.write(f"{json.dumps(means)}\n")
