"""Damage without a name: what a seeded generator of random numbers does to bytes, thousands of times a second.

Named damage is ``wirekit.strategies.mutations``. Here nothing of a layout is known but for two things: bytes that still
decode are written anew with right lengths and checksums, and what lies in compressed data is damaged and compressed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from random import Random
from typing import Any

import wirekit
from tests.compiler.test_building import records
from wirekit.compression import compress, decompress, names
from wirekit.errors import WirekitError
from wirekit.values import Record

NUMBERS = [0, 1, -1, 2, 127, 128, -128, 255, 32767, -32768, 65535, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63)]
LARGEST = 6000


def damaged(chance: Random, frames: list[bytes]) -> bytes:
    """One of the frames with one to four changes."""
    data = bytearray(chance.choice(frames))
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        change = chance.choice(CHANGES)
        change(chance, data, frames)
    return bytes(data[:LARGEST])


def _bits(chance: Random, data: bytearray, frames: list[bytes]) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _byte(chance: Random, data: bytearray, frames: list[bytes]) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))


def _number(chance: Random, data: bytearray, frames: list[bytes]) -> None:
    """A number that means much: an end of its range, or a length's neighbour."""
    size = chance.choice((1, 2, 4, 4, 8))
    if len(data) < size:
        return
    at = chance.randrange(len(data) - size + 1)
    order = chance.choice(("big", "big", "little"))
    number = chance.choice(NUMBERS)
    if chance.random() < 0.5:
        number = int.from_bytes(data[at : at + size], order) + chance.choice((-2, -1, 1, 2, len(data) - at - size))
    data[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, order)


def _cut(chance: Random, data: bytearray, frames: list[bytes]) -> None:
    del data[chance.randrange(len(data) + 1) :]


def _without(chance: Random, data: bytearray, frames: list[bytes]) -> None:
    at = chance.randrange(len(data) + 1)
    del data[at : at + chance.randrange(1, 9)]


def _insert(chance: Random, data: bytearray, frames: list[bytes]) -> None:
    at = chance.randrange(len(data) + 1)
    data[at:at] = chance.randbytes(chance.randrange(1, 9))


def _again(chance: Random, data: bytearray, frames: list[bytes]) -> None:
    """A part stands twice."""
    at = chance.randrange(len(data) + 1)
    data[at:at] = data[at : at + chance.randrange(1, 40)]


def _splice(chance: Random, data: bytearray, frames: list[bytes]) -> None:
    """The head of one and the tail of another."""
    other = chance.choice(frames)
    data[chance.randrange(len(data) + 1) :] = other[chance.randrange(len(other) + 1) :]


def _over(chance: Random, data: bytearray, frames: list[bytes]) -> None:
    """A part of another in the place of as many bytes."""
    other = chance.choice(frames)
    at, start, size = chance.randrange(len(data) + 1), chance.randrange(len(other) + 1), chance.randrange(1, 33)
    part = other[start : start + size]
    data[at : at + len(part)] = part


def _behind(chance: Random, data: bytearray, frames: list[bytes]) -> None:
    data += chance.choice(frames)


CHANGES = [_bits, _byte, _number, _number, _cut, _without, _insert, _again, _splice, _over, _behind]


def repaired(key: str, data: bytes, context: Mapping[str, Any]) -> bytes:
    """Bytes that decode, written anew with right lengths and checksums; others as they are."""
    decoded = wirekit.decode(data, key, context=context, engine="reference")
    if decoded.error is not None:
        return data
    for record in records(decoded.value):
        record._beside().pop("keep", None)
    try:
        return wirekit.encode(key, decoded.value, context=context, engine="reference")
    except WirekitError:
        return data


def damaged_inside(chance: Random, key: str, data: bytes, context: Mapping[str, Any]) -> bytes | None:
    """A copy in which compressed data was taken out, damaged and compressed again; None when there is none."""
    decoded = wirekit.decode(data, key, context=context, engine="reference")
    if decoded.error is not None or not decoded.sources:
        return None
    value = copy.deepcopy(decoded.value)
    packed = [
        (record, name)
        for record in records(value)
        for name, inner in record._pairs()
        if isinstance(inner, Record) and "compressed" in inner and "content" in inner
    ]
    if not packed:
        return None
    record, name = chance.choice(packed)
    codec, content = _decompressed(record[name].compressed, [source for source, _ in decoded.sources])
    if codec is None:
        return None
    record[name] = compress(codec, damaged(chance, [content]))
    for each in records(value):
        each._beside().pop("keep", None)
    try:
        return wirekit.encode(key, value, context=context, engine="reference")
    except WirekitError:
        return None


def _decompressed(compressed: bytes, sources: list[bytes]) -> tuple[str | None, bytes]:
    """The codec that gives one of the pieces that decoding gave."""
    for codec in names():
        try:
            content = decompress(codec, compressed)
        except WirekitError:
            continue
        if codec != "none" and content in sources:
            return codec, content
    return None, b""
