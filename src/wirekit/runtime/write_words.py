"""Write programs as words: the numbers of 64 bits that the interpreter of ``writing`` walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wirekit.compiler import ir
from wirekit.program import write_steps as steps
from wirekit.program.columns import Column
from wirekit.program.steps import FIRST_FREE, Fault, Step
from wirekit.program.write import WriteProgram
from wirekit.program.write_steps import ASPECTS
from wirekit.runtime import opcodes, words
from wirekit.runtime import write_opcodes as op

if TYPE_CHECKING:
    from numpy.typing import NDArray

NONE = words.NONE


@dataclass(frozen=True, slots=True)
class WriteWords:
    """A write program for the interpreter: its words, and what registers hold in the beginning."""

    code: NDArray[Any]
    registers: NDArray[Any]


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
    return WriteWords(words.unsigned(encoder.code), registers)


class _Encoder(words.Encoder):
    def __init__(self, program: WriteProgram) -> None:
        super().__init__([], program.constants, {})
        self.watched = {number: at for at, number in enumerate(program.watched)}

    def fault(self, fault: Fault | None) -> int:
        return NONE if fault is None else fault.reason

    def place(self, column: Column | None) -> int:
        return NONE if column is None else place_of(column.slot)

    def register(self, register: int | None) -> int:
        return NONE if register is None else register

    def more(self, step: Step) -> None:
        match step:
            case steps.Take():
                self.put(op.TAKE, self.place(step.column), step.index, step.to, self.register(step.default))
                self.put(self.fault(step.absent), self.fault(step.null), step.low, step.high, self.fault(step.wrong))
                self.put(how(step.number))
            case steps.Look():
                self.put(op.LOOK, self.place(step.column), step.index, step.to, step.there)
            case steps.AnyOf():
                self.put(op.ANY_OF, step.to, step.index, int(step.given), len(step.columns))
                self.put(*(self.place(column) for column in step.columns))
            case steps.Was():
                self.put(op.WAS, step.to, self.place(step.verdict), self.place(step.column), step.index)
                self.put(step.low, step.high, self.fault(step.wrong))
            case steps.Bytes():
                self.put(op.BYTES, self.place(step.column), step.index, step.start, step.length)
                self.put(self.fault(step.absent), self.fault(step.null), self.fault(step.outside))
                self.put(self.place(step.verdict), self.fault(step.lost), how(step.number))
                self.put(int(step.nothing is not None), step.nothing or 0, step.most, self.fault(step.over))
                self.put(int(step.copy))
            case steps.CopyBytes():
                self.put(op.COPY_BYTES, self.place(step.column), step.start, step.length)
            case steps.OneLine():
                self.put(op.ONE_LINE, self.place(step.column), step.start, step.length, self.fault(step.fault))
                self.put(0x0A if step.lines else NONE)
                self.text(step.end)
            case steps.Text():
                self.put(op.TEXT)
                self.text(step.value)
            case steps.Digits():
                self.put(op.DIGITS, step.source)
            case steps.Store():
                self.put(op.STORE, how(step.number), step.source, self.register(step.at))
            case steps.Join():
                self.put(op.JOIN, how(step.number), len(step.parts))
                for register, shift in step.parts:
                    self.put(register, shift)
            case steps.Reserve():
                self.put(op.RESERVE, step.size)
            case steps.Sum():
                which, parameters = words.checksum_words(step.form)
                self.put(op.SUM, step.to, which, step.start, step.end, len(parameters), *parameters)
            case steps.Begins():
                self.put(op.BEGINS, step.to, step.start)
                self.text(step.value)
            case _:
                self.rare(step)

    def rare(self, step: Step) -> None:
        match step:
            case steps.Elements():
                self.put(op.ELEMENTS, self.place(step.column), step.index, step.at, step.end, step.there)
                self.put(self.fault(step.absent), self.fault(step.null))
            case steps.Each():
                top = self.here()
                self.put(opcodes.TEST + opcodes.SYMBOLS.index("<"), step.at, step.end)
                behind = self.hole()
                self.body(step.body)
                self.put(op.EACH, step.at, top)
                self.code[behind] = self.here()
            case steps.Unread():
                self.put(op.UNREAD, self.watched.get(step.group, NONE))
            case steps.Note():
                self.put(op.NOTE, self.place(step.column), step.source)
            case steps.Finish():
                self.put(op.FINISH)
            case steps.Message():
                self.put(op.MESSAGE, step.message)
            case steps.Tell():
                self.put(op.TELL, step.message, step.slot, step.known, step.always, step.value)
            case steps.Ask():
                self.put(op.ASK, step.to, step.message, step.slot, ASPECTS.index(step.aspect))
            case _:
                raise NotImplementedError(type(step).__name__)


def how(number: ir.Number | None) -> int:
    """How a number is written, as the interpreter has it; 0 for not at all."""
    return 0 if number is None else number.size + (0 if number.little or number.size == 1 else op.BIG)
