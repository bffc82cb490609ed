"""One browser for all tests of a module."""

from collections.abc import Iterator

import pytest

from tests.browser import Browser
from tests.needs import require


@pytest.fixture(scope="module")
def shared() -> Iterator[Browser]:
    require("chromium")
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(shared: Browser) -> Iterator[Browser]:
    shared.resize(1200, 900)
    shared.media()
    shared.scripts(on=True)
    yield shared
    assert shared.complaints == []
    assert all(url.startswith(("file:", "about:", "data:")) for url in shared.requests)
