"""Prints fitz-gov's cases, or what its evaluator says of answers to them, without a model.

`cases` prints the folder of the package's data and its cases with their merged settings. `verdicts FOLDER` reads
answers to cases in a folder as JSON, each [id, response, mode or null], and prints why cases fail, and all aggregates.

It runs in the environment that `make test-oracles` sets up, and imports nothing of ours.
"""

import json
import sys
from pathlib import Path
from typing import Any

import fitz_gov
from fitz_gov import AnswerMode, FitzGovCase, FitzGovEvaluator, Tier

TIERS = {"sanity": Tier.SANITY, "core": Tier.CORE}


def cases() -> dict[str, Any]:
    """Return the folder of the data and all cases."""
    found = fitz_gov.load_cases()
    return {"folder": str(fitz_gov.get_data_dir()), "cases": [case.to_dict() for case in found]}


def verdicts(folder: Path, answers: list[tuple[str, str, str | None]]) -> dict[str, Any]:
    """Return what the evaluator says of answers to some of the cases in a folder."""
    answered = {case_id: (response, None if mode is None else AnswerMode(mode)) for case_id, response, mode in answers}
    by_tier = {name: _wanted(fitz_gov.load_tier(tier, data_dir=folder), answered) for name, tier in TIERS.items()}
    every = [case for found in by_tier.values() for case in found]
    evaluator = FitzGovEvaluator()
    result = evaluator.evaluate_all(every, *_columns(every, answered))
    sanity, core = by_tier.values()
    tiered = evaluator.evaluate_tiered(sanity, *_columns(sanity, answered), core, *_columns(core, answered))
    whole = evaluator.evaluate_tiered([], [], [], every, *_columns(every, answered), gating_enabled=False)
    categories = {category.value: found for category, found in result.category_results.items()}
    every_case = [one for found in categories.values() for one in found.case_results]
    return {
        "failed": {one.case.id: one.failure_reason for one in every_case if not one.passed},
        "judged": len(every_case),
        "overall": result.overall_accuracy,
        "categories": {name: found.accuracy for name, found in categories.items()},
        "subcategories": {name: found.subcategory_accuracy for name, found in categories.items()},
        "matrix": result.confusion_matrix.matrix,
        "sanity": {"passed": tiered.tier0.passed, "accuracy": tiered.tier0.accuracy},
        "core": None if tiered.tier1 is None else tiered.tier1.accuracy,
        "breakdowns": {} if whole.tier1 is None else _breakdowns(whole.tier1),
    }


def _wanted(found: list[FitzGovCase], answered: dict[str, Any]) -> list[FitzGovCase]:
    return [case for case in found if case.id in answered]


def _columns(found: list[FitzGovCase], answered: dict[str, Any]) -> tuple[list[str], list[AnswerMode | None]]:
    return [answered[case.id][0] for case in found], [answered[case.id][1] for case in found]


def _breakdowns(tier: Any) -> dict[str, dict[str, float]]:
    names = ("difficulty", "domain", "query_type", "source_type", "reasoning_type", "evidence_pattern")
    return {name: getattr(tier, f"{name}_breakdown") for name in names}


if __name__ == "__main__":
    json.dump(cases() if sys.argv[1] == "cases" else verdicts(Path(sys.argv[2]), json.load(sys.stdin)), sys.stdout)
