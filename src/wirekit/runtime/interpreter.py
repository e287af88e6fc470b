"""The interpreter: decodes a record by an encoded program, and adds its fields to columns.

It is one nopython function for all layouts; its data are in a table of addresses and sizes (see ``opcodes``). It
compares fields with the nearest limit before it reads them, and checks the memory of columns before it writes to them.
If memory is missing, it stores how much, reads the record to its end, and the caller allocates memory and calls again.
``loop`` iterates over the records.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from wirekit.compiler.kernels.arrays import inlined, inlined_dividing, inner, uint8_on
from wirekit.compiler.kernels.protobuf import keep_message, message_state, pick_field, ready_message, walk_message
from wirekit.compiler.kernels.reads import is_utf8
from wirekit.program import steps
from wirekit.runtime import opcodes as op
from wirekit.runtime.memory import (
    emit_bytes,
    emit_list,
    emit_number,
    get,
    load_8,
    number,
    put,
    put_value,
    undo,
    word,
)
from wirekit.runtime.shared_steps import fail, is_next, shared_step

U: Final = np.uint64
NONE: Final = U(0xFFFFFFFFFFFFFFFF)
ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = (U(at) for at in range(1, 9))
NINE, TEN, ELEVEN = U(9), U(10), U(11)
ROW, AFTER = U(steps.ROW), U(steps.AFTER)
EXTRA, FAULT, HANDLING = U(steps.EXTRA), U(steps.FAULT), U(steps.HANDLING)

CUT_MESSAGE: Final = 1  # the error code of ``walk_message`` for missing bytes
MESSAGE_LIMIT: Final = 5  # for too deeply nested messages


@inlined
def _buffer(t: Any) -> Any:
    return uint8_on(get(t, op.DATA), get(t, op.SIZE))


@inner
def _is_text(t: Any, start: int, length: int, encoding: Any) -> bool:
    """Whether a range is text in one of ``wirekit.codings.ENCODINGS``, by its number."""
    b = _buffer(t)
    if encoding == U(0):
        return bool(is_utf8(b, start, length))
    if encoding == ONE:
        for place in range(start, start + length):  # noqa: SIM110
            if b[place] >= 0x80:
                return False
        return True
    if encoding == TWO:
        return True
    high, before = (1 if encoding == THREE else 0), False  # whether the first half of a pair precedes
    for place in range(start, start + (length & ~1), 2):
        kind = b[place + high] & 0xFC
        if (kind == 0xDC) != before:
            return False
        before = kind == 0xD8
    return not before and length & 1 == 0


@inner
def _delimiter_position(t: Any, p: int, limit: int, code: Any, at: Any) -> Any:
    """The position of a delimiter, or -1."""
    size = np.int64(word(code, at))
    for place in range(p, limit - size + 1):
        if is_next(get(t, op.DATA), get(t, op.SIZE), place, limit, code, at):
            return place
    return -1


@inner
def _has_line(t: Any, start: int, end: int) -> bool:
    b = _buffer(t)
    for place in range(start, end):  # noqa: SIM110
        if b[place] == 0x0A:
            return True
    return False


@inner
def _decimal(t: Any, start: int, end: int) -> Any:
    """(the value of a decimal integer, whether it fits 64 bits)."""
    b = _buffer(t)
    negative = start < end and b[start] == 0x2D
    at = start + 1 if negative else start
    if at >= end or end - at > 19 or (b[at] == 0x30 and (negative or end - at > 1)):
        return np.int64(0), False
    value = U(0)
    for place in range(at, end):
        digit = b[place] - np.uint8(0x30)
        if digit > 9:
            return np.int64(0), False
        value = value * TEN + U(digit)
    if value > U(0x7FFFFFFFFFFFFFFF) + U(negative):
        return np.int64(0), False
    return np.int64(U(0) - value if negative else value), True


@inlined
def _run(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Reads a run of numbers; returns the next place."""
    row, fields, marks = get(reg, ROW), word(code, pc + FIVE), word(code, pc + SIX)
    data, size, raw = get(t, op.DATA), get(t, op.SIZE), U(0)
    base = get(t, op.TAIL) if p + np.int64(word(code, pc + FOUR)) + 8 > size else data
    pc += SEVEN
    for _ in range(fields):
        how = word(code, pc)
        if how < op.REPEATED:
            raw = load_8(data, size, base, p + np.int64(word(code, pc + ONE)), how & U(op.BIG) != U(0))
            raw <<= how & U(op.BIG - 1)
        value = np.int64(raw) >> np.int64(word(code, pc + TWO)) & np.int64(word(code, pc + THREE))
        put(reg, word(code, pc + FOUR), value)
        pc += FIVE
        if how & op.CHECKED != U(0):
            if value < np.int64(word(code, pc)) or value > np.int64(word(code, pc + ONE)):
                return fail(reg, word(code, pc + TWO))
            pc += THREE
        if how & op.DIRECTLY != U(0):
            put_value(np.int64(word(code, pc)), row * np.int64(word(code, pc + ONE)), value)
            pc += TWO
        elif how & op.TO_COLUMN != U(0):
            emit_number(t, reg, word(code, pc), value, np.int64(1))
            pc += ONE
    for _ in range(marks):
        put(reg, word(code, pc), p + np.int64(word(code, pc + ONE)))
        pc += TWO
    return pc


@inlined
def _prefixed(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Reads bytes after their length; returns (next place, position)."""
    how, limit = word(code, pc + ONE), get(reg, word(code, pc + TWO))
    size = np.int64((U(64) - (how & U(op.BIG - 1))) >> THREE)
    if limit - p < size:
        return fail(reg, word(code, pc + FIVE)), p
    length = number(get(t, op.DATA), get(t, op.SIZE), get(t, op.TAIL), p, how)
    p += size
    present = np.int64(1)
    if word(code, pc + THREE) != U(0) and length <= np.int64(word(code, pc + FOUR)):
        length, present = np.int64(0), np.int64(0)
    if length < 0 or length > limit - p:
        fault = word(code, pc + SIX)
        return fail(reg, fault if length < 0 and fault != NONE else word(code, pc + SEVEN)), p
    put(reg, word(code, pc + EIGHT), p)
    put(reg, word(code, pc + NINE), length)
    if word(code, pc + TEN) != NONE:
        put(reg, word(code, pc + TEN), present)
    column = word(code, pc + ELEVEN)
    if column != NONE:
        emit_bytes(t, reg, column, p, length, present)
    return pc + U(12), p + length


@inlined
def _bound(code: Any, reg: Any, p: Any, pc: Any) -> Any:
    """Begins the range of a length; returns the next place."""
    outer, size = get(reg, word(code, pc + TWO)), get(reg, word(code, pc + THREE))
    covered, wrong = size - np.int64(word(code, pc + FOUR)), word(code, pc + FIVE)
    limit = p + covered
    if size == 0 and word(code, pc + SIX) != U(0):
        limit = outer
    elif covered > outer - p or covered < 0:
        if wrong != NONE:
            return fail(reg, wrong)
        limit = outer if covered > 0 else p
    put(reg, word(code, pc + ONE), limit)
    if word(code, pc + SEVEN) != U(0):
        put(reg, AFTER, limit)
    return pc + EIGHT


@inner
def _looped(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Checks for another element; returns the next place."""
    step = word(code, pc)
    if step == op.COUNTED:
        if get(reg, word(code, pc + ONE)) >= get(reg, word(code, pc + TWO)):
            return word(code, pc + FIVE)
        following = pc + SIX
    else:
        limit, until = get(reg, word(code, pc + TWO)), word(code, pc + SEVEN)
        ended = p >= limit
        if until != U(0) and get(reg, word(code, pc + ONE)) >= np.int64(word(code, pc + SIX)) and not ended:
            ended = is_next(get(t, op.DATA), get(t, op.SIZE), p, limit, code, pc + SEVEN)
        if ended:
            return word(code, pc + FIVE)
        following = pc + EIGHT + until
    put(reg, word(code, pc + THREE), p)
    if word(code, pc + FOUR) != NONE:
        put(reg, word(code, pc + FOUR), get(reg, EXTRA))
    return following


@inner
def _again(code: Any, reg: Any, p: Any, pc: Any) -> Any:
    """Ends an element; returns the next place."""
    if word(code, pc + FOUR) != NONE and p == get(reg, word(code, pc + THREE)):
        return fail(reg, word(code, pc + FOUR))
    index, turn = word(code, pc + ONE), word(code, pc + TWO)
    put(reg, index, get(reg, index) + 1)
    put(reg, turn, get(reg, turn) + 1)
    return word(code, pc + FIVE)


@inner
def _caught(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Runs a handler; returns (next place, position)."""
    fault = get(reg, FAULT)
    outer = word(code, pc + THREE)
    put(reg, HANDLING, np.int64(outer))
    if word(code, pc) == op.CUT:
        passes = fault & op.CUT_FAULT == 0
    else:
        passes = fault & op.LIMIT_FAULT != 0
    if passes:
        return outer, p
    put(reg, FAULT, np.int64(0))
    put(reg, EXTRA, get(reg, word(code, pc + TWO)))
    count = word(code, pc + FOUR)
    for index in range(count):
        undo(t, reg, word(code, pc + FIVE + U(index)))
    return pc + FIVE + count, get(reg, word(code, pc + ONE))


@inner
def _find(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Reads text up to a delimiter; returns (next place, position)."""
    limit = get(reg, word(code, pc + TWO))
    end = _delimiter_position(t, p, limit, code, pc + NINE)
    if end < 0:
        return fail(reg, word(code, pc + SIX)), p
    if word(code, pc + SEVEN) != NONE and _has_line(t, p, end):
        return fail(reg, word(code, pc + SEVEN)), p
    put(reg, word(code, pc + THREE), p)
    put(reg, word(code, pc + FOUR), end - p)
    if word(code, pc + ONE) != U(0):
        value, good = _decimal(t, p, end)
        if not good:
            return fail(reg, word(code, pc + EIGHT)), p
        put(reg, word(code, pc + FIVE), value)
    return pc + TEN + word(code, pc + NINE), end + np.int64(word(code, pc + NINE))


@inlined
def _size_by_first_byte(form: Any, byte: Any) -> Any:
    """The size of a number by its first byte, 0 if it begins none, and its bits in this byte."""
    for low, high, size in op.HEADS[np.int64(form)]:
        if low <= byte <= high and size > U(0):
            return np.int64(size), byte - low
    return np.int64(0), U(0)


@inner
def _varint(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Reads a varint; returns (next place, position)."""
    b, limit = _buffer(t), get(reg, word(code, pc + TWO))
    groups, bits, form = np.int64(word(code, pc + THREE)), word(code, pc + FOUR), word(code, pc + FIVE)
    value, over, shift, part, end = U(0), U(0), U(0), U(0), p
    while op.HEADS[np.int64(form), 0, 2] == U(0):
        if end - p >= groups:
            return fail(reg, word(code, pc + EIGHT)), p
        if end >= limit:
            return fail(reg, word(code, pc + SEVEN)), p
        byte = U(b[end])
        part = byte & U(0x7F)
        if form == THREE:
            over |= value >> (bits - SEVEN)
            value = value << SEVEN | part
        else:
            if shift + SEVEN > bits:
                over |= part >> (bits - min(shift, bits))
            value |= part << shift
        shift += SEVEN
        end += 1
        if byte < U(0x80):
            break
    if op.HEADS[np.int64(form), 0, 2] != U(0):
        if p >= limit:
            return fail(reg, word(code, pc + SEVEN)), p
        size, value = _size_by_first_byte(form, U(b[p]))
        end = p + size
        if size == 0:
            return fail(reg, word(code, pc + EIGHT)), p
        if end > limit:
            return fail(reg, word(code, pc + SEVEN)), p
        for at in range(1, size):
            if op.IS_LITTLE[np.int64(form)]:
                value |= U(b[p + at]) << U(8 * (at - 1))
            else:
                value = value << EIGHT | U(b[p + at])
        over = U(0) if bits == U(64) else value >> bits
    if over != U(0) and form != TWO:
        return fail(reg, word(code, pc + EIGHT)), p
    number = np.int64(value)
    if form == ONE:
        number = np.int64(value >> ONE) ^ -np.int64(value & ONE)
    elif form == TWO:
        unused = np.int64(64) - np.int64(min(shift, U(64)))
        number = number << unused >> unused
        beyond = number >> np.int64(bits - ONE)
        if (shift > U(64) and part != U(0) and part != U(0x7F)) or beyond not in (0, -1):
            return fail(reg, word(code, pc + EIGHT)), p
    put(reg, word(code, pc + ONE), number)
    if word(code, pc + SIX) != NONE:
        emit_number(t, reg, word(code, pc + SIX), number, 1)
    return pc + NINE, end


@inlined
def message_at(t: Any, number: Any) -> Any:
    """The place of a message in the table of a scan."""
    return get(t, op.MESSAGES) + op.WIDTH_OF_MESSAGE * np.int64(number)


@inner
def walked(t: Any, message: Any, p: Any, limit: Any, row: Any, first: Any, cut: Any) -> Any:
    """Reads a message with an entry in the table of a scan.

    Args:
        first: the number of the reasons before those of the message.
        cut: whether the limit is that of a list that ends before an incomplete record.

    Returns:
        (fault: 0 for none, -1 for full arrays; position; the verdict on the message; the number of its bytes without a
        column).
    """
    wrong, p, where = walk_message(t, message, p, limit, row)
    if wrong < 0:
        put(t, op.FULL, np.int64(1))
        return np.int64(-1), p, np.int64(0), np.int64(0)
    good, lost = message_state(t, message)
    fault = np.int64(0)
    if wrong > 0:
        fault = np.int64(first) + 5 * where + wrong
        if wrong == MESSAGE_LIMIT:
            fault |= op.LIMIT_FAULT
        if wrong == CUT_MESSAGE and cut:
            fault |= op.CUT_FAULT
    return fault, p, good, lost


@inner
def _walk(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Reads a message; returns (next place, position)."""
    limit, row = get(reg, word(code, pc + TWO)), get(reg, ROW)
    message, first, cut = message_at(t, word(code, pc + ONE)), word(code, pc + FIVE), word(code, pc + SIX)
    fault, p, good, lost = walked(t, message, p, limit, row, first, cut)
    if fault != 0:
        following = fail(reg, fault)
        return following if fault > 0 else U(0), p
    put(reg, word(code, pc + THREE), np.int64(1))
    put(reg, word(code, pc + FOUR), good)
    put(reg, EXTRA, get(reg, EXTRA) + lost)
    return pc + SEVEN, p


@inner
def _keep(code: Any, reg: Any, t: Any, pc: Any) -> Any:
    """Adds messages to their columns; returns the next place."""
    count, row = word(code, pc + ONE), get(reg, ROW)
    for index in range(count):
        at = pc + TWO + TWO * U(index)
        if get(reg, word(code, at + ONE)) != 0 and not ready_message(t, message_at(t, word(code, at)), row):
            put(t, op.FULL, np.int64(1))
    if get(t, op.FULL) == 0:
        for index in range(count):
            at = pc + TWO + TWO * U(index)
            if get(reg, word(code, at + ONE)) != 0:
                keep_message(t, message_at(t, word(code, at)), row)
    return pc + TWO + TWO * count


@inner
def _rare(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Runs a rare step; returns (next place, position)."""
    step = word(code, pc)
    if step == op.FIND:
        return _find(code, reg, t, p, pc)
    if step == op.VARINT:
        return _varint(code, reg, t, p, pc)
    if step in (op.CUT, op.CAUGHT):
        return _caught(code, reg, t, p, pc)
    if step == op.EMIT_ABSENT:
        value, present = get(reg, word(code, pc + TWO)), get(reg, word(code, pc + THREE))
        emit_number(t, reg, word(code, pc + ONE), value, present)
        return pc + FOUR, p
    # COPY
    present = np.int64(1) if word(code, pc + FOUR) == NONE else get(reg, word(code, pc + FOUR))
    emit_bytes(t, reg, word(code, pc + ONE), get(reg, word(code, pc + TWO)), get(reg, word(code, pc + THREE)), present)
    return pc + FIVE, p


@inlined_dividing
def read_record(code: Any, reg: Any, t: Any, p: Any) -> Any:
    """Reads a record; returns the position. Registers have the fault and the number of unexplained bytes."""
    pc = ONE
    put(reg, FAULT, np.int64(0))
    put(reg, EXTRA, np.int64(0))
    put(reg, HANDLING, np.int64(0))
    while True:
        step = word(code, pc)
        if step == op.RUN:
            if np.int64(word(code, pc + ONE)) > get(reg, word(code, pc + TWO)) - p and word(code, pc + ONE) != U(0):
                pc = fail(reg, word(code, pc + THREE))
                continue
            moved = np.int64(word(code, pc + FOUR))
            pc = _run(code, reg, t, p, pc)
            p += moved
        elif step == op.PREFIXED:
            pc, p = _prefixed(code, reg, t, p, pc)
        elif op.END < step <= op.LAST_SHARED:
            pc, p = shared_step(code, reg, t, p, pc)
        elif step == op.EMIT:
            column, width = word(code, pc + ONE), word(code, pc + TWO)
            if width != U(0):
                put_value(np.int64(column), get(reg, ROW) * np.int64(width), get(reg, word(code, pc + THREE)))
            else:
                emit_number(t, reg, column, get(reg, word(code, pc + THREE)), np.int64(1))
            pc += FOUR
        elif step == op.BOUND:
            pc = _bound(code, reg, p, pc)
        elif step == op.CLOSE:
            if word(code, pc + TWO) == NONE or get(reg, word(code, pc + TWO)) != 0:
                limit = get(reg, word(code, pc + ONE))
                put(reg, EXTRA, get(reg, EXTRA) + limit - p)
                p = limit
            pc += THREE
        elif step == op.SLICE:
            if word(code, pc + THREE) != NONE:
                put(reg, word(code, pc + TWO), max(get(reg, word(code, pc + THREE)) - p, 0))
            put(reg, word(code, pc + ONE), p)
            p += get(reg, word(code, pc + TWO))
            pc += FOUR
        elif step == op.FIT:
            least, room = np.int64(word(code, pc + TWO)), get(reg, word(code, pc + THREE)) - p
            if get(reg, word(code, pc + ONE)) > room // least:
                pc = fail(reg, word(code, pc + FOUR))
            else:
                pc += FIVE
        elif step == op.IS_TEXT:
            good = _is_text(t, get(reg, word(code, pc + TWO)), get(reg, word(code, pc + THREE)), word(code, pc + FOUR))
            put(reg, word(code, pc + ONE), np.int64(good))
            pc += FIVE
        elif step in (op.COUNTED, op.LIMITED):
            pc = _looped(code, reg, t, p, pc)
        elif step == op.AGAIN:
            pc = _again(code, reg, p, pc)
        elif step == op.LISTED:
            present = np.int64(1) if word(code, pc + TWO) == NONE else get(reg, word(code, pc + TWO))
            emit_list(t, reg, word(code, pc + ONE), present)
            pc += THREE
        elif step == op.PICK:
            value, present = pick_field(t, message_at(t, word(code, pc + ONE)), word(code, pc + TWO))
            put(reg, word(code, pc + THREE), value)
            put(reg, word(code, pc + FOUR), present)
            pc += FIVE
        elif step == op.WALK:
            pc, p = _walk(code, reg, t, p, pc)
        elif step == op.KEEP:
            pc = _keep(code, reg, t, pc)
        elif step in (op.FAILED, op.END):
            return p
        else:
            pc, p = _rare(code, reg, t, p, pc)
