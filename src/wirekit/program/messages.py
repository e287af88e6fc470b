"""Protobuf messages as tables of their fields, which ``kernels.protobuf`` walks, and the columns of the fields.

Each field has a slot, including the fields of nested messages, so a slot stands for a path. Lists inside lists, and
messages inside messages of their own type, have no slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirekit.compiler import ir
from wirekit.errors import Misuse
from wirekit.program.columns import Column, Reason
from wirekit.program.unfit import unfit
from wirekit.program.values import HIGHEST, LONGEST, Picked, Value
from wirekit.varints import ZIGZAG
from wirekit.wire.dollar_entries import LARGEST_FIELD
from wirekit.wire.protobuf import DEEPEST, SIGNED, VARINT, Field, Message

LARGEST_NUMBER = 1 << 16  # of a field: tables have an element a number
MOST_REQUIRED = 62  # fields of a message
VALUES, SLOT_WIDTH, WIDTH = 16, 4, 8  # of a tray, as kernels.protobuf has it
LOST = 15  # where a tray counts the bytes of a record's fields that have no column

_KINDS = {"bool": 3, "string": 6, "bytes": 5, "message": 7}
_SIGNS = {"": 0, SIGNED: 1, ZIGZAG: 2}
_WRONG = (
    ("short", "needs more bytes than there are"),
    ("wrong", "expected a varint of at most 10 bytes, found a longer one"),
    ("wrong", f"expected a field number of 1 to {LARGEST_FIELD}"),
    ("wrong", "expected a wire type of 0, 1, 2 or 5"),
    ("limit", f"messages inside of more than {DEEPEST} others"),
)


@dataclass(eq=False, slots=True)
class Place:
    """A slot: a field at a path of a record.

    Attributes:
        field: the field; None for the message itself.
        message: the slot of the enclosing message.
        owner: for a field inside a list of messages, the slot of that list, otherwise -1.
        end: the slot after the last one inside.
        unit: of a time since the epoch.
    """

    path: str
    field: Field | None
    message: int
    owner: int
    end: int = 0
    unit: str | None = None


@dataclass(slots=True)
class Tables:
    """A message type as tables.

    Attributes:
        path: the path of the message.
        at: the index among the program's columns before which its columns are inserted.
        places: by slot.
        left_out: paths without a column.
        rows: (path, numbers) of the table of messages.
        fields: the numbers of each field; ``index`` has the place of a field by message and field number, or -1.
        sets: for each required enum: its lowest number, the count of numbers from there, and whether each has a name.
        silent: the numbers of messages without columns, by name.
        slots: the slots by path.
        templates: for each choice of columns: a new tray, and the slots of its columns (see ``columns.protobuf``).
    """

    key: str
    path: str
    at: int = 0
    places: list[Place] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    rows: list[tuple[str, list[int]]] = field(default_factory=list)
    fields: list[list[int]] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    silent: dict[str, int] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)
    templates: dict[tuple[str, ...] | None, tuple[NDArray[Any], list[int]]] = field(default_factory=dict)

    def reasons(self) -> Iterator[Reason]:
        """The reasons of messages, by the result of ``walk`` less one."""
        for path, _ in self.rows:
            yield from (Reason(path, kind, text) for kind, text in _WRONG)

    def reads(self, names: tuple[str, ...]) -> Place | None:
        """The field of the message that an expression reads; None if there is none, or it is in a list."""
        slot = self.slots.get(".".join((self.path, *names)) if self.path else ".".join(names))
        return None if slot is None or self.places[slot].owner >= 0 else self.places[slot]


def tables(key: str, node: ir.Protobuf, path: str, at: int) -> Tables:
    """The tables of a message type.

    Raises:
        Misuse: tables cannot hold the type, or a declared time is not a 64-bit integer.
    """
    tables = Tables(key, path, at)
    message = Message.by_full_name[node.message]
    tables.places.append(Place(path, None, 0, -1))
    _message(tables, message, path, 0, -1, (node.message,))
    tables.places[0].end = len(tables.places)
    tables.slots = {place.path: slot for slot, place in enumerate(tables.places) if slot}
    for name, unit in node.times:
        place = tables.reads(tuple(name.split(".")))
        if place is None or place.field is None or place.field.dtype not in ("int64", "uint64"):
            raise Misuse(f"{key}: {name} is declared as a time, but is not a 64-bit integer in {node.message}")
        place.unit = unit
    return tables


def _message(tables: Tables, message: Message, path: str, slot: int, owner: int, outer: tuple[str, ...]) -> int:
    """Adds the rows of a message and of those inside it; returns its number. A slot of -1: no columns inside."""
    highest = max(message.fields, default=0)
    required = [each for each in message.fields.values() if each.required]
    if highest > LARGEST_NUMBER or len(required) > MOST_REQUIRED:
        why = "too large field numbers, or too many required fields"
        raise unfit(tables.key, path, f"a protobuf message {message.name}", why)
    number = len(tables.rows)
    row = [len(tables.index), highest, slot, 0, (1 << len(required)) - 1, -1]
    tables.rows.append((path, row))
    if slot < 0:
        tables.silent[message.name] = number
    tables.index += [-1] * (highest + 1)
    for each in message.fields.values():
        tables.index[row[0] + each.number] = len(tables.fields)
        bit = 1 << required.index(each) if each.required else 0
        _field(tables, each, ir.inner_path(path, each.name), bit, slot, owner, outer)
    if message.selector:
        row[5] = tables.index[row[0] + message.by_name[message.selector].number]
    row[3] = len(tables.places)
    return number


def _field(tables: Tables, each: Field, path: str, bit: int, message: int, owner: int, outer: tuple[str, ...]) -> None:
    inner = each.message
    nested = (each.repeated and owner >= 0) or (inner is not None and inner.name in outer)
    slot = -1
    if message >= 0 and nested:
        tables.left_out.append(path)
    elif message >= 0:
        slot = len(tables.places)
        tables.places.append(Place(path, each, message, owner))
    kind = 4 if each.fixed else _KINDS.get(each.kind, _SIGNS[each.sign])
    row = [each.wire_type, kind, each.bits, slot, -1, int(each.repeated), bit, 1]
    tables.fields.append(row)
    if each.required and each.table is not None:
        row[4] = len(tables.sets)
        tables.sets += _set(tables, each, path)
    if inner is not None:
        if slot < 0 and inner.name in tables.silent:
            row[4] = tables.silent[inner.name]
        else:
            listed = slot if each.repeated and slot >= 0 else owner
            row[4] = _message(tables, inner, path, slot, listed, (*outer, inner.name))
    if slot >= 0:
        tables.places[slot].end = len(tables.places)


def _set(tables: Tables, each: Field, path: str) -> list[int]:
    numbers = [int(symbol) for symbol in each.table or ()]
    low, high = min(numbers), max(numbers)
    if high - low > LARGEST_NUMBER:
        raise unfit(tables.key, path, "an enum", "its numbers are too far apart")
    return [low, high - low + 1, *(int(number in numbers) for number in range(low, high + 1))]


def slot_at(slot: int) -> int:
    """The index of a slot's value in a tray."""
    return VALUES + SLOT_WIDTH * slot


def memory(tables: Tables, where: list[int]) -> NDArray[Any]:
    """One array with the whole state of a message type, for ``kernels.protobuf``; passing several would cost more.

    State, slots (value, length, stamp, column), slots touched, stack, fields, messages, sets, index, in this order.
    """
    touched = slot_at(len(tables.places))
    stack = touched + len(tables.places)
    fields = stack + WIDTH * (DEEPEST + 1)
    messages = fields + WIDTH * len(tables.fields)
    sets = messages + WIDTH * len(tables.rows)
    index = sets + len(tables.sets)
    memory = np.zeros(index + len(tables.index), np.int64)
    memory[0] = 1
    memory[6:9] = messages, touched, stack
    memory[VALUES + 1 : touched : SLOT_WIDTH] = -1
    memory[VALUES + 3 : touched : SLOT_WIDTH] = where
    for number, (wire_type, kind, bits, slot, message, repeated, required, _) in enumerate(tables.fields):
        begin = messages + WIDTH * message if kind == _KINDS["message"] else sets + message
        place = begin if message >= 0 else -1
        listed = int(slot >= 0 and where[slot] > -2)
        at = slot_at(slot) if slot >= 0 else -1
        memory[fields + WIDTH * number :][:WIDTH] = wire_type, kind, bits, at, place, repeated, required, listed
    for number, (_, (first, highest, slot, end, required, selector)) in enumerate(tables.rows):
        begin = slot_at(slot) if slot >= 0 else -1
        chooses = fields + WIDTH * selector if selector >= 0 else -1
        memory[messages + WIDTH * number :][:6] = index + first, highest, begin, slot_at(end), required, chooses
    memory[sets:index] = tables.sets
    entries = np.array(tables.index, np.int64)
    memory[index:] = np.where(entries >= 0, fields + WIDTH * entries, -1)
    return memory.view(np.uint64)


def message_values(
    message: Tables, number: int, at: Callable[[int], int], outer: int = 0, *, required: bool = False
) -> dict[str, Value]:
    """The values that expressions can read from a message, or from the message in the slot ``outer``.

    Args:
        at: the place from which a slot's value is read.
        required: whether required fields of the message are always present.
    """
    inside = {}
    slot = outer + 1
    while slot < message.places[outer].end:
        place = message.places[slot]
        each = place.field
        assert each is not None
        if each.repeated:
            value = Value(length=Picked(number, at(slot), "count"), high=LONGEST, unfit="a list")
        elif each.message is not None:
            value = Value(inside=message_values(message, number, at, slot))
        elif each.wire_type != VARINT or each.high > HIGHEST:
            value = Value(unfit=f"a field of type {each.kind}")
        else:
            present = () if required and each.required else (Picked(number, at(slot), "present"),)
            value = Value(Picked(number, at(slot), "value"), each.low, each.high, present=present)
        inside[place.path.rpartition(".")[2]] = value
        slot = place.end
    return inside


def is_leaf(place: Place, slot: int) -> bool:
    """Whether a field has a column: it is not a message, or a message in a list without fields."""
    each = place.field
    return each is not None and (each.message is None or (each.repeated and place.end == slot + 1))


def field_column(place: Place) -> Column:
    """The column of a field of a message, without its slot and list."""
    each = place.field
    assert each is not None
    kind = {"string": "text", "bytes": "bytes", "bool": "flag", "message": "flag"}.get(each.kind, "number")
    return Column(place.path, kind, "uint8" if kind == "flag" else each.dtype, True, each.table, unit=place.unit)


def chosen(path: str, fields: tuple[str, ...] | None) -> bool:
    """Whether a path is one of some paths, or inside one.

    >>> chosen("a.b.c", ("a.b",)), chosen("a.bc", ("a.b",)), chosen("a", None)
    (True, False, True)
    """
    return fields is None or path in fields or path.startswith(_prefixes(fields))


@lru_cache(256)
def _prefixes(fields: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}." for name in fields)
