"""Breaks of a small retriever, and honest changes to it: the cause that a check names, or none.

The corpus is made up. The retriever counts common words, which is enough to have ranks that depend on the documents.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract

FOLDERS, FILES, WORDS = ("billing", "crypto", "files", "http", "queues", "users"), 8, 5
Docs = dict[str, frozenset[str]]
K = 5


def words_of(folder: str, number: int) -> list[str]:
    """Return the words of a document: some of its own, some that it shares with its neighbours and its folder."""
    return [folder, f"{folder}{number}", f"{folder}{number}x", f"pair{number // 2}", f"third{number % 3}", "the"]


DOCUMENTS: Docs = {
    f"{folder}/topic-{number}": frozenset(words_of(folder, number)) for folder in FOLDERS for number in range(FILES)
}
QUESTIONS = {
    f"{folder}-{number}": (f"{folder}/topic-{number}", [folder, f"{folder}{number}", f"pair{number // 2}"])
    for folder in FOLDERS
    for number in range(0, FILES, 2)
}


def retrieve(documents: Docs, words: Iterable[str], k: int = 10) -> list[str]:
    """Return the documents with the most words of a question; the names decide among equals."""
    asked = set(words)
    return sorted(documents, key=lambda name: (-len(asked & documents[name]), name))[:k]


def rows(
    documents: Docs = DOCUMENTS,
    *,
    k: int = 10,
    ask: Callable[[list[str]], list[str]] = list,
    rename: Callable[[str], str] = str,
    **versions: str,
) -> list[dict[str, Any]]:
    """Return the run of a retriever over these documents."""
    return [
        {
            "query_id": query_id,
            "results": [{"doc_id": rename(name)} for name in retrieve(documents, ask(words), k)],
            **versions,
        }
        for query_id, (_, words) in QUESTIONS.items()
    ]


def without(*folders: str) -> Docs:
    return {name: words for name, words in DOCUMENTS.items() if not name.startswith(folders)}


def grown(words: Callable[[list[str]], list[str]], folder: str) -> Docs:
    """Return the documents and as many new ones again, with some words of each."""
    new = {f"{folder}/{name}": frozenset(words(sorted(DOCUMENTS[name]))) for name in DOCUMENTS}
    return DOCUMENTS | new


def first_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: Any, now: Any) -> tuple[int, str, str]:
    """Check; return the exit code, and what stands under the headline of report.md and above the terminal's verdict."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden(name, wanted) for name, (wanted, _) in QUESTIONS.items()])
    Path("ragcontract.yml").write_text(f"k: {K}\nfail_on: {{mrr_drop_gt: 0.05, recall_drop_gt: 0.05}}\n")
    write_jsonl(Path("good.jsonl"), before)
    write_jsonl(Path("now.jsonl"), now)
    ended = rag_contract("check", "--run", "now.jsonl", "--baseline", "good.jsonl")
    assert ended.code in {0, 1}, ended
    report = Path("report.md").read_text().replace("`", "").replace("\\", "")
    causes = json.loads(Path("report.json").read_text())
    named = bool([cause for cause in causes["causes"] if cause["kind"] != "commit"] or causes["likely_mistakes"])
    return ended.code, report.split("\n\n")[1] if named else "", ended.out.splitlines()[-2] if named else ""


BREAKS: dict[str, tuple[Any, Any, str]] = {
    "files not indexed": (
        rows(retriever_version="0a1b2c3"),
        rows(without("crypto", "users"), retriever_version="9f8e7d6"),
        (
            "8 relevant documents that the baseline found occur nowhere in this run (crypto/…, users/…): "
            "are they still indexed?"
        ),
    ),
    "fewer results": (
        rows(ask=lambda words: [words[0]]),
        rows(ask=lambda words: [words[0]], k=2),
        (
            "The run has only 2 results a query (the baseline 10), and 12 queries had a relevant document "
            "below rank 2: return at least 5"
        ),
    ),
    "ids in another form": (
        rows(),
        rows(rename=lambda name: f"docs/{name}.md"),
        "24 of 24 relevant ids never occur in the run",
    ),
    "some ids in another form": (
        rows(),
        rows(rename=lambda name: f"v2-{name}-en" if name.startswith(("crypto", "http")) else name),
        (
            "8 relevant documents that the baseline found have other ids in this run "
            "(v2-crypto/topic-0-en, in the contract crypto/topic-0): write them as in the contract"
        ),
    ),
    "another embedding": (
        rows(embedding_model="words-1"),
        rows(ask=lambda words: [words[0]], embedding_model="words-2", prompt_version="7"),
        "Changed since the baseline: embedding model words-1 → words-2, prompt version is 7 now and was unknown before",
    ),
    "no results": (
        rows(),
        [row if number % 3 else row | {"results": []} for number, row in enumerate(rows())],
        "8 queries have no results: did the retriever fail or time out?",
    ),
    "questions cut": (rows(), rows(ask=lambda words: words[2:]), ""),
    "another commit": (
        rows(retriever_version="0a1b2c3"),
        rows(ask=lambda words: words[2:], retriever_version="9f8e7d6-dirty"),
        "",
    ),
    "a ranking that finds nothing": (
        rows(),
        [{**row, "results": [{"doc_id": f"{row['query_id'][:-2]}/topic-{n}"} for n in (1, 3, 5, 7)]} for row in rows()],
        "",
    ),
}


@pytest.mark.parametrize(("before", "now", "said"), BREAKS.values(), ids=BREAKS)
def test_the_cause_of_a_break_stands_under_the_headline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: Any, now: Any, said: str
) -> None:
    code, report, terminal = first_line(tmp_path, monkeypatch, before, now)
    assert code == 1
    assert (report[: len(said)], terminal[: len(said)]) == (said, said)
    assert said or not (report + terminal)


HONEST: dict[str, tuple[Any, Any, int]] = {
    "the corpus grew": (rows(), rows(grown(lambda words: words[:1], "news")), 0),
    "a version was renamed": (rows(embedding_model="a"), rows(embedding_model="b"), 0),
    "documents went that no question needs": (
        rows(index_version="1"),
        rows({name: words for name, words in DOCUMENTS.items() if not name.endswith("7")}, index_version="2"),
        0,
    ),
}


@pytest.mark.parametrize(("before", "now", "code"), HONEST.values(), ids=HONEST)
def test_an_honest_change_has_no_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: Any, now: Any, code: int
) -> None:
    assert first_line(tmp_path, monkeypatch, before, now) == (code, "", "")


def test_pages_that_answer_as_well_are_missing_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, report, terminal = first_line(tmp_path, monkeypatch, rows(), rows(grown(list, "a-guide")))
    said = "The drop may be missing labels: nobody has judged "
    assert (code, report[: len(said)], terminal[: len(said)]) == (1, said, said)


@pytest.mark.parametrize(
    ("typed", "which"),
    [
        (
            dict.fromkeys(["crypto-2"], "crypto/topc-2"),
            "crypto/topc-2 occurs nowhere in the run, and the labels changed",
        ),
        (
            {name: f"docs/{wanted}" for name, (wanted, _) in QUESTIONS.items()},
            "24 of 24 relevant ids never occur in the run; 24 would match without their folder",
        ),
    ],
)
def test_a_wrong_id_in_the_contract_is_no_failure_that_the_baseline_has_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: dict[str, str], which: str
) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = {name: doc_id for name, (doc_id, _) in QUESTIONS.items()}
    write_jsonl(Path("golden.jsonl"), [golden(name, doc_id) for name, doc_id in wanted.items()])
    write_jsonl(Path("current_run.jsonl"), rows())
    Path("ragcontract.yml").write_text(f"k: {K}\nper_query: {{fail_on: new}}\nfail_on: {{recall_drop_gt: 0.05}}\n")
    assert rag_contract("baseline").code == 0
    assert rag_contract("check").code == 0
    write_jsonl(Path("golden.jsonl"), [golden(name, doc_id) for name, doc_id in (wanted | typed).items()])
    ended = rag_contract("check")
    assert ended.code == 1
    *_, cause, verdict = ended.out.splitlines()
    assert which in cause
    assert verdict.startswith(f"FAIL  {len(typed)} of {len(wanted)} queries broken, ")


def test_a_relevant_document_that_the_baseline_lacks_as_well_is_already_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It occurs in the run, for another question, so its id is right."""
    monkeypatch.chdir(tmp_path)
    asked = [golden(name, wanted) for name, (wanted, _) in QUESTIONS.items()]
    write_jsonl(Path("golden.jsonl"), asked)
    write_jsonl(Path("current_run.jsonl"), rows())
    Path("ragcontract.yml").write_text(f"k: {K}\nper_query: {{fail_on: new}}\n")
    assert rag_contract("baseline").code == 0
    write_jsonl(Path("golden.jsonl"), [*asked[:-1], golden(asked[-1]["id"], "billing/topic-0")])
    ended = rag_contract("check")
    assert (ended.code, "1 already in the baseline" in ended.out) == (0, True)


NEW_ONLY = "k: 5\nper_query: {fail_on: new}\n"


def relabelled(
    before: list[dict[str, Any]], now: list[dict[str, Any]], *, config: str = NEW_ONLY, later: str = NEW_ONLY
) -> tuple[int, str]:
    """Store a baseline, change the contract, and check the same run again; return the exit code and the last line."""
    Path("ragcontract.yml").write_text(config)
    write_jsonl(Path("golden.jsonl"), before)
    write_jsonl(Path("current_run.jsonl"), [run("q1", "d1", "x"), run("q2", "d2", "y"), run("q3", "z")])
    assert rag_contract("baseline").code == 0
    Path("ragcontract.yml").write_text(later)
    write_jsonl(Path("golden.jsonl"), now)
    ended = rag_contract("check")
    return ended.code, ended.out.splitlines()[-1]


OTHERS = [golden("q2", "d2")]


@pytest.mark.parametrize(
    ("before", "now", "later"),
    [
        (golden("q3", "hard"), golden("q3", "docs/hard"), NEW_ONLY),  # was missing under its old id, too
        (golden("q1", "d1", "hard"), golden("q1", "hard"), NEW_ONLY),  # one label less
        (golden("q1", "d1", "hard"), golden("q1", "d1", "harder"), NEW_ONLY),  # the rule was broken before
        (
            {**golden("q1"), "relevant_doc_ids": None, "relevance": {"hard": 3, "d1": 1}},
            {**golden("q1"), "relevant_doc_ids": None, "relevance": {"hard": 3, "d1": 1}},
            f"{NEW_ONLY}relevance_level: 2\n",
        ),
    ],
)
def test_what_the_baseline_lacked_under_its_old_labels_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: dict[str, Any], now: dict[str, Any], later: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, last = relabelled([before, *OTHERS], [now, *OTHERS], later=later)
    assert (code, "1 already in the baseline" in last) == (0, True)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (golden("q1", "d1"), golden("q1", "d1", "d-2")),
        (golden("q1", "d1", "x"), golden("q1", "d1", "X_")),
        (golden("q1", "x"), golden("q1", "xx")),
    ],
)
def test_a_label_that_the_baseline_had_and_that_is_mistyped_now_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: dict[str, Any], now: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, last = relabelled([before, *OTHERS], [now, *OTHERS])
    assert (code, last) == (1, "FAIL  1 of 2 queries broken, new")


def test_a_mistyped_label_does_not_hide_that_a_row_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    zero = f"{NEW_ONLY}missing_queries: zero\n"
    relabelled([golden("q1", "d1"), *OTHERS], [golden("q1", "d1"), *OTHERS], config=zero, later=zero)
    write_jsonl(Path("current_run.jsonl"), [run("q2", "d2", "y")])
    for wanted in ("d1", "d1-typo"):
        write_jsonl(Path("golden.jsonl"), [golden("q1", wanted), *OTHERS])
        assert rag_contract("check").out.splitlines()[-1] == "FAIL  1 of 2 queries broken, new"


def test_ids_of_another_index_are_noted_where_no_query_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden(name, wanted) for name, (wanted, _) in QUESTIONS.items()])
    Path("ragcontract.yml").write_text("k: 5\nper_query: {enforce_must_include: false}\nfail_on: {mrr_drop_gt: 0.1}\n")
    write_jsonl(Path("current_run.jsonl"), rows())
    assert rag_contract("baseline").code == 0
    write_jsonl(Path("current_run.jsonl"), [run(name, f"uuid-{name}-z") for name in QUESTIONS])
    assert "is it of another index" in rag_contract("check").out
