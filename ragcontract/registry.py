"""What a registry is, and the registry of contracts about documents only. ``ragcontract.built_in`` has everything.

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
    """Providers of metrics, rule classes in the order in which reports show them, and limits on other quantities.

    ``options`` are the records of the entries that built-in metrics have under ``metrics`` in the configuration, by
    metric. Every field of such a record has a default. With ``documents_only``, a golden file is read no further than
    its first row about an answer.
    """

    metrics: tuple[Provider, ...]
    rules: tuple[type[Rule], ...]
    quantities: tuple[LimitKey, ...]
    options: dict[str, type[Struct]] = {}
    documents_only: bool = False


# The names of all built-in rules that are entries of a golden row, which ``built_in`` imports.
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
# Importing all that is built in takes a fifth of the time of a small check, which needs none of it in most teams.
DOCUMENTS = Registry(
    metrics=(ranking, judged, overlap),
    rules=(ForbiddenDocs, MustRankAtMost, MustInclude),
    quantities=LATENCY,
    documents_only=True,
)
