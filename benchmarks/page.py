"""Writes what was measured into two pages: what users ask, and how far off the targets it is, for contributors.

``docs/background/performance.md`` is the users'; the contributors' page has the same name in ``docs/contributing/``.
Only the parts between two comments are written; all other text stays as it is.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import data, tools
from benchmarks.container import ACTION, BARE, MEGABYTE, STARTED
from benchmarks.plot import Panel, draw
from benchmarks.results import GIB, Results, overhead, targets
from benchmarks.rounds import Figure, Sample, middle

SECONDS = {0.01: "10 ms", 0.1: "0.1 s", 1.0: "1 s", 10.0: "10 s", 100.0: "100 s", 1000.0: "1,000 s"}
BYTES = {1e6: "1 MB", 1e7: "10 MB", 1e8: "100 MB", 1e9: "1 GB", 1e10: "10 GB"}
FLOORS = (tools.FLOOR, tools.BARE)  # yardsticks for contributors: nobody could use them instead of rag-contract
USABLE = tuple(tool for tool in tools.TOOLS if tool not in FLOORS)


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is text, and all others are numbers."""
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def seconds(value: float) -> str:
    """Write seconds with two digits that count, or more where there are more before the point."""
    return f"{value:.3f} s" if value < 0.1 else f"{value:.2f} s" if value < 10 else f"{value:,.1f} s"  # noqa: PLR2004


def size(value: float) -> str:
    """Write bytes as MB."""
    return f"{value / MEGABYTE:,.1f} MB" if value < 10 * MEGABYTE else f"{value / MEGABYTE:,.0f} MB"


def figures(results: Results, figure: Figure, shown: Collection[str] = tools.TOOLS) -> str:
    """Return the table of one figure: a row for each tool, a column for each size."""
    write = size if figure == "peak" else seconds
    sizes = [str(number) for number in results.sizes]
    measured = [tool for tool in shown if any(tool in results.samples[name] for name in sizes)]
    body = [
        [_bold(tool), *(_cell(results.samples[name].get(tool), figure, write) for name in sizes)] for tool in measured
    ]
    return table(["", *(f"{number:,}" for number in results.sizes)], body)


def wide(results: Results, shown: Collection[str] = tools.TOOLS) -> str:
    """Return the table of the wide rows."""
    measured = [
        (tool + ("" if shape.text else ", without text and metadata"), taken)
        for shape in (data.WIDE, data.WIDE_ALONE)
        for tool, taken in results.samples.get(shape.name, {}).items()
        if tool in shown
    ]
    if not measured:
        return "Not measured.\n"
    head = ["", "time", "CPU time", "memory"]
    body = [
        [
            _bold(name),
            *(_cell(taken, figure, size if figure == "peak" else seconds) for figure in ("wall", "cpu", "peak")),
        ]
        for name, taken in measured
    ]
    shape = data.WIDE
    about = (
        f"{shape.queries} queries with {shape.results:,} results each, and {shape.text} characters of text and "
        f"metadata in every result ({size(results.wide_bytes)} in two runs), and the same without text and "
        "metadata:\n\n"
    )
    return about + table(head, body)


def container(results: Results) -> str:
    """Return the tables of the image and of a step."""
    found = results.container
    if found is None:
        return "Not measured: no Docker engine answered.\n"
    sizes = table(
        ["image", "size"],
        [
            ["base, unpacked", size(found.base_size)],
            ["with the action, unpacked", size(found.size)],
            [f"added layers ({found.added_layers}), unpacked", size(found.size - found.base_size)],
            [f"added layers ({found.added_layers}), compressed", size(found.added_compressed)],
        ],
    )
    names = {
        BARE: "the base image, `python -c pass`",
        STARTED: "the action's image, `python -c pass`",
        ACTION: "**the action, 100 queries**",
    }
    times = [[label, seconds(middle(found.samples[name], "wall"))] for name, label in names.items()]
    times.append(["**what the action adds to the base image**", seconds(overhead(found) or 0)])
    return sizes + "\n" + table(["`docker run` to exit", "time"], times)


def against_targets(results: Results) -> str:
    """Return the table of the targets."""
    body = []
    for target in targets(results):
        digits = 2 if target.limit < 10 else 0 if target.limit > 100 else 1  # noqa: PLR2004
        value = "" if target.value is None else f"{target.value:.{digits}f}{target.unit}"
        limit = f"{'at least' if target.least else 'at most'} {target.limit:g}{target.unit}"
        body.append([target.what, limit, value, target.verdict])
    return table(["", "target", "measured", ""], body)


def profile(results: Results) -> str:
    """Return where our time goes."""
    body = [[f"`{cost.where}`", f"{cost.share:.0%}"] for cost in results.profile]
    return table([f"{results.profiled:,} queries, under a profiler", "share"], body)


def how(results: Results) -> str:
    """Return the machine and the command."""
    where = results.machine
    made = f"Measured by `{results.command}` with rag-contract {results.version}"
    cores = f"{where.cores} cores of {where.processor}"
    machine = f"on {cores}, {where.memory / GIB:.0f} GiB, {where.system}, Python {where.python}"
    return "\n".join([f"{made} {machine}.", *(f"Not measured: {why}." for why in results.missing.values())]) + "\n"


def plot(results: Results) -> str:
    """Return the plot of time and memory against size."""

    def lines(figure: Figure) -> Mapping[str, list[tuple[float, float]]]:
        found = {
            tool: [
                (float(number), middle(results.samples[str(number)][tool], figure))
                for number in results.sizes
                if results.samples[str(number)].get(tool)
            ]
            for tool in USABLE
        }
        return {tool: line for tool, line in found.items() if line}

    panels = [
        Panel(title="Time", lines=lines("wall"), ticks=SECONDS),
        Panel(title="Memory", lines=lines("peak"), ticks=BYTES),
    ]
    return draw(panels, "Time and memory against the number of queries, for each tool; the tables have the numbers.")


IMAGE = "![Time and memory against the number of queries, for each tool](../images/performance.svg)\n"
Part = Callable[[Results], str]
USERS: dict[str, Part] = {
    "how": how,
    "plot": lambda _: IMAGE,
    "time": lambda results: figures(results, "wall", USABLE),
    "memory": lambda results: figures(results, "peak", USABLE),
    "wide": lambda results: wide(results, USABLE),
    "container": container,
}
CONTRIBUTORS: dict[str, Part] = {
    "how": how,
    "targets": against_targets,
    "floors: time": lambda results: figures(results, "wall", (tools.OURS, *FLOORS)),
    "floors: memory": lambda results: figures(results, "peak", (tools.OURS, *FLOORS)),
    "cpu": lambda results: figures(results, "cpu"),
    "wide": lambda results: wide(results, (tools.OURS, *FLOORS)),
    "profile": profile,
}


def contributors_page(users_page: Path) -> Path:
    """Return where the contributors' page is, given the users' one."""
    return users_page.parent.parent / "contributing" / users_page.name


def render(page: str, parts: Mapping[str, Part], results: Results) -> str:
    """Return the page with every measured part replaced by today's."""
    for name, make in parts.items():
        begin, end = f"<!-- begin: {name} -->\n", "<!-- end -->"
        before, found, rest = page.partition(begin)
        if not found:
            raise ValueError(f"the page has no part {name!r}")
        page = before + begin + "\n" + make(results) + "\n" + end + rest.partition(end)[2]
    return page


def write(results: Results, template: Path, target: Path) -> Iterator[Path]:
    """Write the plot, the users' page and the contributors' page, and yield where each is.

    ``template`` and ``target`` are the users' page, to read and to write.
    """
    image = target.parent.parent / "images" / "performance.svg"
    image.parent.mkdir(parents=True, exist_ok=True)
    image.write_text(plot(results), encoding="utf-8")
    yield image
    pages = (template, target, USERS), (contributors_page(template), contributors_page(target), CONTRIBUTORS)
    for read, written, parts in pages:
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(render(read.read_text(encoding="utf-8"), parts, results), encoding="utf-8")
        yield written


def _bold(tool: str) -> str:
    return f"**{tool}**" if tool == tools.OURS else tool


def _cell(samples: Sequence[Sample] | None, figure: Figure, write: Callable[[float], str]) -> str:
    return write(middle(samples, figure)) if samples else ""
