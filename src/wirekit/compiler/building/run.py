"""Runs a write program over the rows of a batch; the output buffer grows on demand."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler import cache
from wirekit.compiler.building.from_arrow import ABSENT, NOTHING, Input
from wirekit.compiler.building.places import Rows, place
from wirekit.compiler.building.unfolding import Unfolded
from wirekit.compiler.columns.memory import address
from wirekit.errors import Misuse
from wirekit.program.calls import Calls
from wirekit.program.write import WriteProgram
from wirekit.runtime import write_opcodes as op
from wirekit.runtime.write_words import place_of, write_words

LEAST = 4096  # bytes of the first buffer
A_ROW = 256  # bytes of numbers in a row for which memory is allocated at once


class Output:
    """A writable buffer that becomes ``bytes`` without a copy: a ``BytesIO`` of zeros."""

    def __init__(self, room: int) -> None:
        self._file = io.BytesIO(bytes(room))
        self.array: NDArray[Any] = np.frombuffer(self._file.getbuffer(), np.uint8)

    def grow(self) -> None:
        """Doubles the buffer."""
        before = self.array
        self._file = io.BytesIO(bytes(2 * before.size))
        self.array = np.frombuffer(self._file.getbuffer(), np.uint8)
        self.array[: before.size] = before

    def cut(self, end: int) -> bytes:
        """The bytes up to a position; the buffer cannot be written afterwards."""
        self.array = NOTHING
        self._file.truncate(end)
        return self._file.getvalue()


def run(
    key: str,
    program: WriteProgram,
    batch: pa.RecordBatch,
    rows: Rows,
    *,
    front: int = 0,
    facts: dict[str, NDArray[Any]] | None = None,
    ends: NDArray[Any] | None = None,
    choosing: bool = False,
) -> tuple[Output, int]:
    """The bytes that the program writes after ``front`` bytes, and their end.

    Args:
        rows: the numbers of the rows, for errors.
        facts: facts about a field with nested records, one int64 per row.
        ends: receives the end of each record.
        choosing: whether to evaluate only these facts, and store them in ``facts``.

    Raises:
        Misuse: a column has a wrong type, or a value does not fit; the text has the column and the row.
    """
    if not batch.num_rows:
        return Output(front), front
    words = write_words(program)
    unfolded = Unfolded(key, batch, rows)
    inputs = {column.slot: unfolded.column(column) for column in program.columns}
    inputs |= {program.own[group.number].slot: unfolded.lists(group.number) for group in program.lists}
    for name, column in program.hidden.items():
        values = (facts or {}).get(name)
        inputs[column.slot] = Input(np.full(batch.num_rows, -1) if values is None else values, NOTHING)
    room = front + LEAST + min(program.fixed, A_ROW) * batch.num_rows
    room += sum(each.total for each in inputs.values())
    room += sum(inputs[column.slot].values.nbytes for column in program.columns if column.within is not None)
    registers, code = words.registers.copy(), words.code.copy()
    described = _table(program, inputs, ends)
    uneven, text = unfolded.uneven
    state = np.array([front, 0, min(uneven + 1, batch.num_rows), choosing], np.int64)
    output, function, calls = Output(room), cache.builder(), Calls(words.functions)
    described[op.CALLS] = calls.address
    while True:
        described[op.OUT], described[op.OUT_SIZE] = address(output.array), output.array.size
        fault = int(function(code, registers, described, state))
        calls.raise_error()
        if fault != op.FULL:
            break
        output.grow()
    if fault:
        text = _fault_text(program, fault, unfolded, int(state[1]), registers)
    if text:
        raise Misuse(f"{key}: {text}")
    return output, int(state[0])


def _table(program: WriteProgram, inputs: dict[int, Input], ends: NDArray[Any] | None) -> NDArray[Any]:
    """The table of the interpreter; it has the addresses of arrays that ``inputs`` keeps alive."""
    columns = {column.slot: column for column in (*program.columns, *program.hidden.values())}
    memory = np.zeros(place_of(max(inputs, default=-1) + 1), np.int64)
    memory[op.ENDS] = 0 if ends is None else address(ends)
    for slot, each in inputs.items():
        strings = slot not in columns or columns[slot].is_bytes
        presence = op.MISSING if each is ABSENT else op.NULLS if each.valid.size else op.WHOLE
        entry = address(each.values), address(each.valid), presence, each.values.size - strings
        memory[place_of(slot) :][: op.WIDTH_OF_COLUMN] = *entry, address(each.data), each.data.size
    return memory


def _fault_text(program: WriteProgram, fault: int, unfolded: Unfolded, row: int, registers: NDArray[Any]) -> str:
    """The place at which a program ended, and the reason."""
    why = program.reasons[fault - 1]
    if why.within is None:
        return f"{place(unfolded.rows, row, why.path)}: {why.text}"
    number = why.within.number
    return f"{place(unfolded.places[number], int(registers[program.element[number]]), why.path)}: {why.text}"
