"""Asking a model about texts. Only its commands import this; what a check needs of judgments lies in ``runs``."""
