"""A reference is split into claims, each from words that are in it."""

import json
import random
from typing import Any

import pytest

from ragcontract.judge.claims_run import Split, split_reference
from ragcontract.judge.interface import NoReply, VoteSettings
from tests.judge.judges import Model, read

REFERENCE = "Items can be returned within 30 days of delivery, and shipping is free."
CLAIMS = [
    {"quote": "Items can be returned within 30 days of delivery", "text": "Items can be returned within 30 days."},
    {"quote": "shipping is free", "text": "Shipping of returns is free. "},
]


def split(model: Model, reference: str = REFERENCE) -> Split:
    return split_reference("How long?", reference, model, VoteSettings(), random.Random(1))


def reply(*claims: Any) -> str:
    return json.dumps({"claims": claims})


def test_a_reference_becomes_claims() -> None:
    model = Model(reply(*CLAIMS))
    claims = ("Items can be returned within 30 days.", "Shipping of returns is free.")
    assert split(model) == Split(status="ok", claims=claims)
    assert read(model.asked[0]).data == {"question": "How long?", "reference": REFERENCE}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("text", "exactly one JSON object"),
        (reply(), "0 claims"),
        (reply(*[{**CLAIMS[0], "text": f"claim {at}"} for at in range(101)]), "101 claims"),
        (reply(CLAIMS[0], {**CLAIMS[0], "text": "ITEMS can be returned within  30 days."}), "twice"),
        (reply({"quote": "Items can be returned", "text": " "}), "not a text of 1 to"),
        (reply({"quote": "Items can be returned", "text": "x" * 2001}), "not a text of 1 to"),
        (reply({"quote": "Items can be returned"}), "not a text of 1 to"),
        (reply({"quote": "Nobody said this", "text": "Nobody."}), "not in the text"),
        (reply({"quote": None, "text": "Items."}), "no quote"),
        (reply("a claim"), "a list of objects"),
    ],
)
def test_a_bad_reply_is_asked_for_once_more_with_what_was_wrong(bad: str, why: str) -> None:
    model = Model(bad, reply(*CLAIMS))
    assert len(split(model).claims) == 2
    assert why in read(model.asked[1]).data["fault"]
    failed = split(Model(bad))
    assert (failed.status, failed.claims) == ("unsure", ())
    assert why in failed.reason


def test_without_a_reply_there_are_no_claims() -> None:
    assert split(Model(NoReply("timeout", "it took too long"))) == Split(
        status="failed", reason="timeout: it took too long"
    )
