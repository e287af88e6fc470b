"""The loop of a scan: decodes the records of each range of a buffer one by one, and notes their places.

The loop is one text for the interpreter and for kernels: both have a function ``read_record``. It is compiled in a
module of its own (see ``wirekit.compiler.cache``), not as a function that others call: what such a function calls would
be compiled once more with each of its callers.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from typing import Any, Final

import numpy as np

from wirekit.compiler.kernels.arrays import int64_on, uint8_on
from wirekit.compiler.kernels.reads import begins
from wirekit.program import steps
from wirekit.runtime import interpreter, opcodes
from wirekit.runtime.interpreter import read_record
from wirekit.runtime.memory import DIRECT, emit_number, get, handle, put, put_value, undo_record

U: Final = np.uint64
RANGE, FRAME, ROW, AFTER = U(steps.RANGE), U(steps.FRAME), U(steps.ROW), U(steps.AFTER)
EXTRA, FAULT = U(steps.EXTRA), U(steps.FAULT)
CUT_FAULT, REASON = opcodes.CUT_FAULT, opcodes.REASON
DATA, SIZE, UNTIL, UNTIL_SIZE = opcodes.DATA, opcodes.SIZE, opcodes.UNTIL, opcodes.UNTIL_SIZE
STARTS, ENDS, COUNTS, RANGES = opcodes.STARTS, opcodes.ENDS, opcodes.COUNTS, opcodes.RANGES
FIRST, FAILURES, STOPPED, GOOD = opcodes.FIRST, opcodes.FAILURES, opcodes.STOPPED, opcodes.GOOD
ERROR_AT, ERROR_OFFSET, ERROR_LENGTH = opcodes.ERROR_AT, opcodes.ERROR_OFFSET, opcodes.ERROR_LENGTH
ERROR_REASON, ERROR_ROOM = opcodes.ERROR_REASON, opcodes.ERROR_ROOM
FULL, ROW_ROOM = opcodes.FULL, opcodes.ROW_ROOM
OFFSET, LENGTH, GAPS, VALUES = opcodes.OFFSET, opcodes.LENGTH, opcodes.GAPS, opcodes.VALUES
MAY_BE_EMPTY, LAST_REASON = opcodes.MAY_BE_EMPTY, opcodes.LAST_REASON


def scan(words: Any, registers: Any, table: Any, state: Any) -> int:
    """Scans the ranges of a table; gives 0 when it is done, 1 when something is full.

    Args:
        words: those of a program, as uint64.
        registers: what registers hold in the beginning.
        table: see ``opcodes``.
        state: see ``opcodes.STATE``.
    """
    code, reg, t = handle(words), handle(registers), handle(table)
    b, until = uint8_on(get(t, DATA), get(t, SIZE)), uint8_on(get(t, UNTIL), get(t, UNTIL_SIZE))
    ranges = get(t, RANGES)
    starts, ends, counts = (
        int64_on(get(t, STARTS), ranges),
        int64_on(get(t, ENDS), ranges),
        int64_on(get(t, COUNTS), ranges),
    )
    first, failures = int64_on(get(t, FIRST), ranges), int64_on(get(t, FAILURES), ranges)
    stopped, good = int64_on(get(t, STOPPED), ranges), int64_on(get(t, GOOD), ranges)
    offsets, lengths = get(t, get(t, OFFSET) + VALUES), get(t, get(t, LENGTH) + VALUES)
    gaps = get(t, get(t, GAPS) + VALUES) if get(t, GAPS) >= 0 else np.int64(0)
    may_be_empty, error_room, row_room = get(t, MAY_BE_EMPTY) != 0, get(t, ERROR_ROOM), get(t, ROW_ROOM)
    r, p, k, n, m, stop = state[0], state[1], state[2], state[3], state[4], state[6]
    put(reg, FRAME, state[5])
    put(reg, ROW, n)
    undo_record(t, reg)
    put(t, FULL, 0)
    while r < ranges:
        limit, count = ends[r], counts[r]
        put(reg, RANGE, limit)
        if p < 0:
            p, k = starts[r], 0
            first[r], failures[r], good[r] = n, m, p
        done = good[r]
        while k < count or (count < 0 and p < limit):
            if until.size > 0 and k > 0 and count < 0 and begins(b, p, limit, until):
                break
            if m >= error_room or n >= row_room:
                put(t, FULL, 1)
                break
            record = p
            put(reg, ROW, n)
            put(reg, AFTER, -1)
            p = read_record(code, reg, t, p)
            fault = get(reg, FAULT)
            if fault == 0:
                if may_be_empty and p == record and count < 0:
                    fault = get(t, LAST_REASON)
                elif DIRECT:
                    put_value(offsets, 8 * n, record)
                    put_value(lengths, 8 * n, p - record)
                    if gaps != 0:
                        put_value(gaps, 8 * n, get(reg, EXTRA))
                else:
                    emit_number(t, reg, U(get(t, OFFSET)), record, np.int64(1))
                    emit_number(t, reg, U(get(t, LENGTH)), p - record, np.int64(1))
                    if get(t, GAPS) >= 0:
                        emit_number(t, reg, U(get(t, GAPS)), get(reg, EXTRA), np.int64(1))
            if get(t, FULL) != 0:
                p = record
                break
            k += 1
            if fault == 0:
                n += 1
                done = p
                continue
            undo_record(t, reg)
            if fault & CUT_FAULT != 0 and stop and count < 0:
                p = record  # the limit cuts the last record
                break
            int64_on(get(t, ERROR_AT), get(t, ERROR_ROOM))[m] = p
            int64_on(get(t, ERROR_OFFSET), get(t, ERROR_ROOM))[m] = record
            int64_on(get(t, ERROR_REASON), get(t, ERROR_ROOM))[m] = fault & REASON
            after = get(reg, AFTER)
            int64_on(get(t, ERROR_LENGTH), get(t, ERROR_ROOM))[m] = (limit if after < 0 else after) - record
            m += 1
            if after < 0:
                p = record  # nothing says where the next record begins
                break
            p = after
        good[r] = done
        if get(t, FULL) != 0:
            break
        stopped[r] = p
        r += 1
        p = np.int64(-1)
    state[0], state[1], state[2], state[3], state[4] = r, p, k, n, m
    return np.int64(get(t, FULL))  # type: ignore[return-value]


def module_text(reader: str = "") -> str:
    """The text of a module with the loop.

    Args:
        reader: the text of a ``read_record``; by default the interpreter's is called.
    """
    names = sorted(
        name for name in scan.__code__.co_names if name in globals() and not (reader and name == "read_record")
    )
    head = f"from numba import njit\n\nfrom {__name__} import {', '.join(names)}\n\n\n"
    return f"{head}{reader}@njit(error_model='numpy', nogil=True, cache=True)\n{inspect.getsource(scan)}"


_SOURCE: Final = inspect.getsource(sys.modules[__name__])
FINGERPRINT: Final = hashlib.sha256(_SOURCE.encode()).hexdigest()[:12] + interpreter.FINGERPRINT
