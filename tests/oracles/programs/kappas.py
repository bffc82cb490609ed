"""Prints Cohen's kappa of pairs of label lists as scikit-learn computes it, of JSON from the standard input.

It runs in the environment that `make test-oracles` sets up, and imports nothing of ours.
"""

import json
import sys

from sklearn.metrics import cohen_kappa_score

json.dump([cohen_kappa_score(judge, people) for judge, people in json.load(sys.stdin)], sys.stdout)
