"""Whatever a judge replies, every item gets a judgment that can be written and read again."""

import json
import random
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcontract.core.config_sections import Task
from ragcontract.judge.claims_run import split_reference
from ragcontract.judge.interface import Reply, VoteSettings
from ragcontract.judge.judge_case import judge_case
from ragcontract.judgments.judgments_file import read_judgments, write_judgments
from tests.judge.judges import TASKS, Model, case, honest, read

# Text with halves of characters, which JSON can escape.
TEXT = st.text(max_size=20) | st.sampled_from(["\ud800", "half \udfff of one", "<think>", "}", "```"])
LEAF = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
FIELD = st.sampled_from(["id", "quote", "context", "reason", "supported", "met", "verdict"]) | TEXT
ANY = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELD, inner, max_size=5))
TOKENS = st.integers(min_value=-(10**20), max_value=10**20)
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def judged(task: Task, model: Model, folder: Path) -> list[Any]:
    """Judge a case, and return what is read of the file that the judgments are written to."""
    found = judge_case(case(task), model, VoteSettings(), random.Random(1))
    assert [one.item for one in found] == [item.name for item in case(task).items]
    path = str(folder / "j.jsonl")
    write_judgments(path, found)
    given = read_judgments([path])
    assert not given.problems, given.problems
    assert sorted(one.key for one in found) == sorted(one.key for one in given.by_key.values())
    return found


@QUICK
@given(st.sampled_from(TASKS), TEXT | ANY.map(json.dumps), TEXT, TOKENS)
def test_any_text_is_no_verdict(tmp_path: Path, task: Task, text: str, name: str, tokens: int) -> None:
    model = Model(Reply(text=text, model=name, tokens_in=tokens, tokens_out=tokens))
    assert {one.status for one in judged(task, model, tmp_path)} == {"unsure"}


@QUICK
@given(st.sampled_from(TASKS), st.data())
def test_an_honest_reply_with_any_values_in_it_gives_an_honest_verdict_or_none(
    tmp_path: Path, task: Task, data: st.DataObject
) -> None:
    def reply(ask: Any) -> str:
        verdicts = honest(read(ask))
        for _ in range(data.draw(st.integers(1, 3))):
            one = data.draw(st.sampled_from(verdicts))
            one[data.draw(st.sampled_from(["id", "quote", "context", "reason"]))] = data.draw(ANY)
        return json.dumps({"verdicts": verdicts})

    right = judge_case(case(task), Model(lambda ask: json.dumps({"verdicts": honest(read(ask))})), VoteSettings(), ONE)
    for one, expected in zip(judged(task, Model(reply), tmp_path), right, strict=True):
        assert one.verdict in {None, expected.verdict}


ONE = random.Random(1)


@QUICK
@given(
    TEXT | ANY.map(json.dumps) | ANY.map(lambda value: json.dumps({"claims": [{"quote": "The words.", "text": value}]}))
)
def test_any_text_splits_into_claims_that_can_be_written_or_none(text: str) -> None:
    found = split_reference("?", "The words.", Model(text), VoteSettings(), random.Random(1))
    assert (found.status == "ok") == bool(found.claims)
    assert all(claim.strip() and claim.encode() for claim in found.claims)
