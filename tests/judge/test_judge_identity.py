"""Keys are known before anything is asked, and say who is asked; fingerprints say who replied."""

import pytest

from ragcontract.core import bounds
from ragcontract.judge.endpoint import asked_judge, fingerprint, query_keys
from ragcontract.judge.interface import VoteSettings
from tests.judge.judges import Model, case


def model(name: str = "m", host: str = "models.example") -> Model:
    made = Model()
    made.name, made.host = name, host
    return made


def test_keys_are_the_same_every_time() -> None:
    assert query_keys(case(), VoteSettings(), model()) == query_keys(case(), VoteSettings(), model())
    assert len(set(query_keys(case(), VoteSettings(), model()))) == len(case().items)


@pytest.mark.parametrize(
    ("settings", "other"),
    [
        (VoteSettings(), model("m-mini")),
        (VoteSettings(), model(host="elsewhere.example")),
        (VoteSettings(votes=5), model()),
        (VoteSettings(confirm="all"), model()),
    ],
)
def test_another_judge_has_other_keys(settings: VoteSettings, other: Model) -> None:
    assert set(query_keys(case(), settings, other)).isdisjoint(query_keys(case(), VoteSettings(), model()))


def test_how_long_a_reply_may_be_does_not_matter() -> None:
    assert query_keys(case(), VoteSettings(max_tokens=9), model()) == query_keys(case(), VoteSettings(), model())


def test_each_task_has_other_instructions() -> None:
    tasks = [asked_judge(task, VoteSettings(), model()).instructions for task in ("attribution", "criteria", "claims")]
    assert len(set(tasks)) == 3


def test_a_fingerprint_is_what_replied_and_how_it_was_asked() -> None:
    judge = asked_judge("attribution", VoteSettings(), model())
    assert fingerprint(judge) == "m at models.example, protocol 1, 3 votes on failures"
    everything = asked_judge("attribution", VoteSettings(votes=5, confirm="all"), model())
    assert fingerprint(everything, {"m-1"}) == "m-1 at models.example, protocol 1, 5 votes on everything"
    once = asked_judge("attribution", VoteSettings(votes=1), model())
    assert fingerprint(once, ["m-1"], ["temperature", "seed"]).endswith(", 1 vote, without seed, temperature")


def test_a_long_name_is_cut_for_the_file() -> None:
    judge = asked_judge("attribution", VoteSettings(), model("m" * 999, "h" * 999))
    assert len(judge.model) == len(judge.host) == bounds.JUDGE_NAME
    assert len(fingerprint(judge, ["x" * 9999])) <= bounds.FINGERPRINT
