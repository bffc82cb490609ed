"""Asking a model about texts. What a check needs of judgments is in ``judgments``.

Only the commands that ask a model, and ``context_recall`` of the Python API, import this.
"""
