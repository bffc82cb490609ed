"""Entry point of ``python -m ragcontract``, which is the same command as ``rag-contract``."""

import sys

if __name__ == "__main__":
    # -m puts the working folder first on the path. A json.py or yaml.py there must not be imported.
    if not sys.flags.safe_path:
        del sys.path[0]

    from ragcontract.guard import entry_point

    entry_point()
