import shlex
from pathlib import Path

import pytest
import yaml

from ragcontract.contract.config_file import read_config
from ragcontract.files.problems import Problems
from ragcontract.registry import BUILT_IN
from tests.builders import golden, run, write_jsonl
from tests.process import AtATerminal, files_in, rag_contract

QUERIES = 40
FEW = 2


@pytest.fixture(autouse=True)
def contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a golden set and three known-good runs, in which one query in ten is found at another rank each time."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden(f"q{n}", f"d{n}") for n in range(QUERIES)])
    for turn in range(3):
        rows = [run(f"q{n}", *["x"] * ((n + turn) % 10 == 0), f"d{n}") for n in range(QUERIES)]
        write_jsonl(Path(f"good{turn}.jsonl"), rows)


def configuration(printed: str) -> str:
    """Return the configuration at the end of what is printed, without advice on the labels."""
    return printed[
        min(printed.find(first) % len(printed) for first in ("\nk: ", "\nfail_on:", "\nminimums:", "\n# exists")) :
    ]


def test_of_one_run_it_says_what_a_test_can_show() -> None:
    ended = rag_contract("suggest", "--run", "good0.jsonl")
    assert (ended.code, ended.err) == (0, "")
    assert "MRR@5        0.9500  unknown " in ended.out
    assert "One run cannot show how much the retriever's own results vary." in ended.out
    assert "MRR@5: drop of 0.13, the loss of 5 of 40 queries; a loss of fewer could be chance\n" in ended.out
    assert "Store the baseline: rag-contract baseline --run good0.jsonl\n" in ended.out
    limits = yaml.safe_load(configuration(ended.out))
    assert limits["k"] == 5
    assert limits["fail_on"] == {"mode": "significant", "mrr_drop_gt": 0.13, "recall_drop_gt": 0.13}
    assert limits["minimums"] == {"mrr_at_k": 0.87, "recall_at_k": 0.94}


def test_of_several_runs_it_promises_how_often_an_equally_good_one_fails() -> None:
    ended = rag_contract("suggest", "--run", "good*.jsonl")
    assert (ended.code, ended.err) == (0, "")
    promise = "With these 3 runs as the baseline, at most 1 in 20 equally good runs breaks any of the limits:\n"
    assert promise + "MRR@5: drop of 0.06; a real one of 0.085 breaks it 4 times in 5\n" in ended.out
    assert "Recall@5: drop of 0.025, the loss of one query, because these runs do not differ\n" in ended.out
    limits = {"mode": "strict", "mrr_drop_gt": 0.06, "recall_drop_gt": 0.025}
    assert yaml.safe_load(configuration(ended.out))["fail_on"] == limits


@pytest.mark.parametrize("given", [("good0.jsonl", "good1.jsonl", "good2.jsonl"), ("good?.jsonl",)])
def test_every_file_is_a_run_of_its_own(given: tuple[str, ...]) -> None:
    ended = rag_contract("suggest", "--run", *given)
    assert (ended.code, ended.err) == (0, "")
    assert "With these 3 runs as the baseline" in ended.out


def test_rows_that_repeat_are_averaged_where_that_is_asked_for() -> None:
    rows = [run(f"q{n}", *before, f"d{n}") for before in ([], ["x"]) for n in range(QUERIES)]
    write_jsonl(Path("good.jsonl"), rows)
    assert rag_contract("suggest", "--run", "good.jsonl").code == 2
    ended = rag_contract("suggest", "--run", "good.jsonl", "--repeats")
    assert (ended.code, ended.err) == (0, "")
    assert "MRR@5        0.7500  " in ended.out


def test_known_good_runs_pass_under_what_it_proposes_with_the_baseline_it_names() -> None:
    printed = rag_contract("suggest", "--run", "good*.jsonl").out
    Path("ragcontract.yml").write_text(configuration(printed))
    assert read_config("ragcontract.yml", BUILT_IN).problems == Problems()
    store = next(line for line in printed.splitlines() if line.startswith("Store the baseline: "))
    _, *words = shlex.split(store.removeprefix("Store the baseline: "))
    assert "the mean of 3 good runs" in rag_contract(*words).out
    for turn in range(3):
        ended = rag_contract("check", "--run", f"good{turn}.jsonl")
        assert ended.code == 0, ended.out + ended.err


def test_k_and_the_way_of_counting_are_the_configs() -> None:
    Path("ragcontract.yml").write_text("k: 1\nmissing_queries: zero\n")
    assert "MRR@1 " in rag_contract("suggest", "--run", "good0.jsonl").out
    assert "MRR@3 " in rag_contract("suggest", "--run", "good0.jsonl", "--k", "3").out


def test_what_it_proposes_can_be_pasted_into_the_configuration_that_init_wrote() -> None:
    assert rag_contract("init").code == 0
    config = Path("ragcontract.yml")
    before = config.read_text()
    assert "\nk: 5\n" in before
    config.write_text(before + configuration(rag_contract("suggest", "--run", "good0.jsonl").out))
    found = read_config("ragcontract.yml", BUILT_IN)
    assert found.problems == Problems()
    assert {gate.id for gate in found.gates} > {"fail_on.mrr_drop_gt", "minimums.recall_at_k"}


def test_sections_that_the_configuration_has_already_are_named_with_their_lines() -> None:
    Path("ragcontract.yml").write_text("k: 3\nfail_on:\n  mrr_drop_gt: 0.1\nminimums: {recall_at_k: 0.5}\n")
    there = (
        "exists already, so change it there, or use --write: fail_on (ragcontract.yml:2), minimums (ragcontract.yml:4)"
    )
    assert configuration(rag_contract("suggest", "--run", "good0.jsonl").out).startswith(f"\n# {there}\nfail_on:")
    there = "# exists already, so change it there, or use --write: k (ragcontract.yml:1), fail_on (ragcontract.yml:2), "
    printed = configuration(rag_contract("suggest", "--run", "good0.jsonl", "--k", "5").out)
    assert printed.startswith(f"\n{there}")
    assert yaml.safe_load(printed)["k"] == 5


def test_of_several_cut_offs_limits_are_for_the_largest() -> None:
    Path("ragcontract.yml").write_text("k: [2, 5, 1]\n")
    rows = [run(f"q{n}", *"xyz"[: n % 4], f"d{n}") for n in range(QUERIES)]
    write_jsonl(Path("good.jsonl"), rows)
    ended = rag_contract("suggest", "--run", "good.jsonl")
    assert yaml.safe_load(configuration(ended.out))["minimums"]["recall_at_k"] > 0.9  # at 2 it is 0.5
    assert "MRR@5: drop of" in ended.out
    assert "MRR@2: drop of" not in ended.out


@pytest.mark.parametrize("found", [["d0", "x"], ["x"]], ids=["all or nothing", "nothing"])
def test_a_drop_that_no_run_can_reach_is_no_limit(found: list[str]) -> None:
    write_jsonl(Path("one.jsonl"), [golden("q0", "d0")])
    for doc_id in found:
        write_jsonl(Path(f"run-{doc_id}.jsonl"), [run("q0", doc_id)])
    ended = rag_contract("suggest", "--golden", "one.jsonl", "--run", "run-*.jsonl")
    assert "fail_on:" not in ended.out
    assert "1 in 20" not in ended.out  # there is no limit that this could be promised of


def test_where_queries_are_too_few_for_a_limit_it_says_so() -> None:
    write_jsonl(Path("few.jsonl"), [golden("q0", "d0"), golden("q1", "d1")])
    ended = rag_contract("suggest", "--golden", "few.jsonl", "--run", "good0.jsonl")
    assert "MRR@5: 2 queries cannot carry a limit on a drop; add queries\n" in ended.out
    ended = rag_contract("suggest", "--golden", "few.jsonl", "--run", "good0.jsonl", "good1.jsonl")
    assert "MRR@5: 2 runs of 2 queries cannot tell a drop from chance; give more good runs, or add" in ended.out


@pytest.mark.parametrize("queries", [1, FEW, 3, 5])
def test_a_minimum_that_every_run_keeps_is_left_out(queries: int) -> None:
    write_jsonl(Path("few.jsonl"), [golden(f"q{n}", f"d{n}") for n in range(queries)])
    write_jsonl(Path("good.jsonl"), [run(f"q{n}", *["x"] * (n % 2), f"d{n}") for n in range(queries)])
    ended = rag_contract("suggest", "--golden", "few.jsonl", "--run", "good.jsonl")
    proposed = yaml.safe_load(configuration(ended.out))
    minimums = proposed.get("minimums", {})
    assert all(value > 0 for value in minimums.values())
    queried = "1 query" if queries == 1 else f"{queries} queries"
    for name, label in {"mrr_at_k": "MRR@5", "recall_at_k": "Recall@5"}.items():
        sentence = f"{label}: {queried} cannot carry a minimum; add queries\n"
        assert (sentence in ended.out) == (name not in minimums)
    assert ("mrr_at_k" in minimums) == (queries > FEW)


def test_a_drop_larger_than_any_that_is_possible_is_left_out_whatever_the_weights() -> None:
    heavy = [golden(f"q{n}", f"d{n}", weight=1e6 if n == 0 else 1) for n in range(20)]
    write_jsonl(Path("heavy.jsonl"), heavy)
    for turn in range(3):
        rows = [run(f"q{n}", *["x"] * (n % 3 == turn), f"d{n}") for n in range(20)]
        write_jsonl(Path(f"one{turn}.jsonl"), rows)
    ended = rag_contract("suggest", "--golden", "heavy.jsonl", "--run", "one*.jsonl")
    assert "fail_on:" not in ended.out
    assert "MRR@5: 3 runs of 20 queries cannot tell a drop from chance" in ended.out
    assert "4 times in 5" not in ended.out


def test_what_it_proposes_can_always_fail() -> None:
    for queries in (1, 2, 3, 8):
        write_jsonl(Path("few.jsonl"), [golden(f"q{n}", f"d{n}", weight=1 + 99 * (n == 0)) for n in range(queries)])
        for runs in (["good0.jsonl"], ["good0.jsonl", "good1.jsonl", "good2.jsonl"]):
            given = [f"few-{name}" for name in runs]
            for name in runs:
                lines = Path(name).read_text().splitlines(keepends=True)[:queries]
                Path(f"few-{name}").write_text("".join(lines))
            proposed = configuration(rag_contract("suggest", "--golden", "few.jsonl", "--run", *given).out)
            Path("ragcontract.yml").write_text(proposed)
            assert (
                rag_contract("baseline", "--golden", "few.jsonl", "--run", *given, "--out", "b.json", "--force").code
                == 0
            )
            assert "never fails" not in rag_contract("lint", "--golden", "few.jsonl", "--baseline", "b.json").out
            Path("ragcontract.yml").unlink()


def test_it_writes_nothing(tmp_path: Path) -> None:
    before = files_in(tmp_path)
    rag_contract("suggest", "--run", "good0.jsonl")
    assert files_in(tmp_path) == before


def test_what_cannot_be_read_is_said() -> None:
    assert rag_contract("suggest", "--run", "nowhere.jsonl").code == 2
    assert rag_contract("suggest", "--run", "").code == 2
    assert rag_contract("suggest", "--run", "good0.jsonl", "--k", "0").code == 2


def test_a_run_that_lacks_a_query_is_no_known_good_one() -> None:
    write_jsonl(Path("good1.jsonl"), [run("q0", "d0")])
    Path("ragcontract.yml").write_text("missing_queries: zero\n")
    ended = rag_contract("suggest", "--run", "good0.jsonl", "good1.jsonl")
    assert ended.code == 2
    assert "good1.jsonl" in ended.err


def test_warnings_about_the_golden_file_come_once() -> None:
    write_jsonl(Path("golden.jsonl"), [golden(f"q{n}", f"d{n}", weigth=2) for n in range(QUERIES)])
    ended = rag_contract("suggest", "--run", "good0.jsonl", "good1.jsonl")
    assert ended.code == 0
    assert ended.err.count("weigth") == 1


def test_where_only_answers_are_measured_it_proposes_no_cut_off(tmp_path: Path) -> None:
    row = {"query": "x", "reference_tool_calls": [{"name": "f"}]}
    write_jsonl(tmp_path / "golden.jsonl", [{"id": f"q{n}", **row} for n in range(QUERIES)])
    rows = [{"query_id": f"q{n}", "tool_calls": [{"name": "f"}]} for n in range(QUERIES)]
    write_jsonl(tmp_path / "current_run.jsonl", rows)
    ended = rag_contract("suggest")
    assert ended.code == 0
    assert "tool_f1: " in ended.out
    assert "\nk:" not in ended.out


def test_a_golden_set_without_relevant_documents_has_nothing_to_say() -> None:
    write_jsonl(Path("golden.jsonl"), [{**golden("q0"), "relevant_doc_ids": [], "forbidden_doc_ids": ["d"]}])
    ended = rag_contract("suggest", "--run", "good0.jsonl")
    assert ended.code == 2
    assert "no golden query has relevant documents" in ended.err


def labelled(*rows: dict[str, object]) -> None:
    """Write golden queries with two relevant documents each, and a run that finds one of them."""
    write_jsonl(Path("golden.jsonl"), list(rows))
    write_jsonl(Path("good.jsonl"), [run(str(row["id"]), "A") for row in rows])


def test_it_says_where_one_document_is_enough() -> None:
    both = [golden(f"both{n}", "A", "B") for n in range(7)]
    labelled(*both, golden("any", "A", "B", must_include_any=True), golden("one", "A"))
    ended = rag_contract("suggest", "--run", "good.jsonl")
    assert (ended.code, ended.err) == (0, "")
    *_, what, rows, rule = ended.out.splitlines()
    assert what == (
        "must_include: of 7 queries with several relevant documents, this run finds only some of them for 7: "
        "both0, both1, both2, both3, both4 and 2 more"
    )
    assert 'write "must_include_any": true into these golden rows' in rows
    assert "enforce_must_include: false" in rule


def test_the_rule_stays_where_it_fits_most_labels() -> None:
    labelled(*[golden(f"q{n}", "A", "B") for n in range(4)])
    write_jsonl(Path("good.jsonl"), [run("q0", "A"), *[run(f"q{n}", "A", "B") for n in range(1, 4)]])
    ended = rag_contract("suggest", "--run", "good.jsonl")
    assert "this run finds only some of them for 1: q0\n" in ended.out
    assert "enforce_must_include" not in ended.out


def test_labels_that_any_good_run_finds_are_not_doubted() -> None:
    labelled(golden("q", "A", "B"))
    write_jsonl(Path("better.jsonl"), [run("q", "A", "B")])
    assert "must_include" not in rag_contract("suggest", "--run", "good.jsonl", "better.jsonl").out
    write_jsonl(Path("worse.jsonl"), [run("q", "x")])
    assert "must_include" not in rag_contract("suggest", "--run", "worse.jsonl").out


RUNS = ("--run", "good0.jsonl", "good1.jsonl", "good2.jsonl")


@pytest.mark.parametrize(
    "config",
    [
        "# ours\n",
        "k: 5\nfail_on:\n  # a guess\n  mrr_drop_gt: 0.5  # too much\n  map_drop_gt: 0.3\n\n# end\n",
        "fail_on: {mrr_drop_gt: 0.5, map_drop_gt: 0.3} # ours\nminimums:\n",
        "fail_on: {}\r\nminimums: {}\r\n",
        "\ufeffk: [5]\nminimums:\n    mrr_at_k: 0.1\nwaivers: []",
    ],
)
def test_limits_are_written_into_the_configuration_and_everything_else_stays(config: str) -> None:
    path = Path("ragcontract.yml")
    path.write_bytes(config.encode())
    ended = rag_contract("suggest", *RUNS, "--write")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.endswith("wrote the limits into ragcontract.yml\n")
    written = path.read_bytes().decode()
    values = yaml.safe_load(written)
    printed = yaml.safe_load(configuration(rag_contract("suggest", *RUNS).out))
    assert values["fail_on"].keys() - printed["fail_on"].keys() <= {"map_drop_gt"}
    assert printed["fail_on"].items() <= values["fail_on"].items()
    assert printed["minimums"] == values["minimums"]
    changed = {"mrr_drop_gt", "mrr_at_k", "fail_on:", "minimums:"}
    for line in config.splitlines():
        assert any(word in line for word in changed) or line in written
    assert [
        part for part in ("# ours", "# a guess", "# too much", "# end") if part in config and part not in written
    ] == []
    assert ("\r\n" in written) == ("\r\n" in config)
    assert written.startswith("\ufeff") == config.startswith("\ufeff")
    assert read_config("ragcontract.yml", BUILT_IN).problems == Problems()
    assert "\n+++ ragcontract.yml (new)\n" in ended.out
    assert rag_contract("suggest", *RUNS, "--write").out.endswith("ragcontract.yml has these limits already\n")
    assert path.read_bytes().decode() == written


@pytest.mark.parametrize(
    "config",
    [
        "{k: 5}\n",
        "fail_on: {\n  mrr_drop_gt: 0.5\n  }\nminimums: *a\n",
        "- k\n",
        "k: 5\n...\n",
        "k: 5\nfail_on:\n  mode: >-\n    strict\n  mrr_drop_gt: 0.1\n",
    ],
)
def test_a_configuration_that_cannot_be_edited_is_refused(config: str) -> None:
    Path("ragcontract.yml").write_text(config)
    ended = rag_contract("suggest", *RUNS, "--write")
    assert ended.code == 2
    assert Path("ragcontract.yml").read_text() == config


@pytest.mark.parametrize(("key", "is_written"), [("n", False), ("y", True)])
def test_a_terminal_is_asked_before_the_configuration_is_written(tmp_path: Path, key: str, is_written: bool) -> None:
    Path("ragcontract.yml").write_text("k: 5\n")
    with AtATerminal("suggest", *RUNS, "--write", cwd=tmp_path, lines=60) as terminal:
        terminal.expect("+fail_on:")
        terminal.expect("Write ragcontract.yml?")
        assert Path("ragcontract.yml").read_text() == "k: 5\n"
        terminal.type(f"{key}\n")
        assert terminal.end() == 0
    assert ("fail_on:" in Path("ragcontract.yml").read_text()) == is_written
