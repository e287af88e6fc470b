"""The numbers in encoded programs: opcodes, symbols, and places in the table of a scan."""

from __future__ import annotations

from typing import Any

import numpy as np

from wirekit.varints import BY_FIRST_BYTE, LITTLE

U: Any = np.uint64
"""Numbers that are compared with words have the type of words: numba converts operands of two types to floats."""

# Opcodes; ``words`` defines the words after each. A program has FAILED at place 0, the target of a record's faults.
# The first ones are those of both kinds of programs.
FAILED, END, LET, CLEAR, MARK, SEEK, FAIL, JUMP, SWITCH = map(U, range(9))
TEST = U(8)  # plus the number of a comparison among the symbols
TEST_EQUAL, TEST_UNEQUAL, TEST_LESS, TEST_AT_MOST, TEST_MORE, TEST_AT_LEAST = map(U, range(9, 15))
BEGINS, ONE_OF, SUM, CALL = map(U, range(15, 19))
LAST_SHARED = CALL
RUN, FIT, BOUND, CLOSE, PREFIXED, SLICE, FIND, EMIT, EMIT_ABSENT, COPY, IS_TEXT, VARINT = map(U, range(19, 31))
COUNTED, LIMITED, AGAIN, LISTED, CUT, CAUGHT, WALK, PICK, KEEP = map(U, range(31, 40))

SYMBOLS = ("=", "==", "!=", "<", "<=", ">", ">=", "and", "or", "+", "-", "*", "//", "%", "&", "|", "^", ">>", "<<")
SAME_AS, EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, BOTH, EITHER, PLUS, MINUS, TIMES = map(U, range(12))
DIVIDED, MODULO, AND, OR, XOR, RIGHT = map(U, range(12, 18))
ALGORITHMS = ("crc32", "crc32c", "internet")
FORMS = ("varint", "zigzag", "sleb", "vlq", *BY_FIRST_BYTE)
"""The encodings of varints."""
HEADS = np.zeros((len(FORMS), max(map(len, BY_FIRST_BYTE.values())), 3), np.uint64)
"""``BY_FIRST_BYTE`` by the number of the form; with size 0 after the last row of a form, and in other forms."""
for _form, _heads in BY_FIRST_BYTE.items():
    HEADS[FORMS.index(_form), : len(_heads)] = _heads
IS_LITTLE = np.array([form in LITTLE for form in FORMS])
CRC, TWO_SUMS = U(3), U(4)
"""Checksums with parameters in the words after the step."""

# The encoding of a number: the bits by which the 8 bytes at its place are shifted, and flags. In a run, the bits are
# those of a left shift. After them come an offset, the bits of the right shift, a mask and a register. Flags tell which
# words follow: CHECKED the bounds of the number and the fault, DIRECTLY the address and width of the values, TO_COLUMN
# the column. A REPEATED number is a part of the number before it.
BIG, SIGNED = 64, 128
DIRECTLY, TO_COLUMN, CHECKED, REPEATED = U(256), U(512), U(1024), U(2048)
LONGEST_RUN = 128
"""The most bytes of a run. The copy of the end of the buffer (TAIL) has 8 bytes more, and 8 zeros after them."""

# A fault is the number of a reason, and flags.
CUT_FAULT, LIMIT_FAULT = 1 << 32, 1 << 33
REASON = CUT_FAULT - 1

# The tables of both kinds of programs begin with address and size of the buffer (of the output, for writing), and the
# address of the function that calls Python. The table of a scan continues with addresses and sizes:
DATA, SIZE, CALLS, UNTIL, UNTIL_SIZE, STARTS, ENDS, COUNTS, RANGES = range(9)
FIRST, FAILURES, STOPPED, GOOD = range(9, 13)
ERROR_AT, ERROR_OFFSET, ERROR_LENGTH, ERROR_REASON, ERROR_ROOM = range(13, 18)
FULL, LARGE, COLUMN_COUNT, OFFSET, LENGTH, GAPS, MESSAGES, MAY_BE_EMPTY, LAST_REASON, ROW_ROOM, TAIL = range(18, 29)
COLUMNS = 32
"""The place of the first column; each has ``WIDTH_OF_COLUMN`` numbers."""

# The entry of a column: the address of its values or offsets; the address of its validity, 0 for none; the first row
# that is not set yet, -1 if every row sets it; the number of rows that fit; address and size of the bytes; bytes of a
# value; the register with its number of rows; the rows and bytes that are needed; its kind; for a list, the register
# with its number of elements.
VALUES, VALID, NEXT, ROOM, BYTES, BYTES_ROOM, VALUE_WIDTH, INDEX, ROWS_NEEDED, BYTES_NEEDED, KIND, ELEMENTS = range(12)
WIDTH_OF_COLUMN = 12
NUMBERS, STRINGS, LISTS = 0, 1, 2

# The entry of a message, after the columns: addresses and sizes of its tray, items, columns, and presence flags.
TRAY, TRAY_SIZE, ITEMS, ITEM_ROOM, DENSE, PRESENT, DENSE_COLUMNS, DENSE_ROWS = range(8)
WIDTH_OF_MESSAGE = 8

# ``state`` of a scan: the range, the position (-1: at its start), the number in the range, the rows, the errors, the
# limit of a frame, whether an incomplete last record is not read, and whether the first may begin as the list ends.
STATE = 8
SPARE = 8
"""Bytes after the last value of an array, because values are written 8 bytes at a time."""
