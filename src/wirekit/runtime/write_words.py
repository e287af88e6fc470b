"""Write programs as words: the numbers of 64 bits that the interpreter of ``writing`` walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

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
    steps.CopyBytes: (op.COPY_BYTES, "column start length"),
    steps.Text: (op.TEXT, "value"),
    steps.Digits: (op.DIGITS, "source"),
    steps.Store: (op.STORE, "number source at"),
    steps.Reserve: (op.RESERVE, "size"),
    steps.Begins: (op.BEGINS, "to start value"),
    steps.Elements: (op.ELEMENTS, "column index at end there absent null"),
    steps.Note: (op.NOTE, "column source"),
    steps.Finish: (op.FINISH, ""),
    steps.Message: (op.MESSAGE, "message"),
    steps.Tell: (op.TELL, "message slot known always value"),
    steps.Ask: (op.ASK, "to message slot aspect"),
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
    encoder.code.append(opcodes.FAILED)
    encoder.body(program.steps)
    encoder.code.append(opcodes.END)
    registers = np.zeros(max(program.registers, FIRST_FREE), np.int64)
    for value, register in program.constants.items():
        registers[register] = value
    registers[program.stamps] = -1
    return WriteWords(words.unsigned(encoder.code), registers, encoder.functions)


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
            case steps.AnyOf():
                self.put(op.ANY_OF, step.to, step.index, int(step.given), len(step.columns))
                self.put(*(self.column(column) for column in step.columns))
            case steps.Bytes():
                self.put(op.BYTES)
                self.operands(step, "column index start length absent null outside verdict lost number")
                self.put(int(step.nothing is not None), step.nothing or 0)
                self.operands(step, "most over copy")
            case steps.OneLine():
                self.put(op.ONE_LINE)
                self.operands(step, "column start length fault")
                self.put(0x0A if step.lines else NONE)
                self.operands(step, "end")
            case steps.Insert():
                self.put(op.INSERT)
                self.operands(step, "number source at")
                self.put(len(step.marks), *step.marks)
            case steps.Join():
                self.put(op.JOIN, how(step.number), len(step.parts))
                for register, shift in step.parts:
                    self.put(register, shift)
            case steps.Sum():
                which, parameters = words.checksum_words(step.form)
                self.put(op.SUM, step.to, which, step.start, step.end, len(parameters), *parameters)
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
