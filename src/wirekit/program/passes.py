"""Passes that shorten a program: they remove unused steps and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from wirekit.program.columns import Column
from wirekit.program.read import Program
from wirekit.program.steps import (
    Body,
    Clear,
    Copy,
    Emit,
    Let,
    Load,
    Loop,
    Prefixed,
    Split,
    Step,
    Switch,
    Test,
    Try,
    Varint,
)

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def _always(column: Column) -> bool:
    return True


def shortened(program: Program, wanted: Callable[[Column], bool] = _always) -> Body:
    """The steps of a program in fewer; the program stays as it is.

    Args:
        wanted: whether a column is filled; by default all are.
    """
    fewer = without_needless(_selected(program.steps, wanted), program.constants.get(0))
    unset = _unset(fewer)
    return _mapped(fewer, lambda step: _cleared(step, unset))


def without_needless(body: Body, zero: int | None) -> Body:
    """Steps without those whose result nobody reads; ``zero`` is the register of 0."""
    body = _compared(body, zero)
    steps, before = [*every(body)], 0
    while len(steps) != before:
        body = _needed(body, {register for step in steps for register in step.reads()})
        steps, before = [*every(body)], len(steps)
    return body


def _needed(body: Body, needed: set[int]) -> Body:
    """Steps without those whose result nobody reads."""
    return _mapped(body, lambda step: _useful(step, needed))


def every(body: Body) -> Iterator[Step]:
    """All steps, those inside others too."""
    for step in body:
        yield step
        for inner in step.bodies():
            yield from every(inner)


def _mapped(body: Body, work: Callable[[Step], Step | None]) -> Body:
    """Steps with what a function makes of each, without those of which it makes nothing; inner ones first."""

    def mapped(inner: Body) -> Body:
        return _mapped(inner, work)

    steps = (work(step.with_bodies(mapped)) for step in body)
    return [step for step in steps if step is not None]


def _selected(body: Body, wanted: Callable[[Column], bool]) -> Body:
    """Steps that fill no other columns than those."""

    def selected(step: Step) -> Step | None:
        match step:
            case Emit(column=column) | Copy(column=column) if not wanted(column):
                return None
            case Load(column=column) | Prefixed(column=column) | Varint(column=column) if (
                column is not None and not wanted(column)
            ):
                return replace(step, column=None)
            case Split():
                parts = [
                    (shift, mask, to, column if column is not None and wanted(column) else None)
                    for shift, mask, to, column in step.parts
                ]
                return replace(step, parts=parts)
            case Loop() | Try():
                undo = [each for each in step.undo if not isinstance(each, Column) or wanted(each)]
                return replace(step, undo=undo)
        return step

    return _mapped(body, selected)


def _useful(step: Step, needed: set[int]) -> Step | None:
    if step.PURE and needed.isdisjoint(step.writes()):
        return None
    match step:
        case Test(then=[], otherwise=[]) | Switch(cases=[], otherwise=[]):
            return None
        case Switch() if not step.otherwise and not any(body for _, body in step.cases):
            return None
        case Split():
            parts = [part for part in step.parts if part[3] is not None or part[2] in needed]
            return replace(step, parts=parts) if parts else None
    return step


def _compared(body: Body, zero: int | None) -> Body:
    """Steps in which a branch compares by itself, instead of looking at a comparison in front of it."""
    times = Counter(register for step in every(body) for register in step.reads())
    comparisons = {
        step.to: step
        for step in every(body)
        if isinstance(step, Let) and step.symbol in COMPARISONS and times[step.to] == 1
    }

    def compared(step: Step) -> Step:
        if isinstance(step, Test) and step.symbol == "!=" and step.right == zero and step.left in comparisons:
            let = comparisons[step.left]
            return replace(step, symbol=let.symbol, left=let.left, right=let.right)
        return step

    return _mapped(body, compared)


def _cleared(step: Step, unset: set[int]) -> Step | None:
    if not isinstance(step, Clear):
        return step
    values = {register: value for register, value in step.values.items() if register in unset}
    return Clear(values) if values else None


def _unset(body: Body) -> set[int]:
    """Registers that are read where nothing may have set them but a ``Clear``."""
    unset: set[int] = set()

    def visit(steps: Body, known: set[int]) -> None:
        added: list[int] = []
        for step in steps:
            unset.update(register for register in step.reads() if register not in known)
            for inner in step.bodies():
                visit(inner, known)
            for register in step.writes():
                if register not in known:
                    known.add(register)
                    added.append(register)
        known.difference_update(added)

    visit(body, set())
    return unset
