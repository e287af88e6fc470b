"""A function of building code while it is generated: the fields of its next struct call, and the later patches."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wirekit.compiler import ir
from wirekit.compiler.source import Code
from wirekit.wire.numbers import UNPACKED


@dataclass(slots=True, eq=False)
class Piece:
    """Some bytes that the next struct call writes.

    Attributes:
        letters: struct's letters; ``i`` or ``I`` for an integer of a size without a letter.
        value: an expression; None for zeros.
        when: the variable that is true if the bytes are written; "" if they always are.
    """

    letters: str
    size: int
    little: bool
    value: str | None
    when: str = ""


class Place(NamedTuple):
    """A position in the output: a variable with a position, and a distance after it."""

    base: str
    offset: int

    def __str__(self) -> str:
        return f"{self.base} + {self.offset}" if self.offset else self.base

    def moved(self, size: int) -> Place:
        """The position a number of bytes further on."""
        return Place(self.base, self.offset + size)


def distance(start: Place, end: Place, add: int) -> str:
    """The distance between two positions plus a number; a plain number if it is known."""
    fixed_part = end.offset - start.offset + add
    if start.base == end.base:
        return str(fixed_part)
    sign = f" {'-' if fixed_part < 0 else '+'} {abs(fixed_part)}" if fixed_part else ""
    return f"{end.base} - {start.base}{sign}"


@dataclass(slots=True)
class Building(Code):
    """A function that appends to the buffer ``o``.

    Attributes:
        module: the names of the module, which receive struct's functions.
        pending: the pieces that the next struct call writes.
        end: the end of the buffer without the pending pieces; None if no variable has it.
        patches: numbers to be written over zeros in the buffer.
    """

    module: dict[str, Any] = field(default_factory=dict)
    pending: list[Piece] = field(default_factory=list)
    end: Place | None = None
    patches: list[tuple[Place, Piece]] = field(default_factory=list)

    def add(self, letters: str, size: int, value: str | None, *, little: bool = False) -> Piece:
        """Adds a value to the next struct call."""
        if size > 1 and any(piece.size > 1 and piece.little != little for piece in self.pending):
            self.flush()
        piece = Piece(letters, size, little, value)
        self.pending.append(piece)
        return piece

    def here(self) -> Place:
        """The current end of the output."""
        if any(piece.when for piece in self.pending):
            self.flush()
        if self.end is None:
            self.end = Place(self.fresh("m"), 0)
            self.add_line(f"{self.end} = len(o)")
        return self.end.moved(sum(piece.size for piece in self.pending))

    def flush(self) -> None:
        """Generates the struct call for the pending pieces."""
        conditions = [piece.when for piece in self.pending if piece.when]
        if conditions:
            self.add_line(f"if {conditions[0]}:")
            self.add_line(f"    {self._written(self.pending)}")
            without = [piece for piece in self.pending if not piece.when]
            if without:
                self.add_line("else:")
                self.add_line(f"    {self._written(without)}")
            self.end = None
        elif self.pending:
            self.add_line(self._written(self.pending))
            if self.end is not None:
                self.end = self.end.moved(sum(piece.size for piece in self.pending))
        self.pending = []

    def _written(self, pieces: list[Piece]) -> str:
        return f"o += {self._packer(layout_of(pieces), 'pack')}({', '.join(values_of(pieces))})"

    def add_if(self, condition: str, write: Callable[[], None], otherwise: str) -> None:
        """Adds fixed fields to the next struct call that are written only if a condition holds."""
        if any(piece.when for piece in self.pending):
            self.flush()
        flag = self.fresh("h")
        self.add_line(f"{flag} = {condition}")
        outer, self.pending = self.pending, []
        with self.block(f"if {flag}:"):
            write()
        self.add_line(f"elif {otherwise}: raise Unusual")
        pieces, self.pending = self.pending, outer
        for piece in pieces:
            self.add(piece.letters, piece.size, piece.value, little=piece.little).when = flag

    def append(self, data: str) -> None:
        """Generates code that writes bytes of any length."""
        self.flush()
        self.add_line(f"o += {data}")
        self.end = None

    def begin_apart(self) -> str:
        """Directs the following output to a new buffer; returns the variable with the old one."""
        self.settle()
        outer = self.fresh("o")
        self.add_line(f"{outer}, o = o, bytearray()")
        self.end = None
        return outer

    def end_apart(self, outer: str, number: ir.Number, add: int = 0) -> str:
        """Returns to a buffer, and appends the other one with its size in front; returns the variable with the size."""
        self.settle()
        inner, size = self.fresh("o"), self.fresh("n")
        self.add_line(f"{inner}, o = o, {outer}")
        self.end = None
        self.add_line(f"{size} = len({inner}) + {add}")
        put_number(self, number, size)
        self.append(inner)
        return size

    def patch(self, place: Place, piece: Piece, value: str) -> None:
        """Sets the value of a piece that was written as zeros, if it was written."""
        if any(waiting is piece for waiting in self.pending):
            piece.value = value
            return
        patch = place, Piece(piece.letters, piece.size, piece.little, value)
        if not piece.when:
            self.patches.append(patch)
            return
        self.settle()
        with self.block(f"if {piece.when}:"):
            self.patches.append(patch)
            self.settle()

    def settle(self) -> None:
        """Flushes the pending pieces, and patches those with a value by now; neighbours by one call."""
        self.flush()
        self.patches.sort(key=lambda patch: patch[0])
        while self.patches:
            place, piece = self.patches.pop(0)
            group = [piece]
            end = place.moved(piece.size)
            while self.patches and self.patches[0][0] == end and self.patches[0][1].little == piece.little:
                group.append(self.patches.pop(0)[1])
                end = end.moved(group[-1].size)
            self.add_line(f"{self._packer(layout_of(group), 'patch')}(o, {place}, {', '.join(values_of(group))})")

    def call(self, text: str) -> None:
        """Generates a call of a function that appends to the buffer."""
        self.settle()
        self.add_line(text)
        self.end = None

    def fork(self, *arms: tuple[str, Callable[[], None]]) -> None:
        """Generates the branches of an ``if``; each flushes the pending pieces."""
        if self.patches:
            self.settle()
        pending, end = self.pending, self.end
        for head, write in arms:
            with self.block(head):
                self.pending, self.end = [*pending], end
                write()
                self.settle()
        self.pending, self.end = [], None

    def _packer(self, layout: struct.Struct, kind: str) -> str:
        form = layout.format
        name = f"{kind}_{'le' if form[0] == '<' else 'be'}_{form[1:]}"
        self.module[name] = layout.pack if kind == "pack" else layout.pack_into
        return name


def layout_of(pieces: list[Piece]) -> struct.Struct:
    letters = "".join(
        f"{piece.size}x" if piece.value is None else f"{piece.size}s" if piece.letters in UNPACKED else piece.letters
        for piece in pieces
    )
    return struct.Struct(("<" if any(piece.little for piece in pieces) else ">") + letters)


def values_of(pieces: list[Piece]) -> list[str]:
    values = []
    for piece in pieces:
        if piece.letters in UNPACKED and piece.value is not None:
            order = "little" if piece.little else "big"
            values.append(f"({piece.value}).to_bytes({piece.size}, {order!r}, signed={piece.letters.islower()})")
        elif piece.value is not None:
            values.append(piece.value)
    return values


def usual(code: Building, x: str, kind: str, otherwise: str) -> None:
    """Generates a check of a value whose class is not the usual one, by a function that may raise ``Unusual``."""
    code.add_line(f"if {x}.__class__ is not {kind}: {otherwise}({x})")


def put_number(code: Building, number: ir.Number, value: str) -> None:
    """Generates code that writes a number; a varint in as few bytes as possible."""
    form = number.form
    if form is None:
        code.add(number.code, number.size, value, little=number.little)
        return
    write = f"write_{form.kind}_{form.bits}"
    code.module[write] = form.write
    variable = code.let("n", value)
    code.add_line(f"if not {number.low} <= {variable} <= {number.high}: raise Unusual")
    code.append(f"{write}({variable})")
