"""Changes of a contract: what golden files and configuration ask now that they did not ask when a baseline was made."""

from typing import Annotated, Literal, TypeAlias, get_args

from msgspec import Meta, Struct

Effect = Literal["weaker", "changed", "stricter"]
# In the order of reports.
Weaker = Literal[
    "queries_removed",
    "questions_changed",
    "references_removed",
    "references_changed",
    "rules_removed",
    "relabelled_with_fewer",
    "judged_fewer",
    "must_include_any_added",
    "rank_raised",
    "forbidden_fewer",
    "severity_lowered",
    "as_evaluated_added",
    "limits_removed",
    "limits_weakened",
    "settings_weakened",
    "waivers_added",
    "waivers_extended",
]
Changed = Literal[
    "relabelled",
    "judged_changed",
    "rules_changed",
    "forbidden_changed",
    "weights_changed",
    "tags_changed",
    "tiers_changed",
    "grades_changed",
    "limits_changed",
    "settings_changed",
]
Stricter = Literal[
    "rules_added",
    "references_added",
    "must_include_any_removed",
    "rank_lowered",
    "forbidden_more",
    "severity_raised",
    "as_evaluated_removed",
    "limits_added",
    "limits_tightened",
    "settings_tightened",
    "waivers_removed",
    "waivers_shortened",
]
ChangeKind: TypeAlias = Literal[Weaker, Changed, Stricter]
Value: TypeAlias = bool | int | float | str | None
EFFECT: dict[ChangeKind, Effect] = {
    **dict.fromkeys(get_args(Weaker), "weaker"),
    **dict.fromkeys(get_args(Changed), "changed"),
    **dict.fromkeys(get_args(Stricter), "stricter"),
}


class ChangedItem(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A query, a limit, a setting or a waiver that changed; null stands for a value that it does not have.

    Of a query, the values are what changed: a rank, a weight, the number of its relevant, judged or forbidden
    documents.
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
