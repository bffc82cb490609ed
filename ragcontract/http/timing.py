"""Clocks and waiting, which tests replace."""

import time
from collections.abc import Callable

from msgspec import Struct


class Timing(Struct, frozen=True, kw_only=True):
    """Clocks in seconds and a sleep function, which tests replace to avoid waiting."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
