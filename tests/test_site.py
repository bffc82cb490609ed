"""The site: its navigation, its Markdown, and what `make site` says is wrong with what was built.

`make site` itself runs in CI, in an environment of its own.
"""

import io
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from ragcontract.contract.defaults import CONFIG, CONFIG_ALIAS, CONFIG_SCHEMA
from scripts import docs, site, site_hooks

MKDOCS = yaml.safe_load((docs.ROOT / "mkdocs.yml").read_text())


# The pages


def test_folders_and_pages_come_in_an_order_that_needs_no_list(tmp_path: Path) -> None:
    titles = {
        "index.md": "Welcome",
        "about.md": "About",
        "start/your-contract.md": "A contract of your own",
        "start/more.md": "`A` little more",
        "start/install.md": "Install",
        "guides/b.md": "Alpha",
        "guides/a.md": "beta",
        "zoo/z.md": "Z",
        "reference/r.md": "R",
    }
    for name, title in titles.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"<!-- x -->\n# {title}\n\n# not this\n")
    assert site_hooks.navigation(tmp_path) == [
        {"Home": "index.md"},
        "about.md",
        {"Start": ["start/install.md", "start/your-contract.md", "start/more.md"]},
        {"Guides": ["guides/b.md", "guides/a.md"]},
        {"Reference": ["reference/r.md"]},
        {"Zoo": ["zoo/z.md"]},
    ]


def for_site(markdown: str) -> str:
    return site_hooks.for_site(markdown, docs.ROOT / "docs" / "guides" / "x.md", "R")


@pytest.mark.parametrize(
    ("link", "leads_to"),
    [
        ("../../CHANGELOG.md", "R/blob/main/CHANGELOG.md"),
        ("../../README.md#in-60-seconds", "R/blob/main/README.md#in-60-seconds"),
        ("../../examples/recipes", "R/tree/main/examples/recipes"),
        ("../reference/config.md#all-keys", "../reference/config.md#all-keys"),
        ("record.md", "record.md"),
        ("#here", "#here"),
        ("../../gone.md", "../../gone.md"),
        ("../../../elsewhere", "../../../elsewhere"),
        ("https://example.com/../x", "https://example.com/../x"),
        ("mailto:a@example.com", "mailto:a@example.com"),
    ],
)
def test_a_link_out_of_the_pages_leads_to_the_repository(link: str, leads_to: str) -> None:
    assert (
        for_site(f"See [`the` file]({link}) and ![it]({link}).\n")
        == f"See [`the` file]({leads_to}) and ![it]({leads_to}).\n"
    )


CODE = "```md\n[a](../../LICENSE)\n<!-- kept -->\n- a\n  - b\n```\n"


def test_code_stays_as_it_is() -> None:
    assert for_site(CODE) == CODE
    assert for_site("`[a](../../LICENSE)` [b](../../LICENSE)\n") == "`[a](../../LICENSE)` [b](R/blob/main/LICENSE)\n"
    assert for_site("`` ` [a](../../LICENSE) ``\n") == "`` ` [a](../../LICENSE) ``\n"
    assert for_site("a \\` b `x\n\n[b](../../LICENSE)`\n").endswith("[b](R/blob/main/LICENSE)`\n")


def test_comments_are_not_published() -> None:
    assert for_site(f"<!-- begin: x -->\n| a |\n| --- |\n<!-- end\nof it -->\n{CODE}") == f"\n| a |\n| --- |\n\n{CODE}"


def test_code_in_a_table_has_no_backslash_before_its_bars() -> None:
    assert for_site("| `a\\|b` | c\\|d |\n\n`e\\|f`\n") == "| `a|b` | c\\|d |\n\n`e\\|f`\n"


def test_items_with_empty_lines_are_kept_apart() -> None:
    assert "".join(site_hooks.indented("1. a\n\n   b\n2. c\n3. d\n")) == "1. a\n\n    b\n\n2. c\n3. d\n"


def test_what_is_in_a_list_is_indented_by_four() -> None:
    on_github = (
        "Do:\n1. one\n   more\n\n   ```sh\n   a\n     b\n   ```\n\n2. two\n   - inner\n     - innermost\n\nDone.\n"
    )
    on_site = (
        "Do:\n\n1. one\n    more\n\n    ```sh\n    a\n      b\n    ```\n\n"
        "2. two\n    - inner\n        - innermost\n\nDone.\n"
    )
    assert "".join(site_hooks.indented(on_github)) == on_site


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ('<h1 id="a">A<a class="headerlink" href="#a">¶</a></h1><p>b\nc</p>', None),
        ("<h1>A</h1><p>b c d</p>", ("d", "nothing more")),
        ("<h1>A</h1><ul><li>b c</li></ul>", ("<ul>", "b")),
        ("<h2>A</h2><p>b c</p>", ("<h2>", "<h1>")),
    ],
)
def test_a_page_that_reads_differently_on_github_is_noticed(html: str, shown: tuple[str, str] | None) -> None:
    assert site_hooks.difference(html, "<h1>A</h1>\n<p>b c</p>") == shown


def test_code_is_compared_with_its_spaces_and_without_its_colours() -> None:
    ours = "<div><pre><span></span><code><span>a</span>:\n    <span>b</span>\n</code></pre></div>"
    assert site_hooks.difference(ours, "<pre><code>a:\n\tb\n</code></pre>") is None
    assert site_hooks.difference(ours, "<pre><code>a:\n  b\n</code></pre>") == ("    b", "  b")


def test_a_heading_has_the_name_that_it_has_on_github() -> None:
    assert site_hooks.anchor("Which runs, and `k`: A/B – C_d?") == "which-runs-and-k-ab--c_d"


# What was built


PAGE = f"""<!doctype html><html><head><meta http-equiv="Content-Security-Policy" content="{site.POLICY}">
<link rel="canonical" href="https://org.github.io/rag-contract/"><link rel="stylesheet" href="site.css"></head>
<body><h1 id="top">A</h1><a href="https://example.com">elsewhere</a><a href="#top">here</a><a href="b/#there">b</a>
<img src="data:image/png;base64,AA,BB"><!-- --></body></html>
"""


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Return a site of two pages without a mistake."""
    (tmp_path / "b").mkdir()
    (tmp_path / "assets/javascripts").mkdir(parents=True)
    (tmp_path / "index.html").write_text(PAGE)
    back = PAGE.replace('"site.css"', '"../site.css"').replace('id="top"', 'id="there"').replace('"#top"', '"../#top"')
    (tmp_path / "b/index.html").write_text(back.replace('"b/#there"', '"/rag-contract/b/"'))
    (tmp_path / "site.css").write_text("a { background: url(data:image/svg+xml;x) }")
    (tmp_path / "x.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><style>a { fill: red }</style></svg>')
    (tmp_path / "assets/javascripts/bundle.js").write_text('fetch("https://api.github.com/")')
    (tmp_path / "own.js").write_text("// https://example.com/licence\nfetch('search.json')")
    return tmp_path


def finished(folder: Path) -> tuple[int, str, str]:
    stdout, stderr = io.StringIO(), io.StringIO()
    return site.main([str(folder)], stdout=stdout, stderr=stderr), stdout.getvalue(), stderr.getvalue()


def test_a_site_gets_the_schema_of_every_format(built: Path) -> None:
    assert finished(built) == (0, "2 pages, 13 schemas: 0 problems\n", "")
    assert {"config.json", "golden.json", "run.json"} < {path.name for path in (built / "schemas").iterdir()}
    assert json.loads((built / "schemas/config.json").read_text())["$schema"].startswith("https://json-schema.org/")


LOADED = [
    '<script src="https://cdn.example/x.js"></script>',
    '<script src="//cdn.example/x.js"></script>',
    '<link rel="stylesheet" href="HTTPS://cdn.example/x.css">',
    '<link href="https://cdn.example" rel="preconnect">',
    '<img src="https://cdn.example/x.png">',
    '<img srcset="../x.svg 1x, https://cdn.example/x.png 2x">',
    '<iframe src="https://cdn.example/"></iframe>',
    '<object data="https://cdn.example/x"></object>',
    '<form action="https://cdn.example/"></form>',
    '<svg><use href="https://cdn.example/x.svg#a"/></svg>',
    '<p style="background: url(https://cdn.example/x.png)">',
    "<style>@font-face { src: url('https://cdn.example/x.woff2') }</style>",
    '<style>@import "https://cdn.example/x.css";</style>',
    '<meta http-equiv="refresh" content="0; url=https://cdn.example/">',
]


@pytest.mark.parametrize("html", LOADED)
def test_what_a_page_loads_from_another_host_is_a_problem(html: str, built: Path) -> None:
    (built / "b/index.html").write_text((built / "b/index.html").read_text().replace("<!-- -->", html))
    code, _, problems = finished(built)
    assert code == 1
    assert re.fullmatch(r"b/index\.html: loads (?i:https:)?//cdn\.example\S* from another host\n", problems)


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("site.css", "@import url(//cdn.example/x.css);", "site.css: loads //cdn.example/x.css from another host"),
        (
            "x.svg",
            '<svg><image href="https://cdn.example/x"/></svg>',
            "x.svg: loads https://cdn.example/x from another host",
        ),
        ("own.js", 'fetch("https://cdn.example/x")', "own.js: names another host: https://cdn.example"),
        ("site.css", "a { src: url(fonts/x.woff2) }", "site.css: loads fonts/x.woff2, which is not there"),
    ],
)
def test_what_other_files_load_is_a_problem_too(file: str, text: str, problem: str, built: Path) -> None:
    (built / file).write_text(text)
    assert finished(built)[2] == f"{problem}\n"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("b/#there", "b/#gone", "b/#gone leads nowhere"),
        ("b/#there", "c/", "c/ leads nowhere"),
        ('"#top"', '"#gone"', "#gone leads nowhere"),
        ('"site.css"', '"other.css"', "loads other.css, which is not there"),
        ("img-src 'self' data:", "img-src *", "the policy that forbids requests to other hosts is "),
        ("<!-- -->", '<a data-md-component="source">', "'source' has the theme's script ask another host"),
        ("<!-- -->", '<pre class="x mermaid">', "'x mermaid' has the theme's script ask another host"),
    ],
)
def test_what_is_wrong_with_a_page_is_named(old: str, new: str, problem: str, built: Path) -> None:
    assert PAGE.count(old) == 1
    (built / "index.html").write_text(PAGE.replace(old, new))
    code, _, problems = finished(built)
    assert code == 1
    assert problems.startswith(f"index.html: {problem}")
    assert problems.count("\n") == 1


def test_a_site_without_a_front_page_is_none(built: Path) -> None:
    shutil.move(built / "index.html", built / "home.html")
    assert "index.html: missing: the site has no front page\n" in finished(built)[2]


def test_every_page_has_the_policy_and_none_the_fonts_of_another_host() -> None:
    assert site.POLICY in (docs.ROOT / "scripts/site_theme/main.html").read_text()
    assert MKDOCS["theme"]["font"] is False


def test_the_build_is_strict_and_not_quiet_because_mkdocs_then_counts_no_warnings() -> None:
    (command,) = re.findall(r"^\t.* mkdocs build (.*)$", (docs.ROOT / "Makefile").read_text(), re.MULTILINE)
    assert command == "--strict"


# Where the site is, and what editors find there


def test_the_schema_has_an_address_of_the_site() -> None:
    assert f"{MKDOCS['site_url']}schemas/config.json" == CONFIG_SCHEMA
    owner, _, name = MKDOCS["repo_name"].partition("/")
    assert MKDOCS["repo_url"] == f"https://github.com/{owner}/{name}"
    assert MKDOCS["site_url"] == f"https://{owner}.github.io/{name}/"


def test_the_entry_for_the_public_catalogue_keeps_the_rules_of_the_catalogue() -> None:
    text = (docs.ROOT / "docs/contributing/schema-catalogue.json").read_text()
    entry = json.loads(text)
    assert list(entry) == ["name", "description", "fileMatch", "url"]
    assert entry["fileMatch"] == [CONFIG, CONFIG_ALIAS]
    assert entry["url"] == CONFIG_SCHEMA
    for value in (entry["name"], entry["description"]):
        assert "schema" not in value.lower(), "the catalogue refuses this word"
        assert not re.search(r"[,. \t-]$|\n", value), "the catalogue refuses these ends"
