"""Encodes read programs as words, the 64-bit numbers that the interpreter executes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, fields
from functools import cache
from types import ModuleType
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wirekit.checksums import Form
from wirekit.codings import ENCODINGS
from wirekit.compiler import ir
from wirekit.crc import Crc
from wirekit.program import steps
from wirekit.program.calls import Function
from wirekit.program.columns import Column, Reason, Repeated
from wirekit.program.maker import Program
from wirekit.program.passes import all_steps
from wirekit.program.steps import Body, Fault, Step, fields_of
from wirekit.runtime import opcodes as op
from wirekit.runtime.folding import Field, Run, folded
from wirekit.runtime.memory import DIRECT
from wirekit.varints import VarintForm

NONE = -1
OPPOSITES = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
CONDITIONS = {"and": "and", "or": "or", "|": "or"} | dict(zip(OPPOSITES, OPPOSITES, strict=True))
"""The operators of conditions that branches evaluate part by part; ``|`` is true if one of its operands is not 0."""
_NUMBERS = {name: at for names in (op.SYMBOLS, op.FORMS, ENCODINGS) for at, name in enumerate(names)}


Condition: TypeAlias = tuple[str, Any, Any]
"""A comparison of two registers, or two conditions with ``and`` or ``or`` between them."""


@dataclass(frozen=True, slots=True)
class Words:
    """A program for an interpreter.

    Attributes:
        code: the words.
        registers: the initial values of the registers.
        places: (words, entries): each word receives the address of the values of an entry that every row sets.
        functions: the functions that it calls, by number.
    """

    code: NDArray[Any]
    registers: NDArray[Any]
    places: tuple[NDArray[Any], NDArray[Any]]
    functions: list[Function]


def words(program: Program, body: Body, entries: list[Column | Repeated]) -> Words:
    """The words of a program.

    Args:
        body: its steps, shortened.
        entries: the entries of the table, in order: columns, lists, columns of the scan.
    """
    places = {id(entry): place_of(at) for at, entry in enumerate(entries)}
    return Encoder(program.reasons, program.constants, places).encoded(body, program.registers)


def is_direct(entry: Column | Repeated) -> bool:
    """Whether every row sets a number, so that the program can contain the address of its values."""
    return isinstance(entry, Column) and entry.within is None and not entry.nullable and not entry.is_bytes


def place_of(entry: int) -> int:
    """The place of an entry in the table."""
    return op.COLUMNS + op.WIDTH_OF_COLUMN * entry


def how(number: ir.Number) -> int:
    """The encoding of a number, as a word for the interpreter."""
    big = op.BIG if not number.little or number.size == 1 else 0
    return 64 - 8 * number.size + big + (op.SIGNED if number.signed and not number.real else 0)


class Encoder:
    """Encodes steps as words.

    Args:
        constants: the register of each constant.
        places: the places of entries in the table, by id.
    """

    opcodes: ClassVar[tuple[ModuleType, ...]] = (op,)
    how = staticmethod(how)

    def __init__(self, reasons: list[Reason], constants: dict[int, int], places: dict[int, int]) -> None:
        self.code: list[int] = []
        self.reasons = reasons
        self.constants = {register: value for value, register in constants.items()}
        self.places = places
        self.direct: list[tuple[int, int]] = []
        self.functions: list[Function] = []
        self.reads: Counter[int] = Counter()
        self.handlers: list[list[int]] = []  # for each enclosing handler, the words that will receive its place

    def encoded(self, body: Body, registers: int) -> Words:
        """The words of a whole program with a number of registers."""
        self.reads.update(register for step in all_steps(body) for register in step.reads())
        self.add_words(op.FAILED)
        self.body(body)
        self.add_words(op.END)
        values = np.zeros(registers, np.int64)
        values[[*self.constants]] = [*self.constants.values()]
        # Unsigned, because unsigned indexes need no check.
        code = np.array([word & 0xFFFFFFFFFFFFFFFF for word in self.code], np.uint64)
        direct = np.array(self.direct, np.int64).reshape(-1, 2).T.copy()
        return Words(code, values, (direct[0], direct[1]), self.functions)

    def body(self, body: Body) -> None:
        lets: dict[int, steps.Let] = {}  # consecutive conditions, each read once, by register
        for step in folded(body, self.constants):
            if isinstance(step, steps.Let) and step.symbol in CONDITIONS and self.reads[step.to] == 1:
                lets[step.to] = step
                continue
            if isinstance(step, steps.Test):
                condition = self.condition(step.symbol, step.left, step.right, lets)
                self.lets(lets)
                self.test(step, condition)
            else:
                self.lets(lets)
                self.run(step) if isinstance(step, Run) else self.step(step)
            lets = {}
        self.lets(lets)

    def add_words(self, *values: Any) -> None:
        """Adds the words of the fields of a step; for a list, its length and the words of its elements."""
        for value in values:
            match value:
                case int() | np.integer():
                    self.code.append(int(value))
                case None:
                    self.code.append(NONE)
                case str():
                    self.code.append(_NUMBERS[value])
                case bytes() | list():
                    self.add_words(len(value), *value)
                case tuple():
                    self.add_words(*value)
                case dict():
                    self.add_words([*value.items()])
                case Fault():
                    self.code.append(fault_word(value, self.reasons))
                case ir.Number():
                    self.code.append(self.how(value))
                case Column() | Repeated():
                    self.code.append(self.place(value))
                case _:
                    self.code.append(len(self.functions))
                    self.functions.append(value)

    def here(self) -> int:
        return len(self.code)

    def hole(self) -> int:
        """A word to be filled in."""
        self.code.append(NONE)
        return len(self.code) - 1

    def fill(self, *holes: int) -> None:
        """Sets words to the place of the next step."""
        for hole in holes:
            self.code[hole] = self.here()

    def place(self, column: Column | Repeated) -> int:
        """The place of a column or list in the table."""
        return self.places[id(column)]

    def number(self, column: Column) -> None:
        """The column of a number, and the size of its values if they are written directly, else 0."""
        if DIRECT and is_direct(column):
            entry = (self.place(column) - op.COLUMNS) // op.WIDTH_OF_COLUMN
            self.direct.append((len(self.code), entry))
            self.add_words(0, np.dtype(column.dtype).itemsize)
        else:
            self.add_words(column, 0)

    def plain(self, step: Step) -> None:
        """The opcode of a step by its name, and the words of its fields in order."""
        kind = type(step)
        self.add_words(opcode(kind.__name__, self.opcodes))
        for each in fields(step):
            value = getattr(step, each.name)
            if each.name == "form":
                self.add_words(*checksum_words(value))
            elif each.name in fields_of(kind, "optional"):
                self.add_words(int(value is not None), value or 0)
            elif value is None and each.name == "number":  # a number that is not written
                self.add_words(0)
            elif each.name not in fields_of(kind, "shown"):
                self.add_words(value)

    def step(self, step: Step) -> None:
        match step:
            case steps.Switch():
                self.switch(step)
            case steps.Refuse():
                self.add_words(op.TEST + op.SYMBOLS.index(step.symbol), step.left, step.right)
                target = self.hole()
                self.add_words(op.FAIL, step.fault)
                self.fill(target)
            case steps.Varint(number=ir.Number(form=VarintForm() as form)):
                self.add_words(op.VARINT, step.to, step.limit, form.groups, form.bits, form.kind)
                self.add_words(step.column, step.short, step.wrong)
            case steps.Emit(present=None):
                self.add_words(op.EMIT)
                self.number(step.column)
                self.add_words(step.value)
            case steps.Emit(present=int(present)):
                self.add_words(op.EMIT_ABSENT, step.column, step.value, present)
            case steps.Loop():
                self.loop(step)
            case steps.Try():
                self.attempt(step)
            case _:
                self.plain(step)

    def run(self, step: Run) -> None:
        """A run: numbers with their checks and bit fields."""
        need = step.need
        self.add_words(op.RUN)
        self.add_words(*((0, 0, NONE) if need is None else (need.size, need.limit, need.fault)))
        self.add_words(step.size, len(step.fields), len(step.marks))
        for before, each in zip([None, *step.fields], step.fields, strict=False):
            self.field(each, before is not None and before.number == each.number and before.offset == each.offset)
        for offset, to in step.marks:
            self.add_words(to, offset)

    def field(self, each: Field, repeated: bool) -> None:
        number, column = each.number, each.column
        direct = DIRECT and column is not None and is_direct(column)
        flags = op.CHECKED * (each.fault is not None) + op.REPEATED * repeated
        flags += op.DIRECTLY if direct else op.TO_COLUMN * (column is not None)
        bits = 8 * number.size
        flags += 64 - bits if number.little else op.BIG
        mask = each.mask if number.signed and not number.real else each.mask & ((1 << bits) - 1)
        self.add_words(int(flags), each.offset, 64 - bits + each.shift, mask, each.to)
        if each.fault is not None:
            self.add_words(each.low, each.high, each.fault)
        if column is not None and direct:
            self.number(column)
        elif column is not None:
            self.add_words(column)

    def lets(self, lets: dict[int, steps.Let]) -> None:
        for let in lets.values():
            self.plain(let)

    def condition(self, symbol: str, left: int, right: int, lets: dict[int, steps.Let]) -> Condition:
        """The condition of a branch, which replaces those among the preceding steps that only it reads."""
        if symbol != "!=" or self.constants.get(right) != 0 or left not in lets:
            return symbol, left, right
        let = lets.pop(left)
        if let.symbol in OPPOSITES:
            return let.symbol, let.left, let.right
        first, second = (self.condition("!=", each, right, lets) for each in (let.left, let.right))
        return CONDITIONS[let.symbol], first, second

    def unless(self, condition: Condition, whether: bool = True) -> list[int]:
        """Jumps unless a condition is true, or unless it is false; returns the words that receive the target."""
        symbol, left, right = condition
        if symbol not in ("and", "or"):
            self.add_words(op.TEST + op.SYMBOLS.index(symbol if whether else OPPOSITES[symbol]), left, right)
            return [self.hole()]
        decisive = symbol == "and"  # the first part decides unless it has this value
        holes = self.unless(left, decisive)
        if decisive == whether:
            return holes + self.unless(right, whether)
        holes_of_right = self.unless(right, whether)
        self.fill(*holes)
        return holes_of_right

    def test(self, step: steps.Test, condition: Condition) -> None:
        otherwise = self.unless(condition)
        self.body(step.then)
        if step.otherwise:
            self.add_words(op.JUMP)
            end = self.hole()
            self.fill(*otherwise)
            self.body(step.otherwise)
            self.fill(end)
        else:
            self.fill(*otherwise)

    def switch(self, step: steps.Switch) -> None:
        count = sum(len(rows) for rows, _ in step.cases)
        self.add_words(op.SWITCH, len(step.on), count)
        otherwise = self.hole()
        self.add_words(*step.on)
        targets: list[list[int]] = []
        for rows, _ in step.cases:
            targets.append([])
            for row in rows:
                targets[-1].append(self.hole())
                for case in row:
                    self.add_words(int(case is None), case or 0)
        ends = []
        for holes, (_, body) in zip(targets, step.cases, strict=True):
            self.fill(*holes)
            self.body(body)
            self.add_words(op.JUMP)
            ends.append(self.hole())
        self.fill(otherwise)
        self.body(step.otherwise)
        self.fill(*ends)

    def outer_handler(self) -> None:
        """A word with the place of the enclosing handler."""
        self.add_words(op.FAILED)
        if self.handlers:
            self.handlers[-1].append(len(self.code) - 1)

    def loop(self, step: steps.Loop) -> None:
        self.add_words(op.CLEAR, {step.turn: 0})
        if step.gap is not None:
            self.add_words(op.CLEAR, 1, steps.HANDLING)
            self.handlers.append([self.hole()])
        top = self.here()
        if step.count is not None:
            self.add_words(op.COUNTED, step.turn, step.count, step.start, step.gap)
            end = self.hole()
        else:
            self.add_words(op.LIMITED, step.turn, step.limit, step.start, step.gap)
            end = self.hole()
            self.add_words(step.except_first, step.until)
        self.body(step.body)
        self.add_words(op.AGAIN, step.index, step.turn, step.start, step.empty, top)
        if step.gap is not None:
            self.fill(*self.handlers.pop())
            self.add_words(op.CUT, step.start, step.gap)
            self.outer_handler()
            self.add_words(step.undo)
            self.fill(end)
            self.add_words(op.CLEAR, 1, steps.HANDLING)
            self.outer_handler()
        else:
            self.fill(end)
        self.add_words(op.LISTED, step.group, step.present)

    def attempt(self, step: steps.Try) -> None:
        self.add_words(op.MARK, step.start, op.LET, step.gap, "=", steps.EXTRA, steps.EXTRA)
        self.add_words(op.CLEAR, 1, steps.HANDLING)
        self.handlers.append([self.hole()])
        self.body(step.body)
        holes = self.handlers.pop()
        self.add_words(op.CLEAR, 1, steps.HANDLING)
        self.outer_handler()
        self.add_words(op.JUMP)
        end = self.hole()
        self.fill(*holes)
        self.add_words(op.CAUGHT, step.start, step.gap)
        self.outer_handler()
        self.add_words(step.undo)
        self.body(step.otherwise)
        self.fill(end)


@cache
def opcode(kind: str, opcodes: tuple[ModuleType, ...]) -> int:
    """The opcode of a kind of step: ``ONE_OF`` for ``OneOf``, from the first module that has it."""
    name = re.sub("(?<=[a-z])(?=[A-Z])", "_", kind).upper()
    return int(next(getattr(module, name) for module in opcodes if hasattr(module, name)))


def fault_word(fault: Fault, reasons: list[Reason]) -> int:
    """The word of a fault."""
    limit = reasons[fault.reason - 1].kind == "limit"
    return fault.reason + (op.CUT_FAULT if fault.cut else 0) + (op.LIMIT_FAULT if limit else 0)


def checksum_words(form: Form) -> tuple[int, list[int]]:
    """(the opcode of a checksum, its parameters)."""
    match form:
        case str():
            return op.ALGORITHMS.index(form), []
        case Crc():
            flags = int(form.refin), form.first, 64 - form.width, int(form.refin != form.refout)
            return op.CRC, [*flags, form.width, form.xorout, *form.table]
    return op.TWO_SUMS, [form.size, form.modulus, form.first, form.bits]
