"""The numbers in encoded write programs: opcodes, and places in the table of a run.

Opcodes that both kinds of programs share are in ``opcodes``.
"""

from __future__ import annotations

from wirekit.runtime.opcodes import U

TAKE, LOOK, ANY_OF, WAS, BYTES, COPY_BYTES, ONE_LINE, TEXT, DIGITS, STORE, JOIN = map(U, range(64, 75))
RESERVE, ELEMENTS, EACH, UNREAD, NOTE, INSERT = map(U, range(75, 81))

BIG = 16
"""The encoding of a number: its size, plus this if it is big-endian."""
VARINT = 32
"""The encoding of a varint: a multiple of this, by its form (``opcodes.FORMS``)."""

# The presence of a column in a batch: it is missing, has no nulls, or may have nulls.
MISSING, WHOLE, NULLS = range(3)

# The table of a run begins as that of a scan, see ``opcodes``; then the address of the ends of records.
OUT, OUT_SIZE, CALLS, ENDS = range(4)
COLUMNS = 8
"""The place of the first column; each has ``WIDTH_OF_COLUMN`` numbers."""

# The entry of a column: the address of its values or offsets, which have 64 bits; the address of its validity; its
# presence; its number of values; address and size of the bytes.
VALUES, VALID, PRESENCE, COUNT, DATA, DATA_SIZE = range(6)
WIDTH_OF_COLUMN = 6

# ``state`` of a run: the position, the row, the rows, and whether only the content of a field is requested.
STATE = 4
FULL = -1
"""The fault of a record for which the output has no space."""
