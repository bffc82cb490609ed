"""How an application can answer: from what it found, naming a dispute in it, or not at all."""

from typing import get_args

from ragcontract.answers.finish_reasons import letters_of
from ragcontract.core.golden import Mode
from ragcontract.core.nearest import nearest
from ragcontract.files.schema import shown

MODES: tuple[Mode, ...] = get_args(Mode)
ABSTAIN: Mode = "abstain"
# How the words begin that others use for abstain, without what joins their parts.
REFUSING = (
    "refus", "declin", "abst", "unanswer", "noanswer", "nonanswer", "notanswer", "cannotanswer", "unable", "denied",
    "deny", "reject", "blocked", "norespon", "noresult", "guardrail", "contentfilter",
)  # fmt: skip
_ANY = f"{', '.join(MODES[:-1])} or {MODES[-1]}"


def misspelled_mode(mode: str | None) -> str | None:
    """Return what is wrong with a mode that is nearly a known one, or another word for one; None for any other."""
    return unknown_mode(mode) if mode is not None and mode not in MODES and _meant(mode) else None


def unknown_mode(mode: str | None) -> str | None:
    """Return what is wrong with the mode of a row that needs one; completes "query 'q1' …". None for a known mode."""
    if mode in MODES:
        return None
    if mode is None:
        return f"has no mode, which expected_mode needs; export {_ANY}"
    near = _meant(mode)
    return f"has the mode {shown(mode)}, expected {_ANY}{f'; did you mean {near!r}?' if near else ''}"


def _meant(mode: str) -> str | None:
    from ragcontract.core.invisible import without_invisible

    visible = without_invisible(mode).strip()
    return nearest(visible, MODES) or (ABSTAIN if letters_of(visible).startswith(REFUSING) else None)
