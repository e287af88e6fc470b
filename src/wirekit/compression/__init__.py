"""Compression codecs by name: each call decompresses or compresses a whole byte string, within limits.

Rules of this package:

- The compressed bytes are hostile. An announced size is compared with the limits, and with the maximum that the format
  can yield from the input, before memory is allocated. Without an announced size, decompression proceeds in steps.
- Every byte of the input must belong to the format: data after the end of a stream is an error.
- Damage is ``Wrong``, with the text of the library. Missing bytes are ``Short`` if the framing gives their number, else
  ``Wrong``. An exceeded limit is ``Limit``. No bytes cause any other exception.
- This package parses the framings of the codecs by hand (xerial blocks, snappy chunks, zstd blocks, zip headers),
  because they are parts of codecs. Layouts of protocols do not belong here.
- Each codec imports its library when it is first used.
"""

from __future__ import annotations

from wirekit.compression.codecs import codec, compress, decompress, decompress_until_damage, names, register
from wirekit.compression.lz4 import LZ4_BEST, LZ4_MAGIC, lz4_header_checksum
from wirekit.compression.output import DEFAULT, Buffer, Codec, Decompression, Output
from wirekit.compression.snappy import SNAPPY_BEST, XERIAL_MAGIC, xerial_blocks

__all__ = [
    "DEFAULT",
    "LZ4_BEST",
    "LZ4_MAGIC",
    "SNAPPY_BEST",
    "XERIAL_MAGIC",
    "Buffer",
    "Codec",
    "Decompression",
    "Output",
    "codec",
    "compress",
    "decompress",
    "decompress_until_damage",
    "lz4_header_checksum",
    "names",
    "register",
    "xerial_blocks",
]
