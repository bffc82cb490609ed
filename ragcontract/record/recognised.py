"""What is known of an object of a framework without importing the framework: its classes' names, its attributes."""

from collections.abc import Callable, Mapping
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


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Return JSON with ``{name}`` in its texts replaced; a text that is one placeholder keeps the value's type."""
    if isinstance(template, str):
        for name, value in values.items():
            if template == f"{{{name}}}":
                return value
        return _replaced(template, values)
    return _inside(template, lambda inner: filled(inner, values))


def _inside(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: change(inner) for key, inner in value.items()}
    return [change(inner) for inner in value] if isinstance(value, list) else value


def _replaced(template: str, values: Mapping[str, Any]) -> str:
    # In one go, so that a question that contains `{top}` stays as it is.
    pieces = template.split("{")
    done = pieces[0]
    for piece in pieces[1:]:
        name, brace, rest = piece.partition("}")
        done += f"{values[name]}{rest}" if brace and name in values else "{" + piece
    return done
