"""Evaluates the rows on standard input with metrics of ragas that need no model; writes the table into a folder.

Run by the environment of `make test-oracles`. The last line of the output is what ragas prints of its means.
"""

import json
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

from ragas import EvaluationDataset, evaluate  # noqa: E402
from ragas.metrics import ExactMatch, NonLLMContextRecall, NonLLMStringSimilarity, RougeScore  # noqa: E402

folder, rows = Path(sys.argv[1]), json.load(sys.stdin)
metrics = [RougeScore(), ExactMatch(), NonLLMStringSimilarity(), NonLLMContextRecall()]
result = evaluate(EvaluationDataset.from_list(rows), metrics=metrics, show_progress=False, raise_exceptions=False)
table = result.to_pandas()
table.to_json(folder / "results.jsonl", orient="records", lines=True)
table.to_csv(folder / "results.csv")
sys.stdout.write(f"{result}\n")
