"""Limits on what a judge may be asked, and on what that may cost."""

import io
from threading import Event, Thread

from ragcontract.core.errors import OutputError
from ragcontract.files.locking import turn
from ragcontract.judge.calibration_run import LabelRow, LabelsFile
from ragcontract.judge.judging_run import JudgeOptions
from tests.bounds.lab import Case, Cases, Lab, all_of
from tests.builders import golden, run
from tests.process import rag_contract


def fits(**options: object) -> bool:
    """Return whether options are accepted."""
    return not JudgeOptions(model="toy", **options).wrong()  # type: ignore[arg-type]


def a_budget(_: Lab, size: int) -> bool:
    names = ("max_calls", "max_tokens", "price_in", "price_out")
    return all_of(*(fits(**{name: size}) for name in names), fits(max_usd=size, price_in=1, price_out=1))


def a_context(_: Lab, size: int) -> bool:
    return all_of(fits(max_context=size), fits(max_reply=size))


def a_deadline(_: Lab, size: int) -> bool:
    return fits(deadline=f"{size}s")


def a_text_to_label(lab: Lab, size: int) -> bool:
    text = "x" * size
    lab.patch.setenv("COLUMNS", str(2 * size))
    lab.patch.setattr("sys.stdin", io.StringIO("q\n"))
    lab.check([golden(reference_claims=["A claim."])], [run(retrieved_contexts=[text])])
    return text in rag_contract("judge", "label").out


def a_screen_to_label(lab: Lab, size: int) -> bool:
    """Have so many lines on the screen: eight of them, and a text."""
    lab.patch.setenv("COLUMNS", "200")
    lab.patch.setenv("LINES", str(2 * size))
    lab.patch.setattr("sys.stdin", io.StringIO("q\n"))
    lab.check([golden(reference_claims=["A claim."])], [run(retrieved_contexts=["x\n" * (size - 8)])])
    return "screen 1 of" not in rag_contract("judge", "label").out


def a_sample(lab: Lab, size: int) -> bool:
    lab.check()
    ended = rag_contract("judge", "label", "--sample", str(size))
    return "--sample: expected a whole number" not in ended.err


def a_turn(lab: Lab, size: float) -> bool:
    """Have somebody write in the folder for nearly so long."""
    labels = LabelsFile(str(lab.folder / "labels.jsonl"))
    row = LabelRow(task="attribution", question="?", text="A claim.", label=True)
    begun = Event()

    def hold() -> None:
        with turn(lab.folder / "labels.jsonl"):
            begun.set()
            Event().wait(size - 0.5)

    other = Thread(target=hold)
    other.start()
    begun.wait()
    try:
        labels.add(row)
    except OutputError:
        return False
    finally:
        other.join()
    return True


CASES: Cases = {
    "TURN": Case(a_turn, small=1),
    "JUDGE_BUDGET": Case(a_budget),
    "JUDGE_CONTEXT": Case(a_context),
    "JUDGE_DEADLINE": Case(a_deadline),
    "LABEL_SAMPLE": Case(a_sample),
    "LABEL_SCREEN": Case(a_screen_to_label),
    "LABEL_WHOLE": Case(a_text_to_label),
}
