"""``python -m ragcontract`` is the same command as ``rag-contract``."""

from ragcontract.guard import entry_point

if __name__ == "__main__":
    entry_point()
