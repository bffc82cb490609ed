"""Prints ROUGE-L's F1 of pairs of texts as rouge_score computes it without a stemmer, of JSON from the standard input.

It runs in the environment that `make test-oracles` sets up, and imports nothing of ours.
"""

import json
import sys

from rouge_score.rouge_scorer import RougeScorer

scorer = RougeScorer(["rougeL"], use_stemmer=False)
pairs = json.load(sys.stdin)
values = [scorer.score(reference, response)["rougeL"].fmeasure for reference, response in pairs]
json.dump(values, sys.stdout)
