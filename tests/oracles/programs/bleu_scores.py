"""Prints BLEU of pairs of lists of words as NLTK computes it, of JSON from the standard input.

Its method 3 is the smoothing that sacrebleu calls exponential. It runs in the environment that `make test-oracles` sets
up, and imports nothing of ours.
"""

import json
import sys

from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

smooth = SmoothingFunction().method3
pairs = json.load(sys.stdin)
json.dump(
    [sentence_bleu([reference], response, smoothing_function=smooth) for reference, response in pairs], sys.stdout
)
