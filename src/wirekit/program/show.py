"""A program as text, one step a line: what ``wirekit explain KEY --engine columns`` prints (see docs/program.md).

A step's ``TEXT`` is a pattern. ``{name}`` is replaced by a field. Text in brackets is omitted if a field in it is None;
``{name?}`` in it is replaced by nothing, and requires that the field is true; ``{name!}``, that it is false.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from wirekit.compiler import ir
from wirekit.program import steps
from wirekit.program.columns import Column, Repeated
from wirekit.program.maker import Program
from wirekit.program.passes import shortened
from wirekit.program.steps import Body, Fault, Step, fields_of
from wirekit.program.write_steps import Join

_PART = re.compile(r"\[([^]]*)\]")
_FIELD = re.compile(r"\{(\w+)([?!]?)\}")


def shown(program: Program) -> str:
    """The steps of a program, the columns, and the protobuf messages."""
    show = Show(program)
    lines = [*show.body(shortened(program)), "end of record", "", "columns:"]
    for column in program.columns:
        kind = column.dtype if column.kind == "number" else column.kind
        inside = f" in {column.within.path}" if column.within is not None else ""
        lines.append(f"  {column.path or '(value)'}: {kind}{'?' if column.nullable else ''}{inside}")
    for message in program.messages:
        lines.append(f"  {message.path or '(value)'}: message of {len(message.places) - 1} fields")
    if program.left_out:
        lines.append(f"no columns: {', '.join(program.left_out)}")
    return "\n".join(lines) + "\n"


def shown_writing(program: Program) -> str:
    """The steps of a write program, and its columns."""
    columns = ", ".join(each.path or "(value)" for each in program.columns)
    return "\n".join([*Show(program).body(program.steps), "end of record", "", f"columns: {columns}"]) + "\n"


class Show:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = {register: str(value) for value, register in program.constants.items()}
        self.names |= {steps.RANGE: "end", steps.FRAME: "frame", steps.ROW: "row", steps.EXTRA: "gap"}

    def body(self, body: Body) -> Iterator[str]:
        for step in body:
            yield from self.step(step)

    def inside(self, body: Body, deeper: str = "  ") -> Iterator[str]:
        return (deeper + line for line in self.body(body))

    def name(self, register: int) -> str:
        return self.names.get(register, f"r{register}")

    def message(self, number: int) -> str:
        return self.program.messages[number].path or "(value)"

    def value(self, value: Any) -> str:
        """The text of a field that is not a register."""
        match value:
            case Column() | Repeated():
                return value.path or "(value)"
            case ir.Number():
                kind = "float" if value.real else "int" if value.signed else "uint"
                kind = kind if value.form is None else value.form.kind
                return f"{kind}{8 * value.size}{' little' if value.little else ''}"
            case Fault():
                reason = self.program.reasons[value.reason - 1]
                return f"{'cut or ' if value.cut else ''}{reason.kind} {reason.path or '(value)'}"
            case [Column(), *_]:
                return ", ".join(map(self.value, value))
            case [(int(), int()), *_]:
                return ", ".join(str(low) if low == high else f"{low}..{high}" for low, high in value)
        return repr(value) if isinstance(value, bytes) else str(value)

    def field(self, step: Step, name: str) -> str:
        value, kind = getattr(step, name), type(step)
        if name in fields_of(kind, "message"):
            return self.message(value)
        is_register = any(name in fields_of(kind, use) for use in ("read", "written", "used"))
        return self.name(value) if is_register else self.value(value)

    def text(self, step: Step, pattern: str) -> str:
        """A step by a pattern."""

        def part(match: re.Match[str]) -> str:
            for name, condition in _FIELD.findall(match[1]):
                value = getattr(step, name)
                if not value if condition == "?" else (value is None or value is False) != (condition == "!"):
                    return ""
            return match[1]

        text = _PART.sub(part, pattern)
        return _FIELD.sub(lambda match: "" if match[2] else self.field(step, match[1]), text)

    def step(self, step: Step) -> Iterator[str]:
        name = self.name
        match step:
            case steps.Split():
                for shift, mask, to, column in step.parts:
                    where = "" if column is None else f" -> {self.value(column)}"
                    yield f"split {name(to)} = {name(step.source)} >> {shift} & {mask}{where}"
            case steps.Let(symbol="="):
                yield f"let {name(step.to)} = {name(step.left)}"
            case steps.Clear():
                yield f"clear {', '.join(f'{name(to)} = {value}' for to, value in step.values.items())}"
            case steps.Switch():
                yield f"switch {', '.join(name(value) + self.if_present(present) for value, present in step.on)}:"
                for rows, body in step.cases:
                    yield f"  {' or '.join(','.join(map(str, row)) for row in rows)}:"
                    yield from self.inside(body, "    ")
                if step.otherwise:
                    yield "  else:"
                    yield from self.inside(step.otherwise, "    ")
            case steps.Keep():
                for which, present in step.messages:
                    yield f"keep message {self.message(which)}{self.if_present(present)}"
            case Join():
                parts = " | ".join(f"{name(part)} << {shift}" for part, shift in step.parts)
                yield f"store {self.value(step.number)} {parts}"
            case _:
                yield self.text(step, step.TEXT)
                for number, body in enumerate(step.bodies()):
                    if number and (body or isinstance(step, steps.Try)):
                        yield "or else:" if isinstance(step, steps.Try) else "else:"
                    yield from self.inside(body)

    def if_present(self, present: int | None) -> str:
        return "" if present is None else f" if {self.name(present)}"
