"""``decode`` and ``frames``: bytes to values, by schema key; ``wirekit.encoding`` has the inverse."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

from wirekit.engine import Buffer, Decoded, Params, by_reference, decode_bytes, is_stream
from wirekit.errors import Misuse, Short, WireError, Wrong, plural
from wirekit.fitting import begins
from wirekit.registry import registry
from wirekit.values import Gap, shown
from wirekit.wire.arguments import refuse_unless_fit
from wirekit.wire.composite import Struct
from wirekit.wire.stream import Decrypt, Limits, Reader, Scope, Session

LARGEST_HEADER = 1 << 17
PER_SHORT = 64
MOST_SHORT = 64 * PER_SHORT
"""The largest count of too short frames, as ``shortness`` counts them; beyond it, lengths are no longer trusted."""


def decode(
    data: Buffer | str,
    key: Buffer | str,
    *,
    context: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    strict: bool = False,
    offset: int = 0,
    engine: str | None = None,
    decrypt: Decrypt | None = None,
) -> Decoded:
    """Decodes one value at the start of ``data``.

    Args:
        data: the bytes; bytes after the value are ignored (see ``consumed``).
        key: a schema key, or a protocol's name for the first frame of its stream. Data and key may be swapped.
        context: facts that the bytes lack, for example ``{"api": "fetch", "version": 2}``.
        limits: bounds on size, depth and memory; by default the protocol's.
        strict: raise the error, or the first failed check or gap as Wrong, instead of reporting it.
        offset: absolute offset of ``data[0]``, for reports; at least 0 and less than 2**63.
        engine: ``rows``, ``trace`` (computes ``spans`` at once) or ``reference``; the default is rows or reference,
            whichever is faster. The results are equal.
        decrypt: a function that gets the cipher text and the data that describes it (for Pulsar, the message's
            metadata); it returns the plain bytes, or None if it has no key.

    Raises:
        Misuse: for a key or engine that does not exist, an argument of a wrong type, or an invalid offset.
        Short, Wrong, Limit: only with ``strict``.

    >>> import wirekit
    >>> d = wirekit.decode(bytes.fromhex("0000000a00000007000000000000"), "kafka.list_groups.response.v0")
    >>> d.value.correlation_id, d.value.body.groups, d.error
    (7, [], None)
    """
    if not isinstance(key, str) or not isinstance(data, bytes):
        key, data = _ordered(key, data)
    check_options("decode", context, limits, decrypt)
    if type(offset) is not int:
        if not hasattr(offset, "__index__"):
            refuse_unless_fit("decode", "offset", offset, int)
        offset = operator.index(offset)
    if not 0 <= offset < 1 << 63:
        raise Misuse(f"decode: offset must be at least 0 and less than 2**63, not {shown(offset)}")
    if "." not in key:
        key = stream_key(key, data, context or {})
    schema = registry[key]
    decoded = decode_bytes(schema, data, dict(context or {}), limits or schema.limits, offset, engine, decrypt)
    if strict:
        _raise(decoded)
    return decoded


def check_options(function: str, context: Any, limits: Any = None, decrypt: Any = None) -> None:
    """Refuses a context that is not a mapping, limits that are not ``Limits``, and a ``decrypt`` that cannot be called.

    Raises:
        Misuse: naming the function.
    """
    if context is not None and type(context) is not dict:
        refuse_unless_fit(function, "context", context, Mapping | None)
    if limits is not None and type(limits) is not Limits:
        refuse_unless_fit(function, "limits", limits, Limits | None)
    if decrypt is not None:
        refuse_unless_fit(function, "decrypt", decrypt, Decrypt | None)


def header(data: bytes) -> tuple[str, int | None] | None:
    """Finds a header before the first bytes of a stream: its key, and its size or None if it is incomplete.

    >>> header(b"PROXY UNKNOWN\\r\\n" b"GET /"), header(b"PRO")
    (('net.proxy_v1', 15), ('net.proxy_v1', None))
    """
    beginning = registry.beginning(data, cut=True)
    if beginning is None or not beginning.header:
        return None
    schema = registry[beginning.header]
    decoded = by_reference(schema, data[: beginning.longest], 0, {}, schema.limits)
    if decoded.error is None:
        return beginning.header, decoded.consumed
    is_cut = isinstance(decoded.error, Short) and len(data) < beginning.longest
    return (beginning.header, None) if is_cut else None


def _raise(decoded: Decoded) -> None:
    if decoded.error is not None:
        raise decoded.error
    for check in decoded.checks:
        if check.status == "bad":
            expected = check.computed if check.computed is not None else f"a good {check.kind} check"
            actual = check.stored
            if check.kind == "count" and check.stored is not None:  # announced by another field than the list
                expected, actual = plural(check.stored, "element"), check.computed
            if check.computed is None and check.note:
                actual = check.note if actual is None else f"{actual} ({check.note})"
            where = {"path": check.path, "offset": check.offset, "source": check.source}
            raise Wrong(expected, actual, protocol=decoded.schema, **where)
    for gap in decoded.gaps:
        where = {"path": gap.path, "offset": gap.offset, "source": gap.source}
        raise Wrong("nothing more", plural(gap.length, "unexplained byte"), protocol=decoded.schema, **where)


def _ordered(key: Buffer | str, data: Buffer | str) -> tuple[str, bytes]:
    """(key, bytes), for arguments in either order."""
    if isinstance(data, str) and not isinstance(key, str):
        key, data = data, key
    if not isinstance(key, str):
        raise Misuse(f"a schema's key or a protocol's name must be a str, not {type(key).__name__}")
    return key, _as_bytes(data)


def _as_bytes(data: Any) -> bytes:
    if isinstance(data, bytes):
        return data
    if not isinstance(data, (bytearray, memoryview)):
        hint = "; bytes.fromhex converts hex" if isinstance(data, str) else ""
        raise Misuse(f"the data must be bytes, not {type(data).__name__}{hint}")
    return bytes(data)


def clean_contexts(data: bytes, key: str, context: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The contexts under which a frame decodes cleanly to its last byte, among all that its layout knows.

    A Kafka response has neither its API nor its version; usually only a few of them fit.

    >>> import wirekit
    >>> clean_contexts(bytes.fromhex("0000000600000007000f"), "kafka.response")[-2:]
    [{'api': 'heartbeat', 'version': 0}, {'api': 'leave_group', 'version': 0}]
    """
    from wirekit.compiler.contexts import choices_of

    fixed = dict(context or {})
    tried = [
        dict(zip(names, values, strict=True))
        for _, names, cases, _ in choices_of(key)
        for values in cases
        if not fixed.keys() & set(names)
    ]
    fitting = (each for each in tried if begins(data, key, len(data), context={**fixed, **each}))
    decoded = ((each, decode(data, key, context={**fixed, **each})) for each in fitting)
    return [each for each, result in decoded if result.clean and result.consumed == len(data)]


def stream_key(name: str, data: bytes, context: Mapping[str, Any]) -> str:
    """The key of the first frame in bytes of a protocol: that of the client's frames, the server's, or another layout.

    The key is that of the server if a context is given. Without a context it is that of the client if the bytes are a
    frame of the client without gaps, or the beginning of one. If another layout in ``recognised_by`` fits the whole
    frame, it is the key of that layout.

    The key of the client also applies to two kinds of frames that do not fit its layout whole: those with a header that
    only the client writes, even if the body is unknown; and those with gaps that the dialogue attributes to the client,
    unless a response of some context fits them. All other frames have the key of the server.
    """
    protocol = registry.protocol(name)
    client, server = protocol.stream("client"), protocol.stream("server")
    if client == server:
        return client
    if context:
        return server
    limits = protocol.limits
    decoded = by_reference(registry[client], data, 0, {}, limits)
    is_cut = decoded.error is not None and isinstance(decoded.error, Short)
    if (decoded.error is None and not decoded.gaps) or (is_cut and decoded.value is not None):
        return client
    frame = data[: _size_here(data, client, limits, 0, context)]
    for proof in map(protocol.key, protocol.recognised_by):
        if proof not in (client, server):
            other = by_reference(registry[proof], frame, 0, {}, limits)
            if other.clean and other.consumed == len(frame):
                return proof
    dialogue = protocol.follow()
    if dialogue.headed("client", frame, side_known=False):
        return client
    asks = (
        decoded.error is None and dialogue.layout("client", frame)[2] is None and dialogue.sender(decoded) == "client"
    )
    return client if asks and not clean_contexts(frame, server) else server


def frame_size(
    data: bytes, key: str, *, limits: Limits | None = None, start: int = 0, context: Mapping[str, Any] | None = None
) -> int | None:
    """Size of the frame at ``start`` according to its own length; None if there are too few bytes to know.

    Raises:
        Wrong, Limit: the length is invalid.
        Misuse: the values of the layout are not frames (see ``wirekit.registry.Schema.check_framed``).
    """
    schema = registry[key]
    if not isinstance(schema.node, Struct) or not schema.node.sized_by:
        schema.check_framed()
        return schema.fixed_size
    reader = Reader(Session(key, limits or schema.limits), data, start)
    return schema.node.frame_size(reader, Scope.root(Params(context or {})))


def frames(
    name: Buffer | str,
    data: Buffer | str,
    *,
    context: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    decrypt: Decrypt | None = None,
) -> Iterator[Decoded]:
    """The consecutive frames in a byte string, each with its absolute offset.

    A proxy's header before the stream comes first, under its own key (``net.proxy_v1``). A frame with an invalid
    length, or cut by the end of the data, is the last one and has an error. For a key whose layout has no length of
    its own, the result is one value after the other.

    Args:
        name: a protocol's name, or a key.
        data: the bytes. Name and data may be swapped.
        context, limits, decrypt: as for ``decode``.

    Raises:
        Misuse: for a name or key that does not exist; raised by the call, not by the iteration.

    >>> import wirekit
    >>> ping = bytes.fromhex("00000009" "00000005" "0812" "920100")
    >>> [frame.offset for frame in wirekit.frames("pulsar", ping + ping)]
    [0, 13]
    """
    name, data = _ordered(name, data)
    check_options("frames", context, limits, decrypt)
    if "." in name:
        registry[name]
    else:
        registry.protocol(name).stream("client")
    return _walk(name, data, context, limits, decrypt)


def _walk(
    name: str, data: bytes, context: Mapping[str, Any] | None, limits: Limits | None, decrypt: Decrypt | None
) -> Iterator[Decoded]:
    position = 0
    if "." not in name or is_stream(registry[name]):
        head = header(data[:LARGEST_HEADER])
        if head is not None and head[1] is not None:
            position = head[1]
            yield decode(data[:position], head[0])
    short, least = 0, -1
    while position < len(data):
        key = name if "." in name else _key_here(name, data, context or {}, limits, position)
        size = _size_here(data, key, limits, position, context)
        short = 0 if size is None else shortness(short, size, least)
        if position and least < 0:
            least = _least(name)
        if size is not None and size < least and short > MOST_SHORT:
            size = None
        end = len(data) if size is None else position + size
        options: dict[str, Any] = {"context": context, "limits": limits, "decrypt": decrypt}
        decoded = decode(data[position:end], key, offset=position, **options)
        if size is None and decoded.error is None and not decoded.consumed:
            decoded._gaps = [*decoded.gaps, Gap(position, len(data) - position)]
            decoded._state = None
            yield decoded
            return
        yield decoded
        if decoded.error is not None and (size is None or end > len(data)):
            return
        position = max(end if size is not None else position + decoded.consumed, position + 1)


def shortness(short: int, size: int, least: int) -> int:
    """The updated count of frames that are too short, after a frame of ``size`` bytes; ``least`` is the minimum.

    A frame that is too short adds ``PER_SHORT``; another frame subtracts its size, so that the time for short frames
    between others stays linear in the bytes.
    """
    return short + PER_SHORT if size < least else max(short - size, 0)


def _least(name: str) -> int:
    """Size of the smallest frame of a protocol, or of a key."""
    from wirekit.compiler.heading import heading

    streams = map(registry.protocol(name).stream, ("client", "server")) if "." not in name else (name,)
    return min(heading(key, registry[key].limits.frame).least for key in streams)


def _key_here(name: str, data: bytes, context: Mapping[str, Any], limits: Limits | None, start: int) -> str:
    """``stream_key`` of the frame at ``start``; bytes after the frame are ignored."""
    size = _size_here(data, registry.protocol(name).stream("client"), limits, start, context)
    return stream_key(name, data[start:] if size is None else data[start : start + size], context)


def _size_here(
    data: bytes, key: str, limits: Limits | None, start: int, context: Mapping[str, Any] | None
) -> int | None:
    """The size of the frame at ``start``; None if the layout has no length, or the length is invalid."""
    try:
        return frame_size(data, key, limits=limits, start=start, context=context) or None
    except (WireError, Misuse):
        return None
