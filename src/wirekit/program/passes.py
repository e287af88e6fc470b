"""Passes that shorten a program: they remove unused steps and columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from wirekit.program import steps
from wirekit.program.columns import Column
from wirekit.program.maker import Program


def shortened(program: Program, requested: Callable[[Column], bool] = lambda column: True) -> steps.Body:
    """The shortened steps of a program; the program itself is not changed.

    Args:
        requested: returns whether a column is requested; by default all are.
    """
    fewer = without_needless(_selected(program.steps, requested))
    unset = _unset(fewer)
    return _mapped(fewer, partial(_cleared, unset=unset))


def without_needless(body: steps.Body) -> steps.Body:
    """The steps without those whose result is never read."""
    before = None
    while before is not body:
        needed = {steps.EXTRA, *(register for step in all_steps(body) for register in step.reads())}
        before, body = body, _mapped(body, partial(_useful, needed=needed))
    return body


def all_steps(body: steps.Body) -> list[steps.Step]:
    """All steps, including those inside others."""
    listed: list[steps.Step] = []
    for step in body:
        listed.append(step)
        for inner in step.bodies():
            listed += all_steps(inner)
    return listed


def _mapped(body: steps.Body, work: Callable[[steps.Step], steps.Step | None]) -> steps.Body:
    """Steps replaced by the results of a function, without those for which it returns None; inner steps first.

    A list in which nothing changes is returned as it is, since making steps costs more than looking at them.
    """

    def mapped(inner: steps.Body) -> steps.Body:
        return _mapped(inner, work)

    worked = [mapped_step for step in body if (mapped_step := work(step.with_bodies(mapped))) is not None]
    return body if steps.identical(worked, body) else worked


def _selected(body: steps.Body, requested: Callable[[Column], bool]) -> steps.Body:
    """The steps that fill no columns except the requested ones."""

    def selected(step: steps.Step) -> steps.Step | None:
        match step:
            case steps.Emit(column=column) | steps.Copy(column=column) if not requested(column):
                return None
            case steps.Load(column=column) | steps.Prefixed(column=column) | steps.Varint(column=column) if (
                column is not None and not requested(column)
            ):
                return replace(step, column=None)
            case steps.Split():
                parts = [
                    (shift, mask, to, column if column is not None and requested(column) else None)
                    for shift, mask, to, column in step.parts
                ]
                return replace(step, parts=parts)
            case steps.Loop() | steps.Try():
                undo = [each for each in step.undo if not isinstance(each, Column) or requested(each)]
                return replace(step, undo=undo)
        return step

    return _mapped(body, selected)


def _useful(step: steps.Step, needed: set[int]) -> steps.Step | None:
    if step.PURE and needed.isdisjoint(step.writes()):
        return None
    match step:
        case steps.Load(column=None) if step.to not in needed:
            return steps.Skip(step.number.size)
        case steps.Test() | steps.Switch() if not any(step.bodies()):
            return None
        case steps.Split():
            parts = [part for part in step.parts if part[3] is not None or part[2] in needed]
            return step if len(parts) == len(step.parts) else replace(step, parts=parts) if parts else None
    return step


def _cleared(step: steps.Step, unset: set[int]) -> steps.Step | None:
    if not isinstance(step, steps.Clear):
        return step
    values = {register: value for register, value in step.values.items() if register in unset}
    return steps.Clear(values) if values else None


def _unset(body: steps.Body) -> set[int]:
    """Registers that are read although only a ``Clear`` may have set them."""
    unset: set[int] = set()

    def visit(inside: steps.Body, registers: set[int]) -> None:
        added: list[int] = []
        for step in inside:
            unset.update(register for register in step.reads() if register not in registers)
            for inner in step.bodies():
                visit(inner, registers)
            for register in step.writes():
                if register not in registers:
                    registers.add(register)
                    added.append(register)
        registers.difference_update(added)

    visit(body, set())
    return unset
