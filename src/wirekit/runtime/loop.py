"""The loop of a scan: decodes the records of each range of a buffer one by one, and notes their places.

The interpreter and the kernels share the text of the loop: both have a function ``read_record``. Each is compiled in a
module of its own (see ``wirekit.compiler.cache``). If the loop were a function that others call, the functions that it
calls would be compiled again with each caller.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, Final

import numpy as np

from wirekit.compiler.kernels.arrays import int64_on, uint8_on
from wirekit.compiler.kernels.reads import begins
from wirekit.program import steps
from wirekit.runtime import opcodes as op
from wirekit.runtime.interpreter import read_record
from wirekit.runtime.memory import DIRECT, emit_number, get, handle, put, put_value, undo_record

U: Final = np.uint64
RANGE, FRAME, ROW, AFTER = U(steps.RANGE), U(steps.FRAME), U(steps.ROW), U(steps.AFTER)
EXTRA, FAULT = U(steps.EXTRA), U(steps.FAULT)


def scan(words: Any, registers: Any, table: Any, state: Any) -> int:
    """Scans the ranges of a table; returns 0 if it is complete, 1 if an array is full.

    Args:
        words: the words of a program, as uint64.
        registers: the initial values of the registers.
        table: see ``opcodes``.
        state: see ``opcodes.STATE``.
    """
    code, reg, t = handle(words), handle(registers), handle(table)
    b, until = uint8_on(get(t, op.DATA), get(t, op.SIZE)), uint8_on(get(t, op.UNTIL), get(t, op.UNTIL_SIZE))
    ranges = get(t, op.RANGES)
    starts, ends, counts = (
        int64_on(get(t, op.STARTS), ranges),
        int64_on(get(t, op.ENDS), ranges),
        int64_on(get(t, op.COUNTS), ranges),
    )
    first, failures = int64_on(get(t, op.FIRST), ranges), int64_on(get(t, op.FAILURES), ranges)
    stopped, good = int64_on(get(t, op.STOPPED), ranges), int64_on(get(t, op.GOOD), ranges)
    offsets, lengths = get(t, get(t, op.OFFSET) + op.VALUES), get(t, get(t, op.LENGTH) + op.VALUES)
    gaps = get(t, get(t, op.GAPS) + op.VALUES) if get(t, op.GAPS) >= 0 else np.int64(0)
    may_be_empty, error_room, row_room = get(t, op.MAY_BE_EMPTY) != 0, get(t, op.ERROR_ROOM), get(t, op.ROW_ROOM)
    r, p, k, n, m, stop, except_first = state[0], state[1], state[2], state[3], state[4], state[6], state[7]
    put(reg, FRAME, state[5])
    put(reg, ROW, n)
    undo_record(t, reg)
    put(t, op.FULL, 0)
    while r < ranges:
        limit, count = ends[r], counts[r]
        put(reg, RANGE, limit)
        if p < 0:
            p, k = starts[r], 0
            first[r], failures[r], good[r] = n, m, p
        done = good[r]
        while k < count or (count < 0 and p < limit):
            if until.size > 0 and k >= except_first and count < 0 and begins(b, p, limit, until):
                break
            if m >= error_room or n >= row_room:
                put(t, op.FULL, 1)
                break
            record = p
            put(reg, ROW, n)
            put(reg, AFTER, -1)
            p = read_record(code, reg, t, p)
            fault = get(reg, FAULT)
            if fault == 0:
                if may_be_empty and p == record and count < 0:
                    fault = get(t, op.LAST_REASON)
                elif DIRECT:
                    put_value(offsets, 8 * n, record)
                    put_value(lengths, 8 * n, p - record)
                    if gaps != 0:
                        put_value(gaps, 8 * n, get(reg, EXTRA))
                else:
                    emit_number(t, reg, U(get(t, op.OFFSET)), record, np.int64(1))
                    emit_number(t, reg, U(get(t, op.LENGTH)), p - record, np.int64(1))
                    if get(t, op.GAPS) >= 0:
                        emit_number(t, reg, U(get(t, op.GAPS)), get(reg, EXTRA), np.int64(1))
            if get(t, op.FULL) != 0:
                p = record
                break
            k += 1
            if fault == 0:
                n += 1
                done = p
                continue
            undo_record(t, reg)
            if fault & op.CUT_FAULT != 0 and stop and count < 0:
                p = record  # the limit cuts the last record
                break
            int64_on(get(t, op.ERROR_AT), get(t, op.ERROR_ROOM))[m] = p
            int64_on(get(t, op.ERROR_OFFSET), get(t, op.ERROR_ROOM))[m] = record
            int64_on(get(t, op.ERROR_REASON), get(t, op.ERROR_ROOM))[m] = fault & op.REASON
            after = get(reg, AFTER)
            int64_on(get(t, op.ERROR_LENGTH), get(t, op.ERROR_ROOM))[m] = (limit if after < 0 else after) - record
            m += 1
            if after < 0:
                p = record  # the next record begins at an unknown place
                break
            p = after
        good[r] = done
        if get(t, op.FULL) != 0:
            break
        stopped[r] = p
        r += 1
        p = np.int64(-1)
    state[0], state[1], state[2], state[3], state[4] = r, p, k, n, m
    return np.int64(get(t, op.FULL))  # type: ignore[return-value]


_source = cache(inspect.getsource)


def module_text(reader: str = "") -> str:
    """The text of a module with the loop.

    Args:
        reader: the text of a ``read_record``; by default the interpreter's is called.
    """
    names = sorted(
        name for name in scan.__code__.co_names if name in globals() and not (reader and name == "read_record")
    )
    head = f"from numba import njit\n\nfrom {__name__} import {', '.join(names)}\n\n\n"
    return f"{head}{reader}@njit(error_model='numpy', nogil=True, cache=True)\n{_source(scan)}"
