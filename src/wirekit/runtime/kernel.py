"""Renders a program as a compiled function of its own, with one block of code for each step.

A kernel gives the same results as the interpreter about twice as fast, but takes seconds to compile; the interpreter is
compiled once for all layouts. Registers become local variables, and known values become constants. Lists, attempts and
text up to a delimiter have no kernel, so only the interpreter runs programs that contain them. Protobuf messages are
read by the tables of their types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from wirekit.compiler.kernels.arrays import inner
from wirekit.program import steps
from wirekit.program.columns import Column, Repeated
from wirekit.program.maker import Program
from wirekit.program.show import Show
from wirekit.program.steps import Body, Fault, Step
from wirekit.program.values import HIGHEST, LOWEST
from wirekit.runtime import loop
from wirekit.runtime import opcodes as op
from wirekit.runtime.folding import ALL, Field, Run, folded
from wirekit.runtime.memory import DIRECT, put
from wirekit.runtime.words import fault_word, how, is_direct, place_of

HEAD: Final = """\
import numpy as np

from wirekit.compiler.kernels.arrays import inner, uint8_on
from wirekit.compiler.kernels.crc import crc32_at, crc32c_at
from wirekit.compiler.kernels.protobuf import keep_message, pick_field, ready_message
from wirekit.compiler.kernels.reads import internet, is_utf8
from wirekit.runtime.interpreter import message_at, walked
from wirekit.runtime.kernel import failed
from wirekit.runtime.memory import add_bytes, add_number, get, number, put, put_8, put_16, put_32, put_64


"""
SYMBOLS: Final = {"and": "({0} != 0) & ({1} != 0)", "or": "({0} != 0) | ({1} != 0)", "=": "{0}"}


class NoKernel(Exception):
    """A step that kernels do not support."""


@inner
def failed(reg: Any, fault: Any, p: Any) -> Any:
    """Stores a fault; returns the position."""
    put(reg, np.uint64(steps.FAULT), fault)
    return p


def kernel_text(program: Program, body: Body, entries: list[Column | Repeated]) -> str | None:
    """The text of a module that scans records as a program does; None if a step has no kernel.

    Args:
        program: the program.
        body: its steps, shortened.
        entries: the columns that they fill, and all lists.
    """
    render = _Renderer(program, {id(entry): place_of(at) for at, entry in enumerate(entries)})
    try:
        lines = list(render.body(body))
    except NoKernel:
        return None
    first = ["@inner", "def read_record(code, reg, t, p):", *(f"    {line}" for line in (*BEGIN, *lines, *END)), "", ""]
    return loop.module_text(HEAD + "\n".join(first) + "\n")


BEGIN: Final = (
    f"data, size, tail = get(t, np.uint64(0)), get(t, np.uint64(1)), get(t, np.uint64({op.TAIL}))",
    "b = uint8_on(data, size)",
    *(f"r{at} = get(reg, np.uint64({at}))" for at in (steps.RANGE, steps.FRAME, steps.ROW)),
    f"r{steps.EXTRA} = np.int64(0)",
    f"put(reg, np.uint64({steps.FAULT}), np.int64(0))",
)
END: Final = (f"put(reg, np.uint64({steps.EXTRA}), r{steps.EXTRA})", "return p")
ROW, EXTRA = f"r{steps.ROW}", f"r{steps.EXTRA}"


PATTERNS: Final[Mapping[type[Step], str]] = {
    steps.Mark: "{to} = p",
    steps.Seek: "p = {at} + {by}",
    steps.Refuse: "if {left} {symbol} {right}: {fault}",
    steps.Fit: "if {count} > ({limit} - p) // {least}: {fault}",
    steps.Slice: "[{length} = max({limit} - p, 0)\n]{start} = p\np += {length}",
    steps.Bound: (
        "{limit} = p + {size} - {less}\nif [{zero_is_rest?}{size} != 0 and ]({limit} > {outer} or {limit} < p): "
        "[{fault}][{fault!}{limit} = {outer} if {limit} > p else p][{zero_is_rest?}\nif {size} == 0: {limit} = {outer}]"
        f"[{{record?}}\nput(reg, np.uint64({steps.AFTER}), {{limit}})]"
    ),
    steps.Walk: (
        f"fault, p, {{good}}, lost = walked(t, {{message}}, p, {{limit}}, {ROW}, np.int64({{first}}), {{cut}})\n"
        f"if fault != 0: return failed(reg, fault, p)\n{{present}} = np.int64(1)\n{EXTRA} += lost"
    ),
    steps.Pick: "{to}, {present} = pick_field(t, {message}, np.uint64({slot}))",
    steps.Close: (
        f"limit = [{{unless!}}{{limit}}][{{limit}} if {{unless}} != 0 else p]\n{EXTRA} += limit - p\np = limit"
    ),
}
"""The lines for steps, as patterns like those of ``program.show``."""


class _Renderer(Show):
    def __init__(self, program: Program, places: Mapping[int, int]) -> None:
        super().__init__(program)
        self.reasons, self.places = program.reasons, places
        self.constants = {register: value for value, register in program.constants.items()}

    def name(self, register: int) -> str:
        """The text of a register: a constant, or its variable."""
        return f"np.int64({self.constants[register]})" if register in self.constants else f"r{register}"

    def message(self, number: int) -> str:
        return f"message_at(t, np.int64({number}))"

    def fail(self, fault: Fault) -> str:
        return f"return failed(reg, np.int64({fault_word(fault, self.reasons)}), p)"

    def value(self, value: Any) -> str:
        return self.fail(value) if isinstance(value, Fault) else str(value)

    def emit(self, column: Column, value: str, present: str = "np.int64(1)") -> str:
        """Adds a number to a column."""
        if DIRECT and is_direct(column):
            values = f"get(t, np.uint64({self.places[id(column)] + op.VALUES}))"
            size = np.dtype(column.dtype).itemsize
            return f"put_{8 * size}({values}, {ROW} * {size}, {value})"
        return f"add_number(t, np.int64({self.places[id(column)]}), {ROW}, {value}, {present})"

    def copy(self, column: Column, start: str, length: str, present: str) -> str:
        """Adds bytes to a column."""
        return f"add_bytes(t, np.int64({self.places[id(column)]}), {ROW}, {start}, {length}, {present})"

    def present(self, register: int | None) -> str:
        return "np.int64(1)" if register is None else self.name(register)

    def body(self, body: Body) -> Iterator[str]:
        """The lines of steps."""
        for step in folded(body, self.constants):
            yield from self.run(step) if isinstance(step, Run) else self.step(step)

    def nested(self, head: str, body: Body) -> Iterator[str]:
        yield head
        yield from (f"    {line}" for line in (list(self.body(body)) or ["pass"]))

    def run(self, run: Run) -> Iterator[str]:
        if run.need is not None:
            yield f"if {run.need.size} > {self.name(run.need.limit)} - p: {self.fail(run.need.fault)}"
        for each in run.fields:
            yield from self.loaded(each)
        yield from (f"r{to} = p + {offset}" for offset, to in run.marks)
        yield f"p += {run.size}"

    def loaded(self, each: Field) -> Iterator[str]:
        value = f"number(data, size, tail, p + {each.offset}, np.uint64({how(each.number)}))"
        if (each.shift, each.mask) != (0, ALL):
            value = f"np.int64(np.uint64({value}) >> np.uint64({each.shift}) & np.uint64({each.mask}))"
        yield f"r{each.to} = {value}"
        if each.fault is not None:
            checks = [f"r{each.to} < {each.low}"] * (each.low > LOWEST) + [f"r{each.to} > {each.high}"] * (
                each.high < HIGHEST
            )
            yield f"if {' or '.join(checks)}: {self.fail(each.fault)}"
        if each.column is not None:
            yield self.emit(each.column, f"r{each.to}")

    def step(self, step: Step) -> Iterator[str]:
        register = self.name
        match step:
            case steps.Let():
                pattern = SYMBOLS.get(step.symbol, f"{{0}} {step.symbol} {{1}}")
                yield f"r{step.to} = np.int64({pattern.format(register(step.left), register(step.right))})"
            case steps.Clear():
                yield from (f"r{to} = np.int64({value})" for to, value in step.values.items())
            case steps.Test():
                yield from self.nested(f"if {register(step.left)} {step.symbol} {register(step.right)}:", step.then)
                if step.otherwise:
                    yield from self.nested("else:", step.otherwise)
            case steps.OneOf():
                ranges = (f"{low} <= {register(step.source)} <= {high}" for low, high in step.ranges)
                yield f"if not ({' or '.join(ranges) or 'False'}): {self.fail(step.fault)}"
            case steps.Emit():
                yield self.emit(step.column, register(step.value), self.present(step.present))
            case steps.Copy():
                yield self.copy(step.column, register(step.start), register(step.length), self.present(step.present))
            case steps.IsText(encoding="utf-8"):
                yield f"r{step.to} = np.int64(is_utf8(b, {register(step.start)}, {register(step.length)}))"
            case _ if type(step) in PATTERNS:
                yield from self.text(step, PATTERNS[type(step)]).split("\n")
            case steps.Switch():
                yield from self.switch(step)
            case steps.Prefixed():
                yield from self.prefixed(step)
            case steps.Begins():
                start, end, size = register(step.start), register(step.end), len(step.value)
                same = (f" and b[{start} + {at}] == {byte}" for at, byte in enumerate(step.value))
                yield f"r{step.to} = np.int64({size} <= {end} - {start}{''.join(same)})"
            case steps.Keep():
                yield from self.keep(step)
            case steps.Sum(form=str()):
                covered = f"{register(step.start)}, {register(step.end)}"
                value = f"{step.algorithm}_at(data, {covered})"
                if step.algorithm == "internet":
                    hole = "np.int64(-1)" if step.hole is None else register(step.hole)
                    value = f"internet(b, {covered}, {hole})"
                stored = "" if step.stored is None else f" == {register(step.stored)}"
                yield f"r{step.to} = np.int64(np.int64({value}){stored})"
            case _:
                raise NoKernel

    def keep(self, step: steps.Keep) -> Iterator[str]:
        full = f"put(t, np.uint64({op.FULL}), np.int64(1))"
        messages = [(self.message(number), self.name(present)) for number, present in step.messages]
        for message, present in messages:
            yield f"if {present} != 0 and not ready_message(t, {message}, {ROW}): {full}"
        yield f"if get(t, np.uint64({op.FULL})) == 0:"
        for message, present in messages:
            yield f"    if {present} != 0: keep_message(t, {message}, {ROW})"

    def switch(self, step: steps.Switch) -> Iterator[str]:
        word = "if"
        for rows, body in step.cases:
            conditions = (" and ".join(self.case(step.on, row)) for row in rows)
            yield from self.nested(f"{word} {' or '.join(f'({each})' for each in conditions)}:", body)
            word = "elif"
        yield from self.nested("else:" if step.cases else "if True:", step.otherwise)

    def case(self, on: list[tuple[int, int | None]], row: tuple[int | None, ...]) -> Iterator[str]:
        for (value, present), expected in zip(on, row, strict=True):
            exists = "" if present is None else f"{self.name(present)} != 0"
            if expected is None:
                yield f"not ({exists or 'True'})"
            else:
                yield " and ".join(filter(None, (exists, f"{self.name(value)} == {expected}")))

    def prefixed(self, step: steps.Prefixed) -> Iterator[str]:
        limit, length = self.name(step.limit), f"r{step.length}"
        present = f"r{step.start}_present" if step.present is None else f"r{step.present}"
        yield f"if {step.number.size} > {limit} - p: {self.fail(step.need)}"
        yield f"{length} = number(data, size, tail, p, np.uint64({how(step.number)}))"
        yield f"{present} = np.int64(1)"
        if step.null is not None:
            yield f"if {length} <= {step.null}: {length}, {present} = np.int64(0), np.int64(0)"
        yield f"p += {step.number.size}"
        if step.negative is not None:
            yield f"if {length} < 0: {self.fail(step.negative)}"
        yield f"if {length} < 0 or {length} > {limit} - p: {self.fail(step.short)}"
        yield f"r{step.start} = p"
        if step.column is not None:
            yield self.copy(step.column, "p", length, present)
        yield f"p += {length}"
