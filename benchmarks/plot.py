"""Draws lines over two logarithmic axes as SVG that reads well on a light page and on a dark one."""

from collections.abc import Iterator, Mapping, Sequence
from math import log10
from xml.sax.saxutils import escape

from msgspec import Struct

WIDTH, HEIGHT = 420, 380
LEFT, RIGHT, TOP, BOTTOM = 56, 132, 44, 44
LABEL_HEIGHT = 15
MILLION = 1_000_000
# After Okabe and Ito, for people who see colours differently; the first is of the line that the plot is about.
COLOURS = ("#7c3aed", "#6b7280", "#d55e00", "#0072b2", "#009e73", "#b7791f")
DARK_COLOURS = ("#a78bfa", "#9ca3af", "#f28c4a", "#5ab4e5", "#34c79d", "#e6c14a")

Line = Sequence[tuple[float, float]]


class Panel(Struct, frozen=True, kw_only=True):
    """A chart: its title, its lines by name, and how a number on the upright axis is written."""

    title: str
    lines: Mapping[str, Line]
    ticks: Mapping[float, str]


class _Scale(Struct, frozen=True, kw_only=True):
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return self.start + share * (self.end - self.start)


def draw(panels: Sequence[Panel], description: str) -> str:
    """Return the chart of all panels, side by side; a line has the same colour in each."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    body = "\n".join(
        f'<g transform="translate({WIDTH * location} 0)">\n{chr(10).join(_panel(panel, names))}\n</g>'
        for location, panel in enumerate(panels)
    )
    width = WIDTH * len(panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" '
        f'role="img" aria-label="{escape(description, {chr(34): "&quot;"})}">\n'
        f'<style>\n{_style()}\n</style>\n<rect class="page" width="{width}" height="{HEIGHT}" rx="6"/>\n'
        f"{body}\n</svg>\n"
    )


def _style() -> str:
    light = _theme("#ffffff", "#1f2328", "#59636e", "#e3e6ea", COLOURS)
    dark = _theme("#0d1117", "#f0f6fc", "#9198a1", "#2b313a", DARK_COLOURS)
    return (
        "text { font: 12px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif }\n"
        ".title { font-size: 14px; font-weight: 600 }\n.first { font-weight: 600 }\n"
        "path { fill: none; stroke-width: 1.75 }\npath.first { stroke-width: 3 }\n"
        f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"
    )


def _theme(page: str, text: str, dim: str, grid: str, colours: Sequence[str]) -> str:
    lines = (
        f".c{n} {{ stroke: {colour} }} circle.c{n} {{ fill: {colour} }} text.c{n} {{ fill: {colour}; stroke: none }}"
        for n, colour in enumerate(colours)
    )
    base = f".page {{ fill: {page} }} .title {{ fill: {text} }} .axis {{ fill: {dim} }} .grid {{ stroke: {grid} }}"
    return "\n".join((base, *lines))


def _panel(panel: Panel, names: Sequence[str]) -> Iterator[str]:
    points = [point for line in panel.lines.values() for point in line]
    sizes = sorted({x for x, _ in points})
    across = _Scale(low=sizes[0], high=max(sizes[-1], sizes[0] * 10), start=LEFT, end=WIDTH - RIGHT)
    shown = _around([y for _, y in points], panel.ticks)
    up = _Scale(low=shown[0], high=shown[-1], start=HEIGHT - BOTTOM, end=TOP)
    yield f'<text class="title" x="{LEFT}" y="24">{escape(panel.title)}</text>'
    for tick in shown:
        yield f'<path class="grid" style="stroke-width:1" d="M{LEFT} {up(tick):.1f}H{WIDTH - RIGHT}"/>'
        yield f'<text class="axis" x="{LEFT - 8}" y="{up(tick) + 4:.1f}" text-anchor="end">{panel.ticks[tick]}</text>'
    for size in sizes:
        location = f'x="{across(size):.1f}" y="{HEIGHT - BOTTOM + 18}"'
        label = f"{size / MILLION:g} M" if size >= MILLION else f"{size:,.0f}"
        yield f'<text class="axis" {location} text-anchor="middle">{label}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text class="axis" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">queries</text>'
    for name, line in reversed(list(panel.lines.items())):  # the first on top
        look = f"c{names.index(name) % len(COLOURS)}" + (" first" if name == names[0] else "")
        path = "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in line)
        yield f'<path class="{look}" d="M{path}"/>'
        yield from (f'<circle class="{look}" cx="{across(x):.1f}" cy="{up(y):.1f}" r="2.5"/>' for x, y in line)
    yield from _labels(panel, names, across, up)


def _labels(panel: Panel, names: Sequence[str], across: _Scale, up: _Scale) -> Iterator[str]:
    """Name each line at its end, those that end at one height below each other."""
    ends = {name: (across(line[-1][0]), up(line[-1][1])) for name, line in panel.lines.items()}
    for name, y in spread({name: y for name, (_, y) in ends.items()}, LABEL_HEIGHT).items():
        look = f"c{names.index(name) % len(COLOURS)}" + (" first" if name == names[0] else "")
        yield f'<text class="{look}" x="{WIDTH - RIGHT + 8}" y="{y + 4:.1f}">{escape(name)}</text>'
        x, end = ends[name]
        if WIDTH - RIGHT - x > 1:  # it ends early: lead over to its name
            lead = f"M{x + 5:.1f} {end:.1f}L{WIDTH - RIGHT + 4} {y:.1f}"
            yield f'<path class="{look}" style="stroke-width:1;stroke-dasharray:1 3" d="{lead}"/>'


def spread(heights: Mapping[str, float], least: float) -> dict[str, float]:
    """Move heights apart until all are ``least`` from each other, each as little as may be."""
    groups: list[list[str]] = []
    middles: list[float] = []
    for name in sorted(heights, key=lambda name: heights[name]):
        groups.append([name])
        middles.append(heights[name])
        while len(groups) > 1 and middles[-1] - middles[-2] < least * (len(groups[-1]) + len(groups[-2])) / 2:
            last, _ = groups.pop(), middles.pop()
            groups[-1] += last
            middles[-1] = sum(heights[member] for member in groups[-1]) / len(groups[-1])
    return {
        name: centre + least * (location - (len(group) - 1) / 2)
        for group, centre in zip(groups, middles, strict=True)
        for location, name in enumerate(group)
    }


def _around(values: Sequence[float], ticks: Mapping[float, str]) -> list[float]:
    """Return the ticks from the last one under all values to the first one over them."""
    below = max((tick for tick in ticks if tick <= min(values)), default=min(ticks))
    above = min((tick for tick in ticks if tick >= max(values)), default=max(ticks))
    return sorted(tick for tick in ticks if below <= tick <= above)
