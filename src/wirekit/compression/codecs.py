"""Codecs by name: one call in, one call out."""

from __future__ import annotations

from wirekit.compression import deflate, lz4, snappy, zstd
from wirekit.compression.output import DEFAULT, Buffer, Codec, Decompression, Output
from wirekit.errors import Misuse, WireError


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
    """Decompress all of ``data``.

    Args:
        codec: a name that ``names()`` lists.
        data: the compressed bytes, from the first to the last.
        limits: how many bytes may come out.
        size: how many bytes must come out, if the protocol says so. ``lz4-block`` can't be read without it, ``zlib``
            without a final block ends there, ``none`` does not look at it.
        protocol: schema key, for errors.
        path: field that holds ``data``, for errors.
        offset: absolute offset of ``data[0]`` in ``source``, in bytes, for errors.
        source: 0 for the input itself, n for the n-th piece of decompressed data in it, for errors.

    Raises:
        Wrong: damaged, followed by other bytes, or not of ``size`` bytes.
        Short: cut off inside a part whose length is known.
        Limit: ``decompressed_size`` or ``decompression_ratio`` passed, or a zstd frame asks for a window above 8 MiB.
            ``actual`` is what the data announces, or, where it announces nothing, how far decompression went before it
            was stopped.
        Misuse: no such codec, no ``size`` where it is needed, or ``data`` is not contiguous bytes.

    Example:
        >>> decompress("zlib", bytes.fromhex("789cca48cdc9c907000000ffff"), size=5)  # from Java: no final block
        b'hello'
        >>> decompress("snappy", bytes.fromhex("ffffffff0f00"))
        Traceback (most recent call last):
        wirekit.errors.Limit: 4294967295 exceeds the limit decompressed_size of 268435456, at byte 0 (0x0)
    """
    entry = _find(codec)
    view = _view(data)
    try:
        # Pulsar clients write the size of the whole message into every chunk of it, compressed or not.
        output = Output(len(view), limits, None if codec == "none" else size)
        entry.decompress(view, output)
        return output.result()
    except WireError as error:
        error.protocol, error.path, error.source = protocol, path, source
        error.offset = offset + (error.offset or 0)
        raise


def compress(codec: str, data: Buffer) -> bytes:
    """Compress ``data`` as a writer of the format does. The same input gives the same output.

    The bytes need not equal those of another implementation, which is free to find other matches; the framing does.

    Raises:
        Misuse: no such codec, or more bytes than the format can hold.

    Example:
        >>> compress("kafka-lz4-v0", b"").hex(), compress("kafka-lz4", b"").hex()
        ('04224d1860401a00000000', '04224d1860408200000000')
    """
    return _find(codec).compress(_view(data))


def codec(name: str) -> Codec:
    """The codec called ``name``.

    Raises:
        Misuse: there is none; the text lists those there are.

    Example:
        >>> codec("zlib").description
        'RFC 1950; also without a final block, as Java writes it with SYNC_FLUSH'
    """
    return _find(name)


def names() -> tuple[str, ...]:
    """The known codecs, in the order they were registered."""
    return tuple(_CODECS)


def register(entry: Codec) -> None:
    """Make a codec of another protocol known under its name.

    Raises:
        Misuse: the name is taken.
    """
    if entry.name in _CODECS:
        raise Misuse(f"a codec called {entry.name!r} exists already; choose another name")
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


def _none_decompress(data: memoryview, output: Output) -> None:
    output.add(bytes(data))


def _none_compress(data: Buffer) -> bytes:
    return bytes(data)


_CODECS: dict[str, Codec] = {
    entry.name: entry
    for entry in (
        Codec("none", _none_decompress, _none_compress, "the bytes as they are"),
        *deflate.CODECS,
        *snappy.CODECS,
        *lz4.CODECS,
        *zstd.CODECS,
    )
}
