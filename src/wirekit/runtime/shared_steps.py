"""Steps that programs for reading and for writing share: tests, sums, switches, and checksums of bytes.

The functions are nopython code; both interpreters call them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from wirekit.compiler.kernels.arrays import dividing, inlined, inner, uint8_on
from wirekit.compiler.kernels.crc import crc32_at, crc32c_at
from wirekit.compiler.kernels.reads import internet
from wirekit.program import steps
from wirekit.runtime import opcodes as op
from wirekit.runtime.memory import call, get, put, word

U: Final = np.uint64
NONE: Final = U(0xFFFFFFFFFFFFFFFF)
ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = (U(at) for at in range(1, 9))
FAULT, HANDLING = U(steps.FAULT), U(steps.HANDLING)


@inner
def _compares(symbol: Any, left: Any, right: Any) -> bool:
    if symbol == op.EQUAL:
        return bool(left == right)
    if symbol == op.UNEQUAL:
        return bool(left != right)
    if symbol == op.LESS:
        return bool(left < right)
    if symbol == op.AT_MOST:
        return bool(left <= right)
    if symbol == op.MORE:
        return bool(left > right)
    return bool(left >= right)


@dividing
def _computed(symbol: Any, left: Any, right: Any) -> Any:
    if symbol == op.SAME_AS:
        return left
    if symbol < op.BOTH:
        return np.int64(_compares(symbol, left, right))
    if symbol == op.BOTH:
        return np.int64(left != 0 and right != 0)
    if symbol == op.EITHER:
        return np.int64(left != 0 or right != 0)
    if symbol == op.PLUS:
        return left + right
    if symbol == op.MINUS:
        return left - right
    if symbol == op.TIMES:
        return left * right
    if symbol == op.DIVIDED:
        return left // right
    if symbol == op.MODULO:
        return left % right
    if symbol == op.AND:
        return left & right
    if symbol == op.OR:
        return left | right
    if symbol == op.XOR:
        return left ^ right
    return left >> right if symbol == op.RIGHT else left << right


@inlined
def fail(reg: Any, fault: Any) -> Any:
    """Stores a fault; returns the place of its handler."""
    put(reg, FAULT, np.int64(fault))
    return U(get(reg, HANDLING))


@inner
def _case_of(code: Any, pc: Any, reg: Any) -> Any:
    """The target of a switch."""
    width, rows, otherwise = word(code, pc + ONE), word(code, pc + TWO), word(code, pc + THREE)
    on = pc + FOUR
    row = on + TWO * width
    for _ in range(rows):
        matches = True
        for at in range(width):
            step = TWO * U(at)
            present = word(code, on + step + ONE)
            exists = present == NONE or get(reg, present) != 0
            if word(code, row + ONE + step) != U(0):
                matches = not exists
            else:
                matches = exists and get(reg, word(code, on + step)) == np.int64(word(code, row + TWO + step))
            if not matches:
                break
        if matches:
            return word(code, row)
        row += ONE + TWO * width
    return otherwise


@inlined
def _cleared(code: Any, reg: Any, pc: Any) -> Any:
    """Sets registers to given values; returns the next place."""
    last = pc + TWO + TWO * word(code, pc + ONE)
    pc += TWO
    while pc < last:
        put(reg, word(code, pc), np.int64(word(code, pc + ONE)))
        pc += TWO
    return pc


@inlined
def _after_test(code: Any, pc: Any, holds: Any) -> Any:
    """The place after a comparison."""
    return pc + FOUR if holds else word(code, pc + THREE)


@inner
def _one_of(code: Any, reg: Any, pc: Any) -> Any:
    """Checks that a number is in one of several ranges; returns the next place."""
    value, at = get(reg, word(code, pc + ONE)), pc + FOUR
    last = at + TWO * word(code, pc + THREE)
    while at < last:
        if np.int64(word(code, at)) <= value <= np.int64(word(code, at + ONE)):
            return last
        at += TWO
    return fail(reg, word(code, pc + TWO))


@inner
def is_next(data: Any, size: Any, p: int, limit: int, code: Any, at: Any) -> bool:
    """Whether the bytes with the number ``word(code, at)`` are at a position of ``size`` bytes, before the limit."""
    count = np.int64(word(code, at))
    if limit - p < count:
        return False
    b = uint8_on(data, size)
    for index in range(count):  # noqa: SIM110 - nopython code has no generators
        if b[p + index] != word(code, at + ONE + U(index)):
            return False
    return True


@inner
def _compared_bytes(code: Any, reg: Any, t: Any, pc: Any) -> Any:
    """Stores whether bytes begin with others; returns the next place."""
    start, end = get(reg, word(code, pc + TWO)), get(reg, word(code, pc + THREE))
    equal = is_next(get(t, op.DATA), get(t, op.SIZE), start, end, code, pc + FOUR)
    put(reg, word(code, pc + ONE), np.int64(equal))
    return pc + FIVE + word(code, pc + FOUR)


@inner
def _crc(b: Any, start: Any, end: Any, code: Any, at: Any) -> Any:
    """A CRC of a range; its parameters and table are at a place of the program."""
    value, table = word(code, at + ONE), at + SIX
    if word(code, at) != U(0):
        for place in range(start, end):
            value = word(code, table + ((value ^ U(b[place])) & U(0xFF))) ^ (value >> EIGHT)
    else:
        for place in range(start, end):
            value = word(code, table + ((value >> U(56)) ^ U(b[place]))) ^ (value << EIGHT)
        value >>= word(code, at + TWO)
    if word(code, at + THREE) != U(0):
        reversed_value = U(0)
        for _ in range(word(code, at + FOUR)):
            reversed_value = (reversed_value << ONE) | (value & ONE)
            value >>= ONE
        value = reversed_value
    return np.int64(value ^ word(code, at + FIVE))


@dividing
def _two_sums(b: Any, start: Any, end: Any, code: Any, at: Any) -> Any:
    """Adler's and Fletcher's checksums of a range."""
    size, modulus, one, two = np.int64(word(code, at)), word(code, at + ONE), word(code, at + TWO), U(0)
    for place in range(start, end, size):
        value = U(b[place])
        if size > 1 and place + 1 < end:
            value |= U(b[place + 1]) << EIGHT
        one = (one + value) % modulus
        two = (two + one) % modulus
    return np.int64((two << word(code, at + THREE)) | one)


@inlined
def _checksum_of(data: Any, size: Any, algorithm: Any, start: Any, end: Any, hole: Any, code: Any, at: Any) -> Any:
    """A checksum of a range of bytes at an address; its parameters are at a place of the program."""
    if algorithm == U(0):
        return np.int64(crc32_at(data, start, end))
    if algorithm == U(1):
        return np.int64(crc32c_at(data, start, end))
    if algorithm == op.CRC:
        return _crc(uint8_on(data, size), start, end, code, at)
    if algorithm == op.TWO_SUMS:
        return _two_sums(uint8_on(data, size), start, end, code, at)
    return np.int64(internet(uint8_on(data, size), start, end, hole))


@inner
def _summed(code: Any, reg: Any, t: Any, pc: Any) -> Any:
    """Computes a checksum of bytes, or whether it is the stored one; returns the next place."""
    start, end = get(reg, word(code, pc + TWO)), get(reg, word(code, pc + THREE))
    hole = np.int64(-1) if word(code, pc + FOUR) == NONE else get(reg, word(code, pc + FOUR))
    data, size, stored = get(t, op.DATA), get(t, op.SIZE), word(code, pc + FIVE)
    value = _checksum_of(data, size, word(code, pc + SIX), start, end, hole, code, pc + EIGHT)
    put(reg, word(code, pc + ONE), value if stored == NONE else np.int64(value == get(reg, stored)))
    return pc + EIGHT + word(code, pc + SEVEN)


@inlined
def shared_step(code: Any, reg: Any, t: Any, p: Any, pc: Any) -> Any:
    """Runs a step that both kinds of programs have, up to ``LAST_SHARED``; returns (next place, position)."""
    step = word(code, pc)
    if step == op.TEST_EQUAL:
        return _after_test(code, pc, get(reg, word(code, pc + ONE)) == get(reg, word(code, pc + TWO))), p
    if step == op.TEST_UNEQUAL:
        return _after_test(code, pc, get(reg, word(code, pc + ONE)) != get(reg, word(code, pc + TWO))), p
    if step == op.TEST_LESS:
        return _after_test(code, pc, get(reg, word(code, pc + ONE)) < get(reg, word(code, pc + TWO))), p
    if step == op.TEST_AT_MOST:
        return _after_test(code, pc, get(reg, word(code, pc + ONE)) <= get(reg, word(code, pc + TWO))), p
    if step == op.TEST_MORE:
        return _after_test(code, pc, get(reg, word(code, pc + ONE)) > get(reg, word(code, pc + TWO))), p
    if step == op.TEST_AT_LEAST:
        return _after_test(code, pc, get(reg, word(code, pc + ONE)) >= get(reg, word(code, pc + TWO))), p
    if step == op.LET:
        left, right = get(reg, word(code, pc + THREE)), get(reg, word(code, pc + FOUR))
        put(reg, word(code, pc + ONE), _computed(word(code, pc + TWO), left, right))
        return pc + FIVE, p
    if step == op.MARK:
        put(reg, word(code, pc + ONE), p)
        return pc + TWO, p
    if step == op.SEEK:
        return pc + THREE, get(reg, word(code, pc + ONE)) + np.int64(word(code, pc + TWO))
    if step == op.JUMP:
        return word(code, pc + ONE), p
    if step == op.SWITCH:
        return _case_of(code, pc, reg), p
    if step == op.FAIL:
        return fail(reg, word(code, pc + ONE)), p
    if step == op.BEGINS:
        return _compared_bytes(code, reg, t, pc), p
    if step == op.ONE_OF:
        return _one_of(code, reg, pc), p
    if step == op.SUM:
        return _summed(code, reg, t, pc), p
    if step == op.CALL:
        return call(code, reg, get(t, op.CALLS), get(t, op.DATA), pc), p
    return _cleared(code, reg, pc), p
