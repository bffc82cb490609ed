"""A contract for retrieval: which documents must be found for which question."""

__version__ = "1.0.0.dev0"
