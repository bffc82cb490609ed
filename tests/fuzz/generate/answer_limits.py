"""What configurations say about answers: the scores that are declared, tiers, and limits on what can be measured."""

from typing import Any

from tests.fuzz.generate.expected_answers import SCORES
from tests.fuzz.generate.values import Maker

# The metrics that a field of golden rows has.
MEASURED = {
    "reference": ("rouge_l", "exact_match"),
    "reference_contexts": ("context_recall_text",),
    "reference_tool_calls": (
        "tool_f1",
        "tool_precision",
        "tool_recall",
        "tool_order",
        "tool_arguments",
        "step_efficiency",
    ),
    "expected_mode": ("mode_accuracy", "false_answer_rate", "over_refusal_rate"),
    "expected_label": ("label_accuracy", "label_macro_f1"),
}
OF_ANSWERS = frozenset({"pass_rate", "faithfulness", "context_recall_ids"})
JUDGED = frozenset({"context_recall", "criteria_met"})  # which need judgments, and few cases have those
MEASURED_ALL = frozenset(key for keys in MEASURED.values() for key in keys) | OF_ANSWERS


def judge_answers(maker: Maker, made: dict[str, Any]) -> None:
    """Declare the scores, name the tiers and limit what the golden rows can be measured by."""
    named = dict(zip(SCORES, ("higher", "lower"), strict=True))
    scores = {name: {"from": "scores", "better": better} for name, better in named.items()}
    options = {"context_recall_text": {"measure": maker.pick(("coverage", "levenshtein", "jaro", "hamming"))}}
    made["metrics"] = {**scores, **(options if maker.chance(0.3) else {})}
    made["missing_scores"] = maker.pick(("zero", "zero", "error"))
    made["tiers"] = [{"name": name, "minimum": maker.number()} for name in maker.tiers]
    if len(maker.tiers) > 1:
        made["tiers"][0]["gates"] = maker.tiers[1:]
    if composite := (made.get("answers") or {}).get("composite"):
        composite["metrics"] = [*SCORES]
    measured = [key for field, keys in MEASURED.items() if field in maker.expected for key in keys]
    rates = [key for key in measured if key.endswith("_rate")]  # of wrong answers
    measured = [key for key in measured if key not in rates]
    limits = (("minimums", ["faithfulness", "pass_rate", *measured]), ("maximums", ["toxicity", *rates]))
    for section, keys in limits:
        if maker.chance(0.4):
            made[section] = {key: maker.number() for key in maker.some(keys, 3)}
    if maker.has_run_before and maker.chance(0.5):
        compared = [key for key in measured if key != "label_macro_f1"]
        drops = {f"{key}_drop_gt": maker.pick((0, 0.1, "10%")) for key in maker.some(["faithfulness", *compared], 2)}
        made["fail_on"] = {**(made.get("fail_on") or {}), **drops}


def leave_out_answers(maker: Maker, made: dict[str, Any]) -> None:
    """Remove what only contracts of answers can be judged by, and limits on what this one does not measure."""
    measured = {key for field, keys in MEASURED.items() if field in maker.expected for key in keys}
    stray = {key for keys in MEASURED.values() for key in keys} | OF_ANSWERS
    stray -= (measured | {"faithfulness", "pass_rate"}) if maker.about_answers else set()
    if not maker.chance(0.2):
        stray |= JUDGED
        for name in ("metrics", "second_pass"):
            (made.get("judge") or {}).pop(name, None)
    if not maker.about_answers:
        for name in ("tiers", "metrics"):
            made.pop(name, None)
        (made.get("answers") or {}).pop("composite", None)
        (made.get("per_query") or {}).pop("fail_on", None)
    for limits in (made, *(made.get("tags") or {}).values()):
        for section in ("minimums", "maximums", "fail_on"):
            for key in [*(limits.get(section) or {})]:
                name = key.removesuffix("_drop_gt").removesuffix("_rise_gt")
                if name in stray or (name != key and name in MEASURED_ALL and not maker.has_run_before):
                    del limits[section][key]
