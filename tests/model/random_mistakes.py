"""Random mistakes in workspaces, most of which are refused, and what looks like one and is none."""

import dataclasses
import json
import random
from collections.abc import Callable

from tests.model.random_answers import INVISIBLE
from tests.model.workspace import Row, Workspace

RULES = (
    *("must_rank_at_most", "must_include_any", "forbidden_doc_ids", "answer_must_include", "forbidden_claims"),
    *("required_elements", "forbidden_elements", "expected_mode", "allowed_phrases", "min_required"),
    *("must_refuse", "must_not_refuse", "must_cite", "max_chars", "must_call_tool", "must_not_contain"),
)
OWN_FIELDS = ("task", "page", "user", "kind", "side", "note", "my_reviewer", "created_at", "source_url")
NOTHING = ("**", "``", " ", "\u200b", "[](x)", "\u034f**", "____")
NO_PHRASES = (*NOTHING, "123", "...", "\U0001f642")
EVERYTHING = (".*", "()", r"\b", r"\S", "x*", ".", "^", "a|", r"[\s\S]")
NEVER = (r"\bцена\b", r"\bcafé\b", r"цена\b", r"x\Bé", r"\b価格")


def with_mistake(rng: random.Random, workspace: Workspace) -> Workspace:
    """Return the workspace with one mistake, or with what only looks like one."""
    makers: tuple[Callable[[random.Random, Workspace], Workspace], ...] = (
        *(_document_in_another_form, _document_in_another_form, _document_in_another_form, _field, _field),
        *(_key_twice, _configs, _text, _text, _threshold),
    )
    return rng.choice(makers)(rng, workspace)


def _changed(workspace: Workspace, place: int, row: Row, config: Row | None = None) -> Workspace:
    golden = (*workspace.golden[:place], row, *workspace.golden[place + 1 :])
    return dataclasses.replace(workspace, golden=golden, config=workspace.config if config is None else config)


# ---- documents in another form ----


def _document_in_another_form(rng: random.Random, workspace: Workspace) -> Workspace:
    places = [place for place, row in enumerate(workspace.golden) if row.get("forbidden_doc_ids")]
    if not places:
        return workspace
    golden = workspace.golden[rng.choice(places)]
    forbidden = str(rng.choice(golden["forbidden_doc_ids"]))
    other = another_form(rng, forbidden)
    run = [json.loads(json.dumps(row)) for row in workspace.run]
    mine = [row for row in run if str(row["query_id"]) == str(golden["id"]) and row.get("results") is not None]
    for row in mine[: rng.choice((1, 3))]:
        row["results"].insert(rng.randint(0, len(row["results"])), {"doc_id": other})
    config = json.loads(json.dumps(workspace.config))
    if rng.random() < 0.3:
        config.setdefault("per_query", {})["different_documents"] = [rng.choice((forbidden, other))]
    wanted = [json.loads(json.dumps(row)) for row in workspace.golden]
    if rng.random() < 0.2:
        wanting = rng.choice(wanted)
        if "relevant_doc_ids" in wanting and "relevance" not in wanting:
            wanting["relevant_doc_ids"] += [other, *([forbidden] if rng.random() < 0.3 and wanting != golden else [])]
    return dataclasses.replace(workspace, run=tuple(run), config=config, golden=tuple(wanted))


def another_form(rng: random.Random, document: str) -> str:
    """Return another form of an id, or an id that only resembles it."""
    forms = (
        document.upper,
        lambda: f" {document} ",
        lambda: f"./{document}",
        lambda: f"docs/{document}",
        lambda: f"{document}.md",
        lambda: f"{document}#3",
        lambda: f"{document}_chunk_0",
        lambda: f"{document}:2",
        lambda: f"{document}_1",
        lambda: f"docs/{document.capitalize()}.md#3",
        lambda: document[:1] + rng.choice(INVISIBLE[:4]) + document[1:],
        lambda: f"0{document}",
        lambda: f"{document}s",
        lambda: f"new{document}",
        lambda: f"{document}_old",
    )
    return rng.choice(forms)()


# ---- fields, keys, configurations ----


def _field(rng: random.Random, workspace: Workspace) -> Workspace:
    place = rng.randrange(len(workspace.golden))
    name = rng.choice(OWN_FIELDS) if rng.random() < 0.3 else _misspelled(rng, rng.choice(RULES))
    config = workspace.config
    if rng.random() < 0.4:
        config = {**config, "allow_fields": [name if rng.random() < 0.8 else "other"]}
    row = workspace.golden[place]
    return workspace if name in row else _changed(workspace, place, {**row, name: rng.choice((["a"], 1, True))}, config)


def _misspelled(rng: random.Random, name: str) -> str:
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4)) if len(name) > 9 else 1):
        place = rng.randrange(len(name) - 1)
        before, here, after = name[:place], name[place], name[place + 1 :]
        swapped = before + after[:1] + here + after[1:]
        name = rng.choice((before + after, before + here + here + after, f"{before}q{after}", swapped))
    parts = name.split("_")
    other = rng.choice(
        (name, name, name.upper(), "-".join(parts), "".join(parts), parts[0] + "".join(parts[1:]).title())
    )
    return other if other not in RULES else other[:-1]


def _key_twice(rng: random.Random, workspace: Workspace) -> Workspace:
    files = ["golden", "current_run"]
    files += ["scores"] if workspace.scores else []
    files += ["good_run"] if workspace.baseline else []
    return dataclasses.replace(workspace, repeated=rng.choice(files))


def _configs(rng: random.Random, workspace: Workspace) -> Workspace:
    return dataclasses.replace(workspace, configs=rng.choice(("found", "both", "near")))


# ---- contents ----


def _text(rng: random.Random, workspace: Workspace) -> Workspace:
    """Have a text, a pattern or a phrase that says nothing, matches everything or never matches."""
    place = rng.randrange(len(workspace.golden))
    row = workspace.golden[place]
    nothing = rng.choice(NOTHING)
    pattern = rng.choice(EVERYTHING + NEVER)
    rules = (
        {"type": "must_not_contain", "value": nothing},
        {"type": "must_contain", "any": ["price", nothing]},
        {"type": "regex_must_match", "pattern": pattern},
        {"type": "regex_must_not_match", "pattern": pattern},
    )
    fields: tuple[Row, ...] = (
        *({"rules": [*(row.get("rules") or []), rule]} for rule in rules),
        {"forbidden_elements": [{"text": nothing}]},
        {"forbidden_claims": [pattern]},
        {"required_elements": ["price", {"any": [{"regex": pattern}]}]},
        {"answer_must_include": [nothing]},
    )
    if rng.random() < 0.3:
        answers = {**(workspace.config.get("answers") or {}), "refusal_phrases": [rng.choice(NO_PHRASES)]}
        return dataclasses.replace(workspace, config={**workspace.config, "answers": answers})
    return _changed(workspace, place, {**row, **rng.choice(fields)})


def _threshold(rng: random.Random, workspace: Workspace) -> Workspace:
    """Have a threshold at or next to the end of a scale."""
    scores = {name: item for name, item in (workspace.config.get("metrics") or {}).items() if "from" in item}
    if not scores:
        return workspace
    place = rng.randrange(len(workspace.golden))
    row = workspace.golden[place]
    name = rng.choice(sorted(scores))
    low, high = scores[name].get("scale", (0, 1))
    lower = scores[name].get("better") == "lower"
    limits = (high, high - 0.01) if lower else (low, low + 0.01)
    rule: Row = {"type": "max_score" if lower else "min_score", "metric": name, "value": rng.choice(limits)}
    if name == "faithfulness" and rng.random() < 0.4:
        rule = {"type": "max_hallucination_risk", "threshold": rng.choice((0, 0.01))}
    return _changed(workspace, place, {**row, "rules": [*(row.get("rules") or []), rule]})
