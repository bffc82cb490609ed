"""The error of functions that compute metrics of answers."""


class CannotScoreError(ValueError):
    """What a metric needs is invalid or too large; the message completes "query 'q1' …", as ``has no response``."""


class NoWordsError(CannotScoreError):
    """A text of the contract has no words."""
