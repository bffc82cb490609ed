"""Databases of the service, for stores that are in one."""

import pytest

from tests.service.conftest import cluster, database, kind, migrated, template_database, template_file

__all__ = ["cluster", "database", "kind", "migrated", "template_database", "template_file"]


@pytest.fixture(autouse=True)
def _takes_entries_of_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let services take the entries of tests, whose days are always the same and may be in the future."""
    monkeypatch.setattr("ragcontract.core.bounds.SERVICE_CLOCK_AHEAD", 86_400 * 1_000)
