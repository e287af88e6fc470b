"""Protobuf messages in the kernel that builds: code generated from the descriptor, field after field by number.

A field that its column has is written in the shortest form; null, or no column, leaves it out. Of a list of messages
the columns are lists of one length. Messages inside of messages, other than in a list, are not built.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from wirekit.compiler.columns_contents import WIDTHS
from wirekit.compiler.columns_expressions import Value
from wirekit.compiler.columns_kernel import Column
from wirekit.compiler.columns_protobuf import DTYPES, Place, Tables
from wirekit.compiler.kernels.reads import reader
from wirekit.errors import Misuse
from wirekit.wire.protobuf import BYTES, VARINT, Field

MOST = 15  # bytes of a tag and a varint
ELEMENT = 2 * MOST  # bytes that an element of a list takes at most, without its string


class Writer(Protocol):
    """What is needed of the writer of the kernel."""

    columns: dict[str, Column]
    most: int
    depth: int
    uses: set[str]

    def put(self, line: str) -> None:
        """Writes a line."""

    def fresh(self, stem: str) -> str:
        """A new variable."""

    def fail(self, condition: str, path: str, text: str) -> None:
        """Ends the building if the condition holds."""

    def column(self, path: str) -> Column:
        """A column of that name."""

    def there(self, column: Column) -> str:
        """The condition that the column has a value."""

    def unfit(self, path: str, kind: str, why: str) -> Misuse:
        """The error for what cannot be built."""


def leaves(made: Tables) -> Iterator[Place]:
    """The fields of a message that have columns."""
    for place in made.places:
        if place.field is not None and place.field.message is None:
            yield place


def columns_of(messages: list[Tables], slot: int) -> Iterator[Column]:
    """The columns of the fields of messages, with slots from a number on."""
    for made in messages:
        for place in leaves(made):
            each = place.field
            assert each is not None
            kind = {"string": "text", "bytes": "bytes", "bool": "flag"}.get(each.kind, "number")
            dtype = "uint8" if kind == "flag" else DTYPES.get(each.kind, "")
            listed = each.repeated or place.owner >= 0
            yield Column(place.path, kind, dtype, True, each.table, slot, place.unit, listed)
            slot += 1


def message(writer: Writer, made: Tables, path: str) -> Value:
    """Writes a message; gives what expressions can read of it."""
    if made.left_out:
        raise writer.unfit(path, "a message", f"columns have no {made.left_out[0]}")
    verdict = writer.columns[f"{path}.ok" if path else "ok"]
    told = writer.column(verdict.path)
    text = f"it was not whole, or its text no UTF-8; without the column {told.path} it is written as it stands"
    writer.fail(f"{writer.there(told)} and c{told.slot}[i] == 0", path, text)
    inside = {}
    for slot, place in enumerate(made.places):
        each = place.field
        if each is None or place.owner >= 0:
            continue
        if each.message is not None:
            inside[each.name] = Value(unfit="a message")
            if not each.repeated or place.end == slot + 1:
                raise writer.unfit(place.path, "a message", "inside of another")
            _elements(writer, each, made.places[slot + 1 : place.end], place.path)
        elif each.repeated:
            inside[each.name] = Value(unfit="a list")
            _list(writer, each, writer.column(place.path))
        else:
            inside[each.name] = _single(writer, each, writer.column(place.path))
    return Value(inside=inside)


def _single(writer: Writer, each: Field, column: Column) -> Value:
    present = writer.fresh("h")
    writer.put(f"{present} = {writer.there(column)}")
    if each.required:
        writer.fail(f"not {present}", column.path, "is not there, which the message requires")
    writer.most += MOST
    writer.put(f"if {present}:")
    writer.depth += 1
    _written(writer, each, column, "i")
    writer.depth -= 1
    if each.kind not in WIDTHS:
        return Value(unfit=f"a field of type {each.kind}")
    value = writer.fresh("n")
    writer.put(f"{value} = np.int64(c{column.slot}[i]) if {present} else np.int64(0)")
    return Value(value, *WIDTHS[each.kind], present="" if each.required else present)


def _list(writer: Writer, each: Field, column: Column) -> None:
    writer.put(f"if {writer.there(column)}:")
    writer.depth += 1
    at = writer.fresh("j")
    writer.put(f"for {at} in range(l{column.slot}[i], l{column.slot}[i + np.uint64(1)]):")
    writer.depth += 1
    writer.fail(f"not {_element_there(column, at)}", column.path, "has a null in a list, which the message has not")
    _written(writer, each, column, at)
    writer.depth -= 2
    _left(writer)


def _elements(writer: Writer, each: Field, places: list[Place], path: str) -> None:
    """A list of messages: how long it is, then of each element its size and its fields."""
    count, index, size = writer.fresh("t"), writer.fresh("k"), writer.fresh("t")
    columns = [(place.field, writer.column(place.path), writer.fresh("j")) for place in places]
    writer.put(f"{count} = np.int64(-1)")
    for _, column, _ in columns:
        slot, length = column.slot, f"l{column.slot}[i + np.uint64(1)] - l{column.slot}[i]"
        writer.put(f"if given[{slot}] != 0:")
        writer.depth += 1
        writer.fail(f"{count} >= 0 and {count} != {length}", column.path, f"is not as long as the others of {path}")
        writer.put(f"{count} = {length}")
        writer.depth -= 1
        _left(writer)
    writer.put(f"for {index} in range({count}):")
    writer.depth += 1
    writer.put(f"{size} = np.int64(0)")
    for inner, column, at in columns:
        assert inner is not None
        if inner.message is not None:
            raise writer.unfit(column.path, "a message", "inside of a list of others")
        writer.put(f"{at} = l{column.slot}[i] + {index} if given[{column.slot}] != 0 else np.int64(0)")
        if inner.required:
            why = "is not there, which the message requires"
            writer.fail(f"not {_element_there(column, at)}", column.path, why)
        writer.put(f"if {_element_there(column, at)}:")
        writer.put(f"    {size} += {_size(writer, inner, column, at)}")
    _varint(writer, str(_tag(each)))
    _varint(writer, size)
    for inner, column, at in columns:
        assert inner is not None
        writer.put(f"if {_element_there(column, at)}:")
        writer.depth += 1
        _written(writer, inner, column, at)
        writer.depth -= 1
    writer.depth -= 1
    _left(writer)


def _left(writer: Writer) -> None:
    """A reason that was given in a loop ends the record too."""
    writer.put("if reason != 0:")
    writer.put("    break")


def _element_there(column: Column, at: str) -> str:
    slot = column.slot
    return f"(given[{slot}] == 1 or (given[{slot}] == 2 and v{slot}[np.uint64({at})] != 0))"


def _tag(each: Field) -> int:
    return each.number << 3 | each.wire_type


def _raw(each: Field, column: Column, at: str) -> str:
    """A number as the varint that stands for it."""
    value = f"np.int64(c{column.slot}[np.uint64({at})])"
    if each.kind in ("sint32", "sint64"):
        return f"np.uint64(({value} << 1) ^ ({value} >> 63))"
    return f"np.uint64(c{column.slot}[np.uint64({at})])" if column.dtype[0] == "u" else f"np.uint64({value})"


def _ends(column: Column, at: str) -> tuple[str, str]:
    """(start, length) of a byte string."""
    slot = column.slot
    start = f"o{slot}[np.uint64({at})]"
    return start, f"(o{slot}[np.uint64({at}) + np.uint64(1)] - {start})"


def _size(writer: Writer, each: Field, column: Column, at: str) -> str:
    """Code for how many bytes a field takes."""
    tag = -(-_tag(each).bit_length() // 7)
    if each.fixed:
        return str(tag + column_size(each))
    writer.uses.add("varint_size")
    if each.wire_type == VARINT:
        return f"{tag} + varint_size({_raw(each, column, at)})"
    _, length = _ends(column, at)
    return f"{tag} + varint_size(np.uint64({length})) + {length}"


def column_size(each: Field) -> int:
    """Bytes of a number of fixed size."""
    return 4 if each.fixed[1] in "fIi" else 8


def _varint(writer: Writer, value: str) -> None:
    writer.uses.add("put_varint")
    writer.put(f"p = put_varint(o, p, np.uint64({value}))")


def _written(writer: Writer, each: Field, column: Column, at: str) -> None:
    """Writes a field that is there."""
    if each.wire_type == BYTES:
        start, length = _ends(column, at)
        out = f"{start} < 0 or {length} < 0 or {length} > d{column.slot}.size - {start}"
        writer.fail(out, column.path, "its offsets point outside of its data")
        _varint(writer, str(_tag(each)))
        _varint(writer, length)
        writer.uses.add("copy")
        writer.put(f"copy(o, p, d{column.slot}, {start}, {length})")
        writer.put(f"p += {length}")
        return
    _varint(writer, str(_tag(each)))
    if each.wire_type == VARINT:
        _varint(writer, _raw(each, column, at))
        return
    code = {"I": "L", "i": "l"}.get(each.fixed[1], each.fixed[1])
    function = f"put_{reader(code, True)}"
    writer.uses.add(function)
    writer.put(f"{function}(o, p, c{column.slot}[np.uint64({at})])")
    writer.put(f"p += {column_size(each)}")
