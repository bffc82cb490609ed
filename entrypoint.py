"""The container's entry point: a few lines onto ragcontract.action."""

import sys


def main() -> int:
    """Run the action. What keeps it from starting exits 3, a bug of ours: 1 would read as a broken contract."""
    try:
        from ragcontract.guard import whole_process
    except Exception:  # noqa: BLE001 (whatever it is, it is not the user's contract)
        import traceback

        traceback.print_exc()
        return 3

    def run() -> int:
        from ragcontract.action import from_runner

        return from_runner()

    return whole_process(run)


if __name__ == "__main__":
    sys.exit(main())
