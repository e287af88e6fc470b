"""State shared by the generators of decoding code: the current function, verdicts, records, spans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from wirekit.compiler import ir
from wirekit.compiler.rows.state import Cut, site_of, span
from wirekit.compiler.source import Code, Generator, Scope, by_name, of_roles
from wirekit.values import Symbol
from wirekit.wire.compressed import Opened
from wirekit.wire.message_fields import elements


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a value.

    Attributes:
        base: the variable with the path of the enclosing value: ``q`` in a function, or the path of a list element.
        parts: the path from there: names, and variables with an index, written ``{i}``.
        scope: the fields that expressions can read.
        limit: the variable with the limit, or "" if the bytes are known to suffice.
        written: whether encoding writes bytes for the value.
    """

    base: str = "q"
    parts: tuple[str, ...] = ()
    scope: Scope | None = None
    limit: str = "e"
    written: bool = True

    def to(self, part: str) -> Place:
        """The place of a value inside."""
        return replace(self, parts=(*self.parts, part))

    def within(self, limit: str) -> Place:
        """The same place with another limit."""
        return replace(self, limit=limit)

    @property
    def indexes(self) -> str:
        """The variables with indexes, as further elements of a tuple."""
        return "".join(f", {part[1:-1]}" for part in self.parts if part.startswith("{"))

    @property
    def template(self) -> str:
        """The path from the base on, with ``%d`` for an index."""
        parts = ["[%d]" if part.startswith("{") else "." + part.replace("%", "%%") for part in self.parts]
        return "".join(parts).removeprefix(".")


@dataclass(slots=True)
class Decoding(Code):
    """A function that decodes.

    Attributes:
        leave: the limit that may cut the last element of the current list, "" if none may.
        records: whether the current element may have recorded a verdict or decompressed data before this point.
        rewinds: whether the element may be cut after that.
        verdicts: whether the function records verdicts.
        tracing: whether the function records the spans of fields.
        spans: the spans that are not yet recorded, as text.
        offset: the variable with the absolute position, "" if there is none.
        extent: start, end and kind of the last byte string.
        inner: whether ``r`` has the common prefix of the members' paths.
    """

    leave: str = ""
    records: bool = False
    rewinds: bool = False
    verdicts: bool = False
    tracing: bool = False
    spans: list[str] = field(default_factory=list)
    offset: str = ""
    extent: tuple[str, str, str] = ("", "", "")
    inner: bool = False

    def move(self, line: str) -> None:
        """Adds a line that changes the position."""
        self.add_line(line)
        self.offset = ""

    @contextmanager
    def branch(self, header: str) -> Iterator[None]:
        """A block of lines, under a condition or in a loop, that may read fields."""
        self.flush()
        with self.block(header):
            yield
            self.flush()
        self.offset = ""

    def path(self, place: Place) -> str:
        """The path of a place, as an expression."""
        if not place.parts:
            return place.base
        text = "".join(f"[{part}]" if part.startswith("{") else f".{part}" for part in place.parts)
        if place.base != "q" or text[0] == "[":
            return f'f"{{{place.base}}}{text}"'
        self.inner = True
        return f'f"{{r}}{text[1:]}"'

    def here(self, back: int = 0) -> str:
        """The absolute position, or a position a number of bytes before it; "" unless spans are recorded."""
        if not self.tracing:
            return ""
        if not self.offset:
            self.offset = self.let("s", "p + o")
        return f"{self.offset} - {back}" if back else self.offset

    def add_span(self, place: Place, start: str, end: str, kind: str, bits: str = "None, None") -> None:
        """Adds the span of a field, to be recorded before the next branch or call; ``kind`` is an expression."""
        if self.tracing:
            self.spans.append(f"span(({self.path(place)}, {start}, {end}, n, {bits}, {kind}))")

    def flush(self) -> None:
        """Generates the code that records the spans so far."""
        if len(self.spans) == 1:
            self.add_line(f"add({self.spans[0]})")
        elif self.spans:
            self.add_line("extend((")
            for each in self.spans:
                self.add_line(f"    {each},")
            self.add_line("))")
        self.spans.clear()

    def short(self, condition: str, e: str) -> None:
        """Generates the end of reading for a condition, or for bytes that end too early."""
        self.rewinds |= e == self.leave and self.records
        self.add_line(f"if {condition}: raise {'Cut' if e == self.leave else 'Unusual'}")


class DecodingGenerator(Generator):
    """Generates the decoder of one schema: (state, buffer, position, limit, path) → (value, position after it).

    Each subclass generates the code of some kinds of nodes, and returns the expression of the value.

    Attributes:
        tracing: whether the code records the spans of fields.
    """

    NAMES = by_name(Cut, Opened, Symbol, elements) | {"span": span}
    evaluated = staticmethod(of_roles("condition", "length", "count", "announced", "size", "value"))
    tracing = False
    purpose = "rows"
    arguments = "S, b, p, e, q"

    def _function(self, header: str, node: ir.Node, scope: Scope | None) -> list[str]:
        code = Decoding([header], tracing=self.tracing)
        value = self._node(code, node, Place(scope=scope))
        code.flush()
        code.add_line(f"return {value}, p")
        if code.inner:
            code.opening.append('    r = q and q + "."')
        if self.tracing:
            code.opening.append("    spans = S.spans")
            code.opening.append("    n, o, add, extend = S.source, S.origin, spans.append, spans.extend")
        if code.verdicts:
            code.opening.append("    checks, source = S.checks, S.source")
        return code.all_lines()

    def _node(self, code: Decoding, node: ir.Node, path: Place) -> str:
        """Generates the code of a node of any kind."""
        raise NotImplementedError

    @staticmethod
    def _absent(code: Decoding, value: str, path: Place) -> None:
        """The value of an absent field."""
        code.add_line(f"{value} = None")
        code.add_span(path, code.here(), code.here(), '"absent"')

    def _verdict(
        self,
        code: Decoding,
        path: Place,
        kind: str,
        value: str,
        position: str,
        *,
        status: str = "ok",
        differs: bool = False,
        note: str = "",
    ) -> None:
        name = self._constant(site_of(path.template, kind, status, differs, note), "K")
        code.records = code.verdicts = True
        code.add_line(f"checks.append(({name}, {path.base}, {value}, {position}, source{path.indexes}))")
        if status == "bad":
            code.add_line("S.bad = True")
