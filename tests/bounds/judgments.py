"""Limits on judgments: what is sent to a judge, what its replies may be, and the files of both."""

import json
import random
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.config_sections import JudgeSettings, LabelCounts
from ragcontract.core.errors import InputError
from ragcontract.judge.calls import ReplyFault, controls_of, object_of
from ragcontract.judge.claims_run import split_reference
from ragcontract.judge.endpoint import asked_judge, fingerprint
from ragcontract.judge.interface import Reply, VoteSettings
from ragcontract.judge.judge_case import judge_case
from ragcontract.judgments.calibration import CalibrationFile, calibrated, read_calibration, write_calibration
from ragcontract.judgments.items import AskedJudge, asked_how
from ragcontract.judgments.judgments_file import lines_of, read_judgments, size_of_texts
from ragcontract.judgments.replay import Evidence, Replay
from tests.bounds.lab import Case, Cases, Lab, accepted, all_of
from tests.builders import golden, write_jsonl
from tests.judge.judges import Model, as_reply, case, changed, honest, honestly, read
from tests.judgment_files import TRUE, asked, case_of, judgments_on
from tests.records import rendered
from tests.report.everything import everything
from tests.rules.test_confirming import PRICE
from tests.rules.test_confirming import asked as confirmed
from tests.runs.judgment_lines import AT, JUDGE, judgment


def all_data(_: Lab, size: int) -> bool:
    model = Model(honestly)

    def is_asked(question: str) -> bool:
        (one, *_) = judge_case(case(question=question), model, VoteSettings(votes=1), random.Random(1))
        return one.status == "ok"

    assert is_asked("")
    return is_asked("x" * (size - len(model.asked[-1].user)))


def items(_: Lab, size: int) -> bool:
    model = Model(honestly)
    judge_case(case("attribution", *map(str, range(size))), model, VoteSettings(votes=1), random.Random(1))
    return len(model.asked) == 1


def reply(_: Lab, size: int) -> bool:
    try:
        object_of(Reply(text='{"a": "' + "x" * (size - 9) + '"}'))
    except ReplyFault:
        return False
    return True


def quote(lab: Lab, size: int) -> bool:
    kept = _read(lab, quote="x" * size)
    return all_of(Evidence({1: "x" * 9000}, None).fault("x" * size, 1, of_context=True) is None, kept)


def shortest_quote(_: Lab, size: int) -> bool:
    return Evidence({1: "x" * 99}, None).fault("x" * size, 1, of_context=True) is None


def reason(lab: Lab, size: int) -> bool:
    def explain(verdicts: list[dict[str, Any]]) -> None:
        for one in verdicts:
            one["reason"] = "x" * size

    found = judge_case(case(), Model(changed(explain)), VoteSettings(votes=1), random.Random(1))
    return all_of(found[0].reason == "x" * size, _read(lab, reason="x" * size))


def passage(_: Lab, size: int) -> bool:
    return controls_of(case(contexts=("x" * size,)), random.Random(1)).items[0].text == "x" * size


def votes(lab: Lab, size: int) -> bool:
    with suppress(ValueError):  # an even number is refused, too
        assert VoteSettings(votes=size).votes <= bounds.VOTES
    judge = {**_fields(JUDGE), "votes": size}
    last_one_decides = [True, False] * (size // 2) + [True]
    cast = _read(lab, votes=last_one_decides, judge={**judge, "confirm": "all"})
    return all_of(cast, _read(lab, judge=judge))


def claims(_: Lab, size: int) -> bool:
    listed = [{"quote": "The reference", "text": f"claim {at}"} for at in range(size)]
    model = Model(json.dumps({"claims": listed}))
    found = split_reference("?", "The reference.", model, VoteSettings(), random.Random(1))
    return len(found.claims) == size


def name(lab: Lab, size: int) -> bool:
    model = Model(lambda ask: as_reply(honest(read(ask)), model="m" * size))
    model.name = model.host = "n" * size
    asked = asked_judge("attribution", VoteSettings(), model)
    found = judge_case(case(), model, VoteSettings(votes=1), random.Random(1))
    return all_of(
        asked.model == asked.host == "n" * size,
        found[0].model == "m" * size,
        _read(lab, model="m" * size),
        _read(lab, judge={**_fields(JUDGE), "model": "m" * size}),
        _read(lab, judge={**_fields(JUDGE), "host": "m" * size}),
    )


def whole_fingerprint(lab: Lab, size: int) -> bool:
    calibration = calibrated("criteria", LabelCounts(tp=1, fp=1, fn=1, tn=1), fingerprint="f" * size, at=AT)
    dropped = "x" * (size - len(fingerprint(JUDGE, ["m" * bounds.JUDGE_NAME], ["x"])) + 1)
    return all_of(
        fingerprint(JUDGE, ["m" * bounds.JUDGE_NAME], [dropped]).endswith(dropped),
        _read(lab, fingerprint=(fingerprint(JUDGE, (), ["x"])).ljust(size, "x")),
        _calibration(lab, CalibrationFile(format_version=1, calibrations=(calibration,))),
    )


def texts_of_judgments(lab: Lab, size: int) -> bool:
    made = [judgment(1), judgment(2)]
    long = replace(made[1], reason="x" * (size - sum(map(size_of_texts, made))))
    write_jsonl(lab.folder / "j.jsonl", [json.loads(line) for line in lines_of([made[0], long])])
    ended = lab.check((), (), "", "--judgments", "j.jsonl")
    are_read = accepted(ended, "j.jsonl:2: is too much: the texts of all judgments take more than")
    held = read_judgments([str(lab.folder / "j.jsonl")]).by_key
    assert are_read or not held  # what is refused takes no memory
    return are_read


def judgments(lab: Lab, size: int) -> bool:
    path = write_jsonl(lab.folder / "j.jsonl", [json.loads(line) for line in lines_of(map(judgment, range(size)))])
    found = read_judgments([str(path)]).problems.problems
    assert not found or found[0].endswith(f"is one judgment too many; at most {size - 1:,} are read")
    return not found


def judges(_: Lab, size: int) -> bool:
    one_claim = case_of(asked(1, [TRUE]))
    said = [one for at in range(size) for one in judgments_on(one_claim, judge=replace(JUDGE, model=f"m{at}"))]
    return "say which one counts" in str(Replay(said, JudgeSettings()).judgments(one_claim))


def calibration_size(lab: Lab, size: int) -> bool:
    one = calibrated("criteria", LabelCounts(tp=1, fp=1, fn=1, tn=1), fingerprint="f", at=AT)
    path = lab.folder / "c.json"
    write_calibration(str(path), CalibrationFile(format_version=1, calibrations=(one,)))
    path.write_bytes(path.read_bytes().ljust(size))
    return _accepted(lab)


def label(lab: Lab, size: int) -> bool:
    one = calibrated("criteria", LabelCounts(tp=size, fp=1, fn=1, tn=1), fingerprint="f", at=AT)
    one = replace(one, n=4)
    two = replace(one, counts=LabelCounts(tp=1, fp=1, fn=1, tn=1), unjudged=size)
    return all_of(*(_calibration(lab, CalibrationFile(format_version=1, calibrations=(each,))) for each in (one, two)))


def tokens(lab: Lab, size: int) -> bool:
    names = ("tokens_in", "tokens_out", "calls", "retried", "compromised", "usd")
    return all_of(*(_read(lab, **{name: size}) for name in names))


def _fields(judge: Any) -> dict[str, Any]:
    return {field: getattr(judge, field) for field in judge.__struct_fields__}


def _read(lab: Lab, **fields: Any) -> bool:
    """Return whether a judgment is read that has these fields."""
    line = {**json.loads(next(lines_of([judgment()]))), **fields}
    if "fingerprint" not in fields:
        judge = AskedJudge(**line["judge"])
        line["fingerprint"] = f"{line['model'] or judge.model}{asked_how(judge)}"
    return not read_judgments([str(write_jsonl(lab.folder / "j.jsonl", [line]))]).problems


def _calibration(lab: Lab, file: CalibrationFile) -> bool:
    write_calibration(str(lab.folder / "c.json"), file)
    return _accepted(lab)


def _accepted(lab: Lab) -> bool:
    try:
        read_calibration(str(lab.folder / "c.json"))
    except InputError:
        return False
    return True


def criteria(lab: Lab, size: int) -> bool:
    return lab.check([golden(criteria=[f"Says {at}." for at in range(size)])]).code == 0


def flagged(_: Lab, size: int) -> bool:
    answer = " ".join(f"${at}" for at in range(size))
    return len(confirmed(answer, PRICE).case.items) == size


def claims_in_markdown(_lab: Lab, size: int) -> bool:
    """Return whether a report in Markdown has all claims of a query."""
    made = everything()
    assert made.judge
    task = made.judge.tasks[0]
    query = replace(task.queries[0], items=[task.queries[0].items[0]] * size)
    judge = replace(made.judge, tasks=[replace(task, queries=[query])])
    return "more claim" not in rendered(replace(made, judge=judge))["report-md"].decode()


CASES: Cases = {
    "CRITERIA": Case(criteria),
    "FLAGGED": Case(flagged),
    "JUDGED_TEXT": Case(all_data, small=5000),
    "ITEMS_A_CALL": Case(items),
    "REPLY": Case(reply),
    "EVIDENCE": Case(quote),
    "JUDGED_BECAUSE": Case(reason),
    "JUDGED_CLAIMS": Case(claims_in_markdown),
    "EVIDENCE_LEAST": Case(shortest_quote, past=lambda least: least - 1),
    "CONTROL": Case(passage),
    "JUDGES": Case(judges),
    "VOTES": Case(votes),
    "REFERENCE_CLAIMS": Case(claims),
    "JUDGE_NAME": Case(name),
    "FINGERPRINT": Case(whole_fingerprint),
    "JUDGMENT_TEXTS": Case(texts_of_judgments, small=2_000),
    "JUDGMENTS": Case(judgments, small=3),
    "CALIBRATION": Case(calibration_size),
    "LABELS": Case(label),
    "JUDGED_TOKENS": Case(tokens),
}
