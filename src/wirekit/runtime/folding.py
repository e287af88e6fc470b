"""Combines steps into runs that the interpreter executes at once: numbers with their bit fields, checks and marks.

Executing an opcode costs as much as reading a number. So consecutive numbers are read in runs, which also contain the
checks of these numbers. A run may end a bad record for a different reason than its single steps would; the reference
engine gives the actual reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from wirekit.compiler import ir
from wirekit.program import steps
from wirekit.program.columns import Column
from wirekit.program.steps import Body, Fault, Need, Step
from wirekit.program.values import HIGHEST, LOWEST
from wirekit.runtime import opcodes as op

ALL = (1 << 64) - 1


@dataclass(slots=True)
class Field:
    """A number, or bits of one, ``offset`` bytes after the start of its run, with the bounds of its value."""

    number: ir.Number
    offset: int
    to: int
    column: Column | None
    shift: int = 0
    mask: int = ALL
    low: int = LOWEST
    high: int = HIGHEST
    fault: Fault | None = None


@dataclass(slots=True)
class Run:
    """Fields with one comparison with the limit; ``marks`` are (offset, register) of positions."""

    need: Need | None
    size: int = 0
    fields: list[Field] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)


def folded(body: Body, constants: Mapping[int, int]) -> Iterator[Step | Run]:
    """The steps of a body, without those in nested bodies, with runs in place of the steps that they combine.

    Args:
        constants: the value of each register that has a constant.
    """
    run: Run | None = None
    for step in body:
        longer = None if run is None else _extended(run, step, constants)
        if longer is not None:
            run = longer
            continue
        if run is not None:
            yield run
            run = None
        match step:
            case Need():
                run = Run(step)
            case steps.Load() | steps.Skip():
                run = _extended(Run(None), step, constants)
            case _:
                yield step
    if run is not None:
        yield run


def _extended(run: Run, step: Step, constants: Mapping[int, int]) -> Run | None:
    """A run with one more step; None if the step cannot be part of it."""
    match step:
        case Need():
            both = _needs(run, step)
            if both is None:
                return None
            run.need = both
        case steps.Load() if run.size + step.number.size > op.LONGEST_RUN:
            return None
        case steps.Load():
            run.fields.append(Field(step.number, run.size, step.to, step.column))
            run.size += step.number.size
        case steps.Skip() if run.size and run.size + step.size > op.LONGEST_RUN:
            return None
        case steps.Skip():
            run.size += step.size
        case steps.Split():
            source = next(each for each in reversed(run.fields) if each.to == step.source)
            for shift, mask, to, column in step.parts:
                run.fields.append(replace(source, to=to, column=column, shift=shift, mask=mask, fault=None))
        case steps.Mark():
            run.marks.append((run.size, step.to))
        case steps.OneOf(ranges=[(low, high)]):
            return _checked(run, step.source, low, high, step.fault)
        case steps.Refuse(symbol="<", right=right) if right in constants:
            return _checked(run, step.left, constants[right], HIGHEST, step.fault)
        case steps.Refuse(symbol="!=", right=right) if right in constants:
            return _checked(run, step.left, constants[right], constants[right], step.fault)
        case _:
            return None
    return run


def _needs(run: Run, need: Need) -> Need | None:
    """One comparison with the limit in place of two; None if the result could differ."""
    first = run.need
    if first is None or first.limit != need.limit or first.fault.cut != need.fault.cut:
        return None
    if need.fault.cut and any(each.fault is not None for each in run.fields):
        return None  # the value may be wrong before the limit cuts the record
    return replace(first, size=max(first.size, run.size + need.size))


def _checked(run: Run, register: int, low: int, high: int, fault: Fault) -> Run | None:
    for each in reversed(run.fields):
        if each.to == register:
            if each.fault is not None:
                return None
            each.low, each.high, each.fault = low, high, fault
            return run
    return None
