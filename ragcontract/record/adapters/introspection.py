"""What is known of an object of a framework without importing the framework: its classes' names, its attributes."""

from typing import Any


def bases(given: object) -> frozenset[str]:
    """Return what an object is an instance of, each as ``package.Class`` with the package at the top.

    Frameworks move classes between modules, but not between packages.
    """
    return frozenset(f"{one.__module__.partition('.')[0]}.{one.__name__}" for one in type(given).__mro__)


def named(given: object) -> str:
    """Return the name of an object's class, with its module."""
    return f"{type(given).__module__}.{type(given).__qualname__}"


def text_at(given: object, *paths: str) -> str | None:
    """Return the first of these attributes, as ``_retriever._embed_model.model_name``, that is a text with content.

    ``unknown`` is what frameworks say if they do not know.
    """
    for path in paths:
        found: Any = given
        for name in path.split("."):
            found = getattr(found, name, None)
        if isinstance(found, str) and found not in {"", "unknown"}:
            return found
    return None
