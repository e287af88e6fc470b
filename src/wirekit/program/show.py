"""A program as text, one step a line: what ``wirekit explain KEY --engine columns`` prints (see docs/program.md)."""

from __future__ import annotations

from collections.abc import Iterator

from wirekit.program import steps
from wirekit.program.columns import Column
from wirekit.program.messages import Tables
from wirekit.program.passes import shortened
from wirekit.program.read import Program
from wirekit.program.steps import Body, Fault, Load, Step
from wirekit.program.write import WriteProgram
from wirekit.program.write_steps import WriteStep


def shown(program: Program) -> str:
    """The steps of a program, the columns, and the protobuf messages."""
    show = _Show(program)
    lines = [*show.body(shortened(program), 0), "end of record", "", "columns:"]
    for column in program.columns:
        kind = column.dtype if column.kind == "number" else column.kind
        inside = f" in {column.within.path}" if column.within is not None else ""
        lines.append(f"  {column.path or '(value)'}: {kind}{'?' if column.nullable else ''}{inside}")
    for message in program.messages:
        lines.append(f"  {message.path or '(value)'}: message of {len(message.places) - 1} fields")
    if program.left_out:
        lines.append(f"no columns: {', '.join(program.left_out)}")
    return "\n".join(lines) + "\n"


def shown_writing(program: WriteProgram) -> str:
    """The steps of a write program, and its columns."""
    show = _Show(program)
    lines = [
        *show.body(program.steps, 0),
        "end of record",
        "",
        f"columns: {', '.join(each.path or '(value)' for each in program.columns)}",
    ]
    return "\n".join(lines) + "\n"


class _Show:
    def __init__(self, program: Program | WriteProgram) -> None:
        self.program = program
        self.names = {register: str(value) for value, register in program.constants.items()}
        self.names |= {steps.RANGE: "end", steps.FRAME: "frame", steps.ROW: "row"}

    def body(self, body: Body, depth: int) -> Iterator[str]:
        for step in body:
            for line in self.step(step, depth):
                yield line if line.startswith("  " * (depth + 1)) else "  " * depth + line.lstrip()

    def name(self, register: int | None) -> str:
        return "" if register is None else self.names.get(register, f"r{register}")

    def fault(self, fault: Fault | None) -> str:
        if fault is None:
            return ""
        if isinstance(self.program, WriteProgram):
            refusal = self.program.refusals[fault.reason - 1]
            return f" else refused {refusal.path or '(value)'}"
        reason = self.program.reasons[fault.reason - 1]
        return f" else {'cut or ' if fault.cut else ''}{reason.kind} {reason.path or '(value)'}"

    def message(self, number: int) -> str:
        message = self.program.messages[number]
        return (message.path if isinstance(message, Tables) else message.tables.path) or "(value)"

    def column(self, column: Column | None) -> str:
        return "" if column is None else f" -> {column.path or '(value)'}"

    def given(self, present: int | None) -> str:
        return "" if present is None else f" if {self.name(present)}"

    def load(self, load: Load) -> str:
        number = load.number
        kind = f"{'float' if number.real else 'int' if number.signed else 'uint'}{8 * number.size}"
        return f"{self.name(load.to)} = {kind}{' little' if number.little else ''}{self.column(load.column)}"

    def step(self, step: Step, depth: int) -> Iterator[str]:
        inner = depth + 1
        name, fault = self.name, self.fault
        match step:
            case steps.Need():
                yield f"need {step.size} before {name(step.limit)}{fault(step.fault)}"
            case steps.Run():
                if step.need is not None:
                    yield from self.step(step.need, depth)
                for load in step.loads:
                    yield f"load {self.load(load)}"
            case Load():
                yield f"load {self.load(step)}"
            case steps.Varint():
                kind = f"{'zigzag' if step.number.signed else 'varint'}{8 * step.number.size}"
                limit = f" before {name(step.limit)}"
                yield f"load {name(step.to)} = {kind}{limit}{self.column(step.column)}{fault(step.short)}"
            case steps.Split():
                for shift, mask, to, column in step.parts:
                    yield f"split {name(to)} = {name(step.source)} >> {shift} & {mask}{self.column(column)}"
            case steps.Let(symbol="="):
                yield f"let {name(step.to)} = {name(step.left)}"
            case steps.Let():
                yield f"let {name(step.to)} = {name(step.left)} {step.symbol} {name(step.right)}"
            case steps.Clear():
                yield f"clear {', '.join(f'{name(to)} = {value}' for to, value in step.values.items())}"
            case steps.Mark():
                yield f"mark {name(step.to)}"
            case steps.Seek():
                yield f"seek {name(step.at)}{f' + {step.by}' if step.by else ''}"
            case steps.Test():
                yield f"if {name(step.left)} {step.symbol} {name(step.right)}:"
                yield from self.body(step.then, inner)
                if step.otherwise:
                    yield "  " * depth + "else:"
                    yield from self.body(step.otherwise, inner)
            case steps.Switch():
                yield f"switch {', '.join(name(value) + self.given(present) for value, present in step.on)}:"
                for rows, body in step.cases:
                    yield "  " * inner + f"{' or '.join(','.join(map(str, row)) for row in rows)}:"
                    yield from self.body(body, inner + 1)
                if step.otherwise:
                    yield "  " * inner + "else:"
                    yield from self.body(step.otherwise, inner + 1)
            case steps.Refuse():
                yield f"fail if {name(step.left)} {step.symbol} {name(step.right)}:{fault(step.fault)[5:]}"
            case steps.OneOf():
                ranges = ", ".join(str(low) if low == high else f"{low}..{high}" for low, high in step.ranges)
                yield f"one of {name(step.source)}: {ranges}{fault(step.fault)}"
            case steps.Fit():
                yield f"fit {name(step.count)} * {step.least} before {name(step.limit)}{fault(step.fault)}"
            case steps.Bound():
                less = f" - {step.less}" if step.less else ""
                rest = ", 0 is the rest" if step.rest else ""
                end = ", ends the record" if step.record else ""
                clip = "" if step.fault is not None else ", clipped"
                outer = f" before {name(step.outer)}{rest}{end}{clip}"
                yield f"push {name(step.limit)} = here + {name(step.size)}{less}{outer}{fault(step.fault)}"
            case steps.Close():
                yield f"pop {name(step.limit)}{self.given(step.unless)}"
            case _:
                yield from self.others(step, depth)

    def others(self, step: Step, depth: int) -> Iterator[str]:
        inner = depth + 1
        name, fault = self.name, self.fault
        match step:
            case WriteStep():
                yield step.shown(name)
                for body in step.bodies():
                    yield from self.body(body, inner)
            case steps.Prefixed():
                number = f"{'int' if step.number.signed else 'uint'}{8 * step.number.size}"
                null = f", {step.null} is null" if step.null is not None else ""
                place = f"{name(step.start)}, {name(step.length)} before {name(step.limit)}"
                yield f"slice {place}: length {number}{null}{self.column(step.column)}{fault(step.short)}"
            case steps.Slice(limit=None):
                yield f"slice {name(step.start)}: length {name(step.length)}"
            case steps.Slice():
                yield f"slice {name(step.start)}, {name(step.length)}: up to {name(step.limit)}"
            case steps.Find():
                kind = f"decimal {name(step.value)}" if step.decimal else "text"
                yield f"find {step.end!r}: {kind} {name(step.start)}, {name(step.length)}{fault(step.short)}"
            case steps.Peek():
                yield f"peek {name(step.to)} = {step.magic!r}"
            case steps.Same():
                yield f"verify {name(step.to)} = bytes {name(step.start)}, {name(step.length)} are {step.value!r}"
            case steps.Gap():
                yield f"gap {name(step.size)}"
            case steps.Emit():
                yield f"emit {name(step.value)}{self.given(step.present)}{self.column(step.column)}"
            case steps.Copy():
                place = f"{name(step.start)}, {name(step.length)}"
                yield f"copy {place}{self.given(step.present)}{self.column(step.column)}"
            case steps.IsText():
                yield f"verify {name(step.to)} = {step.encoding} {name(step.start)}, {name(step.length)}"
            case steps.Checksum():
                place = f"{name(step.start)} to {name(step.end)}"
                yield f"verify {name(step.to)} = {step.algorithm} {place} is {name(step.stored)}"
            case steps.Loop():
                until = f", until {step.until!r}" if step.until else ""
                many = f"{name(step.count)} times" if step.count is not None else f"before {name(step.limit)}{until}"
                cut = ", a cut one is left" if step.gap is not None else ""
                yield f"loop {step.group.path or '(value)'}{self.given(step.present)}: {many}{cut}"
                yield from self.body(step.body, inner)
            case steps.Try():
                yield "try:"
                yield from self.body(step.body, inner)
                yield "  " * depth + "or else:"
                yield from self.body(step.otherwise, inner)
            case steps.Walk():
                path = self.message(step.message)
                yield f"walk message {path} before {name(step.limit)}: {name(step.good)}"
            case steps.Pick():
                path = self.message(step.message)
                yield f"pick {name(step.to)}, {name(step.present)} = field {step.slot} of {path}"
            case steps.Keep():
                for which, there in step.messages:
                    yield f"keep message {self.message(which)}{self.given(there)}"
