"""The page for looking: what is in the file itself. What a browser makes of it is in test_html_in_browser.py."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from ragcontract.contract.config import Config, FailOn, Minimums, TagLimits
from ragcontract.core.numbers import signed
from ragcontract.model import Noise, QueryStatus, Report, Status
from ragcontract.reports import terminal
from ragcontract.reports.html import page as html
from ragcontract.reports.html import text as html_text
from ragcontract.reports.latency import table_rows
from ragcontract.reports.markdown import document as markdown
from tests.builders import good_workspace
from tests.process import rag_contract
from tests.records import Rows, query, report
from tests.reports.everything import REASON, everything

HOSTILE = "</script><img src=x onerror=alert(1)>`|\"'&amp; {{data}} \x1b[31m\u202eabc\u2028 --><!-- ]]>"
PAGE = Path(html.__file__).parent / "assets"
VOID = {"meta", "link", "input", "br"}
LOADING = {"src", "srcset", "href", "action", "formaction", "data", "poster", "background", "xlink:href", "style"}


class Parsed(HTMLParser):
    """The page's elements, text without scripts and styles, and every script and style."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self._open: list[str] = []
        self.feed(page.decode())
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in {"script", "style"}:
            self.raw.append((tag, dict(attrs), ""))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in {"script", "style"}:
            tag, attrs, text = self.raw[-1]
            self.raw[-1] = (tag, attrs, text + data)
        else:
            self.text += data

    def data(self) -> Any:
        return json.loads(next(text for _, attrs, text in self.raw if attrs.get("id") == "data"))


def parsed(made: Report) -> Parsed:
    return Parsed(html.render(made))


def hostile() -> Report:
    """A report every text of which wants out."""
    return everything(mark=lambda name: f"{HOSTILE} {name}")


def hostile_pair() -> Report:
    """Two queries that want out, one of which is lost."""
    names = [HOSTILE, f"{HOSTILE} 2"]
    queries = [query(name, f"{name} doc", query=HOSTILE, tags=(HOSTILE,), location=HOSTILE) for name in names]
    run = Rows({names[0]: ["x"], names[1]: [f"{names[1]} doc"]}, name=HOSTILE, versions={"index_version": [HOSTILE]})
    before = Rows(
        {names[0]: [f"{names[0]} doc"], "gone " + HOSTILE: ["y"]}, name="b", versions={"index_version": ["1"]}
    )
    return report(queries, run, before, warnings=[HOSTILE], path=HOSTILE)


def test_the_headline_the_metrics_and_the_broken_queries_are_there_without_a_script() -> None:
    made = report(
        [query("lost", "A"), query("kept", "B")],
        {"lost": ["x", "y"], "kept": ["B"]},
        {"lost": ["A"], "kept": ["B"]},
        Config(fail_on=FailOn(mrr_drop_gt=0.1)),
    )
    text = " ".join(parsed(made).text.split())
    assert "Retrieval contract broken MRR@5 fell by 0.50, allowed drop 0.10; 1 of 2 queries broken" in text
    assert (
        "MRR@5✕ failbefore 1.00 → now 0.50Change-0.50Chancetoo few queries changed to say"
        "Queries0 better, 1 the same, 1 worseLimitallowed drop 0.10"
    ) in text
    assert "What about lost?" in text
    assert "A in top 5: missing from top 5 (was rank 1)" in text
    assert "1 more query can be looked at with JavaScript on" in text


def test_a_contract_that_holds_is_said_to() -> None:
    page = parsed(report([query("q", "A")], {"q": ["A"]}))
    assert "Retrieval contract holds" in page.text
    assert "1 query" in page.text
    assert page.data()["compared"] is False


def test_intervals_are_shown_where_there_are_any() -> None:
    made = report([query("q", "A")], {"q": ["x", "A"]}, {"q": ["A"]})
    noise = Noise(interval=(-0.61, -0.39), p_value=0.0123, wins=1, ties=2, losses=3)
    metrics = made.metrics | {"mrr_at_5": msgspec.structs.replace(made.metrics["mrr_at_5"], noise=noise)}
    text = parsed(msgspec.structs.replace(made, metrics=metrics)).text
    assert "Interval-0.610 to -0.390 (95 %)Chancep = 0.012 of a drop" in text
    assert "Queries1 better, 2 the same, 3 worse" in text
    unsure = msgspec.structs.replace(noise, interval=None, p_value=None)
    metrics = made.metrics | {"mrr_at_5": msgspec.structs.replace(made.metrics["mrr_at_5"], noise=unsure)}
    text = parsed(msgspec.structs.replace(made, metrics=metrics)).text
    assert "Interval" not in text
    assert "Chancetoo few queries changed to sayQueries1 better" in text


def cards(page: Parsed) -> int:
    return sum((attributes.get("class") or "").startswith("card ") for _, attributes in page.elements)


def test_there_is_a_card_for_each_row_of_the_metric_table() -> None:
    made = everything()
    page = parsed(made)
    assert cards(page) == len(table_rows(made)) == 13
    text = page.text
    assert "HitRate@1" in text
    assert "Precision@3" not in text  # only what has a limit, of smaller cut-offs
    assert "Recall@10 of billing✕ failbefore" in text
    assert "p95 latency✕ failbefore 120 ms → now 180 ms" in text
    assert "Change+60 msLimitallowed 150 ms, allowed increase 10%" in text


def test_a_smaller_cut_off_has_its_noise_as_well() -> None:
    made = everything(300)
    noise = made.metrics["recall_at_3"].noise
    assert noise
    assert noise.interval
    text = parsed(made).text
    card = text[text.index("Recall@3") : text.index("Limitallowed drop 5%")]
    assert f"{noise.wins:,} better, {noise.ties:,} the same, {noise.losses:,} worse" in card
    assert f"{signed(noise.interval[0], 3)} to {signed(noise.interval[1], 3)}" in card
    assert "Chancep = " in card


def test_what_is_waived_says_so_and_why() -> None:
    text = parsed(everything()).text
    assert "MAP@10○ waived" in text
    assert "Waiveduntil 2026-12-31, @search: The index is rebuilt, see #41" in text


def test_tolerated_queries_have_their_status_and_the_reason() -> None:
    made = everything(300)
    page = parsed(made)
    rows = page.data()["queries"]
    for status, why in (("warn", "severity warn"), ("waived", "waived until 2026-12-31, @legal: New contracts")):
        reported = [query.id for query in made.queries if query.status == status]
        told = [row for row in rows if row.get("s") == status]
        assert sorted(row["i"] for row in told) == sorted(reported) != []
        assert all(why in row["y"] and row["f"] for row in told)
    states = [row.get("s", "pass") for row in rows]
    assert states == sorted(states, key={"fail": 0, "warn": 1, "waived": 1, "pass": 2}.__getitem__)
    few = parsed(everything()).text
    assert "! warn" in few
    assert "severity warn" in few


def test_drift_repeats_and_accepted_regressions_are_told() -> None:
    text = " ".join(parsed(everything()).text.split())
    assert "The likely cause: embedding model e5-large@1 → e5-large@2, index version 8 → 8, 9" in text
    assert "make it anew with rag-contract baseline" in text
    assert "The baseline was made with k = 5 and is compared here at k = 10" in text
    assert "Means over 3 exports of each query; standard deviation of one export's means: MRR@10 0.0123" in text
    assert f"2 failed checks: {REASON}" in text


def test_many_tags_with_limits_are_folded() -> None:
    tags = [f"t{number:02}" for number in range(15)]
    limits = TagLimits(minimums=Minimums(mrr_at_k=0.5))
    config = Config(tags=dict.fromkeys(tags, limits))
    page = parsed(report([query("q", "A", tags=tuple(tags))], {"q": ["x"]}, config=config))
    assert cards(page) == 6 + 15
    assert "3 more limited means of tags, 3 broken" in page.text


@pytest.mark.parametrize("words", [html_text.STATUS, markdown.STATUS, terminal.WORDS])
def test_every_status_has_a_word_in_every_report(words: dict[str, str]) -> None:
    queries = {*get_args(QueryStatus)} if words is not markdown.STATUS else set()
    assert {*get_args(Status)} | queries == words.keys()


def test_nothing_from_a_file_becomes_an_element_or_an_attribute() -> None:
    tame = [tag for tag, _ in parsed(hostile()).elements]
    assert set(tame).isdisjoint({"img", "iframe", "object", "embed", "base"})
    page = html.render(hostile()).decode()
    assert page.lower().count("</script") == page.lower().count("<script") == 2
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "\u2028" not in page
    for tag, attributes in parsed(hostile()).elements:
        assert not any(name.startswith("on") for name in attributes), tag


def test_the_data_is_what_was_reported_and_worst_first() -> None:
    made = report(
        [query("fine", "A"), query("slipped", "B", must_rank_at_most=9), query("lost", "C", tags=("t",), weight=2.0)],
        {"fine": ["A"], "slipped": ["x", "B"], "lost": ["x"]},
        {"fine": ["A"], "slipped": ["B"], "lost": ["C"]},
    )
    data = parsed(made).data()
    assert [row["i"] for row in data["queries"]] == ["lost", "slipped", "fine"]
    lost, slipped, fine = data["queries"]
    assert (lost["d"], lost["t"], lost["w"], lost["c"]) == ([["C", 0, 0, 1]], [0], 2.0, -1.0)
    assert lost["f"] == [["C in top 5", "missing from top 5 (was rank 1)"]]
    assert (slipped["m"][0], slipped["b"][0], slipped["c"]) == (0.5, 1.0, -0.5)
    assert {"f", "c", "w", "t", "v"}.isdisjoint(fine)


def test_an_id_keeps_its_own_spelling_for_links_and_gets_a_visible_one_for_people() -> None:
    rows = parsed(hostile_pair()).data()["queries"]
    assert rows[0]["i"] == HOSTILE
    assert r"\u202eabc\u2028" in rows[0]["v"]
    assert r"\x1b[31m" in rows[0]["v"]


def test_nothing_is_loaded_from_anywhere() -> None:
    for made in (hostile(), hostile_pair(), report([query("q", "A")], {"q": ["A"]})):
        for tag, attributes in parsed(made).elements:
            loaded = {name: value for name, value in attributes.items() if name in LOADING}
            assert all(value is None or value.startswith(("#", "data:,")) for value in loaded.values()), (tag, loaded)
    style = (PAGE / "page.css").read_text()
    assert not re.search(r"url\(|@import|image-set", style)


def test_the_policy_allows_the_one_style_and_the_one_script_and_nothing_else() -> None:
    page = parsed(hostile())
    policy = next(attributes["content"] for tag, attributes in page.elements if "http-equiv" in attributes)
    digests = {
        tag: b64encode(sha256(text.encode()).digest()).decode() for tag, attrs, text in page.raw if "type" not in attrs
    }
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests['style']}'; script-src 'sha256-{digests['script']}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_the_script_never_makes_html_or_code_of_text() -> None:
    script = "".join(path.read_text() for path in PAGE.glob("*.js"))
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(|srcdoc|fetch\(", script
    )


def test_parts_that_look_like_places_of_the_template_stay() -> None:
    assert html.fill("<{{a}}|{{b}}>", {"a": "{{b}}", "b": "2"}) == "<{{b}}|2>"


@pytest.mark.parametrize("size", [0, 1, 11, 201])
def test_tags_are_folded_and_counted(size: int) -> None:
    made = report([query("q", "A", tags=tuple(f"t{number}" for number in range(size)))], {"q": ["A"]})
    page = parsed(made)
    assert sum("data-tag" in attributes for _, attributes in page.elements) == min(size, 200)
    assert ("more tag" in page.text) == (size > 10)
    assert ("… and 1 more tag." in page.text) == (size > 200)


def test_tags_are_in_the_order_of_the_other_reports() -> None:
    # The first metric of "lost" fell by a third, its recall by all.
    queries = [query("lost", "A", tags=("lost",)), query("first", "A", tags=("first",))]
    made = report(queries, {"lost": [], "first": ["x", "A"]}, {"lost": ["x", "x", "A"], "first": ["A"]})
    page, told = html.render(made).decode(), markdown.render(made)
    assert page.index('data-tag="1">lost') < page.index('data-tag="0">first')
    assert told.index("| `lost` | 1 |") < told.index("| `first` | 1 |")


def test_only_the_first_hundred_broken_queries_are_rows_of_the_page_itself() -> None:
    made = report([query(f"q{number}", "A") for number in range(150)], {f"q{number}": ["x"] for number in range(150)})
    page = parsed(made)
    assert sum(attributes.get("class") == "question" for _, attributes in page.elements) == 100
    assert "50 more queries can be looked at with JavaScript on" in page.text
    assert len(page.data()["queries"]) == 150


def test_a_set_that_nothing_answers_has_a_page_too() -> None:
    assert "nothing broken" in parsed(report([query("q")], {"q": ["x"]}, {"q": ["x"]})).text


def colours(scheme: str) -> dict[str, str]:
    roots = re.findall(r":root \{(.*?)\}", (PAGE / "page.css").read_text(), re.DOTALL)
    made: dict[str, str] = {}
    for root in {"light": roots[:1], "dark": roots[:2], "print": [roots[0], roots[2]]}[scheme]:
        made |= dict(re.findall(r"--([\w-]+): (#\w+)", root))
    return made


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_every_text_can_be_told_from_what_it_stands_on(scheme: str) -> None:
    named = colours(scheme)
    pairs = [*product(["text", "muted", "accent", "bad", "good"], ["page", "surface", "raised"])]
    for text, ground in [
        *pairs,
        ("bad", "bad-surface"),
        ("good", "good-surface"),
        *product(["warn", "text"], ["warn-surface"]),
    ]:
        assert contrast(named[text], named[ground]) >= 4.5, (text, ground)
    for mark, ground in [("bar", "surface"), ("muted", "page"), ("accent", "page"), ("bad", "surface")]:
        assert contrast(named[mark], named[ground]) >= 3, (mark, ground)


def test_check_writes_the_page_where_it_is_asked_to_and_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    assert rag_contract("check").code == 0
    assert not list(tmp_path.rglob("*.html"))
    assert rag_contract("check", "--report-html", "out/report.html").code == 0
    assert (tmp_path / "out/report.html").read_bytes().startswith(b"<!doctype html>")


def test_the_page_is_not_written_over_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(good_workspace(tmp_path))
    ended = rag_contract("check", "--report-html", "golden.jsonl")
    assert ended.code == 2
    assert "golden.jsonl: is an input" in ended.err
