"""Compressed data inside a field, decompressed and decoded by its own layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirekit.errors import Limit, WireError, plural
from wirekit.values import Check, Record, plain_mapping, record_type, shown
from wirekit.wire.arguments import Expression, check_cases
from wirekit.wire.blobs import Bytes
from wirekit.wire.costs import OPENED
from wirekit.wire.dollar_entries import OF_OPENED, load_bytes, load_extras
from wirekit.wire.node import Node, Wrapping, evaluate, load_part
from wirekit.wire.stream import Limits, Reader, Scope, Writer, located

NEED_SIZE = ("lz4-block",)
_BUT = "decompressed, but"
Opened = record_type("Opened", ("compressed", "content"))


def load_opened(mapping: Mapping[str, Any], content: Any) -> Record:
    """The record of compressed data, from its JSON form and the loaded content."""
    record = Opened(content=content)
    record.compressed = load_bytes(mapping.get("compressed"))
    record._extra = load_extras(mapping, Opened._fields, OF_OPENED)
    return record


class Compressed(Wrapping):
    """A byte string that is compressed by the codec in another field.

    The value is a record of ``compressed`` (the stored bytes) and ``content`` (the decoded value). Building writes the
    stored bytes if ``content`` is unchanged, and compresses ``content`` otherwise. If ``codecs`` lacks the codec, the
    value is the byte string. If the bytes do not decompress, the value is the byte string, with a bad ``decompression``
    check. With ``streamed``, any data before the damage is the content; building then writes the stored bytes, unless
    you delete ``compressed``.

    Args:
        inner: the byte string.
        codec: a ``this`` expression for the codec, or a tuple of them.
        codecs: {value of codec: name in ``wirekit.compression``}.
        content: the layout inside.
        size: an expression for the size after decompression, if the format states it.
        streamed: whether content before damage is decoded, because its records are useful without those after them.
    """

    def __init__(
        self,
        inner: Bytes,
        codec: int | Expression | tuple[Expression, ...],
        codecs: Mapping[Any, str],
        content: Node,
        *,
        size: int | Expression | None = None,
        streamed: bool = False,
    ) -> None:
        super().__init__(inner)
        check_cases("Compressed", codec, codecs)
        self.codec = codec
        self.codecs = dict(codecs)
        self.content = content
        self.size = size
        self.streamed = streamed

    @property
    def opaque(self) -> bool:
        return True

    @property
    def takes_all(self) -> bool:
        return self.inner.takes_all

    def parts(self) -> list[tuple[str, Node]]:
        return [("inner", self.inner), ("content", self.content)]

    def _name(self, context: Scope) -> str | None:
        if isinstance(self.codec, tuple):
            return self.codecs.get(tuple(evaluate(part, context) for part in self.codec))
        return self.codecs.get(evaluate(self.codec, context))

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start = stream.position
        data = self.inner._parse(stream, context, path)
        name = self._name(context)
        if name is None or data is None:
            return data
        limits = stream.session.limits
        if stream.depth >= limits.depth:
            raise Limit("depth", limits.depth, stream.depth + 1, **stream.where())
        plain, damage = self._open(name, data, context, stream)
        if damage is not None:
            damage = f"{name}: {damage}"
            if not plain:
                self._unopened(data, stream, start, damage)
                return data
            note = f"{damage}; {plural(len(plain), 'byte')} decompressed"
            stream.check("decompression", None, None, False, start, note, end=stream.position)
        stream.charge(OPENED)
        names = stream.session.path
        depth = len(names)
        frames = len(stream.session.frames)
        stream.rename("bytes", "compressed")
        names.append("content")
        reader = stream.inside(plain)
        end = reader.limit  # an error leaves the limit of the part that it is in
        extra: dict[str, Any] = {}
        try:
            content = self.content._parse(reader, context, path)
            if reader.position < reader.limit:
                reader.trailing(reader.position, reader.limit)
                extra = {"trailing": {"content": bytes(plain[reader.position :])}}
        except Limit:
            raise
        except WireError as error:
            del names[depth:], stream.session.frames[frames:]
            reader.gap(reader.position, end)
            gap_start, reader.position = reader.position, end
            reader.span(gap_start, "gap", "content", "$trailing")
            if damage is None:
                note = f"{_BUT} {error}"
                stream.check("decompression", None, None, False, start, note, end=stream.position)
            content, extra = error.partial, {"keep": ["compressed"]}
        if damage is not None:
            extra["keep"] = ["compressed"]
        del names[depth:]
        stream.span(stream.position - len(data), "record")
        record = Opened(compressed=data, content=content)
        record._extra = extra or None
        return record

    def _open(self, name: str, data: bytes, context: Scope, stream: Reader) -> tuple[bytes, str | None]:
        """The decompressed bytes, those before damage if the data is streamed, and what is wrong with it."""
        size = None if self.size is None else evaluate(self.size, context)
        if self.size is not None and size is None and name in NEED_SIZE:
            return b"", "the size after decompression is not given"
        allowance = stream.session.allowance
        try:
            plain, damage = allowance.decompress_until_damage(name, data, size, keep=self.streamed)
        except Limit as limit:
            raise located(limit, stream) from None
        except WireError as error:
            return b"", _text(error)
        return plain, None if damage is None else _text(damage)

    def _unopened(self, data: bytes, stream: Reader, start: int, why: str) -> None:
        """Records that no field explains the bytes."""
        stream.check("decompression", None, None, False, start, why, end=stream.position)
        stream.gap(stream.position - len(data), stream.position)
        if data:
            stream.rename("gap")

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        data = obj
        if isinstance(obj, (Record, Mapping)):
            data = self._compress(obj, stream, context)
        self.inner._build(data, stream, context, path)
        return obj

    def _compress(self, obj: Any, stream: Writer, context: Scope) -> bytes:
        from wirekit.compression import compress

        extra = (obj._extra or {}) if isinstance(obj, Record) else {}
        compressed = obj.get("compressed")
        if compressed is not None and ("compressed" in extra.get("keep", ()) or obj.get("content") is None):
            stream.written("content")
            return self._checked(compressed, stream)
        name = self._name(context)
        if name is None:
            raise stream.wrong("a byte string, because the codec means no compression", "opened content")
        plain = self._plain(obj, stream, context)
        if compressed is not None and holds(name, self._checked(compressed, stream), plain, stream.limits):
            return bytes(compressed)
        return compress(name, plain)

    def _plain(self, obj: Any, stream: Writer, context: Scope) -> bytes:
        """The bytes to compress."""
        extra = (obj._extra or {}) if isinstance(obj, Record) else {}
        inner = stream.inside()
        stream.path.append("content")
        self.content._build(obj["content"], inner, context, "")
        stream.path.pop()
        plain = bytes(inner.buffer) + extra.get("trailing", {}).get("content", b"")
        inner.end_limit(0, len(plain))
        return plain

    def plain_size(self, obj: Any, stream: Writer, context: Scope) -> int | None:
        if self._name(context) is None or not isinstance(obj, (Record, Mapping)) or obj.get("content") is None:
            return None
        unchanged = isinstance(obj, Record) and "compressed" in (obj._extra or {}).get("keep", ())
        return None if unchanged else len(self._plain(obj, stream, context))

    @staticmethod
    def _checked(compressed: Any, stream: Writer) -> bytes:
        if not isinstance(compressed, (bytes, bytearray, memoryview)):
            raise stream.wrong("compressed as bytes", shown(compressed))
        return bytes(compressed)

    def load(self, obj: Any, context: Scope) -> Any:
        if plain_mapping(obj):
            return load_opened(obj, load_part("content", self.content.load, obj.get("content"), context))
        return self.inner.load(obj, context)

    def default(self, context: Scope) -> Any:
        return self.inner.default(context)


def is_damage(check: Check | None) -> bool:
    """Whether a verdict is about compressed data itself, not about its content."""
    return check is not None and check.kind == "decompression" and not check.note.startswith(_BUT)


def _text(damage: WireError) -> str:
    return "; ".join(filter(None, (damage.reason, damage.hint)))


def holds(codec: str, compressed: bytes, plain: bytes, limits: Limits) -> bool:
    """Whether compressed data still decompresses to the content beside it."""
    from wirekit.compression import Decompression, decompress

    bounds = Decompression(size=limits.decompressed, ratio=limits.ratio)
    try:
        return decompress(codec, compressed, limits=bounds, size=len(plain)) == plain
    except WireError:
        return False
