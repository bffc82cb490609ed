"""What a run of the benchmark has measured, and what is asked of it."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from msgspec import Struct

from benchmarks import data, tools
from benchmarks.container import ACTION, BARE, Container
from benchmarks.rounds import Samples, middle, ratio

GIB = 1 << 30
TWICE = 2


class Machine(Struct, frozen=True, kw_only=True):
    """Where it was measured."""

    cores: int
    processor: str
    memory: int
    system: str
    python: str


class Cost(Struct, frozen=True, kw_only=True):
    """A share of the time of our own check, in a module's own code or in a built-in function that it calls."""

    where: str
    share: float


class Results(Struct, frozen=True, kw_only=True):
    """Everything that the page shows."""

    machine: Machine
    command: str
    version: str
    sizes: list[int]
    samples: dict[str, Samples]  # by the data set's name
    wide_bytes: int
    container: Container | None
    profile: list[Cost]
    profiled: int
    missing: dict[str, str]


class Target(Struct, frozen=True, kw_only=True):
    """A limit and what was measured; None where it was not. ``least`` turns the limit round: so much or more."""

    what: str
    limit: float
    value: float | None
    unit: str = " times"
    least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether it is met."""
        if self.value is None:
            return None
        return self.value >= self.limit if self.least else self.value <= self.limit

    @property
    def verdict(self) -> str:
        """Met, or missed by how much."""
        if self.value is None or self.met is None:
            return "not measured"
        if self.met:
            return "met"
        missed = self.limit / self.value if self.least else self.value / self.limit
        return f"**missed** by {missed - 1:.0%}" if missed < TWICE else f"**missed**, {missed:.1f} times off"


def targets(results: Results) -> Iterator[Target]:
    """Yield what is asked of the package, in the order of the page."""
    at = results.samples

    def times(size: int, one: str, other: str, figure: str = "wall") -> float | None:
        samples = at.get(str(size), {})
        if one not in samples or other not in samples:
            return None
        return ratio(samples, one, other, figure)  # type: ignore[arg-type]

    large = 100_000
    ours = tools.OURS
    old = times(large, tools.OLD, ours)
    wide = f"texts and metadata in {data.WIDE.queries} wide rows: the time they add, against what they add to the floor"
    yield Target(what="100 queries, against `import msgspec, yaml, click`", limit=2, value=times(100, ours, tools.BARE))
    yield Target(what="100,000 queries, against the decode floor", limit=4, value=times(large, ours, tools.FLOOR))
    yield Target(what="100,000 queries, faster than rag-contract 0.1.0", limit=20, value=old, least=True)
    yield Target(what="the same, as a stretch goal", limit=40, value=old, least=True)
    yield Target(
        what="100,000 queries, against the metrics alone by pytrec_eval",
        limit=1,
        value=times(large, ours, "pytrec_eval"),
    )
    yield Target(
        what="100,000 queries, less memory than rag-contract 0.1.0",
        limit=10,
        value=times(large, tools.OLD, ours, "peak"),
        least=True,
    )
    yield Target(
        what="linear: one more query from 100,000 on, against one from 1,000 on",
        limit=1.25,
        value=slope(at, 100_000, 1_000_000, 1_000, 10_000),
    )
    million = at.get("1000000", {}).get(ours)
    peak = middle(million, "peak") / GIB if million else None
    yield Target(what="1,000,000 queries, memory", limit=2, value=peak, unit=" GiB")
    yield Target(what=wide, limit=1, value=widening(at))
    over = overhead(results.container)
    what = "the action on 100 queries without a comment, over a bare start of its base image"
    yield Target(what=what, limit=150, value=None if over is None else over * 1000, unit=" ms")


def slope(at: dict[str, Samples], *sizes: int) -> float | None:
    """Return how a further query costs between the first two sizes, against one between the last two."""
    if any(str(size) not in at for size in sizes):
        return None
    walls = [middle(at[str(size)][tools.OURS], "wall") for size in sizes]
    steps = [(walls[n + 1] - walls[n]) / (sizes[n + 1] - sizes[n]) for n in (0, 2)]
    return steps[0] / steps[1]


def widening(at: dict[str, Samples]) -> float | None:
    """Return what texts and metadata in wide rows add to our time, against what they add to the decode floor's."""
    wide, alone = at.get(data.WIDE.name), at.get(data.WIDE_ALONE.name)
    if not wide or not alone:
        return None
    added = [middle(wide[tool], "wall") - middle(alone[tool], "wall") for tool in (tools.OURS, tools.FLOOR)]
    return added[0] / added[1]


def overhead(container: Container | None) -> float | None:
    """Return the seconds a step takes over a bare start of its base image."""
    if container is None:
        return None
    pairs = zip(container.samples[ACTION], container.samples[BARE], strict=False)
    return median(action.wall - bare.wall for action, bare in pairs)


def machine() -> Machine:
    """Look at this machine."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line[:10] == "model name"]
        processor = names[0] if names else processor
    return Machine(
        cores=os.cpu_count() or 1,
        processor=processor,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
    )
