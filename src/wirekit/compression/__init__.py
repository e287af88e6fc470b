"""Compression codecs by name: one call in, one call out, never more memory than a limit grants.

Rules of this package:

- The compressed bytes are hostile. A size that they announce is held against the limits, and against what the format
  can yield from so few bytes, before anything of that size is allocated. Without one, decompression goes in steps.
- Every byte of the input belongs to the format: data after the end of a stream is an error, not ignored.
- Damage is ``Wrong`` in the library's words, missing bytes are ``Short`` where the framing says how many are missing
  and ``Wrong`` where it does not, too much is ``Limit``. Nothing else is raised for any bytes.
- The framings around the codecs (xerial blocks, snappy chunks, zstd blocks, zip headers) are taken apart here by hand;
  they are parts of codecs, not of a protocol. Layouts of protocols must not come in here.
- Libraries are imported by the codec that needs them.
"""

from __future__ import annotations

from wirekit.compression.codecs import codec, compress, decompress, names, register
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
    "lz4_header_checksum",
    "names",
    "register",
    "xerial_blocks",
]
