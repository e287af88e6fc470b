"""The interpreter of write programs: writes the records of rows by an encoded program.

It is one nopython function for all layouts; its data are in a table of addresses and sizes (see ``write_opcodes``). It
compares each size with the remaining space before it writes. If a record has no space, the run ends, and the caller
enlarges the output and calls again. With NUMBA_BOUNDSCHECK=1 each index is also compared with its array.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import types

from wirekit.compiler.kernels.arrays import dividing, inlined, inner, int64_on, intrinsic, uint8_on
from wirekit.compiler.kernels.reads import copy
from wirekit.program import steps
from wirekit.program.write_steps import CHOOSING as CHOOSING_REGISTER
from wirekit.runtime import opcodes
from wirekit.runtime import write_opcodes as op
from wirekit.runtime.memory import DIRECT, get, handle, put, put_8, put_16, put_32, put_64, read_8, read_64, word
from wirekit.runtime.shared_steps import fail, shared_step

U: Final = np.uint64
NONE: Final = U(0xFFFFFFFFFFFFFFFF)
ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT, NINE, TEN, ELEVEN, TWELVE, THIRTEEN, FOURTEEN, FIFTEEN = (
    U(at) for at in range(1, 16)
)
LONGEST_NUMBER: Final = 20  # characters of an integer of 64 bits
ROW, EXTRA, FAULT, CHOOSING = U(steps.ROW), U(steps.EXTRA), U(steps.FAULT), U(CHOOSING_REGISTER)

ZIGZAG, SLEB, VLQ, BY_FIRST_BYTE = (op.VARINT * (1 + at) for at in range(1, 5))


@intrinsic
def _swapped(typing: Any, value: Any) -> Any:
    """An integer with its bytes in reverse order."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.uint64(types.uint64), lower


@inlined
def _has_value(t: Any, c: Any, at: Any) -> Any:
    """Whether a column has a value."""
    presence = get(t, c + op.PRESENCE)
    if presence == op.NULLS:
        return read_8(get(t, c + op.VALID), get(t, c + op.COUNT), at) != 0
    return presence == op.WHOLE


@inlined
def _value(t: Any, c: Any, at: Any) -> Any:
    return read_64(get(t, c + op.VALUES), get(t, c + op.COUNT), at)


@inlined
def _extent(t: Any, c: Any, at: Any) -> Any:
    """The start and end of the bytes, or elements, of a value."""
    offsets, count = get(t, c + op.VALUES), get(t, c + op.COUNT) + 1
    return read_64(offsets, count, at), read_64(offsets, count, at + 1)


@inner
def _store_bytes(o: Any, size: Any, p: Any, how: Any, value: Any) -> None:
    width, out = how & (op.BIG - 1), uint8_on(o, size)
    for index in range(width):
        shift = width - 1 - index if how & op.BIG else index
        out[p + index] = np.uint8((U(value) >> U(8 * shift)) & U(0xFF))


@inlined
def _store_fast(o: Any, size: Any, p: Any, how: Any, value: Any) -> None:
    width = how & (op.BIG - 1)
    if how & op.BIG:
        value = np.int64(_swapped(U(value)) >> U(64 - 8 * width))
    if width == 4:
        put_32(o, p, value)
    elif width == 8:
        put_64(o, p, value)
    elif width == 1:
        put_8(o, p, value)
    elif width == 2:
        put_16(o, p, value)
    else:
        _store_bytes(o, size, p, width, value)


# ``_store_number(o, size, p, how, value)``: writes a number into the ``size`` bytes at ``o``.
_store_number: Any = _store_fast if DIRECT else _store_bytes


@inlined
def _bytes_by_first_byte(how: Any, value: Any) -> Any:
    """The size of a number whose first byte tells it."""
    for low, high, size in opcodes.HEADS[how // op.VARINT - 1]:
        if size > U(8) or value >> (U(8) * (size - U(1))) <= high - low:
            return np.int64(size)
    return np.int64(0)


@inlined
def _put_by_first_byte(out: Any, p: Any, how: Any, value: Any, size: Any) -> None:
    """Writes a number of ``size`` bytes whose first byte tells the size."""
    form = how // op.VARINT - 1
    for low, _, each in opcodes.HEADS[form]:
        if each == U(size):
            out[U(p)] = np.uint8(low)
    if size < 9 and not opcodes.IS_LITTLE[form]:
        out[U(p)] += np.uint8(value >> U(8 * (size - 1)))
    elif size == 1:
        out[U(p)] = np.uint8(value)
    for index in range(1, size):
        shift = index - 1 if opcodes.IS_LITTLE[form] else size - 1 - index
        out[U(p + index)] = np.uint8(value >> U(8 * shift) & U(0xFF))


@inner
def _varint_bytes(how: Any, value: Any) -> Any:
    """The size of a number as a varint."""
    if how >= BY_FIRST_BYTE:
        return _bytes_by_first_byte(how, U(value))
    groups = _groups(how, value)
    if how == SLEB:
        groups = U(value ^ (value >> np.int64(63))) << ONE  # with a bit for the sign
    size = 1
    while groups > U(0x7F):
        groups >>= U(7)
        size += 1
    return np.int64(size)


@inlined
def _groups(how: Any, value: Any) -> Any:
    """The unsigned number in the groups of a varint."""
    return (U(value) << ONE) ^ U(value >> np.int64(63)) if how == ZIGZAG else U(value)


@inner
def _put_varint(out: Any, p: Any, how: Any, value: Any, size: Any) -> None:
    """Writes a varint of ``size`` bytes."""
    if how >= BY_FIRST_BYTE:
        _put_by_first_byte(out, p, how, U(value), size)
        return
    groups, sign = _groups(how, value), U(0)
    if how == SLEB and value < 0:
        sign = U(0x7F) << U(57)
    for index in range(size):
        place = size - 1 - index if how == VLQ else index
        more = U(0x80) if place < size - 1 else U(0)
        out[U(p + place)] = np.uint8(groups & U(0x7F) | more)
        groups = groups >> U(7) | sign


@inner
def _varint(t: Any, p: Any, how: Any, value: Any) -> Any:
    """Writes a varint; returns the position, or -1 if there is no space."""
    size = _varint_bytes(how, value)
    if size > get(t, op.OUT_SIZE) - p:
        return np.int64(-1)
    _put_varint(uint8_on(get(t, op.OUT), get(t, op.OUT_SIZE)), p, how, value, size)
    return p + size


@inlined
def _written_number(t: Any, p: Any, how: Any, value: Any) -> Any:
    """Writes a number; returns the position, or -1 if there is no space."""
    width = how & (op.BIG - 1)
    if width == 0:
        return _varint(t, p, how, value)
    if width > get(t, op.OUT_SIZE) - p:
        return np.int64(-1)
    _store_number(get(t, op.OUT), get(t, op.OUT_SIZE), p, how, value)
    return p + width


@inner
def _insert(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Writes a varint into one reserved byte; returns (next place, position)."""
    how, value, place = np.int64(word(code, pc + ONE)), get(reg, word(code, pc + TWO)), get(reg, word(code, pc + THREE))
    size = _varint_bytes(how, value)
    more = size - 1
    if more > get(t, op.OUT_SIZE) - p:
        return fail(reg, op.FULL), p
    out, count = uint8_on(get(t, op.OUT), get(t, op.OUT_SIZE)), word(code, pc + FOUR)
    if more > 0:
        for at in range(p - 1, place, -1):
            out[U(at + more)] = out[U(at)]
        for index in range(count):
            mark = word(code, pc + FIVE + U(index))
            if get(reg, mark) > place:
                put(reg, mark, get(reg, mark) + more)
    _put_varint(out, place, how, value, size)
    return pc + FIVE + count, p + more


@inlined
def _take(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Takes a number from a column, and writes it; returns (next place, position)."""
    c, at = np.int64(word(code, pc + ONE)), get(reg, word(code, pc + TWO))
    presence = get(t, c + op.PRESENCE)
    if presence == op.MISSING:
        if word(code, pc + FOUR) == NONE:
            return fail(reg, word(code, pc + FIVE)), p
        value = get(reg, word(code, pc + FOUR))
    elif presence == op.NULLS and read_8(get(t, c + op.VALID), get(t, c + op.COUNT), at) == 0:
        return fail(reg, word(code, pc + SIX)), p
    else:
        value = _value(t, c, at)
    wrong = word(code, pc + NINE)
    if wrong != NONE and (value < np.int64(word(code, pc + SEVEN)) or value > np.int64(word(code, pc + EIGHT))):
        return fail(reg, wrong), p
    put(reg, word(code, pc + THREE), value)
    how = np.int64(word(code, pc + TEN))
    if how != 0:
        p = _written_number(t, p, how, value)
        if p < 0:
            return fail(reg, op.FULL), p
    return pc + ELEVEN, p


@inlined
def _bytes(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Takes bytes from a column, and writes them; returns (next place, position)."""
    c, at = np.int64(word(code, pc + ONE)), get(reg, word(code, pc + TWO))
    presence, present = get(t, c + op.PRESENCE), _has_value(t, c, at)
    if not present:
        fault = word(code, pc + FIVE) if presence == op.MISSING else word(code, pc + SIX)
        if fault != NONE:
            return fail(reg, fault), p
    if word(code, pc + EIGHT) != NONE:
        verdict = np.int64(word(code, pc + EIGHT))
        if _has_value(t, verdict, at) and _value(t, verdict, at) == 0:
            return fail(reg, word(code, pc + NINE)), p
    start, length = np.int64(0), np.int64(0)
    if present:
        start, end = _extent(t, c, at)
        length = end - start
        if start < 0 or length < 0 or length > get(t, c + op.DATA_SIZE) - start:
            return fail(reg, word(code, pc + SEVEN)), p
    put(reg, word(code, pc + THREE), start)
    put(reg, word(code, pc + FOUR), length)
    if word(code, pc + FOURTEEN) != NONE and length > np.int64(word(code, pc + THIRTEEN)):
        return fail(reg, word(code, pc + FOURTEEN)), p
    how = np.int64(word(code, pc + TEN))
    if how != 0:
        prefix = length
        if not present and word(code, pc + ELEVEN) != U(0):
            prefix = np.int64(word(code, pc + TWELVE))
        p = _written_number(t, p, how, prefix)
        if p < 0:
            return fail(reg, op.FULL), p
    if word(code, pc + FIFTEEN) != U(0):
        return _copied(reg, t, c, start, length, p, pc + U(16))
    return pc + U(16), p


@inlined
def _copied(reg: Any, t: Any, c: Any, start: Any, length: Any, p: Any, following: Any) -> Any:
    """Writes bytes of a column's data; returns (next place, position)."""
    if length > get(t, op.OUT_SIZE) - p:
        return fail(reg, op.FULL), p
    if length > 0:
        out, data = (
            uint8_on(get(t, op.OUT), get(t, op.OUT_SIZE)),
            uint8_on(get(t, c + op.DATA), get(t, c + op.DATA_SIZE)),
        )
        copy(out, p, data, start, length)
    return following, p + length


@inner
def _any_of(code: Any, reg: Any, t: Any, pc: Any) -> Any:
    """Stores whether one of several columns has a value; returns the next place."""
    at, in_batch, count = get(reg, word(code, pc + TWO)), word(code, pc + THREE) != U(0), word(code, pc + FOUR)
    result = np.int64(0)
    for index in range(count):
        c = np.int64(word(code, pc + FIVE + U(index)))
        if get(t, c + op.PRESENCE) != op.MISSING if in_batch else _has_value(t, c, at):
            result = np.int64(1)
    put(reg, word(code, pc + ONE), result)
    return pc + FIVE + count


@inner
def _was(code: Any, reg: Any, t: Any, pc: Any) -> Any:
    """Replaces a number by the one that was read; returns the next place."""
    at = get(reg, word(code, pc + FOUR))
    verdict, c = np.int64(word(code, pc + TWO)), np.int64(word(code, pc + THREE))
    if _has_value(t, verdict, at) and _value(t, verdict, at) == 0 and _has_value(t, c, at):
        value, wrong = _value(t, c, at), word(code, pc + SEVEN)
        if wrong != NONE and (value < np.int64(word(code, pc + FIVE)) or value > np.int64(word(code, pc + SIX))):
            return fail(reg, wrong)
        put(reg, word(code, pc + ONE), value)
    return pc + EIGHT


@inner
def _has_line(code: Any, pc: Any, data: Any, start: Any, length: Any) -> bool:
    """Whether text contains a forbidden byte, or has the delimiter before its end."""
    lines = word(code, pc) != U(0)
    pc += ONE
    size = np.int64(word(code, pc))
    for at in range(length):
        if lines and data[start + at] == 0x0A:
            return True
        same = True
        for index in range(size):
            place = at + index
            byte = U(data[start + place]) if place < length else word(code, pc + ONE + U(place - length))
            same = same and byte == word(code, pc + ONE + U(index))
        if same:
            return True
    return False


@inner
def _digits(t: Any, p: Any, value: Any) -> Any:
    """Writes an integer in decimal; returns the position, or -1 if there is no space for the longest one."""
    if get(t, op.OUT_SIZE) - p < LONGEST_NUMBER:
        return np.int64(-1)
    out, rest = uint8_on(get(t, op.OUT), get(t, op.OUT_SIZE)), U(value)
    if value < 0:
        out[U(p)] = np.uint8(0x2D)
        p, rest = p + 1, U(0) - rest
    end, above = p + 1, rest // TEN
    while above > U(0):
        end, above = end + 1, above // TEN
    for at in range(end - 1, p - 1, -1):
        out[U(at)] = np.uint8(U(0x30) + rest % TEN)
        rest //= TEN
    return end


@inner
def _unread(code: Any, reg: Any, t: Any, pc: Any) -> Any:
    """Refuses a value that no step has read; returns the next place."""
    row, count = get(reg, word(code, pc + ONE)), word(code, pc + TWO)
    pc += THREE
    for _ in range(count):
        if get(reg, word(code, pc + ONE)) != row and _has_value(t, np.int64(word(code, pc)), row):
            return fail(reg, word(code, pc + TWO))
        pc += THREE
    return pc


@inner
def _rare(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Runs a rare step; returns (next place, position)."""
    step = word(code, pc)
    if step == op.ANY_OF:
        return _any_of(code, reg, t, pc), p
    if step == op.ONE_LINE:
        c = np.int64(word(code, pc + ONE))
        data = uint8_on(get(t, c + op.DATA), get(t, c + op.DATA_SIZE))
        if _has_line(code, pc + FIVE, data, get(reg, word(code, pc + TWO)), get(reg, word(code, pc + THREE))):
            return fail(reg, word(code, pc + FOUR)), p
        return pc + SEVEN + word(code, pc + SIX), p
    if step == op.TEXT:
        size, out = np.int64(word(code, pc + ONE)), uint8_on(get(t, op.OUT), get(t, op.OUT_SIZE))
        if size > get(t, op.OUT_SIZE) - p:
            return fail(reg, op.FULL), p
        for index in range(size):
            out[p + index] = np.uint8(word(code, pc + TWO + U(index)))
        return pc + TWO + U(size), p + size
    if step == op.DIGITS:
        end = _digits(t, p, get(reg, word(code, pc + ONE)))
        return (fail(reg, op.FULL), p) if end < 0 else (pc + TWO, end)
    if step == op.NOTE:
        place = np.int64(word(code, pc + ONE))
        values = int64_on(get(t, place + op.VALUES), get(t, place + op.COUNT))
        values[get(reg, ROW)] = get(reg, word(code, pc + TWO))
        return pc + THREE, p
    return _insert(code, reg, t, p, pc)


@dividing
def _record(code: Any, reg: Any, t: Any, p: Any) -> Any:
    """Writes a record; returns the position. A register has the fault."""
    pc = ONE
    put(reg, FAULT, np.int64(0))
    put(reg, EXTRA, np.int64(0))
    while True:
        step = word(code, pc)
        if step == op.TAKE:
            pc, p = _take(code, reg, t, p, pc)
        elif step == op.BYTES:
            pc, p = _bytes(code, reg, t, p, pc)
        elif opcodes.END < step <= opcodes.LAST_SHARED:
            pc, p = shared_step(code, reg, t, p, pc)
        elif step == op.RESERVE:
            size = get(reg, word(code, pc + ONE))
            if size > get(t, op.OUT_SIZE) - p:
                pc = fail(reg, op.FULL)
            else:
                out = uint8_on(get(t, op.OUT), get(t, op.OUT_SIZE))
                for index in range(p, p + size):
                    out[U(index)] = np.uint8(0)
                p += size
                pc += TWO
        elif step == op.STORE:
            how, at = np.int64(word(code, pc + ONE)), word(code, pc + THREE)
            value = get(reg, word(code, pc + TWO))
            if at != NONE:
                _store_number(get(t, op.OUT), get(t, op.OUT_SIZE), get(reg, at), how, value)
                pc += FOUR
            else:
                p = _written_number(t, p, how, value)
                pc = pc + FOUR if p >= 0 else fail(reg, op.FULL)
        elif step == op.JOIN:
            how, count = np.int64(word(code, pc + ONE)), word(code, pc + TWO)
            joined = U(0)
            for index in range(count):
                part = pc + THREE + TWO * U(index)
                joined |= U(get(reg, word(code, part))) << word(code, part + ONE)
            if how & (op.BIG - 1) > get(t, op.OUT_SIZE) - p:
                pc = fail(reg, op.FULL)
            else:
                _store_number(get(t, op.OUT), get(t, op.OUT_SIZE), p, how, np.int64(joined))
                p += how & (op.BIG - 1)
                pc += THREE + TWO * count
        elif step == op.WAS:
            pc = _was(code, reg, t, pc)
        elif step == op.UNREAD:
            pc = _unread(code, reg, t, pc)
        elif step == op.LOOK:
            c, at = np.int64(word(code, pc + ONE)), get(reg, word(code, pc + TWO))
            present = _has_value(t, c, at)
            put(reg, word(code, pc + FOUR), np.int64(present))
            put(reg, word(code, pc + THREE), _value(t, c, at) if present else np.int64(0))
            pc += FIVE
        elif step == op.COPY_BYTES:
            c, start = np.int64(word(code, pc + ONE)), get(reg, word(code, pc + TWO))
            pc, p = _copied(reg, t, c, start, get(reg, word(code, pc + THREE)), p, pc + FOUR)
        elif step == op.ELEMENTS:
            pc = _elements(code, reg, t, pc)
        elif step == op.EACH:
            put(reg, word(code, pc + ONE), get(reg, word(code, pc + ONE)) + 1)
            pc = word(code, pc + TWO)
        elif step in (opcodes.FAILED, opcodes.END):
            return p
        else:
            pc, p = _rare(code, reg, t, p, pc)


@inner
def _elements(code: Any, reg: Any, t: Any, pc: Any) -> Any:
    """Stores the range of the elements of a list; returns the next place."""
    c, at = np.int64(word(code, pc + ONE)), get(reg, word(code, pc + TWO))
    present = _has_value(t, c, at)
    if not present:
        fault = word(code, pc + SIX) if get(t, c + op.PRESENCE) == op.MISSING else word(code, pc + SEVEN)
        if fault != NONE:
            return fail(reg, fault)
    first, last = np.int64(0), np.int64(0)
    if present:
        first, last = _extent(t, c, at)
    put(reg, word(code, pc + THREE), first)
    put(reg, word(code, pc + FOUR), last)
    put(reg, word(code, pc + FIVE), np.int64(present))
    return pc + EIGHT


@inner
def build_records(words: Any, registers: Any, table: Any, state: Any) -> Any:
    """Writes the records of rows; returns 0 if it is complete, otherwise the fault of a row.

    Args:
        words: the words of a program, as uint64.
        registers: the initial values of the registers.
        table, state: see ``write_opcodes``.
    """
    code, reg, t = handle(words), handle(registers), handle(table)
    p, row, rows, fault = state[0], state[1], state[2], np.int64(0)
    put(reg, CHOOSING, state[3])
    while row < rows:
        put(reg, ROW, row)
        end = _record(code, reg, t, p)
        fault = get(reg, FAULT)
        if fault != 0:
            break
        if state[3] == 0:
            p = end
            if get(t, op.ENDS) != 0:
                int64_on(get(t, op.ENDS), rows)[row] = p
        row += 1
    state[0], state[1] = p, row
    return np.int64(fault)
