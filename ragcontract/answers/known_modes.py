"""How an application can answer: from what it found, naming a dispute in it, or not at all."""

from typing import get_args

from ragcontract.core.golden import Mode
from ragcontract.core.nearest import nearest
from ragcontract.files.schema import shown

MODES: tuple[Mode, ...] = get_args(Mode)
ABSTAIN: Mode = "abstain"
REFUSING = ("refus", "declin", "abst", "unanswer", "no_answer")  # how the words begin that others use for abstain
_ANY = f"{', '.join(MODES[:-1])} or {MODES[-1]}"


def unknown_mode(mode: str | None) -> str | None:
    """Return what is wrong with the mode of a row that needs one; completes "query 'q1' …". None for a known mode."""
    if mode in MODES:
        return None
    if mode is None:
        return f"has no mode, which expected_mode needs; export {_ANY}"
    near = nearest(mode, MODES) or (ABSTAIN if mode.casefold().startswith(REFUSING) else None)
    return f"has the mode {shown(mode)}, expected {_ANY}{f'; did you mean {near!r}?' if near else ''}"
