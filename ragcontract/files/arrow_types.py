"""Checks whether the Arrow types of a schema fit the fields of a record, before any row is read."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from ragcontract.core import bounds
from ragcontract.core.nearest import nearest
from ragcontract.core.safe_text import shorten
from ragcontract.files.json_text import first_doubled
from ragcontract.files.schema import Mismatch

Path = tuple[str | int, ...]


class Kind:
    """The column type that a field of a record requires, regardless of whether null is allowed.

    A record has ``fields``, each with its own kind and whether it is required; a list has a kind for its ``items``. An
    object with arbitrary fields (metadata, grades by document, a rule) has ``is_object`` set; a field that may hold any
    value has ``is_anything``.
    """

    def __init__(self, described: Any) -> None:
        """Build the kind from a type described by ``msgspec.inspect``."""
        self.fields: dict[str, tuple[Kind, bool]] = {}
        self.items: Kind | None = None
        self.scalars: set[str] = set()
        self.is_object = False
        self.is_anything = False
        alternatives = list(_alternatives(described))
        if any(isinstance(one, msgspec.inspect.StrType) for one in alternatives):  # a column has a text, or an object
            alternatives = [one for one in alternatives if not isinstance(one, msgspec.inspect.StructType)]
        several = sum(isinstance(one, msgspec.inspect.StructType) for one in alternatives) > 1
        for one in alternatives:
            if isinstance(one, msgspec.inspect.StructType) and one.fields and not several:
                self.fields = {field.encode_name: (Kind(field.type), field.required) for field in one.fields}
            elif isinstance(one, msgspec.inspect.ListType | msgspec.inspect.VarTupleType):
                self.items = Kind(one.item_type)
            elif isinstance(one, msgspec.inspect.DictType | msgspec.inspect.StructType):
                self.is_object = True
            elif isinstance(one, msgspec.inspect.AnyType | msgspec.inspect.RawType):
                self.is_anything = True
            else:
                self.scalars.add(_SCALARS[type(one)])

    @property
    def described(self) -> str:
        """A description of the expected values, in the plural."""
        if self.items:
            return f"lists of {self.items.described}"
        if self.fields:
            required = [name for name, (_, required) in self.fields.items() if required]
            return f"structs with {' and '.join(required)}"
        return "maps, structs or JSON text" if self.is_object else " or ".join(sorted(self.scalars))


def kind_of(record: type) -> Kind:
    """Return the kind of a record type."""
    return Kind(msgspec.inspect.type_info(record))


_SCALARS: dict[type, str] = {
    msgspec.inspect.StrType: "text",
    msgspec.inspect.LiteralType: "text",
    msgspec.inspect.IntType: "whole numbers",
    msgspec.inspect.FloatType: "numbers",
    msgspec.inspect.BoolType: "true or false",
}


def _alternatives(described: Any) -> Iterator[Any]:
    if isinstance(described, msgspec.inspect.Metadata):
        yield from _alternatives(described.type)
    elif isinstance(described, msgspec.inspect.UnionType):
        for one in described.types:
            yield from _alternatives(one)
    elif not isinstance(described, msgspec.inspect.NoneType):
        yield described


def column_mismatches(kind: Kind, found: pa.DataType | pa.Schema, path: Path = ()) -> Iterator[Mismatch]:
    """Yield a mismatch for each column that does not fit its field, and for each required field without a column."""
    names = [field.name for field in found]
    for name, (wanted, required) in kind.fields.items():
        at = (*path, name)
        if name not in names:
            if required:
                yield Mismatch(at, f"is missing{_instead(name, kind, names)}")
        elif names.count(name) > 1:
            yield Mismatch(at, "occurs more than once; rename one of the columns")
        else:
            yield from _type_mismatches(wanted, found.field(name).type, at)


def _instead(name: str, kind: Kind, names: list[str]) -> str:
    strangers = [stranger for stranger in names if stranger not in kind.fields]
    if near := nearest(name, strangers):
        return f"; is {near!r} a misspelling of it?"
    return f"; found instead: {', '.join(map(repr, strangers[: bounds.NAMES]))}" if strangers else ""


def _type_mismatches(kind: Kind, found: pa.DataType, path: Path) -> Iterator[Mismatch]:
    if kind.items and kind.items.fields and is_list(found) and pa.types.is_struct(found.value_type):
        yield from column_mismatches(kind.items, found.value_type, path)
        return
    if _fits(kind, found):
        if (name := _doubled_field(found)) is not None:
            yield Mismatch(path, f"has two fields named {shorten(name, bounds.NAME)!r}; rename one of them")
        elif kind.items and kind.items.is_object and is_list(found) and (name := _inner_struct(found.value_type)):
            advice = "write each object as JSON text, or export JSON lines"
            yield Mismatch(
                path,
                f"has structs under {shorten(name, bounds.NAME)!r}, which have the fields of all rows, with null for "
                f"those that a row lacks; {advice}",
            )
        return
    advice = "" if kind.items or kind.is_object else "; cast it"
    yield Mismatch(
        path, f"expected {kind.described}, found a column of type {shorten(str(found), bounds.VALUE)}{advice}"
    )


def _doubled_field(found: pa.DataType) -> str | None:
    """Return the name of a field that a struct at any depth has twice: nothing could tell its values apart."""
    inner = [found.field(number) for number in range(found.num_fields)]
    names: list[str] = [field.name for field in inner] if pa.types.is_struct(found) else []
    if (name := first_doubled(names)) is not None:
        return name
    return next((name for field in inner if (name := _doubled_field(field.type)) is not None), None)


def _inner_struct(found: pa.DataType) -> str | None:
    """Return the name of a field of a struct that has structs at any depth: null and absence are the same in them."""
    fields = list(found) if pa.types.is_struct(found) else []
    return next((field.name for field in fields if _has_struct(field.type)), None)


def _has_struct(found: pa.DataType) -> bool:
    inner = (found.field(number).type for number in range(found.num_fields))
    return bool(pa.types.is_struct(found)) or any(map(_has_struct, inner))


def _fits(kind: Kind, found: pa.DataType) -> bool:
    if kind.is_anything or pa.types.is_null(found):
        return True
    if kind.items:
        return is_list(found) and _fits(kind.items, found.value_type)
    if kind.is_object:
        return is_object(found) or is_text(found)
    return _is_scalar(kind, found)


def _is_scalar(kind: Kind, found: pa.DataType) -> bool:
    if is_text(found):
        return "text" in kind.scalars
    if pa.types.is_integer(found):
        return bool(kind.scalars & {"whole numbers", "numbers"})
    if pa.types.is_floating(found) or pa.types.is_decimal(found):
        return "numbers" in kind.scalars
    return bool(pa.types.is_boolean(found)) and "true or false" in kind.scalars


def is_text(found: pa.DataType) -> bool:
    """Check whether a column holds text, in any encoding."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found))


def is_list(found: pa.DataType) -> bool:
    """Check whether a column holds lists."""
    return bool(pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found))


def is_object(found: pa.DataType) -> bool:
    """Check whether a column holds objects with arbitrary fields."""
    return bool(pa.types.is_map(found) or pa.types.is_struct(found))


def leaves(kind: Kind | None, found: pa.DataType | pa.Schema) -> list[bool]:
    """Return, for each leaf column in file order, whether it belongs to a field of the record."""
    is_any = kind if kind and kind.is_object else None
    if isinstance(found, pa.Schema) or pa.types.is_struct(found):
        fields = kind.fields if kind else {}
        inner = [(is_any or fields.get(field.name, (None,))[0], field.type) for field in found]
    elif pa.types.is_map(found):
        inner = [(is_any, found.key_type), (is_any, found.item_type)]
    elif is_list(found):
        inner = [(is_any or (kind and kind.items), found.value_type)]
    else:
        return [kind is not None]
    return [read for one, of_type in inner for read in leaves(one, of_type)]
