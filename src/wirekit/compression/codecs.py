"""Codecs by name: decompress or compress a whole byte string."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

from wirekit.compression import deflate, lz4, snappy, zstd
from wirekit.compression.output import DEFAULT, MIB, Buffer, Codec, Decompression, Output
from wirekit.errors import Limit, Misuse, WireError


class _Refused(NamedTuple):
    """A piece that exceeded a limit, and the error."""

    entry: Codec
    data: bytes
    size: int | None
    limits: Decompression
    until_damage: bool
    error: Limit

    def is_repeated(
        self, entry: Codec, data: memoryview, size: int | None, limits: Decompression, until_damage: bool
    ) -> bool:
        """Whether another call ends with the same error."""
        call = (entry, size, until_damage, len(data))
        if (self.entry, self.size, self.until_damage, len(self.data)) != call or self.data != bytes(data):
            return False
        if self.error.limit == "decompression_ratio" and self.error.actual * len(data) <= limits.size:
            return (self.limits.ratio, self.limits.ratio_floor) == (limits.ratio, limits.ratio_floor)
        return self.limits == limits


_refused: _Refused | None = None
"""The last piece of up to 1 MiB that exceeded a limit: if an engine leaves a frame to another, that one opens it again,
and a piece of 32 KiB may take as long as thousands of frames."""


def decompress(
    codec: str,
    data: Buffer,
    *,
    limits: Decompression = DEFAULT,
    size: int | None = None,
    protocol: str = "",
    path: str = "",
    offset: int = 0,
    source: int = 0,
) -> bytes:
    """Decompresses all of ``data``.

    Args:
        codec: a name that ``names()`` lists.
        data: the compressed bytes, all of them.
        limits: limits on the size of the output.
        size: the size of the output, if the protocol states it. ``lz4-block`` requires it, ``zlib`` without a final
            block ends there, ``none`` ignores it.
        protocol: schema key, for errors.
        path: field that holds ``data``, for errors.
        offset: absolute offset of ``data[0]`` in ``source``, in bytes, for errors.
        source: 0 for the input itself, n for the n-th piece of decompressed data in it, for errors.

    Raises:
        Wrong: the data is damaged, is followed by other bytes, or does not yield ``size`` bytes.
        Short: the data is cut inside a part whose length is known.
        Limit: ``decompressed_size`` or ``decompression_ratio`` is exceeded, or a zstd frame needs a window above 8 MiB.
            ``actual`` is the size that the data announces or, without an announced size, the number of bytes that
            were decompressed before the stop.
        Misuse: the codec does not exist, ``size`` is missing but required, or ``data`` is not contiguous bytes.

    >>> decompress("zlib", bytes.fromhex("789cca48cdc9c907000000ffff"), size=5)  # from Java: no final block
    b'hello'
    >>> decompress("snappy", bytes.fromhex("ffffffff0f00"))
    Traceback (most recent call last):
    wirekit.errors.Limit: 4294967295 exceeds the limit of 268435456 (decompressed_size), at byte 0 (0x0)
    """
    plain, error = _run(codec, data, size, limits)
    if error is None:
        return plain
    error.protocol, error.path, error.source = protocol, path, source
    error.offset = offset + (error.offset or 0)
    try:
        raise error
    finally:
        error = None  # otherwise the error and its traceback would refer to each other


def decompress_until_damage(
    codec: str, data: Buffer, *, limits: Decompression = DEFAULT, size: int | None = None
) -> tuple[bytes, WireError | None]:
    """The bytes that ``data`` yields before it is damaged, and the error of ``decompress``; None if it is valid.

    A damaged block of snappy or frame of zstd yields nothing, because only whole ones are decompressed. The last bytes
    may be wrong, because a codec finds some damage only after it. An announced size that the data cannot yield is
    damage.

    Raises:
        Limit, Misuse: as ``decompress``.

    >>> plain, error = decompress_until_damage("gzip", compress("gzip", b"hello")[:-8])
    >>> plain, str(error)
    (b'hello', 'expected a complete gzip member, found one cut after 17 bytes, at byte 0 (0x0)')
    """
    plain, error = _run(codec, data, size, limits, until_damage=True)
    try:
        if isinstance(error, Limit):
            raise error
        return plain, error
    finally:
        error = None


def _run(
    codec: str, data: Buffer, size: int | None, limits: Decompression, *, until_damage: bool = False
) -> tuple[bytes, WireError | None]:
    """The decompressed bytes, before damage only if these are wanted, and the error without its traceback."""
    global _refused
    entry, view, refused = _find(codec), _view(data), _refused
    output: Output | None = None
    try:
        if refused is not None and refused.is_repeated(entry, view, size, limits, until_damage):
            raise copy(refused.error)
        # Pulsar clients write the size of the whole message into every chunk of it, compressed or not.
        output = Output(len(view), limits, None if codec == "none" else size, until_damage=until_damage)
        entry.decompress(view, output)
        return output.result(), None
    except WireError as error:
        error.offset = error.offset or 0
        error.__context__ = None
        if isinstance(error, Limit) and len(view) <= MIB:
            _refused = _Refused(entry, bytes(view), size, limits, until_damage, copy(error))  # without its traceback
        if not until_damage or output is None or isinstance(error, Limit):
            return b"", error.with_traceback(None)
        return output.so_far(), error.with_traceback(None)


def compress(codec: str, data: Buffer) -> bytes:
    """Compresses ``data`` as a writer of the format does. The same input gives the same output.

    The framing equals that of other implementations; the compressed bytes may differ, because an implementation may
    find other matches.

    Raises:
        Misuse: the codec does not exist, or the data is too long for the format.

    >>> compress("kafka-lz4-v0", b"").hex(), compress("kafka-lz4", b"").hex()
    ('04224d1860401a00000000', '04224d1860408200000000')
    """
    return _find(codec).compress(_view(data))


def codec(name: str) -> Codec:
    """The codec with a name.

    Raises:
        Misuse: there is no such codec; the text lists the known ones.

    >>> codec("zlib").description
    'RFC 1950; also without a final block, as Java writes it with SYNC_FLUSH'
    """
    return _find(name)


def names() -> tuple[str, ...]:
    """The names of the known codecs, in the order of registration."""
    return tuple(_CODECS)


def register(entry: Codec) -> None:
    """Registers a codec under its name, for layouts of other protocols.

    Raises:
        Misuse: the name is taken.
    """
    if entry.name in _CODECS:
        raise Misuse(f"a codec called {entry.name!r} already exists; choose another name")
    _CODECS[entry.name] = entry


def _find(name: str) -> Codec:
    try:
        return _CODECS[name]
    except KeyError:
        raise Misuse(f"no codec {name!r}; choose from {', '.join(_CODECS)}") from None


def _view(data: Buffer) -> memoryview:
    try:
        return memoryview(data).cast("B")
    except TypeError:
        raise Misuse(f"{type(data).__name__} is not compressed data; pass bytes or a contiguous memoryview") from None


_CODECS: dict[str, Codec] = {
    entry.name: entry
    for entry in (
        Codec("none", lambda data, output: output.add(bytes(data)), bytes, "the bytes as they are"),
        *deflate.CODECS,
        *snappy.CODECS,
        *lz4.CODECS,
        *zstd.CODECS,
    )
}
