"""The numbers that write programs in words are made of: opcodes, and where things are in the table of a run.

Opcodes that both kinds of programs have are those of ``opcodes``.
"""

from __future__ import annotations

from wirekit.runtime.opcodes import U

TAKE, LOOK, ANY_OF, WAS, BYTES, COPY_BYTES, ONE_LINE, TEXT, DIGITS, STORE, JOIN = map(U, range(64, 75))
RESERVE, SUM, BEGINS, ELEMENTS, EACH, UNREAD, NOTE, FINISH, MESSAGE, TELL, ASK, INSERT = map(U, range(75, 87))

BIG = 16
"""How a number is written: its bytes, and this if the most significant one comes first."""
VARINT = 32
"""How a varint is written: a multiple of this, by its form (``opcodes.FORMS``)."""

# What a batch says of a column: not there, no row is null, some may be.
MISSING, WHOLE, NULLS = range(3)

# The table of a run begins with: address and size of what is written, of the ends of records; where messages are, and
# what nothing may have read; what calls Python.
OUT, OUT_SIZE, ENDS, MESSAGES, WATCHED, CALLS = range(6)
COLUMNS = 8
"""Where the columns begin: ``WIDTH_OF_COLUMN`` numbers each."""

# Of a column: address of its values, or offsets; of its validity; what the batch says; how many values; how a value is
# read; address and size of the bytes.
VALUES, VALID, GIVEN, COUNT, HOW, DATA, DATA_SIZE = range(7)
WIDTH_OF_COLUMN = 7
UNSIGNED = 16
"""How a value is read: its bytes, and this if they have no sign."""

# Of a message: address and size of its table. Of what nothing may have read: address of its entries, their number;
# of each the address of its validity (0: all have a value), how many, the register of the last one read, a fault.
WIDTH_OF_MESSAGE = 2
WIDTH_OF_WATCHED = 4

# ``state`` of a run: position, row, rows, whether only the content of a field is asked for.
STATE = 4
FULL = -1
"""The fault of a record that has no room."""
MESSAGE_FAULT = 1 << 32
"""Faults of the first message begin behind this, those of the second behind its double."""

# The numbers of an entry of a message's table: of the field, of its column, of the row at hand.
SLOT, TAG, KIND, END, FLAGS, PARENT, SELECTOR = range(7)
FIELD_GIVEN, FIELD_COUNT, FIELD_VALUES, FIELD_VALID, FIELD_DATA, FIELD_DATA_SIZE, ROWS, LISTS, LIST_VALID = range(7, 16)
TOLD, NUMBER, THERE, SIZE, CHOSEN, BEFORE = range(16, 22)
WIDTH = 22
KIND_VARINT, KIND_32, KIND_64, KIND_BYTES, KIND_MESSAGE, KIND_EMPTY = range(6)
REPEATED, REQUIRED, LISTED = 1, 2, 4
# How a message cannot be written: this, and ``FAULTS`` times the slot of the field.
ABSENT, NO_ELEMENT, UNEVEN, OUTSIDE = range(1, 5)
FAULTS = 8
