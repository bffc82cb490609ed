"""The guide to recording: its files about frameworks have the options that there are, and it names the versions tried.

`make test-record` records with these files.
"""

import re

import msgspec
import pytest
import yaml

from ragcontract.record.target_registry import module
from scripts.docs import block
from tests.record.pages import PAGE
from tests.runner import ROOT


@pytest.mark.parametrize("name", ["langchain", "llamaindex", "chroma"])
def test_a_file_shows_every_option_that_there_is(name: str) -> None:
    shown = re.sub(r"^  # ", "  ", block(PAGE, f"{name}.yml"), flags=re.MULTILINE)
    options = module(name).OPTIONS
    made = msgspec.convert(yaml.safe_load(shown)[name], options)
    defaults = {field.name: field.default for field in msgspec.structs.fields(options)}
    assert all(getattr(made, field) != default for field, default in defaults.items())


def test_the_versions_are_those_that_are_tried() -> None:
    sentence = re.search(r"Tested versions: (.*?)\.\n", PAGE, re.DOTALL)
    assert sentence
    named = re.findall(r"([a-z-]+)\s([\d.]+)\sand\s([\d.]+)", sentence[1])
    for at, which in enumerate(("floor", "newest"), start=1):
        pins = (ROOT / "requirements" / f"record-{which}.txt").read_text().splitlines()
        assert [f"{row[0]}=={row[at]}" for row in named] == [
            next(pin for pin in pins if pin.startswith(f"{row[0]}==")) for row in named
        ]
    assert {row[0] for row in named} == {"langchain-core", "langgraph", "llama-index-core", "chromadb"}
