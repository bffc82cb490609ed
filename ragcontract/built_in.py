"""The built-in metrics, rules and limited quantities. A new one needs a module and a line here.

A contract of documents only does without most of them: see ``ragcontract.registry.DOCUMENTS``.
"""

from ragcontract.metrics import recalled_contexts, similarity, tool_use
from ragcontract.metrics.criteria_met import criteria_met
from ragcontract.metrics.judged import judged
from ragcontract.metrics.label_accuracy import labels
from ragcontract.metrics.modes import modes
from ragcontract.metrics.named_scores import scores
from ragcontract.metrics.overlap import overlap
from ragcontract.metrics.ranking import ranking
from ragcontract.metrics.supported_claims import supported_claims
from ragcontract.registry import Registry
from ragcontract.rules.answering import Answered
from ragcontract.rules.calling import MustCallTool, MustNotCallTool, ToolArgumentsValid
from ragcontract.rules.checking import Check
from ragcontract.rules.citing import MustCite
from ragcontract.rules.containing import AnswerMustInclude, MaxChars, MustContain, MustNotContain
from ragcontract.rules.custom import Custom
from ragcontract.rules.elements import ForbiddenClaims, ForbiddenElements, RequiredElements
from ragcontract.rules.expected_mode import ExpectedMode
from ragcontract.rules.json_answer import JsonSchema
from ragcontract.rules.matching import RegexMustMatch, RegexMustNotMatch
from ragcontract.rules.ranks import ForbiddenDocs, MustInclude, MustRankAtMost
from ragcontract.rules.refusing import MustNotRefuse, MustRefuse
from ragcontract.rules.score_limits import CompositeMinimum, MaxHallucinationRisk, MaxScore, MinScore
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
        recalled_contexts.context_recall,
        supported_claims,
        criteria_met,
        tool_use.tool_use,
        similarity.similarity,
        scores,
    ),
    rules=RULES,
    quantities=(*PASS_RATES, *LABELS, *LATENCY),
    options={**recalled_contexts.OPTIONS, **tool_use.OPTIONS, **similarity.OPTIONS},
)
