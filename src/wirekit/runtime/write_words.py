"""Encodes write programs as words, the 64-bit numbers that the interpreter of ``writing`` executes."""

from __future__ import annotations

from functools import lru_cache

from wirekit.compiler import ir
from wirekit.program import write_steps as steps
from wirekit.program.columns import Column, Repeated
from wirekit.program.steps import FIRST_FREE, Step
from wirekit.program.write import WriteProgram
from wirekit.runtime import opcodes
from wirekit.runtime import write_opcodes as op
from wirekit.runtime.words import NONE, Encoder, Words

WRITE_PROGRAMS = 256
"""The programs that are kept: one for each layout, and for each set of fields of its messages."""


def place_of(slot: int) -> int:
    """The place of a column in the table."""
    return op.COLUMNS + op.WIDTH_OF_COLUMN * slot


@lru_cache(WRITE_PROGRAMS)
def write_words(program: WriteProgram) -> Words:
    """The words of a write program."""
    encoder = _Encoder(program.reasons, program.constants, {})
    encoded = encoder.encoded(program.steps, max(program.registers, FIRST_FREE))
    encoded.registers[[*program.stamps.values()]] = -1
    return encoded


class _Encoder(Encoder):
    opcodes = (op, opcodes)

    def place(self, column: Column | Repeated) -> int:
        return place_of(column.slot) if isinstance(column, Column) else NONE

    @staticmethod
    def how(number: ir.Number) -> int:
        if number.form is not None:
            return op.VARINT * (1 + opcodes.FORMS.index(number.form.kind))
        return number.size + (0 if number.little or number.size == 1 else op.BIG)

    def step(self, step: Step) -> None:
        if not isinstance(step, steps.Each):
            super().step(step)
            return
        top = self.here()
        self.add_words(opcodes.TEST + opcodes.SYMBOLS.index("<"), step.at, step.end)
        target = self.hole()
        self.body(step.body)
        self.add_words(op.EACH, step.at, top)
        self.fill(target)
