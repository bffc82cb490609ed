"""Limits on the monitors of production."""

import threading
from functools import partial

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Location
from ragcontract.service.database import DAY
from ragcontract.service.production import drift_watch
from ragcontract.service.production.daily_rows import store_day
from ragcontract.service.production.drift import Measured, standing
from ragcontract.service.production.drift_watch import REST, Turns, rest_after
from ragcontract.service.production.golden_coverage import GoldenSet
from ragcontract.service.production.measured_day import MeasuredDay, Value, measure
from ragcontract.service.production.question_similarity import Near
from ragcontract.service.tables import interactions
from tests.bounds.lab import Case, Cases, Lab
from tests.bounds.service_alerts import number_of, with_project
from tests.service.production_traffic import TODAY, asked


def golden_of(*texts: str) -> GoldenSet:
    queries = [GoldenQuery(id=text, query=text, relevant_doc_ids=(), location=Location("")) for text in texts]
    return GoldenSet(queries)


def drawn(lab: Lab, number: int) -> bool:
    database = with_project(lab)
    rows = [row | {"project_id": 1, "query_sha": ""} for row in asked(1, number)]
    database.write(lambda connection: connection.execute(interactions.insert(), rows))
    return measure(database, 1, TODAY - DAY, golden_of()).values["question_length"].n == number


def age_of_an_alarm(_: Lab, days: int) -> bool:
    raised = Measured(0, 500, 90.0, 50.0, 1)
    return standing([raised, Measured(days * DAY, 500, 90.0, 50.0)]) is not None


def compared(_: Lab, number: int) -> bool:
    texts = [f"How do I export board {count}?" for count in range(number - 1)]
    return golden_of(*texts, "Zyx wvut").covers("Zyx wvut", "")


def remembered(lab: Lab, number: int) -> bool:
    golden, compared_again = golden_of(*map(str, range(10))), list[str]()

    def nearest(question: str, _: int) -> list[Near]:
        compared_again.append(question)
        return []

    lab.patch.setattr(golden._questions, "nearest", nearest)
    for digest in (*range(number), 0):
        golden.covers("How?", f"{digest}")
    return len(compared_again) == number


def work_at_a_stretch(lab: Lab, milliseconds: int) -> bool:
    times, pauses = iter([0.0, milliseconds / 1_000, 0.0]), list[float]()
    lab.patch.setattr(drift_watch, "seconds", lambda: next(times))
    ended = threading.Event()
    lab.patch.setattr(ended, "wait", pauses.append)
    Turns(ended, lambda: None, pauses=True)()
    assert pauses in ([], [milliseconds / 1_000])
    return not pauses


def age_of_an_alert(lab: Lab, days: int) -> bool:
    database = with_project(lab)
    for day in range(15):
        length = Value(n=500, value=45.0 if day < 14 else 90.0)
        of_day = MeasuredDay(values={"question_length": length}, sketches={})
        job = partial(store_day, project=1, day=TODAY + (day - 14) * DAY, measured=of_day, now=TODAY + days * DAY)
        database.write(job)
    return number_of(database) == 1


CASES: Cases = {
    "MONITOR_DRAWN": Case(drawn, small=3),
    "MONITOR_ALARM_DAYS": Case(age_of_an_alarm),
    "MONITOR_GOLDEN": Case(compared, small=12),
    "MONITOR_QUESTIONS": Case(remembered, small=3),
    "MONITOR_TURN_MS": Case(work_at_a_stretch),
    "MONITOR_PAUSE": Case(lambda _, seconds: rest_after(seconds / REST) == seconds),
    "ALERT_DRIFT_DAYS": Case(age_of_an_alert),
}
