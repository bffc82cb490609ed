"""Tiers: what is wrong with them, and which are skipped."""

from pathlib import Path

import pytest

from ragcontract.contract.config_file import read_config
from ragcontract.contract.resolve import resolve
from ragcontract.core.golden import ExpectedAnswer
from ragcontract.registry import BUILT_IN
from tests.records import golden_of, query, report


def problems(folder: Path, text: str, *tiers: str) -> list[str]:
    """Return what is wrong with a configuration for queries of these tiers, without the folder."""
    path = folder / "ragcontract.yml"
    path.write_text(text)
    queries = [query(f"q{n}", answer=ExpectedAnswer(tier=tier) if tier else None) for n, tier in enumerate(tiers)]
    contract = resolve(golden_of(queries), read_config(str(path), BUILT_IN), BUILT_IN, has_baseline=False)
    return [one.removeprefix(f"{folder}/") for one in contract.problems.problems]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "tiers:\n- {name: a, minimum: 0.9}\n- {name: a, minimum: 0.8}\n",
            "ragcontract.yml:3: tiers[1]: has the name 'a', as tiers[0]; give each its own",
        ),
        (
            "tiers:\n- {name: sanity, minimum: 0.9, gates: [core, sanitty]}\n- {name: core, minimum: 0.8}\n",
            "ragcontract.yml:2: tiers[0].gates[1]: there is no tier 'sanitty'; did you mean 'sanity'?",
        ),
        (
            "tiers:\n- {name: a, minimum: 0.9, gates: [b]}\n- {name: b, minimum: 0.8, gates: [a]}\n",
            "ragcontract.yml:2: tiers[0].gates: gate each other in a circle: 'a' gates 'b' gates 'a'",
        ),
        (
            "tiers:\n- {name: a, minimum: 0.9, gates: [a]}\n",
            "ragcontract.yml:2: tiers[0].gates: gate each other in a circle: 'a' gates 'a'",
        ),
        (
            "tiers:\n- {name: a, minimum: 1.5}\n",
            "ragcontract.yml:2: tiers[0].minimum: expected a fraction from 0 to 1, as 0.10, found 1.5",
        ),
    ],
)
def test_tiers_that_cannot_be_are_refused_at_their_line(text: str, found: str, tmp_path: Path) -> None:
    assert found in problems(tmp_path, text, "a", "b")


def test_a_tier_that_only_one_of_the_files_has_is_refused(tmp_path: Path) -> None:
    text = "tiers:\n- {name: sanity, minimum: 0.9}\n- {name: core, minimum: 0.9}\n"
    assert problems(tmp_path, text, "sanity", "sanitty", "sanitty", "") == [
        "golden.jsonl:q1: tier: 'sanitty' is not a tier of the configuration (2 queries); did you mean 'sanity'?",
        "ragcontract.yml:3: tiers: no golden query has the tier 'core'; give it to queries as tier, or leave it out",
    ]


def test_without_tiers_in_the_configuration_those_of_golden_rows_have_no_limit(tmp_path: Path) -> None:
    assert problems(tmp_path, "k: 5\n", "sanity") == []


@pytest.mark.parametrize(
    ("missed", "skipped"),
    [
        ([], {}),
        (["core"], {"extra": "core"}),
        (["sanity"], {"core": "sanity", "extra": "sanity"}),
        (["core", "sanity"], {"core": "sanity", "extra": "sanity"}),  # a skipped tier is no reason itself
        (["other", "extra"], {}),
    ],
)
def test_a_missed_tier_skips_those_it_gates_and_those_they_gate(missed: list[str], skipped: dict[str, str]) -> None:
    gates = {"core": ["extra"], "sanity": ["core"], "extra": [], "other": []}
    queries = [query(name, "A", answer=ExpectedAnswer(tier=name)) for name in gates]
    tiers = [{"name": name, "minimum": 0.9, "gates": gated} for name, gated in gates.items()]
    made = report(queries, {name: ["x" if name in missed else "A"] for name in gates}, config={"tiers": tiers})
    reasons = {tier.name: tier.skipped for tier in made.tiers or () if tier.skipped}
    assert reasons == {name: f"tier '{why}' missed its minimum" for name, why in skipped.items()}
