"""Results of a benchmark with chosen numbers."""

from benchmarks import data, tools
from benchmarks.container import ACTION, BARE, STARTED, Container
from benchmarks.results import Cost, Machine, Results
from benchmarks.rounds import Sample, Samples

MB = 1_000_000


def sample(wall: float = 1, *, cpu: float | None = None, peak: float = 10) -> Sample:
    """``peak`` is in MB."""
    return Sample(wall=wall, cpu=wall if cpu is None else cpu, peak=int(peak * MB), exit_code=0)


def results(sizes: tuple[int, ...] = (100, 1_000, 10_000, 100_000, 1_000_000)) -> Results:
    """Ours takes 1 s at 100,000, the floor 0.4 s, 0.1.0 50 s, pytrec_eval 2 s; all linear, on top of 0.1 s."""
    rates = {tools.OURS: 1.0, tools.FLOOR: 0.4, tools.BARE: 0.0, tools.OLD: 50.0, "pytrec_eval": 2.0}
    by_shape: dict[str, Samples] = {}
    for size in sizes:
        shape = data.Shape(queries=size)
        by_shape[shape.name] = {
            tool: [sample(0.1 + rate * size / 100_000, peak=10 + 10 * rate * size / 100_000)]
            for tool, rate in rates.items()
            if tools.takes(tool, shape)
        }
    by_shape[data.WIDE.name] = {tools.OURS: [sample(1.0)], tools.FLOOR: [sample(0.8)]}
    by_shape[data.WIDE_ALONE.name] = {tools.OURS: [sample(0.4)], tools.FLOOR: [sample(0.3)]}
    return Results(
        machine=Machine(cores=2, processor="Test", memory=8 << 30, system="Linux 6", python="3.11.0"),
        command="make bench",
        version="1.0.0",
        sizes=list(sizes),
        samples=by_shape,
        wide_bytes=500 * MB,
        container=Container(
            base_size=177 * MB,
            size=190 * MB,
            added_layers=3,
            added_compressed=4 * MB,
            samples={ACTION: [sample(0.5)], BARE: [sample(0.4)], STARTED: [sample(0.41)]},
        ),
        profile=[Cost(where="ragcontract/cli.py", share=0.5)],
        profiled=100_000,
        missing={},
    )
