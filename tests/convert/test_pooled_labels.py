import os
from pathlib import Path

import pytest

from tests.convert.builders import TOPICS
from tests.process import Ended, rag_contract

# One query has more relevant documents than fit into the top 5, of another one the retriever finds nothing.
QRELS = "".join(f"q1 0 d{number} 1\n" for number in range(9)) + "q2 0 d1 1\n"
RUN = "q1 Q0 d1 1 2 x\nq1 Q0 d2 2 1 x\nq2 Q0 d2 1 1 x\n"
SETTING = "`per_query.enforce_must_include: false`"
WHY = "judgments say what is relevant, not what must be found"
COUNTS = "converted 2 queries (2 with relevant documents), a run of 2 queries and 3 results\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {"qrels.txt": QRELS, "topics.tsv": TOPICS, "run.txt": RUN}.items():
        Path(name).write_text(text)
    return tmp_path


def convert(*more: str, golden: str = "golden.jsonl") -> Ended:
    files = ["--qrels", "qrels.txt", "--topics", "topics.tsv", "--run", "run.txt", "--run-out", "current_run.jsonl"]
    return rag_contract("convert", "--from", "trec", *files, "--golden-out", golden, *more)


def test_a_converted_set_passes_against_its_own_baseline(folder: Path) -> None:
    ended = convert()
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"{COUNTS}wrote ragcontract.yml, {SETTING}: {WHY}\n"
    assert rag_contract("baseline").code == 0
    checked = rag_contract("check")
    assert (checked.code, checked.err) == (0, "")
    (folder / "ragcontract.yml").unlink()
    assert rag_contract("check").code == 1


def test_beir_comes_with_the_same_configuration(folder: Path) -> None:
    (folder / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "What?"}\n')
    files = ["--qrels", "test.tsv", "--queries", "queries.jsonl", "--golden-out", "shop/golden.jsonl"]
    ended = rag_contract("convert", "--from", "beir", *files)
    assert ended.out.endswith(f"wrote shop/ragcontract.yml, {SETTING}: {WHY}\n")
    assert (folder / "shop" / "ragcontract.yml").read_text().startswith("# Of BEIR: the judgments say")


@pytest.mark.parametrize("name", ["ragcontract.yml", "ragcontract.yaml"])
def test_a_configuration_that_exists_is_never_changed(name: str, folder: Path) -> None:
    (folder / name).write_text("k: 3\n")
    assert convert("--force").out == f"{COUNTS}{name} is left as it is; write {SETTING} into it: {WHY}\n"
    assert (folder / name).read_text() == "k: 3\n"
    assert not {"ragcontract.yml", "ragcontract.yaml"} - {name} & {path.name for path in folder.iterdir()}


def test_a_configuration_that_decides_on_the_rule_needs_no_note(folder: Path) -> None:
    assert convert().code == 0
    assert convert("--force").out == COUNTS
    (folder / "ragcontract.yml").write_text("per_query: {enforce_must_include: new}\n")
    assert convert("--force").out == COUNTS


def test_a_broken_link_and_a_pipe_count_as_a_configuration(folder: Path) -> None:
    (folder / "ragcontract.yml").symlink_to("nowhere.yml")
    assert "ragcontract.yml is left as it is" in convert().out
    assert not (folder / "nowhere.yml").exists()
    (folder / "ragcontract.yml").unlink()
    os.mkfifo(folder / "ragcontract.yml")
    assert "ragcontract.yml is left as it is" in convert("--force").out


def test_another_output_of_that_name_is_not_overwritten(folder: Path) -> None:
    files = ["--qrels", "qrels.txt", "--topics", "topics.tsv", "--run", "run.txt", "--golden-out", "golden.jsonl"]
    ended = rag_contract("convert", "--from", "trec", *files, "--run-out", "./ragcontract.yml")
    assert "ragcontract.yml is left as it is" in ended.out
    assert (folder / "ragcontract.yml").read_text().startswith('{"query_id"')


def test_golden_queries_on_standard_output_come_with_advice_alone(folder: Path) -> None:
    ended = convert(golden="/dev/stdout")
    assert ended.err == f"{COUNTS}write {SETTING} into ragcontract.yml: {WHY}\n"
    assert not (folder / "ragcontract.yml").exists()


def test_without_a_relevant_document_there_is_no_rule_to_turn_off(folder: Path) -> None:
    (folder / "qrels.txt").write_text("q1 0 d1 0\n")
    assert "ragcontract" not in convert().out
    assert not (folder / "ragcontract.yml").exists()


def test_labels_that_other_formats_choose_keep_the_rule(folder: Path) -> None:
    (folder / "samples.jsonl").write_text('{"user_input": "What?", "reference_context_ids": ["a", "b"]}\n')
    rag_contract("convert", "--from", "ragas", "--samples", "samples.jsonl", "--golden-out", "golden.jsonl")
    assert not (folder / "ragcontract.yml").exists()
