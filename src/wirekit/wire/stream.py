"""Readers and writers of bytes: (buffer, position, limit), never a file object.

``Reader`` and ``Writer`` are the streams that construct's ``_parse`` and ``_build`` get. Both have the path of the
current field, for errors, and the frame of the enclosing struct, where a node stores details that a plain value
lacks. A ``Session`` is shared by the readers of one decode: the input and each piece of decompressed
data in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from math import isfinite, isnan
from typing import Any, NamedTuple

from wirekit.errors import Limit, Misfit, Misuse, Short, WireError, Wrong, short_at
from wirekit.values import Check, Gap, Span, shown
from wirekit.wire.arguments import at_least, refuse_unless_fit
from wirekit.wire.costs import CONTAINED, EXTRAS, SPAN, VERDICT

Decrypt = Callable[[bytes, Any], bytes | None]
"""Returns the plain bytes of cipher text, given the message's data about it; None without a key."""

WITHIN = "$within"
"""The part of a path for a node inside another node without a field between them."""

TOTAL = "decompressed_total"
"""The limit on all compressed data of an input together, as ``Limit`` names it."""

COPIES = 2  # copies of decompressed data in memory: as a whole, and as the values in it

MEMORY = "memory"
"""The limit on the memory of decoded values, as ``Limit`` names it."""

PART_ENDS = re.compile(r"(?=[.\[])|$")
"""The ends of the parts of a path in text."""

PLACED = ("raw", "width", "trailing")
"""The ``$`` entries of a record with the paths of fields that use them."""

SHARED = TOTAL, MEMORY
"""The limits on all parts of an input together: a smaller part may be within them."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the memory and the nesting depth of decoding.

    ``decompressed`` and ``ratio`` bound one piece of compressed data. ``total_ratio`` times the size of the input, or
    ``decompressed`` if that is more, bounds all pieces of one input together, including nested pieces. The input is the
    argument of one call: the bytes of ``decode``, the buffer of ``columns`` or ``scan``. Readers of captures and stored
    files decode a frame or a few MiB at a time, each as an input of its own.

    ``memory`` and ``memory_ratio`` bound the memory of decoded values on every engine: records, list elements, protobuf
    messages and their fields, decompressed bytes, verdicts, spans. The memory is estimated, at a little more than
    CPython takes (``wirekit.compiler.costs``). With the defaults a process takes at most 300 MB plus 20 times the
    size of the input. A few hundred thousand small records may be decoded from any input. The libraries of ``columns``
    and ``scan`` take 200 MiB of that.

    Attributes:
        frame: the largest length of a frame, bytes.
        depth: the deepest nesting of compressed data in compressed data, and of a layout in itself. The error is the
            same where Python's stack ends before a greater limit (at about 100 levels or more, by layout and engine).
        decompressed: the largest size of one piece of compressed data after decompression, bytes.
        ratio: the largest ratio of that size to the compressed size (not applied below 64 KiB).
        total_ratio: the largest ratio of all decompressed data to the input (not applied below ``decompressed``).
        memory: memory for the values decoded from one input, bytes, in addition to ``memory_ratio``.
        memory_ratio: memory per byte of input.

    Raises:
        Misuse: for a limit that is not a number of at least 0.
    """

    frame: int = 100 * 1024 * 1024
    depth: int = 8
    decompressed: int = 256 * 1024 * 1024
    ratio: int = 1000
    total_ratio: int = 100
    memory: int = 240 * 1024 * 1024
    memory_ratio: int = 16

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            refuse_unless_fit("Limits", each.name, value, int | float)
            at_least("Limits", each.name, value, 0)
            if isinstance(value, float) and (isnan(value) or ("ratio" not in each.name and isfinite(value))):
                raise Misuse(f"Limits: {each.name} must be a whole number or math.inf, not {value}")


class Allowance:
    """Decompresses the pieces of compressed data in one input, and counts their total size and the memory of values.

    Args:
        limits: the limits.
        size: size of the input in bytes.

    Attributes:
        total: the maximal size of all decompressed pieces together, bytes.
        left: the part of ``total`` that is not used yet.
        memory: the maximal memory of all values, bytes.
        room: the part of ``memory`` that is not used yet.

    >>> from wirekit.compression import compress
    >>> data = compress("gzip", bytes(800))
    >>> allowance = Allowance(Limits(decompressed=1000, total_ratio=2), size=20)
    >>> len(allowance.decompress("gzip", data)), allowance.left
    (800, 200)
    >>> allowance.decompress("gzip", data)
    Traceback (most recent call last):
    wirekit.errors.Limit: 1001 exceeds the limit of 1000 (decompressed_total)
    """

    __slots__ = ("left", "limits", "memory", "room", "total")

    def __init__(self, limits: Limits, size: int) -> None:
        self.limits = limits
        total = limits.total_ratio * size
        self.total = self.left = total if total > limits.decompressed else limits.decompressed
        self.memory = self.room = limits.memory + limits.memory_ratio * size

    @property
    def most(self) -> int:
        """Bytes that may still be decompressed."""
        return min(self.left, max(self.room, 0) // COPIES)

    def take(self, size: int) -> None:
        """Counts decompressed bytes."""
        self.left -= size
        self.room -= COPIES * size

    def exceeded(self) -> Limit:
        """The error for values that exceed the memory limit."""
        return Limit(MEMORY, self.memory, self.memory + max(1, -self.room))

    def decompress(self, codec: str, data: bytes | memoryview, size: int | None = None) -> bytes:
        """The result of ``wirekit.compression.decompress``, within the limits of one piece and of all together."""
        plain, error = self.decompress_until_damage(codec, data, size, keep=False)
        assert error is None
        return plain

    def decompress_until_damage(
        self, codec: str, data: bytes | memoryview, size: int | None = None, *, keep: bool = True
    ) -> tuple[bytes, WireError | None]:
        """The result of ``wirekit.compression.decompress_until_damage``, within the same limits.

        Args:
            keep: whether to return the bytes before damage; otherwise its error is raised.
        """
        from wirekit.compression import Decompression, decompress, decompress_until_damage

        limits, most = self.limits, self.most
        bounds = Decompression(size=min(limits.decompressed, most), ratio=limits.ratio)
        damage: WireError | None = None
        try:
            if keep:
                plain, damage = decompress_until_damage(codec, data, limits=bounds, size=size)
            else:
                plain = decompress(codec, data, limits=bounds, size=size)
        except Limit as error:
            if error.limit != "decompressed_size" or error.allowed == limits.decompressed:
                raise
            if error.actual > limits.decompressed:
                raise Limit(error.limit, limits.decompressed, error.actual) from None
            if most < self.left:  # there is too little memory
                raise Limit(MEMORY, self.memory, self.memory + COPIES) from None
            raise Limit(TOTAL, self.total, self.total - self.left + error.actual) from None
        self.take(len(plain))
        return plain, damage


def join_path(parts: list[str | int]) -> str:
    """``["messages", 3, "key"]`` → ``messages[3].key``."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


class Scope(dict[str, Any]):
    """The fields decoded so far, for ``this`` expressions: ``_`` is the enclosing struct, ``_params`` the context."""

    __slots__ = ()

    @classmethod
    def root(cls, params: dict[str, Any]) -> Scope:
        """The scope outside all structs."""
        scope = cls()
        scope["_params"] = params
        return scope

    def inner(self) -> Scope:
        """The scope of a struct inside this one."""
        scope = Scope()
        scope["_"], scope["_params"] = self, self["_params"]
        return scope


class Contained(NamedTuple):
    """An error in a field whose own size determines the start of the next field.

    Attributes:
        error: the error, with its place inside the field.
        path: the field.
        start, end: range of the field's content in its source, bytes.
    """

    error: WireError
    path: str
    start: int
    end: int


Mark = tuple[int, int, int, int, int, int, int, int]
"""The number of entries of each kind that a session has recorded, and its remaining capacity."""


class Session:
    """State that the readers of one decode share: path, verdicts, gaps, spans, decompressed sources, limits.

    Args:
        size: size of the input in bytes.
        contain: whether reading continues after a field that contains its errors.

    Attributes:
        contained: the errors after which reading continued, in order; None if it ends at the first error.
        sources: (decompressed data, the path of its field), in the order of reading.
        frames: (length of the path, ``extra``) of the records that are being read, the innermost one last.
    """

    __slots__ = (
        "allowance", "checks", "contained", "decrypt", "frames", "gaps", "limits", "path", "protocol", "sources",
        "spans",
    )  # fmt: skip

    def __init__(
        self,
        protocol: str,
        limits: Limits,
        *,
        size: int = 0,
        trace: bool = False,
        contain: bool = False,
        decrypt: Decrypt | None = None,
    ) -> None:
        self.allowance = Allowance(limits, size)
        self.contained: list[Contained] | None = [] if contain else None
        self.decrypt = decrypt
        self.protocol = protocol
        self.limits = limits
        self.path: list[str | int] = []
        self.checks: list[Check] = []
        self.gaps: list[Gap] = []
        self.spans: list[Span] | None = [] if trace else None
        self.sources: list[tuple[bytes, str]] = []
        self.frames: list[tuple[int, dict[str, Any]]] = []

    def mark(self) -> Mark:
        """The current state, for ``rewind``."""
        spans = len(self.spans) if self.spans is not None else 0
        recorded = len(self.path), len(self.checks), len(self.gaps), spans, len(self.sources), len(self.frames)
        return *recorded, len(self.contained or ()), self.allowance.room

    def fail(self, error: WireError) -> str:
        """Records an error after the first one as a bad check; the result is its note."""
        place, note = (error.path, "layout", None, None, "bad", error.offset or 0, error.source), error.reason
        self.checks.append(Check(*place, note))
        return note

    def rewind(self, mark: Mark) -> None:
        """Removes everything recorded since the mark."""
        path, checks, gaps, _, sources, frames, contained, self.allowance.room = mark
        if self.contained:
            del self.contained[contained:]
        del self.path[path:], self.checks[checks:], self.gaps[gaps:], self.sources[sources:], self.frames[frames:]
        self.forget_spans(mark)

    def forget_spans(self, mark: Mark) -> None:
        """Removes only the spans recorded since the mark."""
        if self.spans is not None:
            del self.spans[mark[3] :]


class Reader:
    """Reads ``buffer[position:limit]``.

    Attributes:
        origin: absolute offset of ``buffer[0]``, added to every offset that is reported.
        source: 0 for the input, n for the n-th piece of decompressed data.
        depth: number of decompressions around this data.
        nested: number of references to other layouts around this position.
        messages: number of protobuf messages around the current one.
        bounded: number of valid lengths around this position; distinguishes damage inside a record from a cut tail.
        cut: the limit, if the nearest length around this position wanted more bytes; otherwise -1.
        plain: whether the current protobuf message is in canonical form so far.
        leave: the value of ``bounded`` at which a length that does not fit ends a list of records; -1 for none.
        wrapped: the path length of each enclosing optional node that is present.
    """

    __slots__ = (
        "bounded", "buffer", "cut", "depth", "leave", "limit", "messages", "nested", "origin", "plain", "position",
        "session", "source", "wrapped",
    )  # fmt: skip

    def __init__(
        self,
        session: Session,
        buffer: bytes,
        position: int = 0,
        limit: int | None = None,
        *,
        origin: int = 0,
        source: int = 0,
        depth: int = 0,
    ) -> None:
        self.session = session
        self.buffer = buffer
        self.position = position
        self.limit = len(buffer) if limit is None else limit
        self.origin = origin
        self.source = source
        self.depth = depth
        self.bounded = 0
        self.cut = -1
        self.nested = 0
        self.messages = 0
        self.leave = -1
        self.wrapped: list[int] = []
        self.plain = True

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes; Short if fewer are left before the limit."""
        start = self.position
        end = start + size
        if end > self.limit:
            raise self.short(size)
        self.position = end
        return bytes(self.buffer[start:end])

    @property
    def left(self) -> int:
        """Bytes before the nearest limit."""
        return self.limit - self.position

    def charge(self, size: int) -> None:
        """Counts the memory of a value, in bytes; raises Limit if it exceeds the limit."""
        allowance = self.session.allowance
        allowance.room -= size
        if allowance.room < 0:
            raise located(allowance.exceeded(), self)

    def where(self) -> dict[str, Any]:
        """Protocol, path, absolute offset and source of the position: keyword arguments of an error."""
        session = self.session
        return {
            "protocol": session.protocol,
            "path": join_path(session.path),
            "offset": self.origin + self.position,
            "source": self.source,
        }

    def short(self, needed: int) -> Short:
        """The error for a field of ``needed`` bytes at this position."""
        session, offset = self.session, self.origin + self.position
        available = self.limit - self.position
        return short_at(needed, available, session.protocol, join_path(session.path), offset, self.source, self.bounded)

    def wrong(self, expected: Any, actual: Any, position: int | None = None) -> Wrong:
        """The error for an invalid value at ``position`` (default: here)."""
        where = self.where()
        if position is not None:
            where["offset"] = self.origin + position
        return Wrong(expected, actual, **where)

    def check(
        self, kind: str, stored: Any, computed: Any, ok: bool, position: int, note: str = "", *, end: int | None = None
    ) -> None:
        """Records the verdict on the field at the path.

        ``end`` is that of the bytes that the verdict needs, if there may be fewer than the layout says: then there is
        no verdict.
        """
        if end is not None and end == self.cut:
            return
        if ok and stored == computed:
            computed = stored  # a symbol of the same number
        path = join_path(self.session.path)
        status = "ok" if ok else "bad"
        verdict = Check(path, kind, stored, computed, status, self.origin + position, self.source, note)
        self.session.checks.append(verdict)
        if not ok:
            self.charge(VERDICT + len(path) + len(note))

    def gap(self, start: int, end: int) -> None:
        """Records the range [start, end) as a gap, unless it is empty."""
        if start == end:
            return
        path = join_path(self.session.path)
        self.session.gaps.append(Gap(self.origin + start, end - start, path, self.source))
        self.charge(VERDICT + len(path))

    def trailing(self, start: int, end: int) -> None:
        """Records the bytes [start, end) that are left over inside the field at the path."""
        self.gap(start, end)
        position, self.position = self.position, end
        self.span(start, "gap", "$trailing")
        self.position = position

    def contain(self, error: WireError, depth: int, start: int, end: int) -> bool:
        """Records an error in the content, [start, end), of the field whose path has ``depth`` parts.

        Returns:
            Whether reading may continue after the field. It may not after a Limit, in decompressed data, or if another
            layout may still be tried on the bytes.
        """
        session = self.session
        if session.contained is None or self.source or isinstance(error, Limit):
            return False
        if error.offset is None:
            located(error, self)
        del session.path[depth:]
        forget_origin(error)
        path = join_path(session.path)
        size = CONTAINED + len(path) + len(error.path)
        if session.contained:
            size += len(session.fail(error))
        session.contained.append(Contained(error, path, start, end))
        self.charge(size)
        return True

    def span(
        self, start: int, kind: str, *names: str | int, depth: int | None = None, bits: tuple[Any, Any] = (None, None)
    ) -> None:
        """Adds the span of a field, from ``start`` to the current position.

        The path of the field is the first ``depth`` parts of the current path, and then ``names``. For a bit field,
        ``bits`` are its lowest bit in the number, and its width.
        """
        spans = self.session.spans
        if spans is not None:
            path = join_path([*self.session.path[:depth], *names])
            begin, end = self.origin + start, self.origin + self.position
            spans.append(Span(path, begin, end, self.source, *bits, kind))
            self.session.allowance.room -= SPAN + len(path)

    def absent(self) -> None:
        """Records that the field at the path is absent or null."""
        self.span(self.position, "absent")

    def rename(self, kind: str, *names: str) -> None:
        """Changes the kind of the last span."""
        spans = self.session.spans
        if spans:
            path = join_path([*self.session.path, *names])
            spans[-1] = spans[-1]._replace(path=path, kind=kind)

    def note(self, kind: str, value: Any, *, wrapped: bool = False) -> None:
        """Stores in the enclosing record's ``extra[kind]`` a detail that the plain value of this field lacks.

        Args:
            wrapped: whether nodes nested without a field between them get separate paths.
        """
        if self.session.frames:
            depth, extra = self.session.frames[-1]
            extra.setdefault(kind, {})[join_path(self._place(depth, wrapped))] = value
            self.charge(EXTRAS)

    def keep(self, *, wrapped: bool = False) -> None:
        """Adds the field at the path to ``$keep``, so that it is encoded unchanged; ``wrapped`` as for ``note``."""
        if self.session.frames:
            depth, extra = self.session.frames[-1]
            extra.setdefault("keep", []).append(join_path(self._place(depth, wrapped)))
            self.charge(EXTRAS)

    def _place(self, depth: int, wrapped: bool) -> list[str | int]:
        path = self.session.path
        return path[depth:] + [WITHIN] * (self.wrapped.count(len(path)) if wrapped else 0)

    def inside(self, data: bytes) -> Reader:
        """A reader of decompressed data, one level deeper, with a source number of its own."""
        session = self.session
        session.sources.append((data, join_path(session.path)))
        reader = Reader(session, data, source=len(session.sources), depth=self.depth + 1)
        reader.nested = self.nested
        return reader


class Sparse(NamedTuple):
    """A list with more elements than bytes so far. Decoding bounds its count by the bytes up to its limit."""

    start: int
    path: str
    elements: int

    def problem(self, left: memoryview) -> tuple[str, Any] | None:
        """The expected and the available size, if the bytes up to the limit do not suffice."""
        if self.elements <= len(left):
            return None
        return f"at most {len(left)} elements, one for each byte up to the limit of the list", self.elements


class Selected(NamedTuple):
    """An optional field whose bytes, or those after it, tell a reader whether it is present.

    ``magic`` are the bytes with which a present field begins, and no others; empty if any byte will do.
    """

    start: int
    path: str
    magic: bytes
    present: bool

    def problem(self, left: memoryview) -> tuple[str, Any] | None:
        """The expected and the actual bytes, if a reader would take the bytes up to the limit otherwise."""
        begin = bytes(left[: len(self.magic) or 1])
        if (begin == self.magic if self.magic else bool(begin)) == self.present:
            return None
        if self.present:
            return f"bytes that begin with {self.magic.hex()}", begin.hex()
        which = f"that begin with {self.magic.hex()} " if self.magic else ""
        return f"a value, because a reader takes the following bytes {which}for this field", None


class Shorter(NamedTuple):
    """An element of a list that is shorter than ``until``, the bytes that end the list on reading."""

    start: int
    path: str
    until: bytes

    def problem(self, left: memoryview) -> tuple[str, Any] | None:
        """The expected and the actual bytes, if the element and the bytes after it end the list."""
        if left[: len(self.until)] != self.until:
            return None
        return "a record", f"the bytes {self.until.hex()}, which end the list"


class Ended(NamedTuple):
    """The end of a list that a reader continues, unless the bytes ``until`` or fewer than ``least`` bytes follow.

    ``until`` is empty if the list is empty, and its first element may begin with those bytes.
    """

    start: int
    path: str
    until: bytes
    least: int

    def problem(self, left: memoryview) -> tuple[str, Any] | None:
        """The expected and the actual bytes, if a reader takes those after the list as its next element."""
        if len(left) < self.least or (self.until and left[: len(self.until)] == self.until):
            return None
        other = f" that do not begin with {self.until.hex()}" if self.until else ""
        return f"another element, because a reader takes bytes after the list{other} as one", left[:8].hex()


Undecided = Sparse | Selected | Shorter | Ended


class Writer:
    """Appends to a bytearray; lengths and checksums are patched once the bytes that they cover are written.

    Attributes:
        messages: number of protobuf messages around the current one.
        parsed: whether the value is unchanged since parsing, so that the bytes kept beside a message are valid.
        zeros: number of zeros written for computed sizes.
        undecided: lists and optional fields that later bytes, before the end of their limit, may contradict.
        overrides: number of constants that were written with other values.
        later: comparisons with sizes that may depend on lengths which are not computed yet.
    """

    __slots__ = (
        "buffer", "frames", "later", "limits", "messages", "overrides", "parsed", "path", "protocol", "undecided",
        "wrapped", "zeros",
    )  # fmt: skip

    def __init__(self, protocol: str, limits: Limits) -> None:
        self.buffer = bytearray()
        self.path: list[str | int] = []
        self.protocol = protocol
        self.limits = limits
        self.frames: list[tuple[int, dict[str, Any], set[tuple[str, str]]]] = []
        self.messages = 0
        self.parsed = False
        self.wrapped: list[int] = []
        self.zeros = 0
        self.undecided: list[Undecided] = []
        self.overrides = 0
        self.later: list[Callable[[], None]] = []

    def write(self, data: bytes) -> None:
        """Appends bytes."""
        self.buffer += data

    def inside(self) -> Writer:
        """A writer for data that will be compressed, at the same path."""
        inner = Writer(self.protocol, self.limits)
        inner.path = self.path
        inner.frames = self.frames
        inner.later = self.later
        return inner

    def end_limit(self, first: int, end: int) -> None:
        """Decides on the lists and optional fields from the ``first`` undecided one on, whose limit ends here."""
        if first < len(self.undecided):
            self.decide(self.undecided[first:], end)
            del self.undecided[first:]

    def decide(self, undecided: Iterable[Undecided], end: int) -> None:
        """Refuses lists and optional fields that a reader takes otherwise, by the bytes up to their limit."""
        with memoryview(self.buffer) as data:
            for each in undecided:
                problem = each.problem(data[each.start : end])
                if problem is not None:
                    raise Wrong(*problem, protocol=self.protocol, path=each.path)

    def end(self) -> bytes:
        """The bytes of the whole value, after the checks that need all of them."""
        self.end_limit(0, len(self.buffer))
        for compare in self.later:
            compare()
        return bytes(self.buffer)

    def wrong(self, expected: Any, actual: Any) -> Wrong:
        """The error for a value that does not fit the field at the path."""
        return Wrong(expected, actual, protocol=self.protocol, path=join_path(self.path))

    def noted(self, kind: str, *, wrapped: bool = False) -> Any:
        """The note that ``Reader.note`` stored for the field at the path, or None."""
        if not self.frames:
            return None
        depth, extra, used = self.frames[-1]
        notes = extra.get(kind)
        if not notes:
            return None
        place = join_path(self._place(depth, wrapped))
        used.add((kind, place))
        return notes.get(place)

    def written(self, *names: str | int) -> None:
        """Marks the notes inside the field at the path as used, because its bytes are written as they are."""
        if self.frames and any(kind in self.frames[-1][1] for kind in PLACED):
            depth, _, used = self.frames[-1]
            used.add(("", join_path([*self.path[depth:], *names])))

    def refuse_unused(self) -> None:
        """Refuses notes of the enclosing record that no field has used.

        Raises:
            Misfit: the text names the note.
        """
        _, extra, used = self.frames[-1]
        for kind in PLACED:
            for place in extra.get(kind, ()):
                parts = {place[: match.start()] for match in PART_ENDS.finditer(place)}
                if (kind, place) not in used and not any(("", part) in used for part in parts):
                    other = "which does not exist here, or has only one form"
                    if kind == "trailing":
                        other = "which is not a length that bounds bytes here"
                    raise Misfit(f"${kind} names {shown(place)}, {other}; leave it out of ${kind}")

    def is_kept(self, *, wrapped: bool = False) -> bool:
        """Whether the field at the path is written unchanged."""
        if not self.frames:
            return False
        depth, extra, _ = self.frames[-1]
        return join_path(self._place(depth, wrapped)) in extra.get("keep", ())

    def _place(self, depth: int, wrapped: bool) -> list[str | int]:
        return self.path[depth:] + [WITHIN] * (self.wrapped.count(len(self.path)) if wrapped else 0)


def located(error: WireError, reader: Reader) -> WireError:
    """An error of a codec, with the place of the reader added."""
    where = reader.where()
    error.protocol, error.path = where["protocol"], where["path"]
    error.offset, error.source = where["offset"], where["source"]
    return error


def forget_origin(error: WireError) -> None:
    """Drops the traceback of an error, which would keep all readers and scopes alive as long as the result."""
    error.__context__ = error.__traceback__ = None
