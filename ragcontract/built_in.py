"""The built-in metrics, rules and limited quantities. A new one needs a module and a line here.

A contract about documents only needs few of them: see ``ragcontract.registry.DOCUMENTS``.
"""

from ragcontract.judgments.judged_metrics import criteria_met, supported_claims
from ragcontract.metrics import answers, context_recall, tool_use
from ragcontract.metrics.answers import labels, modes
from ragcontract.metrics.judged import judged
from ragcontract.metrics.named_scores import scores
from ragcontract.metrics.overlap import overlap
from ragcontract.metrics.ranking import ranking
from ragcontract.registry import Registry
from ragcontract.rules.answered import Answered
from ragcontract.rules.citations import MustCite
from ragcontract.rules.claims import ForbiddenClaims, ForbiddenElements, RequiredElements
from ragcontract.rules.custom import Check, Custom
from ragcontract.rules.json_schema import JsonSchema
from ragcontract.rules.modes import ExpectedMode
from ragcontract.rules.ranks import ForbiddenDocs, MustInclude, MustRankAtMost
from ragcontract.rules.refusal import MustNotRefuse, MustRefuse
from ragcontract.rules.regex import RegexMustMatch, RegexMustNotMatch
from ragcontract.rules.scores import CompositeMinimum, MaxHallucinationRisk, MaxScore, MinScore
from ragcontract.rules.text import AnswerMustInclude, MaxChars, MustContain, MustNotContain
from ragcontract.rules.tools import MustCallTool, MustNotCallTool, ToolArgumentsValid
from ragcontract.statistics.quantities import LABELS, LATENCY, PASS_RATES

RULES = (
    ForbiddenDocs,
    MustRankAtMost,
    MustInclude,
    Answered,
    AnswerMustInclude,
    MustContain,
    MustNotContain,
    RegexMustMatch,
    RegexMustNotMatch,
    ForbiddenClaims,
    RequiredElements,
    ForbiddenElements,
    MustRefuse,
    MustNotRefuse,
    JsonSchema,
    MaxChars,
    MustCite,
    MustCallTool,
    MustNotCallTool,
    ToolArgumentsValid,
    Check,
    Custom,
    ExpectedMode,
    MinScore,
    MaxScore,
    MaxHallucinationRisk,
    CompositeMinimum,
)
BUILT_IN = Registry(
    metrics=(
        ranking,
        judged,
        overlap,
        modes,
        labels,
        context_recall.context_recall,
        supported_claims,
        criteria_met,
        tool_use.tool_use,
        answers.similarity,
        scores,
    ),
    rules=RULES,
    quantities=(*PASS_RATES, *LABELS, *LATENCY),
    options={**context_recall.OPTIONS, **tool_use.OPTIONS, **answers.OPTIONS},
)
