"""Databases of the service, for stores that are in one."""

from tests.service.conftest import cluster, database, kind, migrated, template_database, template_file

__all__ = ["cluster", "database", "kind", "migrated", "template_database", "template_file"]
