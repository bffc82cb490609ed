"""Prints where ruptures splits series by binary segmentation, of JSON from the standard input: series and counts.

It runs in the environment that `make test-oracles` sets up, and imports nothing of ours.
"""

import json
import sys

import numpy as np
import ruptures

json.dump(
    [
        ruptures.Binseg(model="l2", min_size=3, jump=1).fit(np.asarray(values)).predict(n_bkps=splits)[:-1]
        for values, splits in json.load(sys.stdin)
    ],
    sys.stdout,
)
