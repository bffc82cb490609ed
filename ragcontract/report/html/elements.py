"""What the HTML report consists of: phrases, bars, the facts on cards, and folds.

Text has visible control characters and limited length. The templates escape it; ``templates/parts.html`` has a macro
for each part of a phrase that is an element.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import get_args

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import escape
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.gate import FALLING, OF_LEVEL, allowed_change
from ragcontract.core.metric import Scale
from ragcontract.core.numbers import as_written, count, fixed, more, percent, signed
from ragcontract.core.phrase import Name, Phrase, render
from ragcontract.core.safe_text import clipped, visible
from ragcontract.decision.gate_report import GateReport
from ragcontract.report.blocks import Block, Form, Kind, Mean, Parts, Sentence, Style, Tally, rendered
from ragcontract.report.headline import not_compared, other_warnings
from ragcontract.report.judge_section import judge
from ragcontract.report.limit_text import ends_of, outcomes_of, p_of
from ragcontract.report.metric_table import Row
from ragcontract.report.parts import TierReport
from ragcontract.report.record import MetricReport, Report
from ragcontract.report.sections.changes import apart
from ragcontract.report.sections.frame import accepted, inputs, other_causes, reasons, warnings
from ragcontract.report.sections.metrics import overlap
from ragcontract.statistics.change_points import HOW_OFTEN_WRONG

FORM: Form = "html"
PACKAGE = "ragcontract.report.html"
EMPTY = escape("")
# These labels are also passed to the page's script.
STATUS = {
    "pass": "✓ pass",
    "fail": "✕ fail",
    "unproven": "! over, not proven",
    "too_few": "! over, too few changed",
    "waived": "○ waived",
    "known": "○ known",
    "warn": "! warn",
    "counted": "! counted",
    "skipped": "○ skipped",
    "none": "no limit",
}


@cache
def environment() -> Environment:
    """Return the templates of all pages."""
    made = Environment(
        loader=PackageLoader(PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"shown": shown, "sentence": sentence, "phrase": phrase}
    made.globals |= {
        "bounds": bounds,
        "LABELS": STATUS,
        "more": more,
        "count": count,
        "fixed": fixed,
        "percent": percent,
        "heat_of": heat_of,
        "HOW_OFTEN_WRONG": HOW_OFTEN_WRONG,
    }
    return made


@cache
def macro(name: str) -> Callable[..., str]:
    """Return a macro, which escapes the values that it renders."""
    rendering: Callable[..., str] = getattr(environment().get_template("parts.html").module, name)
    return rendering


def made_of(name: str, *values: object) -> str:
    """Render values by a macro."""
    return macro(name)(*values)


def shown(text: str, length: int = bounds.HTML_TEXT) -> str:
    """Return text with control characters made visible, shortened to ``length``."""
    return clipped(text, length)


def lines(text: str) -> str:
    """Return a text of up to forty lines with visible control characters; further line breaks are made visible, too."""
    first_lines = text.replace("\r\n", "\n").split("\n", bounds.HTML_SAID_LINES - 1)
    return "\n".join(map(visible, first_lines))


def sentence(phrase: Phrase, length: int = bounds.HTML_NAME) -> str:
    """Render a phrase; names are cut to ``length`` characters, and their text direction is isolated."""
    marks = {True: '"', False: ""}
    return EMPTY.join(
        made_of("name", f"{marks[part.quoted]}{shown(part.name, length)}{marks[part.quoted]}")
        if isinstance(part, Name)
        else shown(part)
        for part in phrase
    )


def of_scale(value: float | None, scale: Scale) -> str | None:
    """Return the position of a value on its scale as a percentage; None without a value or on an unbounded scale."""
    width = scale.high - scale.low
    if value is None or not 0 < width < math.inf:
        return None
    return f"{min(1.0, max(0.0, (value - scale.low) / width)) * 100:.2f}%"


Fact = tuple[str, str, str]  # name, value, and what is shown muted


class Bar(Struct, frozen=True, kw_only=True):
    """The bar of a metric. Positions are percentages of its whole scale, so that bars can be compared."""

    now: str
    before: str | None = None  # the baseline value
    limits: Sequence[str] = ()  # the worst values that are allowed
    # Where the value is likely to be: the baseline plus the bounds of the change.
    interval: tuple[str, str] | None = None


def facts_of(row: Row, tests: int) -> Iterable[Fact]:
    """Yield the limits and waivers, the bounds and p-value of the change, the queries that got better and worse.

    ``tests`` is the number of changes over which p-values are adjusted.
    """
    if row.limits:
        yield "Limit", shown(row.limits), ""
    for reason in dict.fromkeys(gate.waived for gate in row.gates if gate.waived is not None):
        yield "Waived", shown(reason, bounds.HTML_REASON), ""
    noise = row.metric.noise if row.metric else None
    if row.metric and (ends := ends_of(row.gates, row.metric)):
        yield "Interval", " to ".join(signed(end, row.digits) for end in sorted(ends)), outcomes_of(row.gates)
    if row.p_value is not None:
        worse = "an increase" if row.metric and row.metric.better == "lower" else "a drop"
        is_adjusted = tests > 1 and any(gate.alpha for gate in row.gates)
        among = f"(adjusted over {tests:,} limits)" if is_adjusted else ""
        yield "Chance", f"p {p_of(row.gates, row.p_value)} for {worse}", among
    if noise:
        yield "Queries", f"{noise.wins:,} better, {noise.ties:,} the same, {noise.losses:,} worse", ""
    if row.direction:
        yield "Direction", row.direction, ""
    if row.metric and row.metric.scale != Scale():
        yield "Scale", f"{row.metric.scale.low:g} to {row.metric.scale.high:g}", ""


def bar_of(row: Row) -> Bar | None:
    """Return the bar of a metric; None without a value, and on an unbounded scale."""
    metric = row.metric
    if metric is None:
        return None
    now = of_scale(metric.current if metric.delta is None else metric.current_shared, metric.scale)
    if now is None:
        return None
    before, change = metric.baseline, ends_of(row.gates, metric)
    ends = [of_scale(before + end, metric.scale) for end in sorted(change)] if change and before is not None else []
    return Bar(
        now=now,
        before=of_scale(before, metric.scale),
        limits=list(_marks(row.gates, metric)),
        interval=(ends[0] or "", ends[1] or "") if ends else None,
    )


def _marks(gates: Sequence[GateReport], metric: MetricReport) -> Iterable[str]:
    """Yield the positions of the limits that are on the scale."""
    for gate in gates:
        worst = _worst_allowed(gate, metric)
        if worst is not None and metric.scale.low <= worst <= metric.scale.high:
            yield of_scale(worst, metric.scale) or ""


def _worst_allowed(gate: GateReport, metric: MetricReport) -> float | None:
    """Return the worst value that a limit allows; None if that depends on a baseline value and there is none."""
    if not (gate.compares or gate.kind in OF_LEVEL):
        return gate.limit
    before = gate.before if gate.kind in OF_LEVEL else metric.baseline
    if before is None:
        return None
    allowed = allowed_change(gate.limit, before, metric.scale, relative=gate.relative)
    return before - allowed if gate.kind in FALLING else before + allowed


def bar_of_tier(tier: TierReport) -> Bar | None:
    """Return the bar of a tier's pass rate; None without one."""
    now, limit = of_scale(tier.rate, Scale()), of_scale(tier.minimum, Scale())
    return None if now is None else Bar(now=now, limits=[] if limit is None else [limit])


def facts_of_tier(tier: TierReport) -> list[str]:
    """Return the minimum of a tier, the tiers that it gates, and why it is skipped."""
    gates = ", ".join(shown(name, bounds.HTML_NAME) for name in tier.gates[: bounds.NAMES])
    others = more(len(tier.gates), bounds.NAMES, form=" and {}")
    return [
        *([f"minimum {as_written(tier.minimum)}"] if tier.minimum is not None else []),
        *([f"gates {gates}{others}"] if gates else []),
        *([shown(tier.skipped, bounds.HTML_REASON)] if tier.skipped else []),
    ]


HEATS = 5  # shades; page.css has a class for each


def _numbers(part: Mean | Tally) -> str:
    if isinstance(part, Tally):
        return made_of("tally", part)
    return made_of("mean", part, of_scale(part.now, part.scale) or "", of_scale(part.before, part.scale))


def heat_of(part: Parts) -> str | None:
    """Return the class of a cell: for a number of rows, whether they are right, and a shade; None for other cells."""
    if not isinstance(part, Tally):
        return None
    shade = min(HEATS, int(part.number / part.of * HEATS) + 1) if part.number else 0
    return f"{'right' if part.is_right else 'wrong'} heat{shade}" if shade else ""


def _sentence(words: Sentence) -> str:
    if words.kind == "fact":
        return escape(render(words.phrase, lambda name: shown(name, bounds.HTML_ID)))
    return sentence(words.phrase, bounds.HTML_REASON if words.kind == "reason" else bounds.HTML_NAME)


WORDS: dict[Kind, Callable[[str], str]] = dict.fromkeys(get_args(Kind), lambda words: escape(shown(words))) | {
    "id": lambda words: escape(shown(words, bounds.HTML_ID)),
    "fact": lambda words: escape(shown(words, bounds.HTML_NOTE)),
    "mode": lambda words: made_of("name", shown(words, bounds.HTML_NAME)),
    "name": lambda words: made_of("id", shown(words, bounds.HTML_ID)),
    "run": lambda words: made_of("name", shown(words)),
    "question": lambda words: made_of("question", shown(words, bounds.HTML_QUESTION)),
}
STYLE = Style(
    own=escape,
    code=partial(made_of, "code"),
    name=lambda name: made_of("code", shown(name, bounds.HTML_ID)),
    words=WORDS,
    sentence=_sentence,
    numbers=_numbers,
    styles={"strong": partial(made_of, "strong"), "small": partial(made_of, "small")},
    joint=EMPTY,
    line_break=escape("\n        "),
)


def phrase(parts: Parts) -> str:
    """Render the parts of a phrase."""
    return rendered(parts, STYLE)


def folds(report: Report) -> list[Block]:
    """Return the folded sections, from the reasons for scores to the inputs; each has one list."""
    blocks = [
        *other_causes(report),
        *reasons(report, FORM),
        *overlap(report, FORM, bounds.HTML_LINES),
        *judge(report, FORM, 0),
    ]
    if baseline := report.inputs.baseline:
        blocks += [*apart(not_compared(baseline), FORM), *accepted(baseline, FORM)]
    return [*blocks, *warnings(other_warnings(report), bounds.HTML_TEXT), inputs(report, FORM)]
