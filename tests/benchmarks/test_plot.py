from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import page
from benchmarks.plot import Panel, draw, spread
from tests.benchmarks.builders import results

SVG = "{http://www.w3.org/2000/svg}"


def test_a_line_has_the_same_colour_and_its_name_in_each_panel() -> None:
    ticks = {1.0: "1", 10.0: "10"}
    panels = [
        Panel(title="One", lines={"a": [(1, 1), (10, 9)], "b < c": [(1, 2), (10, 8)]}, ticks=ticks),
        Panel(title="Two", lines={"b < c": [(1, 5), (10, 5)]}, ticks=ticks),
    ]
    texts = ET.fromstring(draw(panels, 'a "plot"')).findall(f".//{SVG}text")
    assert {text.get("class") for text in texts if text.text == "b < c"} == {"c1"}
    assert [text.text for text in texts].count("b < c") == 2


def test_the_plot_of_the_page_is_well_formed_and_within_its_frame() -> None:
    drawing = ET.fromstring(page.plot(results()))
    height = float(drawing.get("height", ""))
    circles = drawing.findall(f".//{SVG}circle")
    assert circles
    assert all(0 < float(circle.get("cy", "")) < height for circle in circles)


@pytest.mark.parametrize("sizes", [(100,), (100, 1_000)])
def test_few_sizes_can_be_plotted_too(sizes: tuple[int, ...]) -> None:
    ET.fromstring(page.plot(results(sizes=sizes)))


@given(st.dictionaries(st.text(min_size=1), st.floats(0, 300), min_size=1, max_size=8))
def test_names_never_overlap_and_keep_their_order(heights: dict[str, float]) -> None:
    found = spread(heights, 15)
    assert found.keys() == heights.keys()
    order = sorted(found, key=lambda name: found[name])
    for above, below in pairwise(order):
        assert found[below] - found[above] > 15 - 1e-6
        assert heights[below] >= heights[above]
