"""Settings of the test tools, and the stand-in for GitHub, which has to be stopped after each test."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.browser import Browser
    from tests.github.standin import GitHub

# No test asserts a time, hypothesis' own limits on an example included: a busy machine is no defect.
settings.register_profile("rag-contract", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rag-contract")

# Ctrl-C is ignored in the background of a shell that is not interactive; tests of it, and what they start, need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST_ID = 60


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a case by the beginning of a long text: ids are sent between processes, and put into the environment."""
    if not isinstance(val, str | bytes) or len(val) <= LONGEST_ID:
        return None
    beginning = val[:LONGEST_ID]
    text = ascii(beginning)[1:-1] if isinstance(beginning, str) else repr(beginning)[2:-1]
    return f"{text}... ({len(val)})"


@pytest.fixture(autouse=True)
def _without_modules_of_other_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget what a test imported from files that it wrote: a recording counts all modules that are imported."""
    written = str(tmp_path_factory.getbasetemp())  # not the folder of all temporary files: a clone may be in there
    before = set(sys.modules)
    yield
    for name in sys.modules.keys() - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(written):
            del sys.modules[name]


@pytest.fixture
def github() -> Iterator[GitHub]:
    from tests.github.standin import GitHub  # with the description of GitHub's API, which few tests need

    with GitHub() as standin:
        yield standin


@pytest.fixture(scope="module")
def browser_of_module() -> Iterator[Browser]:
    """Return a browser for all tests of a module."""
    from tests.browser import Browser
    from tests.needs import require

    require("chromium")
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(browser_of_module: Browser) -> Iterator[Browser]:
    """Return the module's browser as it is at first; nothing may be asked for from another host."""
    browser_of_module.resize(1200, 900)
    browser_of_module.media()
    browser_of_module.scripts(on=True)
    yield browser_of_module
    assert browser_of_module.complaints == []
    assert all(url.startswith(("file:", "about:", "data:")) for url in browser_of_module.requests)
