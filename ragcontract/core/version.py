"""The version of rag-contract."""

__version__ = "1.0.0.dev0"
