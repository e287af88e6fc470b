"""Reads protobuf messages by tables of their fields, for the interpreter and for kernels.

``walk_message`` reads a message in a range of the buffer. Once the record around it is good, ``ready_message`` and
``keep_message`` add its fields to the columns. ``wirekit.program.messages`` creates the tables. The rules are those of
``wirekit.wire.protobuf``: the last value of a field wins, and unknown fields, or fields of another wire type, are
skipped.

Source: protobuf encoding guide, https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from wirekit.compiler.kernels.arrays import inlined, inner, int64_rows, uint8_on, uint64_on
from wirekit.compiler.kernels.reads import is_utf8, uint32_le, uint64_le
from wirekit.program import messages as layout
from wirekit.runtime import opcodes
from wirekit.runtime.memory import get
from wirekit.wire import dollar_entries, protobuf

# The results of ``walk_message``: GOOD, an error, or FULL if ``items`` is full.
GOOD, SHORT, LONG_VARINT, NO_FIELD, NO_TYPE, DEEP, FULL = 0, 1, 2, 3, 4, 5, -1

# A tray is one array of unsigned numbers, because numba need not check unsigned indexes for a sign. NONE replaces
# negative numbers.
U: Final = np.uint64
NONE: Final = U(0xFFFFFFFFFFFFFFFF)
ZERO, ONE, SEVEN = U(0), U(1), U(7)
# Places in the tray: its state, and the starts of its sections.
RECORD, KEPT, ITEMS, TOUCHED, OK, DENSE, MESSAGES, LIST_OF_TOUCHED, STACK, NEW = (U(at) for at in range(10))
LOST: Final = U(layout.LOST)
WIDTH: Final = U(layout.WIDTH)
DEEPEST: Final = protobuf.DEEPEST
LARGEST_FIELD: Final = U(dollar_entries.LARGEST_FIELD)
# Places of the numbers of a slot, of a field, of a message, and of an entry of the stack.
VALUE, LENGTH, STAMP, WHERE = (U(at) for at in range(4))
WIRE_TYPE, KIND, BITS, SLOT, MESSAGE, REPEATED, REQUIRED, LISTED = (U(at) for at in range(8))
FIRST, LAST_NUMBER, PRESENCE, END, ALL_REQUIRED, SELECTOR = (U(at) for at in range(6))
LIMIT, AT, SEEN, LIST = (U(at) for at in range(4))
SLOT_WIDTH: Final = U(layout.SLOT_WIDTH)
# Kinds of fields.
SIGNED, ZIGZAG, BOOLEAN, BYTES, TEXT, INNER = U(1), U(2), U(3), U(5), U(6), U(7)
# Columns of ``items``.
ITEM: Final = 5
ITEM_SLOT, ITEM_ROW, ITEM_INDEX, ITEM_VALUE, ITEM_LENGTH = 0, 1, 2, 3, 4
WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = U(0), U(1), U(2), U(5)


@inlined
def _varint(b: Any, p: Any, e: Any) -> Any:
    """(value, position after it, error code)."""
    value, shift = np.uint64(0), np.uint64(0)
    while True:
        if p >= e:
            return value, p, 1
        byte = np.uint64(b[np.uint64(p)])
        p += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return value, p, 0
        shift += np.uint64(7)
        if shift > np.uint64(63):
            return value, p, 2


@inlined
def _number(raw: Any, kind: Any, bits: Any) -> Any:
    """The value of a varint by the type of its field, in 64 bits of two's complement."""
    if kind == BOOLEAN:
        return np.uint64(raw != np.uint64(0))
    if bits == U(32):
        raw &= np.uint64(0xFFFFFFFF)
        if kind == SIGNED and raw >> np.uint64(31):
            raw |= np.uint64(0xFFFFFFFF00000000)
    if kind == ZIGZAG:
        raw = (raw >> np.uint64(1)) ^ (np.uint64(0) - (raw & np.uint64(1)))
    return raw


@inlined
def _touch(slot: Any, m: Any) -> None:
    """Marks that a slot has a value: its stamp is the record's number, or one less if the value was cleared again."""
    now, stamp = m[RECORD], m[slot + STAMP]
    if stamp != now:
        if stamp != now - ONE:
            m[m[LIST_OF_TOUCHED] + m[TOUCHED]] = slot
            m[TOUCHED] += ONE
            if m[slot + WHERE] == NONE:
                m[NEW] = ONE
        m[slot + STAMP] = now


@inner
def _cleared(first: Any, last: Any, m: Any, items: Any) -> None:
    """Clears slots: a repeated message replaces the one before."""
    now, slot = m[RECORD], first
    while slot < last:
        if m[slot + STAMP] == now:
            m[slot + STAMP] = now - ONE
        slot += SLOT_WIDTH
    for item in range(np.int64(m[KEPT]), np.int64(m[ITEMS])):
        if first <= U(items[item, ITEM_SLOT]) < last:
            items[item, ITEM_SLOT] = -1


@inlined
def _item(slot: Any, row: Any, index: Any, value: Any, length: Any, m: Any, items: Any) -> bool:
    """Adds an element of a list; returns False if memory is full."""
    at = np.int64(m[ITEMS])
    if at >= items.shape[0]:
        return False
    items[at, ITEM_SLOT], items[at, ITEM_ROW], items[at, ITEM_INDEX] = np.int64(slot), row, np.int64(index)
    items[at, ITEM_VALUE], items[at, ITEM_LENGTH] = np.int64(value), length
    m[ITEMS] += ONE
    return True


@inlined
def _counted(slot: Any, m: Any) -> Any:
    """The index of a list's next element."""
    if m[slot + STAMP] != m[RECORD]:
        m[slot] = ZERO
        _touch(slot, m)
    m[slot] += ONE
    return m[slot] - ONE


@inner
def _ended(at: Any, owner: Any, row: Any, m: Any, items: Any) -> bool:
    """Adds a message that is an element of a list; returns False if memory is full."""
    place, now = m[owner] - ONE, m[RECORD]
    slot, last = m[at + PRESENCE] + SLOT_WIDTH, m[at + END]
    while slot < last:
        if m[slot + STAMP] == now:
            if not _item(slot, row, place, m[slot], np.int64(m[slot + LENGTH]), m, items):
                return False
            m[slot + STAMP] = now - ONE
        slot += SLOT_WIDTH
    return True


@inlined
def _named(value: Any, numbers: Any, m: Any) -> bool:
    """Whether a number is one of a set."""
    at = value - m[numbers]
    return at < m[numbers + ONE] and m[numbers + U(2) + at] != ZERO


@inlined
def _selected(at: Any, seen: Any, m: Any) -> bool:
    """Whether the field exists that the selector of a message names."""
    selector = m[at + SELECTOR]
    if selector == NONE or seen & m[selector + REQUIRED] == ZERO or m[selector + SLOT] == NONE:
        return True
    number = m[m[selector + SLOT]]
    if number > m[at + LAST_NUMBER]:
        return True
    field = m[m[at + FIRST] + number]
    return field == NONE or m[field + SLOT] == NONE or m[m[field + SLOT] + STAMP] == m[RECORD]


@inner
def _demanded(at: Any, number: Any, m: Any) -> bool:
    """Whether the selector of a message was read and requires a field; an empty field leaves no other trace."""
    selector = m[at + SELECTOR]
    if selector == NONE or m[selector + SLOT] == NONE or m[m[selector + SLOT] + STAMP] != m[RECORD]:
        return False
    return bool(m[m[selector + SLOT]] == number)


@inner
def _packed(b: Any, p: Any, until: Any, field: Any, row: Any, m: Any, items: Any) -> Any:
    """Reads the elements of a packed list; returns the error code and the position."""
    wire_type, slot = m[field + WIRE_TYPE], m[field + SLOT]
    while p < until:
        start = p
        if wire_type == WIRE_VARINT:
            raw, p, wrong = _varint(b, p, until)
            if wrong:
                return np.int64(wrong), p if wrong == SHORT else start
            raw = _number(raw, m[field + KIND], m[field + BITS])
        else:
            size = 8 if wire_type == WIRE_64 else 4
            if until - p < size:
                return np.int64(SHORT), p
            raw = uint64_le(b, p) if size == 8 else np.uint64(uint32_le(b, p))
            p += size
        if slot != NONE:
            place = _counted(slot, m)
            if m[field + LISTED] != ZERO and not _item(slot, row, place, raw, 0, m, items):
                return np.int64(FULL), p
    return np.int64(GOOD), p


@inlined
def _tray(t: Any, at: Any) -> Any:
    return uint64_on(get(t, at + opcodes.TRAY), get(t, at + opcodes.TRAY_SIZE))


@inner
def walk_message(t: Any, at: Any, p: Any, limit: Any, row: Any) -> Any:
    """Reads a message that ends at a limit.

    Args:
        t: the table of the scan.
        at: the place of the message in it.

    Returns:
        (error code, position, number of the message with the error).
    """
    b, m = uint8_on(get(t, opcodes.DATA), get(t, opcodes.SIZE)), _tray(t, at)
    items = int64_rows(get(t, at + opcodes.ITEMS), get(t, at + opcodes.ITEM_ROOM), ITEM)
    m[RECORD] += U(2)
    m[ITEMS], m[TOUCHED], m[OK], m[NEW] = m[KEPT], ZERO, ONE, ZERO
    messages, now = m[MESSAGES], m[RECORD]
    depth, at, end, seen = 0, messages, limit, ZERO
    m[LOST] = ZERO
    _touch(m[messages + PRESENCE], m)
    while True:
        if p >= end:
            if seen & m[at + ALL_REQUIRED] != m[at + ALL_REQUIRED] or not _selected(at, seen, m):
                m[OK] = ZERO
            if depth == 0:
                return np.int64(GOOD), p, np.int64(0)
            top = m[STACK] + WIDTH * U(depth)
            if m[top + LIST] != NONE and not _ended(at, m[top + LIST], row, m, items):
                return np.int64(FULL), p, np.int64(0)
            end, at, seen = np.int64(m[top + LIMIT]), m[top + AT], m[top + SEEN]
            depth -= 1
            continue
        begun = start = p
        tag = U(b[U(p)])
        p += 1
        if tag >= U(0x80):
            tag, p, wrong = _varint(b, start, end)
            if wrong:
                return np.int64(wrong), p if wrong == SHORT else start, np.int64((at - messages) // WIDTH)
        number, wire_type = tag >> U(3), tag & SEVEN
        field, packed = NONE, False
        if number <= m[at + LAST_NUMBER]:
            field = m[m[at + FIRST] + number]
        if field != NONE and m[field + WIRE_TYPE] != wire_type:
            packed = m[field + REPEATED] != ZERO and wire_type == WIRE_BYTES
            if not packed:
                field = NONE
        if field == NONE and not ONE <= number <= LARGEST_FIELD:
            return np.int64(NO_FIELD), p, np.int64((at - messages) // WIDTH)
        raw: Any = ZERO
        length: Any = np.int64(-1)
        if wire_type in (WIRE_VARINT, WIRE_BYTES):
            start = p
            raw, p, wrong = _varint(b, p, end)
            if wrong:
                return np.int64(wrong), p if wrong == SHORT else start, np.int64((at - messages) // WIDTH)
            if wire_type == WIRE_BYTES:
                if raw > U(end - p):
                    return np.int64(SHORT), p, np.int64((at - messages) // WIDTH)
                length, raw = np.int64(raw), U(p)
        elif wire_type in (WIRE_64, WIRE_32):
            width = 8 if wire_type == WIRE_64 else 4
            if end - p < width:
                return np.int64(SHORT), p, np.int64((at - messages) // WIDTH)
            raw = uint64_le(b, p) if wire_type == WIRE_64 else U(uint32_le(b, p))
            p += width
        else:
            return np.int64(NO_TYPE), p, np.int64((at - messages) // WIDTH)
        if field == NONE:
            p += max(length, 0)
            m[LOST] += U(p - begun)
            continue
        kind, slot = m[field + KIND], m[field + SLOT]
        seen |= m[field + REQUIRED]
        if packed:
            problem, p = _packed(b, p, p + length, field, row, m, items)
            if problem:
                return problem, p, np.int64((at - messages) // WIDTH)
            if slot == NONE:
                m[LOST] += U(p - begun)
            continue
        if kind == INNER:
            child, owner = m[field + MESSAGE], NONE
            if slot != NONE:
                if m[field + REPEATED] != ZERO:
                    _counted(slot, m)
                    if m[field + LISTED] != ZERO:
                        owner = slot
                else:
                    if m[slot + STAMP] == now:
                        _cleared(slot + SLOT_WIDTH, m[child + END], m, items)
                    _touch(slot, m)
                    if length == 0 and m[field + REQUIRED] == ZERO and not _demanded(at, number, m):
                        m[LOST] += U(p - begun)
            else:
                m[LOST] += U(p - begun)
            if depth >= DEEPEST:
                return np.int64(DEEP), p, np.int64((at - messages) // WIDTH)
            depth += 1
            top = m[STACK] + WIDTH * U(depth)
            m[top + LIMIT], m[top + AT], m[top + SEEN], m[top + LIST] = U(end), at, seen, owner
            end, at, seen = p + length, child, ZERO
            continue
        if kind <= BOOLEAN:
            raw = _number(raw, kind, m[field + BITS])
            if m[field + MESSAGE] != NONE and not _named(raw, m[field + MESSAGE], m):
                seen &= ~m[field + REQUIRED]
        elif kind >= BYTES:
            if kind == TEXT and not is_utf8(b, p, length):
                m[OK] = ZERO
            p += length
        if slot == NONE:
            m[LOST] += U(p - begun)
            continue
        if m[field + REPEATED] != ZERO:
            place = _counted(slot, m)
            if m[field + LISTED] != ZERO and not _item(slot, row, place, raw, length, m, items):
                return np.int64(FULL), p, np.int64(0)
            continue
        _touch(slot, m)
        m[slot], m[slot + LENGTH] = raw, U(length)


@inner
def ready_message(t: Any, at: Any, row: Any) -> bool:
    """Whether the columns have memory for a row of the fields that were read; new fields get a column."""
    m = _tray(t, at)
    if row >= get(t, at + opcodes.DENSE_ROWS):
        return False
    if m[NEW] == ZERO:
        return True
    columns = U(get(t, at + opcodes.DENSE_COLUMNS))
    place, last = m[LIST_OF_TOUCHED], m[LIST_OF_TOUCHED] + m[TOUCHED]
    while place < last:
        slot = m[place]
        if m[slot + STAMP] == m[RECORD] and m[slot + WHERE] == NONE:
            if m[DENSE] + U(2) > columns:
                return False
            m[slot + WHERE] = m[DENSE]
            m[DENSE] += U(2)
        place += ONE
    return True


@inner
def keep_message(t: Any, at: Any, row: Any) -> None:
    """Adds the fields that were read to the columns, as a row."""
    m, columns, rows = _tray(t, at), get(t, at + opcodes.DENSE_COLUMNS), get(t, at + opcodes.DENSE_ROWS)
    dense = uint64_on(get(t, at + opcodes.DENSE), columns * rows)
    present = uint8_on(get(t, at + opcodes.PRESENT), columns * rows // 2)
    place, last = m[LIST_OF_TOUCHED], m[LIST_OF_TOUCHED] + m[TOUCHED]
    now, line, width = m[RECORD], U(row), U(rows)
    while place < last:
        slot = m[place]
        column = m[slot + WHERE]
        if column < U(columns) and m[slot + STAMP] == now:
            cell = column * width + line
            dense[cell] = m[slot]
            if m[slot + LENGTH] != NONE:
                dense[cell + width] = m[slot + LENGTH]
            present[(column >> ONE) * width + line] = 1
        place += ONE
    m[KEPT] = m[ITEMS]


@inlined
def message_state(t: Any, at: Any) -> Any:
    """(the verdict on the message, the number of its bytes without a column)."""
    m = _tray(t, at)
    return np.int64(m[OK]), np.int64(m[LOST])


@inlined
def pick_field(t: Any, at: Any, slot: Any) -> Any:
    """(value of a field, whether it is there)."""
    m = _tray(t, at)
    return np.int64(m[slot]), np.int64(m[slot + STAMP] == m[RECORD])
