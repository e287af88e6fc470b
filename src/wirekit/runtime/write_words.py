"""Write programs as words: the numbers of 64 bits that the interpreter of ``writing`` walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wirekit.compiler import ir
from wirekit.program import write_steps as steps
from wirekit.program.calls import Function
from wirekit.program.columns import Column, Repeated
from wirekit.program.steps import FIRST_FREE, Fault, Step
from wirekit.program.write import WriteProgram
from wirekit.runtime import opcodes, words
from wirekit.runtime import write_opcodes as op

if TYPE_CHECKING:
    from numpy.typing import NDArray

NONE = words.NONE
_PLAIN: words.Table = words.Encoder.plain | {
    steps.Take: (op.TAKE, "column index to default absent null low high wrong number"),
    steps.Look: (op.LOOK, "column index to there"),
    steps.Was: (op.WAS, "to verdict column index low high wrong"),
    steps.AnyOf: (op.ANY_OF, "to index given columns"),
    steps.Bytes: (
        op.BYTES,
        "column index start length absent null outside verdict lost number nothing? most over copy",
    ),
    steps.CopyBytes: (op.COPY_BYTES, "column start length"),
    steps.OneLine: (op.ONE_LINE, "column start length fault lines end"),
    steps.Text: (op.TEXT, "value"),
    steps.Digits: (op.DIGITS, "source"),
    steps.Store: (op.STORE, "number source at"),
    steps.Insert: (op.INSERT, "number source at marks"),
    steps.Join: (op.JOIN, "number parts"),
    steps.Sum: (op.SUM, "to start end form"),
    steps.Reserve: (op.RESERVE, "size"),
    steps.Begins: (op.BEGINS, "to start value"),
    steps.Elements: (op.ELEMENTS, "column index at end there absent null"),
    steps.Note: (op.NOTE, "column source"),
    steps.Finish: (op.FINISH, ""),
}


@dataclass(frozen=True, slots=True)
class WriteWords:
    """A write program for the interpreter: its words, what registers hold in the beginning, functions by number."""

    code: NDArray[Any]
    registers: NDArray[Any]
    functions: list[Function]


def place_of(slot: int) -> int:
    """Where a column stands in the table."""
    return op.COLUMNS + op.WIDTH_OF_COLUMN * slot


def write_words(program: WriteProgram) -> WriteWords:
    """The words of a write program."""
    encoder = _Encoder(program)
    code, registers = encoder.encoded(program.steps, max(program.registers, FIRST_FREE))
    registers[program.stamps] = -1
    return WriteWords(code, registers, encoder.functions)


class _Encoder(words.Encoder):
    plain = _PLAIN

    def __init__(self, program: WriteProgram) -> None:
        super().__init__([], program.constants, {})
        self.watched = {number: at for at, number in enumerate(program.watched)}

    def fault(self, fault: Fault | None) -> int:
        return NONE if fault is None else fault.reason

    def column(self, column: Column | Repeated | None) -> int:
        return place_of(column.slot) if isinstance(column, Column) else NONE

    def how(self, number: ir.Number) -> int:
        return how(number)

    def more(self, step: Step) -> None:
        match step:
            case steps.Each():
                top = self.here()
                self.put(opcodes.TEST + opcodes.SYMBOLS.index("<"), step.at, step.end)
                behind = self.hole()
                self.body(step.body)
                self.put(op.EACH, step.at, top)
                self.code[behind] = self.here()
            case steps.Unread():
                self.put(op.UNREAD, self.watched.get(step.group, NONE))
            case _:
                raise NotImplementedError(type(step).__name__)


def how(number: ir.Number | None) -> int:
    """How a number is written, as the interpreter has it; 0 for not at all."""
    if number is None:
        return 0
    if number.form is not None:
        return op.VARINT * (1 + opcodes.FORMS.index(number.form.kind))
    return number.size + (0 if number.little or number.size == 1 else op.BIG)
