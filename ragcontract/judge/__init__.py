"""Asking a model about texts. What a check needs of judgments lies in ``runs``.

Only its commands and ``context_recall`` of the Python API import this.
"""
