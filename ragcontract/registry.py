"""The built-in metrics, rules and limited quantities. A new one needs a module and a line here.

The registry is passed as an argument; there is no global registration. Report formats are listed in
``ragcontract.reports.formats``, readers of run files in ``ragcontract.runs.readers``.
"""

from msgspec import Struct

from ragcontract.core.gate import LimitKey
from ragcontract.core.metric import Provider
from ragcontract.core.rule import Rule
from ragcontract.metrics import recalled_contexts, similarity, tool_use
from ragcontract.metrics.ranking import ranking
from ragcontract.rules.calling import MustCallTool, MustNotCallTool, ToolArgumentsValid
from ragcontract.rules.ranks import ForbiddenDocs, MustInclude, MustRankAtMost
from ragcontract.statistics.quantities import LATENCY


class Registry(Struct, frozen=True, kw_only=True):
    """Providers of metrics, rule classes in the order in which reports show them, and limits on other quantities.

    ``options`` are the records of the entries that built-in metrics have under ``metrics`` in the configuration, by
    metric. Every field of such a record has a default.
    """

    metrics: tuple[Provider, ...]
    rules: tuple[type[Rule], ...]
    quantities: tuple[LimitKey, ...]
    options: dict[str, type[Struct]] = {}


BUILT_IN = Registry(
    metrics=(ranking, recalled_contexts.context_recall, tool_use.tool_use, similarity.similarity),
    rules=(ForbiddenDocs, MustRankAtMost, MustInclude, MustCallTool, MustNotCallTool, ToolArgumentsValid),
    quantities=LATENCY,
    options={**recalled_contexts.OPTIONS, **tool_use.OPTIONS, **similarity.OPTIONS},
)
