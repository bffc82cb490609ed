"""The model of what a check reads: the golden queries in scope, the configuration, rows, scores and waivers."""

import dataclasses
import datetime as dt
import json
from collections import Counter
from collections.abc import Mapping, Sequence

from tests.model import alike, answer_metrics, answers, gates, ranks, refused, texts, tools, turns
from tests.model.answers import Settings
from tests.model.workspace import CannotJudgeError, Row, Workspace

TOLERANCE = 1e-9
READING_CALLS = ("call_tool", "tool_arguments_valid", "reference_tool_calls")


@dataclasses.dataclass(frozen=True)
class Contract:
    """The golden queries in scope and the configuration, as a check uses them."""

    workspace: Workspace
    queries: tuple[Row, ...]
    ks: tuple[int, ...]
    settings: Settings
    wanted_metrics: frozenset[str]
    tolerance: float

    @property
    def config(self) -> Row:
        """The configuration."""
        return self.workspace.config

    @property
    def rank_by(self) -> str:
        """What takes a rank."""
        return str(self.config.get("rank_by") or "results")

    @property
    def k(self) -> int:
        """The largest cut-off, which rules use."""
        return max(self.ks)

    @property
    def level(self) -> float:
        """The grade from which a document is relevant."""
        return float(self.config.get("relevance_level") or 1)


def contract_of(workspace: Workspace, tolerance: float) -> Contract:
    """Return the contract of a workspace, or refuse it."""
    config = workspace.config
    ids = Counter(str(row["id"]) for row in workspace.golden)
    if max(ids.values()) > 1:
        raise CannotJudgeError("a golden id twice")
    scoped = [row for row in workspace.golden if not workspace.tags or set(row.get("tags") or []) & set(workspace.tags)]
    all_tags = {tag for row in workspace.golden for tag in row.get("tags") or []}
    if set(workspace.tags) - all_tags:
        raise CannotJudgeError("--tag of no query")
    if {tag for tag, group in (config.get("tags") or {}).items() if any(group.values())} - all_tags:
        raise CannotJudgeError("limits for a tag of no query")
    k = workspace.k or config.get("k") or 5
    ks = tuple(sorted(set(k))) if isinstance(k, list) else (k,)
    gates.check_tiers(config, workspace.golden)
    settings = _settings(config)
    refused.check_phrases(settings.phrases)
    level = float(config.get("relevance_level") or 1)
    for row in workspace.golden:
        refused.check_fields(row, config.get("allow_fields") or ())
        _check_golden(row, settings, level)
    for row in scoped:
        refused.check_thresholds(answers.rules_of(row, _alone(settings)), settings.scales)
    _check_level(workspace.golden, level)
    named = set(config.get("metrics") or {})
    named |= {gate.metric for gate in gates.gates_of(config, ks, ())}
    return Contract(workspace, tuple(scoped), ks, settings, frozenset(named), tolerance)


def _settings(config: Row) -> Settings:
    options = config.get("answers") or {}
    per_query = config.get("per_query") or {}
    enforced = {
        name.removeprefix("enforce_"): value for name, value in per_query.items() if name.startswith("enforce_")
    }
    return Settings(
        reading=texts.Reading(normalise=options.get("normalise", True)),
        phrases=tuple(options.get("refusal_phrases") or ()),
        built_in=not options.get("only_these", False),
        phrases_are_enough=options.get("refusal") == "phrases",
        missing_modes=options.get("missing_modes") or "error",
        composite=options.get("composite"),
        scales=answer_metrics.scales(config),
        enforced=enforced,
    )


def _alone(settings: Settings) -> Settings:
    """Return the settings without the rule that the configuration adds to every query."""
    return dataclasses.replace(settings, composite=None)


def _check_golden(golden: Row, settings: Settings, level: float) -> None:
    """Refuse a golden row that expects nothing, or what no run can satisfy."""
    alone = _alone(settings)
    rules = answers.rules_of(golden, alone)
    for turn in golden.get("turns") or []:
        refused.check_contents(turn, answers.rules_of(turn, alone))
    refused.check_contents(golden, rules)
    for rule in golden.get("rules") or []:
        limits = "at_most" in rule or rule["type"] in {"max_chars", "tool_arguments_valid"}
        if rule.get("in") == "any" and (limits or "must_not" in rule["type"]):
            raise CannotJudgeError("what must not be, or a limit, in any of the turns")
    ranks.wanted_documents(golden, level)
    others = ("relevant_doc_ids", "relevance", "expected_label", "reference", "reference_contexts", "turns")
    if all(golden.get(name) is None for name in (*others, "reference_tool_calls")) and not rules:
        raise CannotJudgeError("a golden row that expects nothing")


def _check_level(golden: Sequence[Row], level: float) -> None:
    """Refuse a golden set with grades over 0 and no document of the level."""
    graded = any(row.get("relevant_doc_ids") is None and any((row.get("relevance") or {}).values()) for row in golden)
    if graded and not any(ranks.wanted_documents(row, level).relevant for row in golden):
        raise CannotJudgeError("no document of the relevance level")


def rows_of(rows: Sequence[Row], contract: Contract, side: str) -> dict[str, list[Row]]:
    """Return the rows by query; every golden query in scope has one, unless it may be missing."""
    known = {str(row["id"]) for row in contract.queries}
    by_query: dict[str, list[Row]] = {}
    for row in rows:
        if str(row["query_id"]) in known:
            by_query.setdefault(str(row["query_id"]), []).append(row)
    if not contract.workspace.repeats and any(len(found) > 1 for found in by_query.values()):
        raise CannotJudgeError(f"a query twice in the {side}")
    wanted, config = json.dumps(contract.workspace.golden), json.dumps(contract.config)
    reads_calls = any(name in wanted for name in READING_CALLS) or any(name in config for name in tools.TOOL_METRICS)
    if reads_calls and side == "run":
        for row in (row for found in by_query.values() for row in found):
            turns.check_messages(row)
    for golden in contract.queries:
        found = by_query.get(str(golden["id"]), [])
        if not found and side == "run" and contract.config.get("missing_queries") != "zero":
            raise CannotJudgeError("a golden query without a row")
        names = ("relevant_doc_ids", "relevance", "forbidden_doc_ids")
        named = any(golden.get(name) is not None for name in names[:2]) or bool(golden.get(names[2]))
        if named and any("results" not in row for row in found):
            raise CannotJudgeError("a row without results")
    return by_query


def check_forbidden(contract: Contract, rows: Mapping[str, Sequence[Row]]) -> None:
    """Refuse rows that may have a forbidden document in another form."""
    options = contract.config.get("per_query") or {}
    if options.get("enforce_forbidden_docs", True) is False:
        return
    of_any = {doc for row in contract.workspace.golden for doc in ranks.wanted_documents(row, contract.level).relevant}
    different = frozenset(ranks.ids(options.get("different_documents") or ()))
    for golden in contract.queries:
        wanted = ranks.wanted_documents(golden, contract.level)
        others = wanted.relevant or golden.get("turns") or answers.rules_of(golden, _alone(contract.settings))
        only_forbids = bool(wanted.forbidden) and not others
        for row in rows.get(str(golden["id"]), ()) if only_forbids else ():
            if row.get("error") is not None and not row.get("results"):
                raise CannotJudgeError("an error leaves unknown which documents would have been returned")
        wishes = alike.Wishes(wanted.relevant, of_any, different)
        for row in rows.get(str(golden["id"]), ()):
            searched = ranks.returned(row, contract.rank_by)[: options.get("forbidden_within")]
            if alike.in_question(wanted.forbidden, searched, wishes):
                raise CannotJudgeError("is this the forbidden document?")


def scores_of(workspace: Workspace, contract: Contract) -> dict[str, dict[str, float | None]]:
    """Return the numbers of scores files by query and name; of repeated rows, their mean or nothing."""
    collected: dict[str, dict[str, list[float | None]]] = {}
    times = Counter(str(row["query_id"]) for row in workspace.scores or ())
    for row in workspace.scores or ():
        for name, value in (row.get("scores") or {}).items():
            collected.setdefault(str(row["query_id"]), {}).setdefault(name, []).append(value)
    result: dict[str, dict[str, float | None]] = {}
    known = {str(row["id"]) for row in contract.queries}
    for query, by_name in collected.items():
        for name, values in by_name.items():
            numbers = [value for value in values if value is not None]
            if query in known and len(numbers) > 1 and not workspace.repeats and name in declared(contract.config):
                raise CannotJudgeError("several rows for one score")
            scale = contract.settings.scales.get(name)
            if query in known and scale is not None and not all(scale.low <= value <= scale.high for value in numbers):
                raise CannotJudgeError("a score outside of its scale")
            whole = len(numbers) == (times[query] if workspace.repeats else len(values))
            result.setdefault(query, {})[name] = sum(numbers) / len(numbers) if whole else None
    return result


def repeated_scores(workspace: Workspace) -> dict[str, list[Row]]:
    """Return the numbers of each row of scores files by query: rules must hold in every row."""
    rows: dict[str, list[Row]] = {}
    for row in workspace.scores or ():
        rows.setdefault(str(row["query_id"]), []).append(row.get("scores") or {})
    return rows


def declared(config: Row) -> dict[str, Row]:
    """Return the scores that the configuration declares."""
    return {name: item for name, item in (config.get("metrics") or {}).items() if item.get("from") == "scores"}


def waivers_of(workspace: Workspace, today: dt.date) -> tuple[set[str], list[Row]]:
    """Return the gates that are waived today, and the waivers of rules that count today."""
    active = []
    for waiver in workspace.config.get("waivers") or []:
        if sum(waiver.get(name) is not None for name in ("query", "tag", "gate")) != 1:
            raise CannotJudgeError("a waiver needs one of query, tag and gate")
        if waiver.get("gate") is not None and waiver.get("rule") is not None:
            raise CannotJudgeError("a waiver of a gate with a rule")
        if dt.date.fromisoformat(waiver["expires"]) >= today:
            active.append(waiver)
    return {waiver["gate"] for waiver in active if waiver.get("gate")}, active
