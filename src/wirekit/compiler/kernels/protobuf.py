"""Walks a protobuf message by tables of its fields, for the generated columnar kernels.

``walk`` reads a message that takes a range of the buffer and leaves what it found in ``found``; ``ready`` and ``keep``
add that to the columns once the record around it is good. ``wirekit.compiler.columns_protobuf`` makes the tables and
the arrays, and says what is in them. The rules are those of ``wirekit.wire.protobuf``: the last value of a field wins,
a field that the tables do not know, or of another wire type, is stepped over.

Source: protobuf encoding guide, https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from typing import Any, Final

import numpy as np
from numba import njit

from wirekit.compiler.kernels.reads import is_utf8, uint32_le, uint64_le  # type: ignore[attr-defined]

# What ``walk`` gives: how it went wrong, or that ``items`` is full.
GOOD, SHORT, LONG_VARINT, NO_FIELD, NO_TYPE, DEEP = 0, 1, 2, 3, 4, 5
FULL: Final = -1

# Columns of the table of fields.
WIRE_TYPE, KIND, BITS, SLOT, MESSAGE, REPEATED, REQUIRED, LISTED = 0, 1, 2, 3, 4, 5, 6, 7
# Of the table of messages.
FIRST, LAST_NUMBER, PRESENCE, END, ALL_REQUIRED = 0, 1, 2, 3, 4
# Kinds of fields.
UNSIGNED, SIGNED, ZIGZAG, BOOLEAN, FIXED, BYTES, TEXT, INNER = 0, 1, 2, 3, 4, 5, 6, 7
# Elements of ``state``.
RECORD, KEPT, ITEMS, TOUCHED, OK, DENSE, WHERE = 0, 1, 2, 3, 4, 5, 6
# Columns of ``items``.
ITEM_SLOT, ITEM_ROW, ITEM_INDEX, ITEM_VALUE, ITEM_LENGTH = 0, 1, 2, 3, 4
# Columns of the stack: limit, message, required fields that are there, slot of the list that it is an element of.
LIMIT, AT, SEEN, LIST = 0, 1, 2, 3

UNKNOWN: Final = -1


@njit(nogil=True, inline="always")
def _varint(b: Any, p: int, e: int) -> Any:
    """(value, position behind it, how it went wrong)."""
    value, shift = np.uint64(0), np.uint64(0)
    while True:
        if p >= e:
            return value, p, 1
        byte = np.uint64(b[p])
        p += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return value, p, 0
        shift += np.uint64(7)
        if shift > np.uint64(63):
            return value, p, 2


@njit(nogil=True)
def _number(raw: Any, kind: int, bits: int) -> Any:
    """A varint as its field has it, in 64 bits of two's complement."""
    if kind == BOOLEAN:
        return np.uint64(raw != np.uint64(0))
    if bits == 32:
        raw &= np.uint64(0xFFFFFFFF)
        if kind == SIGNED and raw >> np.uint64(31):
            raw |= np.uint64(0xFFFFFFFF00000000)
    if kind == ZIGZAG:
        raw = (raw >> np.uint64(1)) ^ (np.uint64(0) - (raw & np.uint64(1)))
    return raw


@njit(nogil=True)
def _touch(slot: int, stamps: Any, touched: Any, state: Any) -> None:
    now = state[RECORD]
    if stamps[slot] == now:
        return
    if stamps[slot] != -now:
        touched[state[TOUCHED]] = slot
        state[TOUCHED] += 1
    stamps[slot] = now


@njit(nogil=True)
def _cleared(first: int, last: int, stamps: Any, items: Any, state: Any) -> None:
    """Forgets what slots hold: a message that comes again replaces the one before."""
    now = state[RECORD]
    for slot in range(first, last):
        if stamps[slot] == now:
            stamps[slot] = -now
    for item in range(state[KEPT], state[ITEMS]):
        if first <= items[item, ITEM_SLOT] < last:
            items[item, ITEM_SLOT] = -1


@njit(nogil=True)
def _item(slot: int, row: int, index: int, value: Any, length: int, items: Any, state: Any) -> bool:
    """Adds an element of a list; False when there is no room."""
    at = state[ITEMS]
    if at >= items.shape[0]:
        return False
    items[at, ITEM_SLOT], items[at, ITEM_ROW], items[at, ITEM_INDEX] = slot, row, index
    items[at, ITEM_VALUE], items[at, ITEM_LENGTH] = np.int64(value), length
    state[ITEMS] = at + 1
    return True


@njit(nogil=True)
def _counted(slot: int, values: Any, stamps: Any, touched: Any, state: Any) -> int:
    """The index of a list's next element."""
    if stamps[slot] != state[RECORD]:
        values[slot] = 0
        _touch(slot, stamps, touched, state)
    values[slot] += np.uint64(1)
    return np.int64(values[slot]) - 1


@njit(nogil=True)
def walk(b: Any, p: int, limit: int, row: int, tray: Any) -> Any:
    """Reads a message in ``b[p:limit]``.

    Returns:
        (what went wrong, position, number of the message that it is in).
    """
    fields, messages, index, values, lengths, stamps, touched, stack, state, items, _, _, _ = tray
    state[RECORD] += 1
    state[ITEMS], state[TOUCHED], state[OK] = state[KEPT], 0, 1
    depth, at, end, seen = 0, 0, limit, 0
    _touch(0, stamps, touched, state)
    while True:
        if p >= end:
            if seen & messages[at, ALL_REQUIRED] != messages[at, ALL_REQUIRED]:
                state[OK] = 0
            if depth == 0:
                return GOOD, p, at
            owner = stack[depth, LIST]
            if owner >= 0:
                place = np.int64(values[owner]) - 1
                for slot in range(messages[at, PRESENCE] + 1, messages[at, END]):
                    if stamps[slot] == state[RECORD]:
                        if not _item(slot, row, place, values[slot], lengths[slot], items, state):
                            return FULL, p, at
                        stamps[slot] = -state[RECORD]
            end, at, seen = stack[depth, LIMIT], stack[depth, AT], stack[depth, SEEN]
            depth -= 1
            continue
        start = p
        tag, p, wrong = _varint(b, p, end)
        if wrong:
            return wrong, p if wrong == SHORT else start, at
        number, wire_type = np.int64(tag >> np.uint64(3)), np.int64(tag & np.uint64(7))
        which = UNKNOWN
        if number <= messages[at, LAST_NUMBER]:
            which = index[messages[at, FIRST] + number]
        packed = False
        if which != UNKNOWN and fields[which, WIRE_TYPE] != wire_type:
            if fields[which, REPEATED] and wire_type == 2 and fields[which, WIRE_TYPE] != 2:
                packed = True
            else:
                which = UNKNOWN
        if which == UNKNOWN and number == 0:
            return NO_FIELD, p, at
        raw, size = np.uint64(0), np.int64(0)
        until = end
        if wire_type == 0:
            start = p
            raw, p, wrong = _varint(b, p, end)
            if wrong:
                return wrong, p if wrong == SHORT else start, at
        elif wire_type == 2:
            start = p
            raw, p, wrong = _varint(b, p, end)
            if wrong:
                return wrong, p if wrong == SHORT else start, at
            if raw > np.uint64(end - p):
                return SHORT, p, at
            size = np.int64(raw)
            raw = np.uint64(p)
            if packed:
                until = p + size
            elif which == UNKNOWN or fields[which, KIND] != INNER:
                p += size
        elif wire_type == 1 or wire_type == 5:
            size = np.int64(8 if wire_type == 1 else 4)
            if end - p < size:
                return SHORT, p, at
            raw = uint64_le(b, p) if wire_type == 1 else np.uint64(uint32_le(b, p))
            p += size
        else:
            return NO_TYPE, p, at
        if which == UNKNOWN:
            continue
        kind, bits, slot = fields[which, KIND], fields[which, BITS], fields[which, SLOT]
        seen |= fields[which, REQUIRED]
        if packed:
            while p < until:
                start = p
                if fields[which, WIRE_TYPE] == 0:
                    raw, p, wrong = _varint(b, p, until)
                    if wrong:
                        return wrong, p if wrong == SHORT else start, at
                else:
                    size = np.int64(8 if fields[which, WIRE_TYPE] == 1 else 4)
                    if until - p < size:
                        return SHORT, p, at
                    raw = uint64_le(b, p) if size == 8 else np.uint64(uint32_le(b, p))
                    p += size
                if slot >= 0:
                    place = _counted(slot, values, stamps, touched, state)
                    if fields[which, LISTED]:
                        if fields[which, WIRE_TYPE] == 0:
                            raw = _number(raw, kind, bits)
                        if not _item(slot, row, place, raw, 0, items, state):
                            return FULL, p, at
            continue
        if kind == INNER:
            child = fields[which, MESSAGE]
            owner = np.int64(-1)
            if slot >= 0 and fields[which, REPEATED]:
                _counted(slot, values, stamps, touched, state)
                owner = slot if fields[which, LISTED] else -1
            elif slot >= 0:
                if stamps[slot] == state[RECORD]:
                    _cleared(slot + 1, messages[child, END], stamps, items, state)
                _touch(slot, stamps, touched, state)
            if depth + 1 >= stack.shape[0]:
                return DEEP, p, at
            depth += 1
            stack[depth, LIMIT], stack[depth, AT], stack[depth, SEEN], stack[depth, LIST] = end, at, seen, owner
            end, at, seen = p + size, child, 0
            continue
        if kind <= BOOLEAN:
            raw = _number(raw, kind, bits)
        elif kind == TEXT and not is_utf8(b, p - size, size):
            state[OK] = 0
        if slot < 0:
            continue
        if fields[which, REPEATED]:
            place = _counted(slot, values, stamps, touched, state)
            if fields[which, LISTED] and not _item(slot, row, place, raw, size, items, state):
                return FULL, p, at
            continue
        _touch(slot, stamps, touched, state)
        values[slot], lengths[slot] = raw, size if kind >= BYTES else -1


@njit(nogil=True)
def ready(tray: Any) -> bool:
    """Whether the columns have room for the fields that were found; new fields get a column."""
    _, _, _, _, _, stamps, touched, _, state, _, where, dense, _ = tray
    for place in range(state[TOUCHED]):
        slot = touched[place]
        if stamps[slot] == state[RECORD] and where[slot] == -1:
            if state[DENSE] + 2 > dense.shape[0]:
                return False
            where[slot] = state[DENSE]
            state[DENSE] += 2
    return True


@njit(nogil=True)
def keep(tray: Any, row: int) -> None:
    """Adds what was found to the columns, as this row."""
    _, _, _, values, lengths, stamps, touched, _, state, _, where, dense, present = tray
    for place in range(state[TOUCHED]):
        slot = touched[place]
        column = where[slot]
        if column >= 0 and stamps[slot] == state[RECORD]:
            dense[column, row] = values[slot]
            if lengths[slot] >= 0:
                dense[column + 1, row] = np.uint64(lengths[slot])
            present[column >> 1, row] = 1
    state[KEPT] = state[ITEMS]


@njit(nogil=True)
def holds(tray: Any, slot: int) -> bool:
    """Whether a field is there."""
    return tray[5][slot] == tray[8][RECORD]


_SOURCE: Final = inspect.getsource(sys.modules[__name__])
FINGERPRINT: Final = hashlib.sha256(_SOURCE.encode()).hexdigest()[:12]
