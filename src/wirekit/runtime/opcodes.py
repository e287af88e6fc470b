"""The numbers in encoded programs: opcodes, symbols, and places in the table of a scan."""

from __future__ import annotations

from typing import Any

import numpy as np

U: Any = np.uint64
"""Numbers that are compared with words have the type of words: numba converts operands of two types to floats."""

# Opcodes; ``words`` defines the words after each. FAILED stands at 0, where the record's faults lead.
FAILED, END, RUN, LET, CLEAR, MARK, SEEK, FAIL, JUMP, SWITCH, ONE_OF, FIT, BOUND, CLOSE = map(U, range(14))
PREFIXED, SLICE, FIND, BEGINS, GAP, EMIT, COPY, IS_TEXT, CHECKSUM, CALL = map(U, range(14, 24))
TURN, COUNTED, LIMITED, AGAIN, LISTED, CUT, TRY, CAUGHT, HANDLER, WALK, PICK, KEEP, EMIT_ABSENT = map(U, range(24, 37))
TEST = U(36)  # plus the number of a comparison among the symbols
TEST_EQUAL, TEST_UNEQUAL, TEST_LESS, TEST_AT_MOST, TEST_MORE, TEST_AT_LEAST, VARINT = map(U, range(37, 44))

SYMBOLS = ("=", "==", "!=", "<", "<=", ">", ">=", "and", "or", "+", "-", "*", "//", "%", "&", "|", "^", ">>", "<<")
SAME_AS, EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, BOTH, EITHER, PLUS, MINUS, TIMES = map(U, range(12))
DIVIDED, MODULO, AND, OR, XOR, RIGHT = map(U, range(12, 18))
ALGORITHMS = ("crc32", "crc32c", "internet")
FORMS = ("varint", "zigzag", "sleb")
CRC, TWO_SUMS = U(3), U(4)
"""Checksums with parameters in the words after the step."""

# How a number is read: bits to shift the 8 bytes at its place by, and flags. In a run the bits are those to shift to
# the left by, and flags tell what follows after offset, bits to shift back by, mask and register: what the number must
# lie between, address and width of values that are written directly, a column. A REPEATED number is part of the one
# before.
BIG, SIGNED = 64, 128
DIRECTLY, TO_COLUMN, CHECKED, REPEATED = U(256), U(512), U(1024), U(2048)
LONGEST_RUN = 128
"""The most bytes of a run. The copy of the end of the buffer (TAIL) has 8 bytes more, and 8 zeros after them."""

# A fault is the number of a reason, and flags.
CUT_FAULT, LIMIT_FAULT = 1 << 32, 1 << 33
REASON = CUT_FAULT - 1

# The table of a scan begins with: addresses and sizes.
DATA, SIZE, UNTIL, UNTIL_SIZE, STARTS, ENDS, COUNTS, RANGES = range(8)
FIRST, FAILURES, STOPPED, GOOD = range(8, 12)
ERROR_AT, ERROR_OFFSET, ERROR_LENGTH, ERROR_REASON, ERROR_ROOM = range(12, 17)
FULL, LARGE, COLUMN_COUNT, OFFSET, LENGTH, GAPS, MESSAGES, MAY_BE_EMPTY, LAST_REASON, ROW_ROOM, CALLS, TAIL = range(
    17, 29
)
COLUMNS = 32
"""The place of the first column; each has ``WIDTH_OF_COLUMN`` numbers."""

# Of a column: address of its values, or offsets; of its validity, 0 for none; rows from which on it has nothing yet, -1
# for one that every row sets; how many there is room for; address and size of the bytes; bytes of a value; register of
# the number of its rows; how many rows, and bytes, are needed; what it is; of a list the register of its elements.
VALUES, VALID, NEXT, ROOM, BYTES, BYTES_ROOM, VALUE_WIDTH, INDEX, ROWS_NEEDED, BYTES_NEEDED, KIND, ELEMENTS = range(12)
WIDTH_OF_COLUMN = 12
NUMBERS, STRINGS, LISTS = 0, 1, 2

# Of a message, after the columns: address and size of the tray, of the items, of the columns, of what is there.
TRAY, TRAY_SIZE, ITEMS, ITEM_ROOM, DENSE, PRESENT, DENSE_COLUMNS, DENSE_ROWS = range(8)
WIDTH_OF_MESSAGE = 8

# ``state`` of a scan: range, position (-1: at its start), number in the range, rows, errors, limit of a frame, whether
# a last record that is cut is left alone.
STATE = 7
SPARE = 8
"""Bytes after the last value of an array, because values are written 8 bytes at a time."""
