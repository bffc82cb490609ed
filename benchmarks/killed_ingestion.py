"""Kills the team service while interactions come in: every one that was acknowledged must be there, and once.

    python -m benchmarks.killed_ingestion [--db URL] [--kills 50] [--senders 4] [--seed 1]

The database is a new SQLite file unless another empty one is named. Fails if anything that it saw is wrong.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from contextlib import closing
from http import HTTPStatus

from sqlalchemy import select

from benchmarks.ingestion import Connection, interaction, key_of
from benchmarks.service import started
from ragcontract.service.migrate import migrate, opened
from ragcontract.service.tables import interactions

SIZE = 50  # interactions; a request


class Sender(threading.Thread):
    """Sends batches one after another, each until it is acknowledged."""

    def __init__(self, number: int, key: str) -> None:
        super().__init__(daemon=True)
        self.address: tuple[str, int] | None = None
        self.acknowledged: list[str] = []
        self.again = 0
        self.ended = threading.Event()
        self._chance, self._key = random.Random(number), key
        self._number = number

    def run(self) -> None:
        """Send until it is ended."""
        count = 0
        while not self.ended.is_set():
            items = [interaction(count, self._chance) | {"id": f"{self._number}-{count}-{n}"} for n in range(SIZE)]
            self._send(json.dumps({"interactions": items}).encode())
            self.acknowledged += [item["id"] for item in items]
            count += 1

    def _send(self, body: bytes) -> None:
        while True:
            try:
                if self.address is not None:
                    with closing(Connection(self.address, self._key)) as connection:
                        if connection.post(body)[0] == HTTPStatus.OK:
                            return
            except OSError:
                pass
            self.again += 1
            time.sleep(0.05)


def main() -> int:
    """Run the trial once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db")
    for name, default in (("kills", 50), ("senders", 4), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = parser.parse_args()
    chance = random.Random(chosen.seed)
    with tempfile.TemporaryDirectory() as folder:
        db = chosen.db or f"{folder}/service.db"
        with opened(db, create=True) as database:
            migrate(database)
            key = key_of(database)
        senders = [Sender(number, key) for number in range(chosen.senders)]
        for sender in senders:
            sender.start()
        for kill in range(chosen.kills + 1):
            with started(db) as (address, pid):
                for sender in senders:
                    sender.address = ("127.0.0.1", int(address.rpartition(":")[2]))
                time.sleep(chance.uniform(0.5, 3))
                if kill < chosen.kills:
                    os.kill(pid, signal.SIGKILL)
                    continue
                for sender in senders:
                    sender.ended.set()
                for sender in senders:
                    sender.join()
        with opened(db) as database, database.read() as connection:
            stored = connection.execute(select(interactions.c.external_id)).scalars().all()
    acknowledged = [name for sender in senders for name in sender.acknowledged]
    lost, twice = {*acknowledged} - {*stored}, len(stored) - len({*stored})
    again = sum(sender.again for sender in senders)
    sys.stdout.write(f"{chosen.kills} kills, {len(acknowledged):,} interactions acknowledged, {again:,} tries again, ")
    sys.stdout.write(f"{len(stored):,} stored; lost: {len(lost)}, twice: {twice}\n")
    return bool(lost or twice)


if __name__ == "__main__":
    sys.exit(main())
