"""The registry record, and the registry for contracts about documents only. ``ragcontract.built_in`` has everything.

The registry is passed as an argument; there is no global registration. Report formats are listed in
``ragcontract.report.formats``, readers of run files in ``ragcontract.runs.readers``.
"""

from msgspec import Struct

from ragcontract.core.gate import LimitKey
from ragcontract.core.metric import Provider
from ragcontract.core.rule import Rule
from ragcontract.metrics.judged import judged
from ragcontract.metrics.overlap import overlap
from ragcontract.metrics.ranking import ranking
from ragcontract.rules.ranks import ForbiddenDocs, MustInclude, MustRankAtMost
from ragcontract.statistics.quantities import LATENCY


class Registry(Struct, frozen=True, kw_only=True):
    """The metrics, rules and limits that a contract can name."""

    metrics: tuple[Provider, ...]
    rules: tuple[type[Rule], ...]  # in the order in which reports show them
    quantities: tuple[LimitKey, ...]  # limits on quantities other than metrics
    # By metric, the record of its entry under ``metrics`` in the configuration. Every field has a default.
    options: dict[str, type[Struct]] = {}
    documents_only: bool = False  # a golden file is read only up to its first row about an answer


# The names of all built-in rules that are entries of golden rows. ``built_in`` imports their classes.
ROW_RULES = (
    "check",
    "composite",
    "custom",
    "json_schema",
    "max_chars",
    "max_hallucination_risk",
    "max_score",
    "min_score",
    "must_call_tool",
    "must_cite",
    "must_contain",
    "must_not_call_tool",
    "must_not_contain",
    "must_not_refuse",
    "must_refuse",
    "regex_must_match",
    "regex_must_not_match",
    "tool_arguments_valid",
)
# Importing everything built in takes a fifth of the time of a small check. Most teams need none of the rest.
DOCUMENTS = Registry(
    metrics=(ranking, judged, overlap),
    rules=(ForbiddenDocs, MustRankAtMost, MustInclude),
    quantities=LATENCY,
    documents_only=True,
)
