"""Memory of the parts of a decoded value in bytes: the maximum of 64-bit CPython 3.11 to 3.13, rounded up.

``wirekit.compiler.costs`` adds them up for a layout. They are here so that decoding need not import the compiler.
"""

from __future__ import annotations

SLOT = 8
NUMBER = 46  # with the slot or element that holds it, and the eighth that lists keep free
SYMBOL = 74
BYTES = 90  # without the bytes themselves, which are those of the input or are charged when they are decompressed
RECORD = 64
SPARSE = 250  # a protobuf message, with a dict of few fields
LIST = 98  # with four slots, the fewest that a list of elements has
OPENED = 400  # the record of compressed data, and the entry in the sources
VERDICT = 256
CONTAINED = 1024  # an error after which decoding continued, and its verdict
SPAN = 256  # without its path
UNKNOWN = 640  # a protobuf field without a name
EXTRAS = 320  # the details of a record beside its fields
MOST_OF_A_BYTE = UNKNOWN // 2
"""The most memory for a byte of a frame: a protobuf field without a name takes the most, and has at least 2 bytes."""
