"""Memory of the parts of a decoded value in bytes: the sizes of 64-bit CPython, rounded up.

``wirekit.compiler.costs`` adds them up for a layout. They are apart so that decoding needs no compiler.
"""

from __future__ import annotations

SLOT = 8
NUMBER = 40  # with the slot or element that holds it
SYMBOL = 72
BYTES = 80  # without the bytes themselves, which are those of the input or are charged when they are decompressed
RECORD = 64
LIST = 64
OPENED = 400  # the record of compressed data, and the entry in the sources
VERDICT = 208
CONTAINED = 1024  # an error behind which decoding went on, and the verdict that tells it
SPAN = 240  # without its path
UNKNOWN = 640  # a protobuf field without a name
EXTRAS = 320  # what a record has beside its fields
