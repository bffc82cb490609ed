import json
from pathlib import Path

import pytest

from ragcontract import load_run
from ragcontract.convert.collection import FORMATS, Part, Source
from ragcontract.files.problems import Collector
from tests.convert.builders import QRELS, RUN, TOPICS, lines_of, packed
from tests.process import files_in, rag_contract, spawn

FROM_TREC = "--from trec --qrels qrels.txt --topics topics.tsv --run run.txt"


@pytest.fixture
def trec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {"qrels.txt": QRELS, "topics.tsv": TOPICS, "run.txt": RUN}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


INPUTS = ("golden", "qrels", "queries", "corpus", "samples", "results", "csv", "run")


def convert(options: str) -> tuple[int, str, str]:
    return rag_contract("convert", *options.split())


def test_what_is_converted_can_be_checked(trec: Path) -> None:
    ended = convert(f"{FROM_TREC} --golden-out golden.jsonl --run-out current_run.jsonl")
    assert (ended[0], ended[2]) == (0, "")
    assert ended[1].startswith("converted 2 queries (2 with relevant documents), a run of 2 queries and 4 results\n")
    assert [json.loads(line) for line in (trec / "golden.jsonl").read_text().splitlines()] == [
        {"id": "q1", "query": "What is it?", "relevance": {"d1": 1, "d2": 0}},
        {"id": "q2", "query": "Who is it?", "relevance": {"d3": 2, "d9": 0}},
    ]
    assert json.loads((trec / "current_run.jsonl").read_text().splitlines()[1]) == {
        "query_id": "q2",
        "results": [{"doc_id": "d4", "score": 7.0}, {"doc_id": "d3", "score": 7.0}],
    }
    checked = rag_contract("check")
    assert (checked.code, checked.err) == (0, "")


def test_a_run_may_become_parquet_and_nothing_else(trec: Path) -> None:
    assert convert(f"{FROM_TREC} --golden-out golden.jsonl --run-out run.parquet")[0] == 0
    assert load_run("run.parquet") == {"q1": ["d1", "d2"], "q2": ["d4", "d3"]}
    assert rag_contract("check", "--run", "run.parquet").code == 0
    before = files_in(trec)
    code, _, err = convert(f"{FROM_TREC} --golden-out golden.parquet --run-out other.parquet")
    assert (code, err) == (2, "error: golden.parquet: only a run of rag-contract can be written as Parquet\n")
    code, _, err = convert("--to trec --run run.parquet --run-out trec.parquet")
    assert (code, err) == (2, "error: trec.parquet: only a run of rag-contract can be written as Parquet\n")
    assert files_in(trec) == before


def test_packed_files_with_a_byte_order_mark_are_read(trec: Path) -> None:
    outs = "--golden-out {0}.golden --run-out {0}.run"
    assert convert(f"{FROM_TREC} {outs.format('plain')}")[0] == 0
    for name in ("qrels.txt", "topics.tsv", "run.txt"):
        packed(trec / name)
    assert convert(f"{FROM_TREC} {outs.format('packed')}")[0] == 0
    assert (trec / "plain.golden").read_bytes() == (trec / "packed.golden").read_bytes()
    assert (trec / "plain.run").read_bytes() == (trec / "packed.run").read_bytes()


def test_several_files_and_globs_are_one_input(trec: Path) -> None:
    (trec / "run2.txt").write_text("q3 Q0 d 1 1 x\n")
    for option in (("--run", "run*.txt"), ("--run", "run.txt", "run2.txt")):
        ended = rag_contract("convert", "--from", "trec", *option, "--run-out", "out", "--force")
        assert (ended.code, ended.out) == (0, "converted a run of 3 queries and 5 results\n")


def test_one_other_format_becomes_another(trec: Path) -> None:
    ended = convert(f"{FROM_TREC} --to ragas --samples-out samples.jsonl")
    assert ended[0] == 0
    assert json.loads((trec / "samples.jsonl").read_text().splitlines()[0]) == {
        "id": "q1",
        "user_input": "What is it?",
        "retrieved_context_ids": ["d1", "d2"],
        "reference_context_ids": ["d1"],
    }


def test_standard_output_holds_the_file_alone(trec: Path) -> None:
    ended = spawn("convert", *["--from", "trec", "--qrels", "qrels.txt", "--golden-out", "/dev/stdout"], cwd=trec)
    assert (ended.code, len(ended.out.splitlines())) == (0, 2)
    assert all(json.loads(line) for line in ended.out.splitlines())
    assert "converted 2 queries" in ended.err


def test_everything_wrong_in_all_files_is_reported_at_once_and_nothing_is_written(trec: Path) -> None:
    (trec / "qrels.txt").write_text("q1 0 d1\n")
    (trec / "topics.tsv").write_text("q1\n")
    before = files_in(trec)
    code, out, err = convert(
        "--from trec --qrels qrels.txt qrels.tx --topics topics.tsv --run run.txt --golden-out g --run-out r"
    )
    assert (code, out) == (2, "")
    assert [line.partition(": expected")[0] for line in err.splitlines()] == [
        "error: qrels.tx: no such file; did you mean qrels.txt?",
        "error: qrels.txt:1",
        "error: topics.tsv:1",
    ]
    assert files_in(trec) == before


def test_what_cannot_be_written_is_reported_for_all_files_and_nothing_is_written(trec: Path) -> None:
    (trec / "g.jsonl").write_text('{"id": "a b", "query": "?", "relevance": {"d": 1, "e": 0.5}}\n')
    (trec / "r.jsonl").write_text(
        '{"query_id": "q", "results": [{"doc_id": "x", "score": 2}, {"doc_id": "d e", "score": 1}]}\n'
    )
    before = files_in(trec)
    code, out, err = convert("--to trec --golden g.jsonl --run r.jsonl --qrels-out q --run-out r")
    assert (code, out) == (2, "")
    cannot = "has whitespace or an invisible character in it, which ends a column in TREC's formats"
    assert err.splitlines() == [
        f'error: g.jsonl:1: id: "a b" {cannot}',
        'error: g.jsonl:1: relevance: "e" has the grade 0.5; grades are whole numbers in this format',
        f'error: r.jsonl:1: results[1].doc_id: "d e" {cannot}',
    ]
    assert files_in(trec) == before


def test_files_that_exist_are_overwritten_only_with_force(trec: Path) -> None:
    outs = f"{FROM_TREC} --golden-out golden.jsonl --run-out current_run.jsonl"
    for name in ("golden.jsonl", "current_run.jsonl"):
        (trec / name).write_text("mine")
    before = files_in(trec)
    names = ("golden.jsonl", "current_run.jsonl")
    said = "".join(f"error: {name}: exists already; use --force to overwrite it\n" for name in names)
    assert convert(outs) == (2, "", said)
    assert files_in(trec) == before
    assert convert(f"{outs} --force")[0] == 0
    assert "q1" in (trec / "golden.jsonl").read_text()
    (trec / "link").symlink_to("nowhere")
    assert "link: exists already" in convert(f"{FROM_TREC} --golden-out link --run-out /dev/null")[2]
    assert convert(f"{FROM_TREC} --golden-out new --run-out /dev/null")[0] == 0


@pytest.mark.parametrize(
    ("out", "problem"),
    [
        ("--golden-out run.txt", "run.txt: is an input; write to another file"),
        ("--golden-out same --run-out ./same", "./same: is another output; write to another file"),
        ("--golden-out nowhere/", "nowhere/: is a folder; name a file in it"),
        ("--golden-out=", "'': is an empty path; name a file"),
    ],
)
def test_a_path_that_cannot_be_written_to_is_reported(out: str, problem: str, trec: Path) -> None:
    before = files_in(trec)
    code, _, err = convert(
        f"--from trec --qrels qrels.txt --run run.txt {out} {'' if '--run-out' in out else '--run-out r'}"
    )
    assert (code, err) == (2, f"error: {problem}\n")
    assert files_in(trec) == before


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("", "there is nothing to convert from rag-contract to rag-contract: give --from or --to"),
        ("--from trec --to trec", "there is nothing to convert from trec to trec: give --from or --to"),
        ("--from trec", "name what to write: --golden-out, --run-out"),
        ("--to trec", "name what to write: --qrels-out, --queries-out, --run-out"),
        ("--from trec --samples s --golden-out g", "--samples: trec is read from --qrels, --run, --queries"),
        ("--from trec --qrels q --samples-out s", "--samples-out: rag-contract is written to --golden-out, --run-out"),
        ("--from trec --run r --golden-out g", "--golden-out is made from --qrels, which is not given"),
        ("--from trec --queries q --golden-out g", "--golden-out is made from --qrels, which is not given"),
        ("--to ragas --run r --samples-out s", "--samples-out is made from --golden, which is not given"),
        (
            "--from trec --qrels q --run r --golden-out g",
            "--run is given, and nothing is made from it; name what to write",
        ),
        (
            "--from beir --corpus c --run r --run-out o",
            "--corpus is given, and nothing is made from it; name what to write",
        ),
        ("--from msmarco", "Invalid value for '--from'"),
    ],
)
def test_options_that_do_not_go_together_are_reported(options: str, problem: str, trec: Path) -> None:
    before = files_in(trec)
    code, out, err = convert(options)
    assert (code, out) == (2, "")
    assert problem in err
    assert files_in(trec) == before


def test_samples_without_what_was_retrieved_are_golden_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("samples").write_text('{"user_input": "What?", "reference_context_ids": [1]}')
    assert convert("--from ragas --samples samples --golden-out golden.jsonl")[0] == 0
    assert json.loads(Path("golden.jsonl").read_text())["relevance"] == {"1": 1}
    code, _, err = convert("--from ragas --samples samples --golden-out golden.jsonl --run-out run.jsonl --force")
    assert (code, err) == (2, "error: samples:1: retrieved_context_ids: is missing; expected a list of ids\n")


@pytest.mark.parametrize(
    ("form", "name", "part"),
    [
        ("trec", "qrels", "golden"),
        ("trec", "queries", "golden"),
        ("ragas", "samples", "golden"),
        ("csv", "csv", "golden"),
        ("table", "results", "scores"),
    ],
)
def test_a_file_that_is_gone_when_it_is_opened_is_reported(form: str, name: str, part: Part, tmp_path: Path) -> None:
    paths: dict[str, list[str]] = {other: [] for other in INPUTS}
    problems = Collector()
    files = paths | {name: [str(tmp_path / "gone")]}
    options = {"score_column": ["f"]}
    FORMATS[form].load().read(Source(files=files, wanted={part}, problems=problems, options=options))
    assert lines_of(problems.collected(), tmp_path)[0] == "gone: cannot be read (No such file or directory)"


def test_scores_of_several_files_become_one_scores_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"id,Judge score\n{name},1\n")
    argv = ("--from", "table", "--results", "*.csv", "--score", "Judge score", "--scored-by", "people")
    ended = rag_contract("convert", *argv, "--scores-out", "s.jsonl")
    assert ended == (0, "converted 1 score of 2 queries\n", "")
    assert [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()] == [
        {"query_id": name, "scores": {"judge_score": 1.0}, "scored_by": "people"} for name in ("a", "b")
    ]


def test_samples_and_results_of_ragas_can_be_converted_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sample = {"id": "q", "user_input": "What?", "retrieved_context_ids": ["d"], "reference_context_ids": ["d"], "f": 1}
    (tmp_path / "r.jsonl").write_text(json.dumps(sample))
    outs = "--golden-out g.jsonl --run-out run.jsonl --scores-out s.jsonl"
    ended = convert(f"--from ragas --samples r.jsonl --results r.jsonl {outs}")
    assert ended[1] == (
        "converted 1 query (1 with relevant documents), a run of 1 query and 1 result, 1 score of 1 query\n"
    )
    assert json.loads((tmp_path / "s.jsonl").read_text()) == {"query_id": "q", "scores": {"f": 1.0}}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--from table --results r --scores-out s", "name the columns of the scores: --score NAME, once for each"),
        ("--from ragas --results r --score f --scores-out s", "--score-column is for --from table"),
        ("--from ragas --results r --id x --scores-out s", "--id-column is for --from csv and --from table"),
        (
            "--from deepeval --results r --golden-out g",
            "--golden-out cannot be made from deepeval, which has no golden",
        ),
        ("--from ragas --samples r --scores-out s", "--scores-out is made from --results, which is not given"),
        ("--from ragas --golden g --samples r --golden-out s", "--golden is given, and nothing is made from it"),
        ("--from ragas --samples r --golden-out s --scored-by x", "--scored-by is for --scores-out"),
        ("--to ragas --run r --scores-out s", "--scores-out: ragas is written to --samples-out"),
        ("--to deepeval --golden g --golden-out s", "Invalid value for '--to'"),
    ],
)
def test_options_that_do_not_go_with_scores_are_refused(options: str, problem: str) -> None:
    code, _, err = convert(options)
    assert code == 2
    assert problem in " ".join(err.split())
