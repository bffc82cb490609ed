"""Checks whether the Arrow types of a schema fit the fields of a record, before any row is read."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from ragcontract.core import bounds
from ragcontract.core.phrase import FieldPath, Message
from ragcontract.core.safe_text import shorten
from ragcontract.files.json_text import first_doubled
from ragcontract.files.schema import Mismatch, instead_of


class Kind:
    """The column type that a field of a record requires, regardless of whether null is allowed.

    It is made from a type ``described`` by ``msgspec.inspect``.
    """

    def __init__(self, described: Any) -> None:
        self.fields: dict[
            str, tuple[Kind, bool]
        ] = {}  # of a record: the kind of each field, and whether it is required
        self.items: Kind | None = None  # of a list
        self.scalars: set[str] = set()
        self.is_object = False  # an object with arbitrary fields: metadata, grades by document, a rule
        self.is_anything = False  # any value
        types = list(_alternatives(described))
        plain = [kind for kind in types if not isinstance(kind, msgspec.inspect.StructType)]
        # A column has texts or objects, not both. An object among texts is JSON text.
        self.has_texts_of_objects = plain != types and any(isinstance(kind, msgspec.inspect.StrType) for kind in types)
        if self.has_texts_of_objects:
            types = plain
        several = sum(isinstance(kind, msgspec.inspect.StructType) for kind in types) > 1
        for kind in types:
            if isinstance(kind, msgspec.inspect.StructType) and kind.fields and not several:
                self.fields = {field.encode_name: (Kind(field.type), field.required) for field in kind.fields}
            elif isinstance(kind, msgspec.inspect.ListType | msgspec.inspect.VarTupleType):
                self.items = Kind(kind.item_type)
            elif isinstance(kind, msgspec.inspect.DictType | msgspec.inspect.StructType):
                self.is_object = True
            elif isinstance(kind, msgspec.inspect.AnyType | msgspec.inspect.RawType):
                self.is_anything = True
            else:
                self.scalars.add(_SCALARS[type(kind)])

    @property
    def described(self) -> str:
        """A description of the expected values, in the plural."""
        if self.items:
            return f"lists of {self.items.described}"
        if self.fields:
            required = [name for name, (_, required) in self.fields.items() if required]
            return f"structs with {' and '.join(required)}"
        if self.has_texts_of_objects:
            return "text, with objects as JSON text"
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
        for alternative in described.types:
            yield from _alternatives(alternative)
    elif not isinstance(described, msgspec.inspect.NoneType):
        yield described


def column_mismatches(kind: Kind, columns: pa.DataType | pa.Schema, path: FieldPath = ()) -> Iterator[Mismatch]:
    """Yield a mismatch for each column that does not fit its field, and for each required field without a column."""
    names = [field.name for field in columns]
    strangers = [name for name in names if name not in kind.fields]
    for name, (wanted, required) in kind.fields.items():
        at = (*path, name)
        if name not in names:
            if required:
                yield Mismatch(at, Message.of("is missing", instead_of(name, strangers)))
        elif names.count(name) > 1:
            yield Mismatch(at, "occurs more than once; rename one of the columns")
        else:
            yield from _type_mismatches(wanted, columns.field(name).type, at)


def _type_mismatches(kind: Kind, arrow_type: pa.DataType, path: FieldPath) -> Iterator[Mismatch]:
    if kind.items and kind.items.fields and is_list(arrow_type) and pa.types.is_struct(arrow_type.value_type):
        yield from column_mismatches(kind.items, arrow_type.value_type, path)
        return
    if _fits(kind, arrow_type):
        if (name := _doubled_field(arrow_type)) is not None:
            yield Mismatch(path, f"has two fields named {shorten(name, bounds.NAME)!r}; rename one of them")
        elif (
            kind.items
            and kind.items.is_object
            and is_list(arrow_type)
            and (name := _inner_struct(arrow_type.value_type))
        ):
            advice = "write each object as JSON text, or export JSON lines"
            yield Mismatch(
                path,
                f"has structs under {shorten(name, bounds.NAME)!r}, which have the fields of all rows, with null for "
                f"those that a row lacks; {advice}",
            )
        return
    advice = "" if kind.items or kind.is_object else "; cast it"
    yield Mismatch(
        path, f"expected {kind.described}, found a column of type {shorten(str(arrow_type), bounds.VALUE)}{advice}"
    )


def _doubled_field(arrow_type: pa.DataType) -> str | None:
    """Return the name of a field that a struct at any depth has twice, so that its values cannot be told apart."""
    inner = [arrow_type.field(number) for number in range(arrow_type.num_fields)]
    names: list[str] = [field.name for field in inner] if pa.types.is_struct(arrow_type) else []
    if (name := first_doubled(names)) is not None:
        return name
    return next((name for field in inner if (name := _doubled_field(field.type)) is not None), None)


def _inner_struct(arrow_type: pa.DataType) -> str | None:
    """Return the name of a field of a struct that has structs at any depth: null and absence are the same in them."""
    fields = list(arrow_type) if pa.types.is_struct(arrow_type) else []
    return next((field.name for field in fields if _has_struct(field.type)), None)


def _has_struct(arrow_type: pa.DataType) -> bool:
    inner = (arrow_type.field(number).type for number in range(arrow_type.num_fields))
    return bool(pa.types.is_struct(arrow_type)) or any(map(_has_struct, inner))


def _fits(kind: Kind, arrow_type: pa.DataType) -> bool:
    if kind.is_anything or pa.types.is_null(arrow_type):
        return True
    if kind.items:
        return is_list(arrow_type) and _fits(kind.items, arrow_type.value_type)
    if kind.is_object:
        return is_object(arrow_type) or is_text(arrow_type)
    return _is_scalar(kind, arrow_type)


def _is_scalar(kind: Kind, arrow_type: pa.DataType) -> bool:
    if is_text(arrow_type):
        return "text" in kind.scalars
    if pa.types.is_integer(arrow_type):
        return bool(kind.scalars & {"whole numbers", "numbers"})
    if pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type):
        return "numbers" in kind.scalars
    return bool(pa.types.is_boolean(arrow_type)) and "true or false" in kind.scalars


def is_text(arrow_type: pa.DataType) -> bool:
    """Return whether a column holds text, in any encoding."""
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    return bool(
        pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type) or pa.types.is_string_view(arrow_type)
    )


def is_list(arrow_type: pa.DataType) -> bool:
    """Return whether a column holds lists."""
    return bool(
        pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type) or pa.types.is_fixed_size_list(arrow_type)
    )


def is_object(arrow_type: pa.DataType) -> bool:
    """Return whether a column holds objects with arbitrary fields."""
    return bool(pa.types.is_map(arrow_type) or pa.types.is_struct(arrow_type))


def leaves(kind: Kind | None, columns: pa.DataType | pa.Schema) -> list[bool]:
    """Return, for each leaf column in file order, whether it belongs to a field of the record."""
    is_any = kind if kind and kind.is_object else None
    if isinstance(columns, pa.Schema) or pa.types.is_struct(columns):
        fields = kind.fields if kind else {}
        inner = [(is_any or fields.get(field.name, (None,))[0], field.type) for field in columns]
    elif pa.types.is_map(columns):
        inner = [(is_any, columns.key_type), (is_any, columns.item_type)]
    elif is_list(columns):
        inner = [(is_any or (kind and kind.items), columns.value_type)]
    else:
        return [kind is not None]
    return [read for inner_kind, arrow_type in inner for read in leaves(inner_kind, arrow_type)]
