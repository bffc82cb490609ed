"""Options of metrics about answers, as the section ``metrics`` of the configuration has them.

They are apart from what computes the metrics, which only contracts about answers import.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from ragcontract.core.numbers import SAME

Measure: TypeAlias = Literal["coverage", "levenshtein", "hamming", "jaro", "jaro_winkler"]
Match: TypeAlias = Literal["name", "name_and_arguments"]
Threshold = Annotated[
    float, Meta(gt=SAME, le=1, title="a number above 0, with which every text would count, and at most 1, as 0.5")
]


class NoOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A metric without options: its entry, ``{}``, switches it on."""


class TextRecallOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a reference context counts as retrieved."""

    measure: Annotated[
        Measure, Meta(description="How texts are compared: by their sequences of three words, or by a distance.")
    ] = "coverage"
    threshold: Annotated[
        Threshold, Meta(description="The coverage from which, or the similarity above which, a reference counts.")
    ] = 0.5


class ToolMatchOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a call counts as a wanted one."""

    match: Annotated[Match, Meta(description="Whether the arguments must be equal, too.")] = "name"
    lenient: Annotated[bool, Meta(description='Whether an argument "1" is equal to 1, and "true" to true.')] = False


class ToolArgumentsOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an argument of a call counts as a wanted one."""

    lenient: Annotated[bool, Meta(description='Whether an argument "1" is equal to 1, and "true" to true.')] = False
    strict_arguments: Annotated[bool, Meta(description="Whether arguments that were not wanted count as wrong.")] = (
        False
    )
