"""The badge of a contract: its newest verdict on the default branch, for a README.

It is a picture, and beside it the same as JSON, in the form of an endpoint badge of shields.io (schema version 1). Both
are files of the store that the next check replaces. Names come from files: they are cut, and what does not show or
would act in SVG is escaped.
"""

import unicodedata
from collections.abc import Iterable
from html import escape

import msgspec

from ragcontract.core import bounds
from ragcontract.core.numbers import fixed
from ragcontract.core.safe_text import clipped
from ragcontract.history.entry import Entry, folder_of

UNNAMED = "retrieval"  # the label of the contract without a name
# White text on each of these has a contrast of 4.5 or more.
GREEN, RED, AMBER, GREY = "1a7f37", "cf222e", "9a6700", "555"
MARGIN = 6  # px, on both sides of a text
# The widths of characters in Verdana of 11 px. The texts are stretched to their sum, whatever font there is.
SMALL, CAPITAL, WIDE = 6.8, 7.8, 11.0
WIDTHS = {
    **dict.fromkeys("ijl'|", 3.2),
    **dict.fromkeys(" .,:;!()[]·Iftr-/\\", 4.4),
    **dict.fromkeys("cksvxyz", 6.0),
    **dict.fromkeys("mwMW@%+<=>…", 9.8),
}
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img">
<title>{label}: {message}</title>
<clipPath id="r"><rect width="{width}" height="20" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="{width}" height="20" fill="#{color}"/>\
<rect width="{left}" height="20" fill="#{grey}"/></g>
<g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11">
<text x="{margin}" y="14" textLength="{label_width}">{label}</text>
<text x="{start}" y="14" textLength="{message_width}">{message}</text>
</g>
</svg>
"""


def badge_files(entry: Entry, limited: Iterable[str]) -> dict[str, bytes]:
    """Return the files of the badge of an entry, by path; ``limited`` are the metrics with limits over all queries."""
    label = _short(entry.contract) or UNNAMED
    failed = ("fail, accepted", AMBER) if entry.accepted else ("fail", RED)
    state, color = ("pass", GREEN) if entry.verdict == "pass" else failed
    message = " · ".join([state, *_metric(entry, limited)])
    endpoint = {"schemaVersion": 1, "label": label, "message": message, "color": color}
    path = f"badges/{folder_of(entry.contract)}"
    return {f"{path}.svg": _svg(label, message, color), f"{path}.json": msgspec.json.encode(endpoint) + b"\n"}


def _metric(entry: Entry, limited: Iterable[str]) -> list[str]:
    """Return the first limited metric with its mean, or MRR at the largest k; nothing if there is neither."""
    mrr = [key for key in entry.metrics if key.startswith("mrr_at_")]
    others = sorted(mrr, key=lambda key: entry.metrics[key].k or 0)[-1:]
    means = [entry.metrics[key] for key in (*limited, *others) if key in entry.metrics]
    return [f"{_short(mean.label)} {fixed(mean.value, 2)}" for mean in means if mean.value is not None][:1]


def _short(name: str) -> str:
    return clipped(name, bounds.BADGE_NAME).strip()


def _svg(label: str, message: str, color: str) -> bytes:
    label_width, message_width = _width(label), _width(message)
    left = label_width + 2 * MARGIN
    return SVG.format(
        label=escape(label, quote=False),
        message=escape(message, quote=False),
        color=color,
        grey=GREY,
        margin=MARGIN,
        label_width=label_width,
        message_width=message_width,
        left=left,
        start=left + MARGIN,
        width=left + message_width + 2 * MARGIN,
    ).encode()


def _width(text: str) -> int:
    """Return about how many pixels a text takes."""
    return round(sum(map(_width_of, text)))


def _width_of(char: str) -> float:
    if char in WIDTHS:
        return WIDTHS[char]
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:  # it is drawn over the character before it
        return 0
    if unicodedata.east_asian_width(char) in "WF":
        return WIDE
    return CAPITAL if char.isupper() else SMALL
