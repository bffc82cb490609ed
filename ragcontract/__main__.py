"""``python -m ragcontract`` is the same command as ``rag-contract``."""

import sys

if __name__ == "__main__":
    # -m puts the working folder first, whose json.py or yaml.py is not ours to import.
    if not sys.flags.safe_path:
        del sys.path[0]

    from ragcontract.guard import entry_point

    entry_point()
