"""Every limit holds: what is at it is accepted or shown whole, and what is one past it is not."""

import re
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core import bounds
from tests.bounds import (
    answers,
    calls,
    compared_texts,
    copies,
    histories,
    inputs,
    judge_calls,
    judgments,
    messages,
    record_targets,
    recording,
    reports,
    said,
    scores,
    service,
    service_accounts,
    service_alerts,
    service_candidates,
    service_monitors,
    service_overview,
    service_playground,
    service_production,
    service_projects,
    service_queue,
    to_github,
    traces,
)
from tests.bounds.lab import Case, Cases, Lab
from tests.github.standin import GitHub

CASES: Cases = {
    **answers.CASES,
    **calls.CASES,
    **compared_texts.CASES,
    **copies.CASES,
    **histories.CASES,
    **inputs.CASES,
    **judge_calls.CASES,
    **judgments.CASES,
    **messages.CASES,
    **record_targets.CASES,
    **recording.CASES,
    **reports.CASES,
    **said.CASES,
    **scores.CASES,
    **service.CASES,
    **service_accounts.CASES,
    **service_alerts.CASES,
    **service_candidates.CASES,
    **service_monitors.CASES,
    **service_overview.CASES,
    **service_playground.CASES,
    **service_production.CASES,
    **service_projects.CASES,
    **service_queue.CASES,
    **to_github.CASES,
    **traces.CASES,
}


@pytest.fixture
def lab(tmp_path: Path, github: GitHub, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.chdir(tmp_path)
    return Lab(folder=tmp_path, github=github, patch=monkeypatch)


def limit_of(name: str, case: Case, lab: Lab) -> Any:
    """Return a limit, made smaller if the case asks for that."""
    if case.small is not None:
        lab.make_smaller(name, case.small)
    return getattr(bounds, name)


@pytest.mark.parametrize("name", CASES)
def test_what_is_at_the_limit_is_whole(name: str, lab: Lab) -> None:
    assert CASES[name].is_whole(lab, limit_of(name, CASES[name], lab))


@pytest.mark.parametrize("name", CASES)
def test_what_is_one_past_the_limit_is_not(name: str, lab: Lab) -> None:
    assert not CASES[name].is_whole(lab, CASES[name].past(limit_of(name, CASES[name], lab)))


def test_every_limit_has_its_trial() -> None:
    assert set(CASES) == {name for name in vars(bounds) if name.isupper()}


def test_no_limit_is_defined_twice() -> None:
    names = re.findall(r"^([A-Z_]+) = ", Path(str(bounds.__file__)).read_text(), re.MULTILINE)
    assert sorted(names) == sorted(set(names))
