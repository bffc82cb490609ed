"""The page is safe to open whatever a report says: text stays text, nothing is loaded, nothing else runs."""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.safe_text import shorten, visible
from ragcontract.report.html import page as html
from tests.records import query, report
from tests.report.everything import everything
from tests.report.html.parsed import HOSTILE, Parsed, hostile, hostile_pair, marked, parsed

FOLDER = Path(html.__file__).parent
LOADING = {"src", "srcset", "href", "action", "formaction", "data", "poster", "background", "xlink:href", "style"}
FRAGMENTS = (
    "</script>",
    "<!--",
    "<b>",
    "' onload=x '",
    '" style="',
    "&lt;",
    "{{ page }}",
    "{% raw %}",
    "`",
    "\u2028",
    "]]>",
)
TAME = everything()


def test_nothing_from_a_file_becomes_an_element_or_an_attribute() -> None:
    elements = [tag for tag, _ in parsed(hostile()).elements]
    assert set(elements).isdisjoint({"img", "iframe", "object", "embed", "base"})
    page = html.render(hostile()).decode()
    assert page.lower().count("</script") == page.lower().count("<script") == 2
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "\u2028" not in page
    for tag, attributes in parsed(hostile()).elements:
        assert not any(name.startswith("on") for name in attributes), tag


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=20), max_size=6).map("".join))
def test_any_text_anywhere_in_a_report_changes_the_text_of_the_page_and_nothing_else(text: str) -> None:
    page = parsed(marked(TAME, lambda name: text + name))
    assert page.elements == parsed(TAME).elements
    assert visible(page.source.replace("\n", "")) == page.source.replace("\n", "")
    assert shorten(visible(text), 80)[:79] in page.source
    data = page.data()
    assert {row["i"] for row in data["queries"]} == {text + query.id for query in TAME.queries}
    shown = [
        label for names in (data["metrics"], data["tags"], [row["q"] for row in data["queries"]]) for label in names
    ]
    assert [label for label in shown if label != visible(label)] == []


def test_the_texts_of_a_report_are_all_marked() -> None:
    page = parsed(marked(TAME, "«{}»".format))
    for text in (
        "«MRR@10»",
        "«p95 latency»",
        "«policy»",
        "«rag-contract»",
        "«question-003»",
        "«How is case 3 handled where the customer has paid twice?»",
        "«run.jsonl»",
        "«The new chunking loses two questions that nobody asks»",
        "«golden.jsonl:3: a question twice»",
        "«until 2026-12-31, @search: The index is rebuilt, see #41»",
        "«severity warn»",
        "«e5-large@1»«",
        "«It is said there.»",
        "«m-2026»",
        "«Criteria», criterion by criterion",
    ):
        assert text in page.text, text


def test_what_looks_like_a_template_stays() -> None:
    question = "{{ page.title }} {{data}} {% include 'tags.html' %} {# hidden #}"
    assert question in parsed(report([query("q", "A", query=question)], {"q": ["x"]})).text


def test_an_id_has_its_own_spelling_for_links_and_a_visible_one_for_people() -> None:
    rows = parsed(hostile_pair()).data()["queries"]
    assert rows[0]["i"] == HOSTILE
    assert r"\u202eabc\u2028" in rows[0]["v"]
    assert r"\x1b[31m" in rows[0]["v"]


def test_nothing_is_loaded_from_anywhere() -> None:
    for made in (hostile(), hostile_pair(), report([query("q", "A")], {"q": ["A"]})):
        for tag, attributes in parsed(made).elements:
            loaded = {name: value for name, value in attributes.items() if name in LOADING}
            assert all(value is None or value.startswith(("#", "data:,")) for value in loaded.values()), (tag, loaded)
    style = (FOLDER / "assets" / "page.css").read_text()
    assert not re.search(r"url\(|@import|image-set", style)


def test_the_policy_allows_the_one_style_and_the_one_script_and_nothing_else() -> None:
    page: Parsed = parsed(hostile())
    policy = next(attributes["content"] for _, attributes in page.elements if "http-equiv" in attributes)
    digests = {
        tag: b64encode(sha256(text.encode()).digest()).decode() for tag, attrs, text in page.raw if "type" not in attrs
    }
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests['style']}'; script-src 'sha256-{digests['script']}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_the_script_never_makes_html_or_code_of_text() -> None:
    script = "".join(path.read_text() for path in (FOLDER / "assets").glob("*.js"))
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(|srcdoc|fetch\(", script
    )


def test_only_our_own_assets_and_the_data_are_written_unescaped() -> None:
    templates = {path.name: path.read_text() for path in (FOLDER / "templates").glob("*.html")}
    unescaped = [found for text in templates.values() for found in re.findall(r"\{\{[^}]*\bsafe\b[^}]*\}\}", text)]
    assert sorted(unescaped) == ["{{ data|safe }}", "{{ script|safe }}", "{{ style|safe }}"]
    assert not any(re.search(r"autoescape|Markup|xmlattr|tojson", text) for text in templates.values())
    assert not any(re.search(r"</?[a-z]+[ >]", path.read_text()) for path in FOLDER.glob("*.py"))
