"""The engines that decode: bytes of a known schema to a ``Decoded``; ``wirekit.decoding`` has the public functions.

Two engines decode and encode, with the same values, bytes, verdicts and errors. ``reference`` calls the ``_parse`` and
``_build`` of each node. It needs no preparation, and explains invalid bytes and values. ``rows`` runs code that is
generated from the layout's IR. It is many times as fast, but generating code takes longer than decoding a few values,
so a key gets it after it has been decoded, or encoded, a few times. ``trace`` is ``rows`` with the spans of all fields,
also by generated code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from wirekit.compiler.engines import DECODERS
from wirekit.errors import Limit, Misuse, WireError
from wirekit.registry import Schema, registry
from wirekit.values import Check, Gap, Span, printable, to_json
from wirekit.wire.stream import Contained, Decrypt, Limits, Reader, Scope, Session, forget_origin

if TYPE_CHECKING:
    from types import ModuleType

    from wirekit.compiler.rows import State

Buffer = bytes | bytearray | memoryview
TIMES_BEFORE_COMPILING = 4
TIMES_BEFORE_REFERENCE = 8
"""After generated code gave up on this many values of a key in a row, the reference engine decodes small values."""
TIMES_BEFORE_RETRY = 16
"""Generated code is then still tried on one in this many values."""
SMALL = 256
"""The maximum size of a small value in bytes."""


class Params(dict[str, Any]):
    """The context given by the caller; a name that was not given is None."""

    __slots__ = ()

    def __missing__(self, name: str) -> None:
        return None


NO_PARAMS = Params()


class Decoded:
    """The result of decoding one value.

    Attributes:
        schema: the key.
        data: the input.
        offset: absolute offset of its first byte; all other offsets are absolute, too.
        value: the value; after an error, the fields decoded before it, and those after a field that contains the error.
        error: Short, Wrong or Limit, or None.
        contained: errors after which decoding continued, in order (``wirekit.wire.Sized``, ``contain``). The first is
            ``error``; each further error has a bad ``layout`` check.
        consumed: size of the value in bytes.
        context: the context given by the caller.
        limits: the limits of this decoding.
        decrypt: the function of the caller that decrypts, or None.
        sources: (bytes, path of the field) of each piece of decompressed data; ``source`` n is ``sources[n - 1]``.
    """

    __slots__ = (
        "_checks", "_gaps", "_requested", "_spans", "_state", "consumed", "contained", "context", "data", "decrypt",
        "error", "limits", "offset", "schema", "sources", "value",
    )  # fmt: skip

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
        self._requested: str | None = None
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
        traced = self.traced()
        if traced is not self and traced.error is not None:
            raise traced.error
        return self._spans or []

    def traced(self) -> Decoded:
        """The same value with its spans; only the fields before the error, if both exceed ``Limits.memory``."""
        if self._spans is None:
            traced = self._decode_again()
            if isinstance(traced.error, Limit) and self.error is None:
                return traced
            self._spans = traced._spans or []
        return self

    def _decode_again(self) -> Decoded:
        arguments = self.schema, self.data, self.offset, self.context, self.limits
        generated = self.clean and is_generated(self._requested, self.schema, _traced_times, DECODERS)
        return _traced(*arguments, generated=generated, decrypt=self.decrypt)

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
                self._state = rows_module().NOTHING_FOUND
        return self._checks

    def add(self, check: Check) -> None:
        """Adds a verdict that a caller computed from the value."""
        self._checks, self._gaps, self._state = self.checks, self.gaps, None
        self._checks.append(check)

    def put(self, number: int, check: Check) -> None:
        """Replaces a verdict, by its number in ``checks``, with one that a caller computed."""
        if self._checks is None or self._state is not None:
            self._checks, self._gaps, self._state = self.checks, self.gaps, None
        self._checks[number] = check

    @property
    def engine(self) -> str:
        """The engine that decoded the value: ``rows``, ``trace`` or ``reference``."""
        return "reference" if self._state is None else "trace" if self._requested == "trace" else "rows"

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

        If value and spans exceed ``Limits.memory``, these are the fields before the limit, and its error.

        Args:
            form: ``tree`` (each field beside its bytes) or ``hexdump``.
            complete: whether long lists, values and their bytes are shown in full.
            indent_json: whether JSON payloads are shown indented, with a line for each member.
        """
        from rich.console import Console

        from wirekit.display.render import show

        console = Console(highlight=False, emoji=False)
        traced = self.traced()
        show(traced, console, form, complete=complete, indent_json=indent_json)
        if traced.error is not None:
            console.print(printable(str(traced.error)), style="red", markup=False, soft_wrap=True)

    def _repr_html_(self) -> str:
        """The tree as HTML for a notebook; text from the wire is escaped."""
        from wirekit.display.render import html

        return html(self.traced())

    def __repr__(self) -> str:
        state = repr(self.error) if self.error else f"{len(self.checks)} checks, {len(self.gaps)} gaps"
        return f"<Decoded {self.schema}: {self.consumed} bytes, {state}>"


def by_reference(
    schema: Schema,
    data: bytes,
    offset: int,
    context: Mapping[str, Any],
    limits: Limits,
    *,
    trace: bool = False,
    decrypt: Decrypt | None = None,
) -> Decoded:
    """The result of the reference engine; with ``trace``, it has the spans."""
    session = Session(schema.key, limits, size=len(data), trace=trace, contain=True, decrypt=decrypt)
    reader = Reader(session, data, origin=offset)
    decoded = Decoded(schema.key, data, offset, context, limits)
    decoded.decrypt = decrypt
    try:
        decoded.value = schema.node._parse(reader, Scope.root(Params(context) if context else NO_PARAMS), "")
    except WireError as error:
        decoded.error, decoded.value = error, error.partial
        forget_origin(error)
    decoded.contained = session.contained or ()
    if decoded.contained:
        last, decoded.error = decoded.error, decoded.contained[0].error
        if last is not None and last is not decoded.contained[-1].error:
            session.fail(last)
    decoded.consumed = reader.position
    decoded._checks, decoded._gaps = session.checks or None, session.gaps or None
    decoded.sources = session.sources or ()
    decoded._spans = session.spans
    return decoded


def by_rows(
    schema: Schema, data: bytes, offset: int, context: Mapping[str, Any], limits: Limits, *, spans: bool = False
) -> Decoded | None:
    """The result of the generated code; None if it gives up: the reference engine reports why."""
    rows, key, size = rows_module(), schema.key, len(data)
    state = rows.State(key, Params(context) if context else NO_PARAMS, limits, size)
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


def by_rows_once(
    schema: Schema, data: bytes, offset: int, context: Mapping[str, Any], limits: Limits
) -> Decoded | None:
    """The result of ``by_rows``; None at once for a large value on which it has just given up.

    Columns examine a frame before objects decode it.
    """
    global _refused_last
    key, size = schema.key, len(data)
    if _refused_last[:2] == (key, size) and _refused_last[2] == hash(data):
        return None
    decoded = by_rows(schema, data, offset, context, limits)
    if decoded is None and size > SMALL:
        _refused_last = key, size, hash(data)
    return decoded


@cache
def rows_module() -> ModuleType:
    """``wirekit.compiler.rows``, imported at first use, because few programs decode enough to need it."""
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
    """A value and its spans: by generated code if requested and the bytes are valid, else by the reference engine."""
    schema = registry[key]
    decoded = None
    if generated and decrypt is None:
        decoded = by_rows(schema, data, offset, context, limits, spans=True)
    return decoded or by_reference(schema, data, offset, context, limits, trace=True, decrypt=decrypt)


decoded_times: Counter[str] = Counter()
_given_up: Counter[str] = Counter()
_refused_last: tuple[str, int, int] = ("", 0, 0)
"""Key, size and hash of the last large value that ``by_rows_once`` refused."""
_traced_times: Counter[str] = Counter()


def is_generated(engine: str | None, key: str, times: Counter[str], engines: tuple[str, ...]) -> bool:
    """Whether to use generated code: it is requested, or the key was used often enough."""
    if engine is not None:
        if engine not in engines:
            raise Misuse(f"no engine {engine!r}; choose from {', '.join(engines)}")
        return engine != "reference"
    times[key] += 1
    return times[key] > TIMES_BEFORE_COMPILING


def decode_bytes(
    schema: Schema,
    data: bytes,
    context: Mapping[str, Any],
    limits: Limits,
    offset: int,
    engine: str | None = None,
    decrypt: Decrypt | None = None,
) -> Decoded:
    """``decode`` for callers that pass the schema, the limits and a context of their own."""
    generated = is_generated(engine, schema.key, decoded_times, DECODERS)
    decoded = None
    if engine == "trace":
        decoded = _traced(schema.key, data, offset, context, limits, decrypt=decrypt)
    elif generated and decrypt is None and (engine is not None or _is_worth_a_try(schema.key, data)):
        decoded = by_rows_once(schema, data, offset, context, limits)
        if decoded is not None and schema.key in _given_up:
            del _given_up[schema.key]
    if decoded is None:
        decoded = by_reference(schema, data, offset, context, limits, decrypt=decrypt)
        if generated and engine is None:
            _given_up[schema.key] += 1
    decoded._requested = engine
    if decoded.error is not None:
        hint = foreign(data)
        if hint and is_stream(schema):
            decoded.error.hint = hint
    return decoded


def _is_worth_a_try(key: str, data: bytes) -> bool:
    """Whether to try generated code on a value: not if it failed on values of this key, and this one is small."""
    return may_succeed(_given_up[key]) or len(data) > SMALL


def may_succeed(given_up: int) -> bool:
    """Whether to try generated code again, after it gave up on this many values of a key in a row."""
    return given_up < TIMES_BEFORE_REFERENCE or given_up % TIMES_BEFORE_RETRY == 0


def is_stream(schema: Schema) -> bool:
    """Whether a schema is the layout of the frames of a byte stream."""
    protocol = registry.protocol(schema.protocol)
    return bool(protocol.client) and schema.key in (protocol.stream("client"), protocol.stream("server"))


def foreign(data: bytes) -> str:
    """A description of the known format of a stream's first bytes; "" if none is known."""
    beginning = registry.beginning(data)
    return "" if beginning is None else str(beginning)
