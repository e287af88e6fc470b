"""The runtime of generated building code: limits, compressed data, values of unusual classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wirekit.compiler.source import Unusual
from wirekit.values import Record
from wirekit.wire.blobs import ZEROS
from wirekit.wire.compressed import holds
from wirekit.wire.stream import Limits
from wirekit.wire.stream import Writer as Output

Unit = Callable[..., None]


class State:
    """The state of one encode, besides the value."""

    __slots__ = ("ends", "limits", "lists", "params", "part", "plain", "protocol", "selected", "written_zeros")

    def __init__(self, protocol: str, params: Mapping[str, Any], limits: Limits) -> None:
        self.plain: int | None = None  # the size of the last content that was compressed
        self.part: Any = None  # the last piece of a larger value that was written
        self.protocol = protocol
        self.params = params
        self.limits = limits
        self.written_zeros = 0
        # Optional fields whose presence the bytes tell, with their buffers and places: those that are absent unless
        # bytes follow; those that are present (the last element) if these bytes follow.
        self.ends: list[tuple[bytearray, int]] = []
        self.selected: list[tuple[bytearray, int, bytes, bool]] = []
        # Lists that certain bytes end: buffer, the first place where these must not be, end of the list, these bytes.
        self.lists: list[tuple[bytearray, int, int, bytes]] = []

    def end_limit(self, buffer: bytearray, end: int) -> None:
        """Forgets the fields that are absent, and the lists that end, at the end of their limit."""
        while self.ends and self.ends[-1][0] is buffer and self.ends[-1][1] == end:
            self.ends.pop()
        while self.lists and self.lists[-1][0] is buffer and self.lists[-1][2] == end:
            _end_list(*self.lists.pop(), end)

    def decide(self) -> None:
        """Raises ``Unusual`` if a reader may take an optional field otherwise than it was written."""
        if any(len(buffer) != place for buffer, place in self.ends) or any(
            buffer.startswith(magic, place) != present for buffer, place, magic, present in self.selected
        ):
            raise Unusual
        for buffer, start, end, until in self.lists:
            _end_list(buffer, start, end, until, len(buffer))

    def zeros(self, size: int) -> bytes:
        """A number of zeros; ``Unusual`` if the reference engine refuses as many."""
        self.written_zeros += size
        if self.written_zeros > ZEROS:
            raise Unusual
        return bytes(size)

    def close(self, codec: str | None, record: Record, unit: Unit, *above: Any) -> bytes:
        """Compressed data: the stored bytes if they still contain the content, otherwise the content compressed."""
        from wirekit.compression import compress

        compressed, content = record.get("compressed"), record.get("content")
        if record._extra or not (compressed is None or isinstance(compressed, bytes)):
            raise Unusual
        if compressed is not None and content is None:
            self.plain = None
            return compressed
        if codec is None or content is None:
            raise Unusual
        inner = bytearray()
        unit(self, inner, content, *above)
        plain = bytes(inner)
        self.plain = len(plain)
        if compressed is not None and holds(codec, compressed, plain, self.limits):
            return compressed
        return compress(codec, plain)

    def message(self, kind: Any, value: Any) -> bytes:
        """A protobuf message."""
        from wirekit.wire.protobuf import build_message

        return build_message(kind, value, Output(self.protocol, self.limits))


# Generated code calls these functions for values of unusual classes. They accept what the reference engine accepts.


def integer(value: Any) -> None:
    """Raises ``Unusual`` for values that are not an integer, and for booleans."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise Unusual


def real(value: Any) -> None:
    """Raises ``Unusual`` for values that are not a number."""
    if not isinstance(value, (int, float)):
        raise Unusual


def flag(value: Any) -> bool:
    """The truth of a boolean or an integer."""
    if not isinstance(value, int):
        raise Unusual
    return bool(value)


def octets(value: Any) -> bytes:
    """The bytes of an object with the buffer protocol."""
    if not isinstance(value, (bytes, bytearray)):
        raise Unusual
    return bytes(value)


def sequence(value: Any) -> None:
    """Raises ``Unusual`` for values that are not a list or tuple."""
    if not isinstance(value, (list, tuple)):
        raise Unusual


def _end_list(buffer: bytearray, start: int, end: int, until: bytes, limit: int) -> None:
    """Raises ``Unusual`` if a reader may end a list earlier, or continue it after its end."""
    if end < limit and not buffer.startswith(until, end):
        raise Unusual
    if start < end and buffer.find(until, start, min(end + len(until) - 1, limit)) >= 0:
        raise Unusual
