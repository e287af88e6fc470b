"""Writes a protobuf message by a table of its fields, for the interpreter of write programs.

``sized`` says how many bytes the message of a row takes, ``written`` writes it. ``building.tables`` makes the table,
``write_opcodes`` says what is in it; its addresses are those of arrays that who calls keeps alive. The rules are those
of ``wirekit.wire.protobuf``: fields by number, each in the shortest form.

Source: protobuf encoding guide, https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from wirekit.compiler.kernels.arrays import inner, int64_on, uint8_on, uint64_on
from wirekit.compiler.kernels.reads import copy
from wirekit.runtime import write_opcodes as op


@inner
def put_varint(target: Any, position: int, number: Any) -> int:
    """Writes a number without sign as a varint; gives where it ends."""
    while number > np.uint64(0x7F):
        target[np.uint64(position)] = np.uint8(number & np.uint64(0x7F) | np.uint64(0x80))
        number >>= np.uint64(7)
        position += 1
    target[np.uint64(position)] = np.uint8(number)
    return position + 1


@inner
def varint_size(number: Any) -> int:
    """How many bytes a varint takes."""
    size = 1
    while number > np.uint64(0x7F):
        number >>= np.uint64(7)
        size += 1
    return size


@inner
def _place(m: Any, at: Any, row: Any, index: Any) -> Any:
    """Where the value of a row, or of an element of its list, stands among those of the column."""
    if index < 0:
        return row
    return int64_on(m[at + op.LISTS], m[at + op.ROWS] + 1)[row] + index


@inner
def _stored(m: Any, at: Any, row: Any, index: Any) -> bool:
    """Whether the column has a value."""
    if m[at + op.FIELD_GIVEN] == op.MISSING:
        return False
    if m[at + op.FIELD_GIVEN] == op.WHOLE:
        return True
    return bool(uint8_on(m[at + op.FIELD_VALID], m[at + op.FIELD_COUNT])[_place(m, at, row, index)] != 0)


@inner
def _there(m: Any, at: Any, row: Any, index: Any) -> bool:
    """Whether a field has a value."""
    return m[at + op.TOLD] != 0 or _stored(m, at, row, index)


@inner
def _number(m: Any, at: Any, row: Any, index: Any) -> Any:
    """A number as it is written: what the varint stands for, or the bytes of one of fixed size."""
    if m[at + op.TOLD] != 0:
        return np.uint64(m[at + op.NUMBER])
    return uint64_on(m[at + op.FIELD_VALUES], m[at + op.FIELD_COUNT])[_place(m, at, row, index)]


@inner
def _length(m: Any, at: Any, row: Any) -> Any:
    """Elements of a list."""
    if m[at + op.FIELD_GIVEN] == op.MISSING:
        return np.int64(0)
    ends = int64_on(m[at + op.LISTS], m[at + op.ROWS] + 1)
    return ends[row + 1] - ends[row]


@inner
def _listed(m: Any, at: Any, row: Any) -> bool:
    """Whether a row has a list, be it empty: then the message around it is there."""
    if m[at + op.FIELD_GIVEN] == op.MISSING:
        return False
    return bool(m[at + op.LIST_VALID] == 0 or uint8_on(m[at + op.LIST_VALID], m[at + op.ROWS])[row] != 0)


@inner
def filled(m: Any, at: Any, row: Any, index: Any) -> bool:
    """Whether anything inside a message has a value."""
    inner = at + op.WIDTH
    while inner < m[at + op.END]:
        if m[inner + op.KIND] != op.KIND_MESSAGE:
            if index < 0 and m[inner + op.FLAGS] & op.LISTED:
                if _listed(m, inner, row):
                    return True
            elif _stored(m, inner, row, index):
                return True
        inner += op.WIDTH
    return False


@inner
def _wrong(m: Any, at: Any, how: int) -> Any:
    return -(op.FAULTS * m[at + op.SLOT] + how)


@inner
def _elements(m: Any, at: Any, row: Any) -> Any:
    """How many messages a list has: all columns of their fields have as many elements."""
    inner, count = at + op.WIDTH, np.int64(-1)
    while inner < m[at + op.END]:
        if m[inner + op.KIND] != op.KIND_MESSAGE and m[inner + op.FIELD_GIVEN] != op.MISSING:
            length = _length(m, inner, row)
            if count >= 0 and count != length:
                return _wrong(m, inner, op.UNEVEN)
            count = length
        inner += op.WIDTH
    return max(count, 0)


@inner
def _content(m: Any, at: Any, row: Any, index: Any) -> Any:
    """(start, length) of a byte string; a length below 0 where its offsets are wrong."""
    place = _place(m, at, row, index)
    ends = int64_on(m[at + op.FIELD_VALUES], m[at + op.FIELD_COUNT] + 1)
    start, length = ends[place], ends[place + 1] - ends[place]
    if start < 0 or length < 0 or length > m[at + op.FIELD_DATA_SIZE] - start:
        return start, np.int64(-1)
    return start, length


@inner
def _size(m: Any, at: Any, row: Any, index: Any) -> Any:
    """Bytes of a value behind its tag; below 0 where the offsets of a byte string are wrong."""
    kind = m[at + op.KIND]
    if kind == op.KIND_VARINT:
        return np.int64(varint_size(_number(m, at, row, index)))
    if kind == op.KIND_BYTES:
        _, length = _content(m, at, row, index)
        return length if length < 0 else varint_size(np.uint64(length)) + length
    return np.int64(4 if kind == op.KIND_32 else 8 if kind == op.KIND_64 else 1)


@inner
def _chosen(m: Any, at: Any, row: Any, index: Any) -> Any:
    """The number of the message that another field of it demands; -1 for none."""
    selector = m[at + op.SELECTOR]
    if selector < 0 or not _there(m, selector, row, index):
        return np.int64(-1)
    return np.int64(_number(m, selector, row, index))


# No function calls itself: numba keeps such machine code in its cache, and crashes when it loads it. A list of messages
# has no lists inside, so that functions for its elements, made first, are called by those for the message around them.


@inner
def _no_list(m: Any, at: Any, row: Any) -> Any:
    return np.int64(0)


def _sizing(listed: Any) -> Any:
    """The function that measures a message; ``listed`` measures a list in it."""

    @inner
    def measure(m: Any, at: Any, row: Any, index: Any) -> Any:
        m[at + op.SIZE], m[at + op.CHOSEN] = 0, _chosen(m, at, row, index)
        last, inner = at, at + op.WIDTH
        while inner < m[at + op.END]:
            kind, flags, outer = m[inner + op.KIND], m[inner + op.FLAGS], m[inner + op.PARENT]
            tag, part = varint_size(np.uint64(m[inner + op.TAG])), np.int64(0)
            if flags & op.REPEATED:
                part = listed(m, inner, row)
                if part < 0:
                    return part
            elif kind == op.KIND_MESSAGE:
                chosen = m[outer + op.CHOSEN] == m[inner + op.TAG] >> 3
                m[inner + op.THERE] = np.int64(chosen or flags & op.REQUIRED != 0 or filled(m, inner, row, index))
                if m[inner + op.THERE]:
                    m[inner + op.SIZE], m[inner + op.CHOSEN] = 0, _chosen(m, inner, row, index)
                    m[inner + op.BEFORE] = last
                    last = inner
                    inner += op.WIDTH
                    continue
            elif _there(m, inner, row, index):
                part = _size(m, inner, row, index)
                if part < 0:
                    return _wrong(m, inner, op.OUTSIDE)
                part += tag
            elif flags & op.REQUIRED:
                return _wrong(m, inner, op.ABSENT)
            m[outer + op.SIZE] += part
            inner = m[inner + op.END]
        while last != at:  # a message inside is whole when those inside of it are
            size = m[last + op.SIZE]
            m[m[last + op.PARENT] + op.SIZE] += (
                varint_size(np.uint64(m[last + op.TAG])) + varint_size(np.uint64(size)) + size
            )
            last = m[last + op.BEFORE]
        return m[at + op.SIZE]

    return measure


_element_sized: Final = _sizing(_no_list)


@inner
def _list_sized(m: Any, at: Any, row: Any) -> Any:
    """Bytes of a list, with the tags of its elements."""
    kind, size, tag = m[at + op.KIND], np.int64(0), varint_size(np.uint64(m[at + op.TAG]))
    count = _elements(m, at, row) if kind == op.KIND_MESSAGE else _length(m, at, row)
    if count < 0:
        return count
    for element in range(count):
        if kind == op.KIND_MESSAGE:
            part = _element_sized(m, at, row, element)
            if part < 0:
                return part
            part += varint_size(np.uint64(part))
        elif not _stored(m, at, row, element):
            return _wrong(m, at, op.NO_ELEMENT)
        else:
            part = _size(m, at, row, element)
            if part < 0:
                return _wrong(m, at, op.OUTSIDE)
        size += tag + part
    return size


sized: Final = _sizing(_list_sized)
"""``sized(m, at, row, -1)``: bytes of the message of a row; below 0 where it cannot be written."""


@inner
def _put(o: Any, p: Any, m: Any, at: Any, row: Any, index: Any) -> Any:
    """Writes a value behind its tag; gives where it ends."""
    kind = m[at + op.KIND]
    if kind == op.KIND_VARINT:
        return put_varint(o, p, _number(m, at, row, index))
    if kind == op.KIND_BYTES:
        start, length = _content(m, at, row, index)
        p = put_varint(o, p, np.uint64(length))
        copy(o, p, uint8_on(m[at + op.FIELD_DATA], m[at + op.FIELD_DATA_SIZE]), start, length)
        return p + length
    if kind in (op.KIND_32, op.KIND_64):
        number, size = _number(m, at, row, index), 4 if kind == op.KIND_32 else 8
        for place in range(size):
            o[p + place] = np.uint8(number >> np.uint64(8 * place))
        return p + size
    return put_varint(o, p, np.uint64(0))


@inner
def _none_written(o: Any, p: Any, m: Any, at: Any, row: Any) -> Any:
    return p


def _writing(listed: Any) -> Any:
    """The function that writes a message; ``listed`` writes a list in it."""

    @inner
    def write(o: Any, p: Any, m: Any, at: Any, row: Any, index: Any) -> Any:
        inner = at + op.WIDTH
        while inner < m[at + op.END]:
            tag = np.uint64(m[inner + op.TAG])
            if m[inner + op.FLAGS] & op.REPEATED:
                p = listed(o, p, m, inner, row)
            elif m[inner + op.KIND] == op.KIND_MESSAGE:
                if m[inner + op.THERE]:
                    p = put_varint(o, put_varint(o, p, tag), np.uint64(m[inner + op.SIZE]))
                    inner += op.WIDTH
                    continue
            elif _there(m, inner, row, index):
                p = _put(o, put_varint(o, p, tag), m, inner, row, index)
            inner = m[inner + op.END]
        return p

    return write


_element_written: Final = _writing(_none_written)


@inner
def _list_written(o: Any, p: Any, m: Any, at: Any, row: Any) -> Any:
    kind, tag = m[at + op.KIND], np.uint64(m[at + op.TAG])
    count = _elements(m, at, row) if kind == op.KIND_MESSAGE else _length(m, at, row)
    for element in range(count):
        p = put_varint(o, p, tag)
        if kind == op.KIND_MESSAGE:
            p = put_varint(o, p, np.uint64(_element_sized(m, at, row, element)))
            p = _element_written(o, p, m, at, row, element)
        else:
            p = _put(o, p, m, at, row, element)
    return p


written: Final = _writing(_list_written)
"""``written(o, p, m, at, row, -1)``: writes a message that was just measured; gives where it ends."""


# What the rest of a record reads of a message, by the slot of a field: ``m[slot]`` is where its entry stands.


@inner
def tells(m: Any, slot: Any, row: Any, always: Any, number: Any) -> None:
    """A field that follows from others gets its number; one that is not there only if ``always``."""
    at = m[slot]
    m[at + op.TOLD] = np.int64(always or _stored(m, at, row, -1))
    m[at + op.NUMBER] = number


@inner
def untold(m: Any, slot: Any) -> None:
    """A field stays as its column has it."""
    m[m[slot] + op.TOLD] = 0


@inner
def stored(m: Any, slot: Any, row: Any) -> bool:
    """Whether the column of a field has a value."""
    return bool(m[slot] >= 0) and _stored(m, m[slot], row, -1)


@inner
def has(m: Any, slot: Any, row: Any) -> bool:
    """Whether a field has a value."""
    return bool(m[slot] >= 0) and _there(m, m[slot], row, -1)


@inner
def number_of(m: Any, slot: Any, row: Any) -> Any:
    """The number of a field; 0 for one that is not there."""
    return np.int64(_number(m, m[slot], row, -1)) if has(m, slot, row) else np.int64(0)


@inner
def count_of(m: Any, slot: Any, row: Any) -> Any:
    """How many elements a list has."""
    if m[slot] < 0:
        return np.int64(0)
    if m[m[slot] + op.KIND] == op.KIND_MESSAGE:
        return max(_elements(m, m[slot], row), np.int64(0))
    return _length(m, m[slot], row)
