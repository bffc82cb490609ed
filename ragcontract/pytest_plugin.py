"""The pytest plugin, which checks a run in a test suite as ``rag-contract check`` does.

pytest imports this module at every start, also in projects that do not use it. It therefore imports nothing else of the
package; ``pytest_cases`` does the work and is imported by the first test that asks for it.
"""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ragcontract.api import Report
    from ragcontract.pytest_cases import Case

MARKER = (
    "rag_contract(golden, run, baseline, scores, judgments, calibration, config, k, tags, repeats, folder): what the "
    "fixtures rag_contract and rag_contract_case check it, with the defaults of `rag-contract check`; paths start at "
    "folder, and folder at rootdir"
)
NOTE = "rag_contract_note"  # a property of the test that made a check; pytest sends it from workers, too
CASE = "rag_contract_case"
WHOLE = pytest.StashKey["Report"]()  # what a test got from rag_contract, by whatever way it asked for it


def pytest_configure(config: "pytest.Config") -> None:
    """Register the marker."""
    config.addinivalue_line("markers", MARKER)


def pytest_generate_tests(metafunc: "pytest.Metafunc") -> None:
    """Make one test for each gate and each golden query of a test that uses ``rag_contract_case``."""
    if CASE in metafunc.fixturenames:
        from ragcontract.pytest_cases import parametrize

        parametrize(metafunc, CASE)


@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item: "pytest.Item") -> None:
    """Fail a test that uses ``rag_contract_case`` for what is broken, even if it does not ask.

    A test that uses ``rag_contract`` decides what must hold. A warning says if it passes for a broken contract.
    """
    fixtures = getattr(item, "funcargs", None) or {}
    if (case := fixtures.get(CASE)) is not None:
        case.raise_if_failed()
    if (report := item.stash.get(WHOLE, None)) is not None:
        from ragcontract.pytest_cases import warn_of_broken

        warn_of_broken(report, item.nodeid)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the notes of all checks, such as what they compared and how the contract changed."""
    reports = (report for reports in terminalreporter.stats.values() for report in reports)
    properties = (pair for report in reports for pair in getattr(report, "user_properties", ()))
    notes = dict.fromkeys(str(note) for name, note in properties if name == NOTE)
    if notes:
        terminalreporter.section("rag-contract")
        for note in notes:
            terminalreporter.line(note)


@pytest.fixture(scope="session")
def rag_run() -> None:
    """Override this to return the run to check: a mapping, a function or paths; None is the run's file."""


@pytest.fixture
def rag_contract(request: "pytest.FixtureRequest") -> "Report":
    """Return the report on the run, which is checked once for all tests with the same inputs."""
    from ragcontract.pytest_cases import checked

    report = checked(request, NOTE).report
    request.node.stash[WHOLE] = report
    return report


@pytest.fixture(name=CASE)
def _case(request: Any) -> "Case":
    """Return one gate or one golden query of the contract; the test fails if it is broken."""
    from ragcontract.pytest_cases import case_of

    return case_of(request, NOTE)
