"""The built-in metrics, rules and limited quantities. A new one needs a module and a line here.

The registry is passed as an argument; there is no global registration. Report formats are listed in
``ragcontract.reports.formats``, readers of run files in ``ragcontract.runs.readers``.
"""

from msgspec import Struct

from ragcontract.core.gate import LimitKey
from ragcontract.core.metric import Provider
from ragcontract.core.rule import Rule
from ragcontract.metrics.label_accuracy import labels
from ragcontract.metrics.modes import modes
from ragcontract.metrics.ranking import ranking
from ragcontract.rules.expected_mode import ExpectedMode
from ragcontract.rules.ranks import ForbiddenDocs, MustInclude, MustRankAtMost
from ragcontract.rules.score_limits import CompositeMinimum, MaxHallucinationRisk, MaxScore, MinScore
from ragcontract.statistics.quantities import LABELS, LATENCY, PASS_RATES


class Registry(Struct, frozen=True, kw_only=True):
    """Providers of metrics, rule classes in the order in which reports show them, and limits on other quantities."""

    metrics: tuple[Provider, ...]
    rules: tuple[type[Rule], ...]
    quantities: tuple[LimitKey, ...]


BUILT_IN = Registry(
    metrics=(
        ranking,
        modes,
        labels,
    ),
    rules=(
        ForbiddenDocs,
        MustRankAtMost,
        MustInclude,
        ExpectedMode,
        MinScore,
        MaxScore,
        MaxHallucinationRisk,
        CompositeMinimum,
    ),
    quantities=(
        *PASS_RATES,
        *LABELS,
        *LATENCY,
    ),
)
