"""Cases in fitz-gov's format with what its own data never has: repeated elements, texts as claims, …"""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TIERS = {"tier0_sanity": "t0", "tier1_core": "t1"}
CATEGORIES = ("abstention", "dispute", "trustworthy_hedged", "trustworthy_direct", "grounding", "relevance")
MODES = ("trustworthy", "disputed", "abstain")
WORDS = (
    "ab",
    "AB",
    "a b",
    "$4",
    "$499",
    "no",
    "said",
    "Straße",
    "STRASSE",
    "é",
    "e\u0301",
    "ﬁ",
    "\u212aab",
    "ſaid",
    "٣",
)
BETWEEN = (" ", " ", "\n", "\t", "\xa0", "\u200b", ". ", "**", "-", "–", "’", "'", "")
# In a claim or an element, what does not compile would be looked for as a text. The importer refuses that, and what
# every answer has.
REGEXES = (
    r"\$\d",
    r"\$\d+",
    "ab",
    "no .* said",
    r"\w+ab",
    r"a\sb",
    "[^a]b",
    "^ab",
    "said$",
    "no|ab",
    r"\d{2,}",
    r"\d.+",
)
ELEMENTS = (*REGEXES, *(word for word in WORDS if "$" not in word))  # as a regex, $4 matches nothing
BROKEN = ("(", "a)", "[a", "*")


def made_up(folder: Path, number: int, dice: random.Random) -> list[dict[str, Any]]:
    """Write ``number`` cases of every category and tier; returns them with the settings that apply to them."""
    written = []
    for tier, prefix in TIERS.items():
        for category in CATEGORIES:
            settings = _settings(dice)
            cases = [_case(f"{prefix}_{category}_{one}", dice) for one in range(number)]
            path = folder / tier / f"{category}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"evaluation_config": settings, "cases": cases}))
            written += [{**case, "evaluation_config": settings | case["evaluation_config"]} for case in cases]
    return written


def answer(dice: random.Random) -> str:
    """Return words in any order with anything between them."""
    return "".join(dice.choice(WORDS) + dice.choice(BETWEEN) for _ in range(dice.randint(0, 8)))


def _case(case_id: str, dice: random.Random) -> dict[str, Any]:
    return {
        "id": case_id,
        "query": "What?",
        "contexts": [],
        "expected_mode": dice.choice(MODES),
        "subcategory": dice.choice(("one", "other")),
        "domain": dice.choice(("", "law")),
        "forbidden_claims": _some(REGEXES, 3, dice),
        "required_elements": _some(ELEMENTS, 4, dice),
        "forbidden_elements": _some(ELEMENTS, 2, dice),
        "evaluation_config": _settings(dice),
    }


def _settings(dice: random.Random) -> dict[str, Any]:
    """Return some of the settings; those left out come from the file, or are fitz-gov's defaults."""
    every: Mapping[str, Sequence[Any]] = {
        "use_regex": (True, False),
        "case_insensitive": (True, False),
        "min_required": (0, 1, 2, 3),
        "allowed_phrases": ([], _some((*REGEXES, *BROKEN), 3, dice)),
    }
    return {name: dice.choice(values) for name, values in every.items() if dice.random() < 0.5}


def _some(texts: Sequence[str], most: int, dice: random.Random) -> list[str]:
    return [dice.choice(texts) for _ in range(dice.randint(0, most))]
