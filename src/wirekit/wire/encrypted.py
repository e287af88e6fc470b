"""Cipher text inside a field: opaque, or decrypted by a function of the caller and decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirekit.errors import Limit, Misuse, WireError
from wirekit.values import Check, Record, plain_mapping, record_type, shown
from wirekit.wire.blobs import Bytes
from wirekit.wire.dollar_entries import refuse_unknown
from wirekit.wire.node import Node, evaluate, load_part
from wirekit.wire.stream import Reader, Scope, Writer, join_path

Decrypted = record_type("Decrypted", ("encrypted", "content"))


class Encrypted(Bytes):
    """Cipher text: all bytes before the limit.

    The value is the byte string, with a ``decryption`` check that is absent. If the caller passed a ``decrypt``
    function and it returns the plain bytes, the value is a record of ``encrypted`` (the stored bytes) and ``content``
    (the decoded plain bytes). Building writes the stored bytes: wirekit has no key.

    Args:
        content: the layout of the plain bytes.
        about: a ``this`` expression for the second argument of the function, beside the cipher text.
    """

    def __init__(self, content: Node, about: Any) -> None:
        super().__init__(None, part=True)
        self.content = content
        self.about = about

    def parts(self) -> list[tuple[str, Node]]:
        return [("content", self.content)]

    def _parse(self, stream: Reader, context: Scope, path: str) -> Any:
        start = stream.position
        data = super()._parse(stream, context, path)
        decrypt = stream.session.decrypt
        plain = None if decrypt is None else decrypt(data, evaluate(self.about, context))
        if plain is None:
            note = "" if decrypt is None else "`decrypt` has no key for it"
            where = (stream.origin + start, stream.source)
            verdict = Check(join_path(stream.session.path), "decryption", None, None, "absent", *where, note)
            stream.session.checks.append(verdict)
            return data
        if not isinstance(plain, (bytes, bytearray, memoryview)):
            raise Misuse(f"decrypt must return bytes, or None without a key, not {shown(plain)}")
        stream.rename("bytes", "encrypted")
        content = self._open(bytes(plain), stream, context, start)
        stream.span(start, "record")
        return Decrypted(encrypted=data, content=content)

    def _open(self, plain: bytes, stream: Reader, context: Scope, start: int) -> Any:
        limits, session = stream.session.limits, stream.session
        if stream.depth >= limits.depth:
            raise Limit("depth", limits.depth, stream.depth + 1, **stream.where())
        depth, frames = len(session.path), len(session.frames)
        session.path.append("content")
        reader = stream.inside(plain)
        end = reader.limit  # an error leaves the limit of the part that it is in
        problem = ""
        try:
            content = self.content._parse(reader, context, "")
        except Limit:
            raise
        except WireError as error:
            del session.path[depth + 1 :], session.frames[frames:]
            content, problem = error.partial, f"decrypted, but {error}"
        if reader.position < end:
            reader.gap(reader.position, end)
            gap_start, reader.position = reader.position, end
            reader.span(gap_start, "gap", "$trailing")
        session.path.pop()
        stream.check("decryption", None, None, not problem, start, problem, end=stream.position)
        return content

    def _build(self, obj: Any, stream: Writer, context: Scope, path: str) -> Any:
        data = obj.get("encrypted") if isinstance(obj, (Record, Mapping)) else obj
        if data is None:
            raise stream.wrong("the cipher text in `encrypted`", "only the decrypted content")
        super()._build(data, stream, context, path)
        stream.written("content")
        return obj

    def load(self, obj: Any, context: Scope) -> Any:
        if plain_mapping(obj):
            refuse_unknown(obj, Decrypted._fields)
            data = super().load(obj.get("encrypted"), context)
            content = load_part("content", self.content.load, obj.get("content"), context)
            return Decrypted(encrypted=data, content=content)
        return super().load(obj, context)
