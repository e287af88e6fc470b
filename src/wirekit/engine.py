"""``decode`` and ``frames``: bytes to values, by schema key; ``wirekit.encoding`` has the inverse.

Two engines decode and encode, with the same values, bytes, verdicts and errors. ``reference`` calls the ``_parse`` and
``_build`` of each node. It needs no preparation, and explains invalid bytes and values. ``rows`` runs code that is
generated from the layout's IR. It is many times as fast, but generating code takes longer than decoding a few values,
so a key gets it after it has been decoded, or encoded, a few times. ``trace`` is ``rows`` with the spans of all fields,
also by generated code.
"""

from __future__ import annotations

import functools
import struct
from collections import Counter, namedtuple
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from wirekit.compiler.engines import DECODERS
from wirekit.errors import Limit, Misuse, Short, WireError, Wrong, plural
from wirekit.registry import Schema, registry
from wirekit.values import Check, Gap, Span, printable, to_json
from wirekit.wire.composite import Struct
from wirekit.wire.stream import Contained, Decrypt, Limits, Reader, Scope, Session

if TYPE_CHECKING:
    from types import ModuleType

    from wirekit.compiler.rows import State

Buffer = bytes | bytearray | memoryview
TIMES_BEFORE_COMPILING = 4
WORTH_COMPILING = 1 << 16
"""Bytes that take the reference engine as long, and as much memory, as generating code does."""
TIMES_BEFORE_REFERENCE = 8
"""Values of a key in a row on which generated code gave up, before the reference engine reads small ones at once."""
TIMES_BEFORE_RETRY = 16
"""One of so many is still tried."""
SMALL = 256
LARGEST_HEADER = 1 << 17
PER_SHORT = 64
MOST_SHORT = 64 * PER_SHORT
"""Frames that are shorter than any of their layout can be, as ``shortness`` counts them; beyond that no length is
believed."""


class Params(dict[str, Any]):
    """The context given by the caller; a name that was not given is None."""

    __slots__ = ()

    def __missing__(self, name: str) -> None:
        return None


_NO_PARAMS = Params()


class Decoded:
    """The result of decoding one value.

    Attributes:
        schema: the key.
        data: the input.
        offset: absolute offset of its first byte; all other offsets are absolute too.
        value: the value; after an error, the fields decoded before it, and those behind a field that contains it.
        error: Short, Wrong or Limit, or None.
        contained: errors behind which decoding went on, in order (``wirekit.wire.Sized``, ``contain``). The first is
            ``error``; of each further one there is a bad ``layout`` check.
        consumed: size of the value in bytes.
        context: the context given by the caller.
    """

    __slots__ = (
        "_asked",
        "_checks",
        "_gaps",
        "_spans",
        "_state",
        "consumed",
        "contained",
        "context",
        "data",
        "decrypt",
        "error",
        "limits",
        "offset",
        "schema",
        "sources",
        "value",
    )

    def __init__(self, schema: str, data: bytes, offset: int, context: Mapping[str, Any], limits: Limits) -> None:
        self.schema = schema
        self.data = data
        self.offset = offset
        self.context = context
        self.limits = limits
        self.decrypt: Decrypt | None = None
        self.value: Any = None
        self._checks: list[Check] | None = None
        self._state: State | None = None
        self._asked: str | None = None
        self._gaps: list[Gap] | None = None
        self.error: WireError | None = None
        self.contained: Sequence[Contained] = ()
        self.consumed = 0
        self.sources: Sequence[tuple[bytes, str]] = ()
        self._spans: list[Span] | None = None

    @property
    def spans(self) -> list[Span]:
        """The bytes of every field (docs/spans.md); computed at first access by decoding again.

        Raises:
            Limit: spans and value together exceed ``Limits.memory``; the value remains available.
        """
        if self._spans is None:
            again = self.schema, self.data, self.offset, self.context, self.limits
            generated = self.clean and is_generated(self._asked, self.schema, _traced_times, DECODERS)
            traced = _traced(*again, generated=generated, decrypt=self.decrypt)
            if isinstance(traced.error, Limit) and self.error is None:
                raise traced.error
            self._spans = traced._spans or []
        return self._spans

    @property
    def gaps(self) -> list[Gap]:
        """The bytes inside the value that no field explains."""
        return [] if self._gaps is None else self._gaps

    @property
    def checks(self) -> list[Check]:
        """Verdicts on checksums, lengths and constants, in the order of decoding."""
        if self._checks is None:
            if self._state is None:
                return []
            self._checks = self._state.verdicts(self.offset)
            if self._state.clean:
                self._state = _rows_module().NOTHING_FOUND
        return self._checks

    def add(self, check: Check) -> None:
        """Takes a verdict that a reader of the value came to."""
        self._checks, self._gaps, self._state = self.checks, self.gaps, None
        self._checks.append(check)

    def put(self, number: int, check: Check) -> None:
        """Takes a verdict of such a reader in place of the one with a number in ``checks``."""
        if self._checks is None or self._state is not None:
            self._checks, self._gaps, self._state = self.checks, self.gaps, None
        self._checks[number] = check

    @property
    def engine(self) -> str:
        """The engine that decoded the value: ``rows``, ``trace`` or ``reference``."""
        return "reference" if self._state is None else "trace" if self._asked == "trace" else "rows"

    @property
    def clean(self) -> bool:
        """Whether there is no error, no unexplained byte, and no failed check."""
        if self._state is not None:
            return self._state.clean  # generated code gives up on errors
        return self.error is None and not self.gaps and all(check.status != "bad" for check in self.checks)

    def to_json(self, *, spans: bool = False) -> dict[str, Any]:
        """The line of ``wirekit decode --output json``, with ``--spans`` if ``spans``; ``wirekit encode`` reads it."""
        line: dict[str, Any] = {
            "schema": self.schema,
            "offset": self.offset,
            "length": self.consumed,
            "value": to_json(self.value),
            "checks": [check.to_json() for check in self.checks],
            "gaps": [gap.to_json() for gap in self.gaps],
            "error": self.error.to_json() if self.error else None,
        }
        if self.context:
            line["context"] = dict(self.context)
        if spans:
            line["spans"] = [span.to_json() for span in self.spans]
        return line

    def show(self, form: str = "tree", *, complete: bool = False, indent_json: bool = False) -> None:
        """Prints the value and the error, if there is one, as ``wirekit decode`` does.

        Args:
            form: ``tree`` (each field beside its bytes) or ``hexdump``.
            complete: whether long lists, values and their bytes are shown whole.
            indent_json: whether payloads that are JSON are shown with a line for each of their members.
        """
        from rich.console import Console

        from wirekit.display.render import show

        console = Console(highlight=False, emoji=False)
        show(self, console, form, complete=complete, indent_json=indent_json)
        if self.error is not None:
            console.print(printable(str(self.error)), style="red", markup=False, soft_wrap=True)

    def _repr_html_(self) -> str:
        """The tree as HTML for a notebook; text from the wire is escaped."""
        from wirekit.display.render import html

        return html(self)

    def __repr__(self) -> str:
        state = repr(self.error) if self.error else f"{len(self.checks)} checks, {len(self.gaps)} gaps"
        return f"<Decoded {self.schema}: {self.consumed} bytes, {state}>"


def _run(
    schema: Schema,
    data: bytes,
    offset: int,
    context: Mapping[str, Any],
    limits: Limits,
    *,
    trace: bool = False,
    decrypt: Decrypt | None = None,
) -> Decoded:
    session = Session(schema.key, limits, size=len(data), trace=trace, contain=True, decrypt=decrypt)
    reader = Reader(session, data, origin=offset)
    decoded = Decoded(schema.key, data, offset, context, limits)
    decoded.decrypt = decrypt
    try:
        decoded.value = schema.node._parse(reader, Scope.root(Params(context) if context else _NO_PARAMS), "")
    except WireError as error:
        decoded.error, decoded.value = error, error.partial
    decoded.contained = session.contained or ()
    if decoded.contained:
        last, decoded.error = decoded.error, decoded.contained[0].error
        if last is not None and last is not decoded.contained[-1].error:
            session.fail(last)
        for each in decoded.contained:
            _forget_origin(each.error)
    if decoded.error is not None:
        _forget_origin(decoded.error)
    decoded.consumed = reader.position
    decoded._checks, decoded._gaps = session.checks or None, session.gaps or None
    decoded.sources = session.sources or ()
    decoded._spans = session.spans
    return decoded


def _forget_origin(error: WireError) -> None:
    """Drops the traceback of an error: it would hold all readers and scopes for as long as the result is kept."""
    error.__context__ = error.__traceback__ = None


def _rows(
    schema: Schema, data: bytes, offset: int, context: Mapping[str, Any], limits: Limits, *, spans: bool = False
) -> Decoded | None:
    """The result of the generated code; None if it gives up: the reference engine reports why."""
    rows, key, size = _rows_module(), schema.key, len(data)
    state = rows.State(key, Params(context) if context else _NO_PARAMS, limits, size)
    if spans:
        state.trace(offset)
    state.gaps = []
    try:
        value, consumed = (rows.tracing_unit if spans else rows.unit)(key)(state, data, 0, size, "")
    except rows.REASONS:
        return None
    decoded = Decoded(key, data, offset, context, limits)
    decoded.value, decoded.consumed = value, consumed
    decoded.sources = state.sources or ()
    decoded._spans = state.spans
    if state.gaps:
        decoded._gaps = [Gap(offset + start, end - start, path, 0) for start, end, path in state.gaps]
    decoded._state = state if state.checks else rows.LEFT_OVER if state.gaps else rows.NOTHING_FOUND
    return decoded


@cache
def _rows_module() -> ModuleType:
    """``wirekit.compiler.rows``, imported when first used: few programs decode so much that they need it."""
    from wirekit.compiler import rows

    return rows


def _traced(
    key: str,
    data: bytes,
    offset: int,
    context: Mapping[str, Any],
    limits: Limits,
    *,
    generated: bool = True,
    decrypt: Decrypt | None = None,
) -> Decoded:
    """A value and its spans, by generated code if that is asked for and the bytes are in order."""
    schema = registry[key]
    decoded = None
    if generated and decrypt is None:
        decoded = _rows(schema, data, offset, context, limits, spans=True)
    return decoded or _run(schema, data, offset, context, limits, trace=True, decrypt=decrypt)


_decoded_times: Counter[str] = Counter()
_given_up: Counter[str] = Counter()
_traced_times: Counter[str] = Counter()


def is_generated(engine: str | None, key: str, times: Counter[str], engines: tuple[str, ...]) -> bool:
    """Whether generated code is asked for, or the key was used often enough to have it generated."""
    if engine is not None:
        if engine not in engines:
            raise Misuse(f"no engine {engine!r}; choose from {', '.join(engines)}")
        return engine != "reference"
    times[key] += 1
    return times[key] > TIMES_BEFORE_COMPILING


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
        offset: absolute offset of ``data[0]``, for reports.
        engine: ``rows``, ``trace`` (computes ``spans`` at once) or ``reference``; the default is rows or reference,
            whichever is faster. The results are equal.
        decrypt: a function of the cipher text and the message's facts about it (for Pulsar its metadata); it returns
            the plain bytes, or None without a key.

    Raises:
        Misuse: for a key or engine that does not exist.
        Short, Wrong, Limit: only with ``strict``.

    >>> import wirekit
    >>> d = wirekit.decode(bytes.fromhex("0000000a00000007000000000000"), "kafka.list_groups.response.v0")
    >>> d.value.correlation_id, d.value.body.groups, d.error
    (7, [], None)
    """
    if not isinstance(key, str) or not isinstance(data, bytes):
        key, data = _ordered(key, data)
    if "." not in key:
        key = stream_key(key, data, context or {})
    schema = registry[key]
    decoded = decode_bytes(schema, data, dict(context or {}), limits or schema.limits, offset, engine, decrypt)
    if strict:
        _raise(decoded)
    return decoded


def decode_bytes(
    schema: Schema,
    data: bytes,
    context: Mapping[str, Any],
    limits: Limits,
    offset: int,
    engine: str | None = None,
    decrypt: Decrypt | None = None,
) -> Decoded:
    """``decode`` for callers that have looked up the schema, and that pass limits and an own copy of the context."""
    generated = is_generated(engine, schema.key, _decoded_times, DECODERS)
    decoded = None
    if engine == "trace":
        decoded = _traced(schema.key, data, offset, context, limits, decrypt=decrypt)
    elif generated and decrypt is None and (engine is not None or _is_worth_a_try(schema.key, data)):
        decoded = _rows(schema, data, offset, context, limits)
        if decoded is not None and schema.key in _given_up:
            del _given_up[schema.key]
    if decoded is None:
        decoded = _run(schema, data, offset, context, limits, decrypt=decrypt)
        if generated and engine is None:
            _given_up[schema.key] += 1
    decoded._asked = engine
    if decoded.error is not None:
        hint = foreign(data)
        if hint and _is_stream(schema):
            decoded.error.hint = hint
    return decoded


def _is_worth_a_try(key: str, data: bytes) -> bool:
    """Whether generated code may read a value; not where it gave up on those before, and this one is small."""
    times = _given_up[key]
    return times < TIMES_BEFORE_REFERENCE or times % TIMES_BEFORE_RETRY == 0 or len(data) > SMALL


def value_of(data: bytes, key: str) -> Any:
    """``decode(data, key).value``, for what is asked of every frame: nothing else is kept of the decoding."""
    value = lead_of(data, key) if is_generated(None, key, _decoded_times, DECODERS) else None
    if value is None:  # the reference engine says how far the bytes go
        schema = registry[key]
        value = _run(schema, data, 0, {}, schema.limits).value
    return value


def numbers_of(data: bytes, key: str) -> Any:
    """The fields of a schema that are all numbers at fixed places, by name; None for those that are cut.

    Nothing is verified, and fields with symbols are plain numbers.

    >>> numbers_of(bytes.fromhex("0000000a001000000000"), "kafka.request_header")
    Numbers(size=10, api_key=16, api_version=0, correlation_id=None)
    """
    if is_generated(None, key, _decoded_times, DECODERS):
        reader, names = _rows_module().fixed_numbers(key)
        if len(data) >= reader.size:
            return _numbers(names)._make(reader.unpack_from(data))
    value = value_of(data, key)
    found = (value.get(name) for name in value._fields)
    return _numbers(value._fields)._make(None if number is None else int(number) for number in found)


@functools.cache
def _numbers(names: tuple[str, ...]) -> Any:
    return namedtuple("Numbers", names)


def lead_of(data: bytes, key: str) -> Any:
    """The value that bytes begin with; None where they are not in order, whichever way."""
    rows, size = _rows_module(), len(data)
    try:
        return rows.unit(key)(rows.State(key, _NO_PARAMS, registry[key].limits, size), data, 0, size, "")[0]
    except rows.REASONS:
        return None


def _is_stream(schema: Schema) -> bool:
    """Whether a schema is that of the frames of a byte stream."""
    protocol = registry.protocol(schema.protocol)
    return bool(protocol.client) and schema.key in (protocol.stream("client"), protocol.stream("server"))


def foreign(data: bytes) -> str:
    """The known format that the first bytes of a stream have, in words; "" if none is known."""
    found = registry.beginning(data)
    return "" if found is None else str(found)


def header(data: bytes) -> tuple[str, int | None] | None:
    """A header that stands in front of a stream's own bytes: its key, and its size or None while it is cut.

    >>> header(b"PROXY UNKNOWN\\r\\n" b"GET /"), header(b"PRO")
    (('net.proxy_v1', 15), ('net.proxy_v1', None))
    """
    found = registry.beginning(data, cut=True)
    if found is None or not found.header:
        return None
    schema = registry[found.header]
    decoded = _run(schema, data[: found.longest], 0, {}, schema.limits)
    if decoded.error is None:
        return found.header, decoded.consumed
    cut = isinstance(decoded.error, Short) and len(data) < found.longest
    return (found.header, None) if cut else None


def _raise(decoded: Decoded) -> None:
    if decoded.error is not None:
        raise decoded.error
    for check in decoded.checks:
        if check.status == "bad":
            expected = check.computed if check.computed is not None else f"a good {check.kind} check"
            actual = check.stored
            if check.computed is None and check.note:
                actual = check.note if actual is None else f"{actual} ({check.note})"
            where = {"path": check.path, "offset": check.offset, "source": check.source}
            raise Wrong(expected, actual, protocol=decoded.schema, **where)
    for gap in decoded.gaps:
        where = {"path": gap.path, "offset": gap.offset, "source": gap.source}
        raise Wrong("nothing more", plural(gap.length, "unexplained byte"), protocol=decoded.schema, **where)


def _ordered(key: Buffer | str, data: Buffer | str) -> tuple[str, bytes]:
    """(key, bytes), whichever of the two came first."""
    if isinstance(data, str) and not isinstance(key, str):
        key, data = data, key
    if not isinstance(key, str):
        raise Misuse(f"a schema's key or a protocol's name must be a str, not {type(key).__name__}")
    return key, _as_bytes(data)


def _as_bytes(data: Any) -> bytes:
    if isinstance(data, bytes):
        return data
    if not isinstance(data, (bytearray, memoryview)):
        raise Misuse(f"the data must be bytes, not {type(data).__name__}; bytes.fromhex converts hex")
    return bytes(data)


def clean_contexts(data: bytes, key: str, context: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The context under which a frame decodes cleanly and takes all bytes, of all that its layout knows.

    A Kafka response says neither its API nor its version; of most bytes few fit.

    >>> import wirekit
    >>> clean_contexts(bytes.fromhex("0000000600000007000f"), "kafka.response")[-2:]
    [{'api': 'heartbeat', 'version': 0}, {'api': 'leave_group', 'version': 0}]
    """
    from wirekit.compiler.contexts import choices_of

    said = dict(context or {})
    tried = [
        dict(zip(names, values, strict=True))
        for names, cases in choices_of(registry[key].layout)
        for values in cases
        if not said.keys() & set(names)
    ]
    fitting = (each for each in tried if begins(data, key, len(data), context={**said, **each}))
    decoded = ((each, decode(data, key, context={**said, **each})) for each in fitting)
    return [each for each, result in decoded if result.clean and result.consumed == len(data)]


def stream_key(name: str, data: bytes, context: Mapping[str, Any]) -> str:
    """The key of the first frame in bytes of a protocol: the client's layout, or the server's when it fits better.

    A frame that another layout proves to be the client's has that layout's key. One whose header alone proves it has
    the client's, even where its body is not known; so has one of the client's, as its dialogue tells, with bytes left
    over, unless it is a clean frame of the server under some context.
    """
    protocol = registry.protocol(name)
    client, server = protocol.stream("client"), protocol.stream("server")
    if client == server:
        return client
    if context:
        return server
    limits = protocol.limits
    found = _run(registry[client], data, 0, {}, limits)
    cut = found.error is not None and isinstance(found.error, Short)
    if (found.error is None and not found.gaps) or (cut and found.value is not None):
        return client
    frame = data[: _size_here(data, client, limits, 0)]
    for proof in map(protocol.key, protocol.recognised_by):
        if proof not in (client, server):
            other = _run(registry[proof], frame, 0, {}, limits)
            if other.clean and other.consumed == len(frame):
                return proof
    dialogue = protocol.follow()
    if dialogue.headed("client", frame, side_known=False):
        return client
    asks = found.error is None and dialogue.layout("client", frame)[2] is None and dialogue.sender(found) == "client"
    return client if asks and not clean_contexts(frame, server) else server


class _Beginning(bytes):
    """The first bytes of something longer: a slice that leads beyond them is an error, not a shorter slice."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.stop is not None and key.stop > len(self):
            raise IndexError
        return bytes.__getitem__(self, key)


def begins(data: bytes, key: str, size: int, *, context: Mapping[str, Any] | None = None) -> bool:
    """Whether bytes may be a value of ``size`` bytes without a complaint, or the first ones of such a value.

    For searching, where most bytes are none: it takes a tenth of the time in which ``decode`` says what is wrong.
    """
    return _begins(_rows_module().State, data, key, size, context)


def begins_unverified(data: bytes, key: str, size: int) -> bool | None:
    """``begins`` where no checksum is compared and nothing opened that is compressed.

    None where text is not in order, so that only ``decode`` can tell how the rest fits.
    """
    try:
        return _begins(_rows_module().Unverified, data, key, size, None)
    except UnicodeDecodeError:
        return None


def fits_unverified(data: bytes, key: str, limits: Limits | None = None) -> bool | None:
    """Whether ``decode`` finds no error and no gap in bytes, besides what is compressed; None if only it can tell."""
    if not is_generated(None, key, _decoded_times, DECODERS) and len(data) < WORTH_COMPILING:
        return None
    try:
        return _begins(_rows_module().Unverified, data, key, len(data), None, limits)
    except UnicodeDecodeError:
        return None


def _begins(
    kind: type[State],
    data: bytes,
    key: str,
    size: int,
    context: Mapping[str, Any] | None,
    limits: Limits | None = None,
) -> bool:
    rows = _rows_module()
    state = kind(key, Params(context) if context else _NO_PARAMS, limits or registry[key].limits, size)
    cut = len(data) < size
    try:
        _, end = rows.unit(key)(state, _Beginning(data) if cut else data, 0, size, "")
    except (struct.error, IndexError):  # what reading beyond the bytes gives
        return cut
    except UnicodeDecodeError:
        if kind is rows.State:
            return False
        raise
    except rows.REASONS:
        return False
    return end == size and (cut or kind is not rows.State or state.clean)


def clean_value(data: bytes, key: str, *, context: Mapping[str, Any] | None = None) -> Decoded | None:
    """The result of ``decode`` for bytes that are exactly one valid value; None for all others."""
    schema = registry[key]
    decoded = _rows(schema, data, 0, dict(context or {}), schema.limits)
    return decoded if decoded is not None and decoded.consumed == len(data) and decoded.clean else None


def fitting_value(data: bytes, key: str) -> Decoded | None:
    """The result of ``decode`` for bytes that are one value without an error or gap, if with failed checks, or None."""
    schema = registry[key]
    decoded = _rows(schema, data, 0, {}, schema.limits) if is_generated(None, key, _decoded_times, DECODERS) else None
    if decoded is None:
        if fits_unverified(data, key) is False:
            return None
        decoded = decode(data, key)
    return decoded if decoded.error is None and not decoded.gaps and decoded.consumed == len(data) else None


def frame_size(data: bytes, key: str, *, limits: Limits | None = None, start: int = 0) -> int | None:
    """Bytes of the frame at ``start`` as its own length tells; None when too few bytes are there to know.

    Raises:
        Wrong, Limit: when the length makes no sense.
        Misuse: when the layout has no length that covers all fields after it.
    """
    schema = registry[key]
    if not isinstance(schema.node, Struct):
        raise Misuse(f"{key} is not a frame: it has no length of its own")
    reader = Reader(Session(key, limits or schema.limits), data, start)
    return schema.node.frame_size(reader, Scope.root(Params()))


def overruns(frame: bytes, key: str) -> bool:
    """Whether one of the lengths that a frame begins with leads beyond the bytes there are, so it cannot be clean."""
    schema = registry[key]
    if not isinstance(schema.node, Struct):
        return False
    return schema.node.overruns(Reader(Session(key, schema.limits), frame), Scope.root(Params()))


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
        Misuse: for a name or key that does not exist, at once.

    >>> import wirekit
    >>> ping = bytes.fromhex("00000009" "00000005" "0812" "920100")
    >>> [frame.offset for frame in wirekit.frames("pulsar", ping + ping)]
    [0, 13]
    """
    name, data = _ordered(name, data)
    if "." in name:
        registry[name]
    else:
        registry.protocol(name).stream("client")
    return _walk(name, data, context, limits, decrypt)


def _walk(
    name: str, data: bytes, context: Mapping[str, Any] | None, limits: Limits | None, decrypt: Decrypt | None
) -> Iterator[Decoded]:
    position = 0
    if "." not in name or _is_stream(registry[name]):
        found = header(data[:LARGEST_HEADER])
        if found is not None and found[1] is not None:
            position = found[1]
            yield decode(data[:position], found[0])
    short, least = 0, -1
    while position < len(data):
        key = name if "." in name else _key_here(name, data, context or {}, limits, position)
        size = _size_here(data, key, limits, position)
        short = 0 if size is None else shortness(short, size, least)
        if position and least < 0:
            least = _least(name)
        if size is not None and size < least and short > MOST_SHORT:
            size = None
        end = len(data) if size is None else position + size
        said: dict[str, Any] = {"context": context, "limits": limits, "decrypt": decrypt}
        decoded = decode(data[position:end], key, offset=position, **said)
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
    """The count of frames that are too short, behind another one of ``size`` bytes, where ``least`` can be one.

    Such a frame counts ``PER_SHORT``. Other frames make up for it by their bytes, so that short ones between them do
    not take longer than their bytes allow.
    """
    return short + PER_SHORT if size < least else max(short - size, 0)


def _least(name: str) -> int:
    """Bytes of the smallest frame of a protocol, or of a key."""
    from wirekit.compiler.heading import heading

    streams = map(registry.protocol(name).stream, ("client", "server")) if "." not in name else (name,)
    return min(heading(key, registry[key].limits.frame).least for key in streams)


def _key_here(name: str, data: bytes, context: Mapping[str, Any], limits: Limits | None, start: int) -> str:
    """``stream_key`` of the frame at ``start``; what follows the frame is not looked at."""
    size = _size_here(data, registry.protocol(name).stream("client"), limits, start)
    return stream_key(name, data[start:] if size is None else data[start : start + size], context)


def _size_here(data: bytes, key: str, limits: Limits | None, start: int) -> int | None:
    """The size of the frame at ``start``; None when the layout has no length, or one that makes no sense."""
    try:
        return frame_size(data, key, limits=limits, start=start) or None
    except (WireError, Misuse):
        return None
