"""Changes of a contract: what golden files and configuration ask now that they did not ask when a baseline was made."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

Effect = Literal["weaker", "changed", "stricter"]
ChangeKind = Literal[
    "queries_removed",
    "questions_changed",
    "rules_removed",
    "relabelled_with_fewer",
    "must_include_any_added",
    "rank_raised",
    "forbidden_fewer",
    "severity_lowered",
    "limits_removed",
    "limits_weakened",
    "settings_weakened",
    "waivers_added",
    "waivers_extended",
    "relabelled",
    "rules_changed",
    "forbidden_changed",
    "weights_changed",
    "tags_changed",
    "grades_changed",
    "limits_changed",
    "settings_changed",
    "rules_added",
    "must_include_any_removed",
    "rank_lowered",
    "forbidden_more",
    "severity_raised",
    "limits_added",
    "limits_tightened",
    "settings_tightened",
    "waivers_removed",
    "waivers_shortened",
]
Value: TypeAlias = bool | int | float | str | None

# In the order of reports: weaker first.
EFFECT: dict[ChangeKind, Effect] = {
    "queries_removed": "weaker",
    "questions_changed": "weaker",
    "rules_removed": "weaker",
    "relabelled_with_fewer": "weaker",
    "must_include_any_added": "weaker",
    "rank_raised": "weaker",
    "forbidden_fewer": "weaker",
    "severity_lowered": "weaker",
    "limits_removed": "weaker",
    "limits_weakened": "weaker",
    "settings_weakened": "weaker",
    "waivers_added": "weaker",
    "waivers_extended": "weaker",
    "relabelled": "changed",
    "rules_changed": "changed",
    "forbidden_changed": "changed",
    "weights_changed": "changed",
    "tags_changed": "changed",
    "grades_changed": "changed",
    "limits_changed": "changed",
    "settings_changed": "changed",
    "rules_added": "stricter",
    "must_include_any_removed": "stricter",
    "rank_lowered": "stricter",
    "forbidden_more": "stricter",
    "severity_raised": "stricter",
    "limits_added": "stricter",
    "limits_tightened": "stricter",
    "settings_tightened": "stricter",
    "waivers_removed": "stricter",
    "waivers_shortened": "stricter",
}


class ChangedItem(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A query, a limit, a setting or a waiver that changed; null stands for a value that it does not have.

    Of a query, the values are what changed: a rank, a weight, the number of its relevant or forbidden documents.
    """

    id: str
    before: Value = None
    after: Value = None


class ContractChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One way in which the contract changed; ``weaker`` means that it accepts runs that it did not accept before.

    ``count`` is the number of rules for ``rules_…``, otherwise of ``items``. Queries that were removed are only
    counted, because the report lists them among those that are not compared.
    """

    kind: ChangeKind
    effect: Effect
    count: Annotated[int, Meta(ge=1)]
    items: tuple[ChangedItem, ...] = ()
