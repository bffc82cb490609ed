"""Asking a model about texts. Only its commands and `context_recall` import this; what a check needs of judgments lies in ``runs``."""
