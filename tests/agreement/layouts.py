"""``python -m tests.agreement.layouts COUNT [SEED [PROCESSES]]``: so many layouts drawn at random, through all engines.

Each seed is one layout, ``tests.agreement.drawing`` draws it; its inputs are those of
``tests.agreement.generated_inputs``. What registration refuses is counted and left alone. A fault is printed with the
layout and the shortest input that shows it; ``python -m tests.agreement.layouts --show SEED`` prints a layout. The exit
status is 1 when engines do not agree. ``make agreement-layouts`` runs it.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random

from hypothesis.errors import Unsatisfiable

from tests.agreement.drawing import Drawing
from tests.agreement.generated_inputs import Input, inputs
from tests.agreement.law import agree, prepare
from tests.agreement.run import SECONDS, Tally, bounded, noting, report
from tests.own import declared
from wirekit import wire
from wirekit.checksums import Checksum, register
from wirekit.compiler import ir
from wirekit.errors import Misuse
from wirekit.registry import Layout, Protocol, Schema, registry
from wirekit.values import SymbolTable

register(Checksum("count of a drawn layout", 8, lambda data: len(data) & 0xFF, "a user's own function"))
EVERY = 30.0
KERNELS = 0.66
"""The share of layouts whose columns are compared as well, in the long run."""
PREPARING = 120
"""Seconds in which the kernels of a layout are compiled and its frames are generated."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A layout drawn at random, under a name that no other one has.

    Attributes:
        seed: draws the same one again.
        texts: the Python of each layout by the rest of its key; ``main`` is the one that is tested.
    """

    seed: int
    texts: dict[str, str]

    @property
    def protocol(self) -> str:
        return f"drawn{self.seed}"

    @property
    def key(self) -> str:
        return f"{self.protocol}.main"

    def declared(self) -> Protocol:
        """The protocol that the texts declare.

        Raises:
            Misuse: where a node itself refuses what it is given.
        """
        names = dict(vars(wire))
        names |= {"SymbolTable": SymbolTable, "zlib": zlib}
        layouts = {name: Layout(eval(text, names)) for name, text in self.texts.items()}
        return Protocol(self.protocol, "Drawn at random", layouts)

    def __str__(self) -> str:
        lines = [f"# seed {self.seed}", *(f"{name} = {text}" for name, text in self.texts.items())]
        return "\n".join(lines)


def drawn(seed: int) -> Drawn:
    """The layout of a seed."""
    return Drawn(seed, Drawing(seed, f"drawn{seed}").layouts())


@contextmanager
def registered(layout: Drawn) -> Iterator[str]:
    """Its key, which the registry knows inside.

    Raises:
        Misuse: when it is refused.
    """
    with declared(layout.declared()):
        yield layout.key


@dataclass(frozen=True, slots=True)
class Task:
    """The inputs of one layout.

    Attributes:
        columns: whether to compare columns as well, for which a kernel is compiled.
    """

    seed: int
    count: int = 50
    sound: int = 12
    named: int = 8
    columns: bool = False


def work(task: Task) -> Tally:
    """Draws a layout and its inputs, and compares what all engines say; a fault ends none but its own input."""
    tally = Tally()
    with ExitStack() as stack:
        try:
            key = stack.enter_context(registered(drawn(task.seed)))
        except Misuse as error:
            tally.counts["refused"] += 1
            tally.refused[str(error).partition(": ")[2]] += 1
            return tally
        _inputs(task, key, tally)
        tally.counts["layouts"] += 1
    return tally


def _inputs(task: Task, key: str, tally: Tally) -> None:
    drawn_values: list[Input] = []
    used = not _stops(key)
    with noting(tally, key, {}, b""), at_most(PREPARING):
        drawn_values += drawn_inputs(task, key, tally)
        if task.columns:
            prepare(key, drawn_values)
    for context, data in drawn_values:
        with noting(tally, key, context, data), at_most(SECONDS):
            agree(key, data, context, columns=task.columns, used=used, counts=tally.counts)


def _stops(key: str) -> bool:
    """Whether a list ends before a record that is cut: there generated code may meet damage first, and leave it."""
    keys, waiting = {key}, [key]
    while waiting:
        nodes = [node for _, node in ir.walk(registry[waiting.pop()].layout)]
        if any(isinstance(node, ir.Several) and node.stop for node in nodes):
            return True
        referred = {node.key for node in nodes if isinstance(node, ir.Reference)} - keys
        keys |= referred
        waiting += referred
    return False


def drawn_inputs(task: Task, key: str, tally: Tally) -> list[Input]:
    """The inputs of a layout; if hardly a value fits it, bytes that are no frames of it."""
    try:
        return list(inputs(key, task.seed, task.count, sound=task.sound, named=task.named))
    except Unsatisfiable:
        tally.counts["without values"] += 1
    chance = Random(f"bytes {task.seed}")
    return [({}, chance.randbytes(chance.randrange(40))) for _ in range(task.count)]


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Ends with TimeoutError what takes longer, where the signal is handled."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def run(count: int, *, seed: int = 0, processes: int = 2, kernels: float = KERNELS) -> Iterator[Tally]:
    """Gives what was found so far each time that a layout has ended."""
    tally = Tally()
    planned = (Task(seed + number, columns=number % 100 < 100 * kernels) for number in range(count))
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, bounded, maxtasksperchild=100) as pool:
        for part in pool.imap_unordered(work, planned):
            tally.add(part)
            yield tally


def show(seed: int) -> str:
    """A layout as Python, and as IR."""
    layout = drawn(seed)
    lines = [str(layout)]
    for schema in _schemas(layout):
        lines += [schema.key, ir.dump(schema.layout)]
    return "\n".join(lines)


def _schemas(layout: Drawn) -> Iterator[Schema]:
    with registered(layout):
        yield from [registry[f"{layout.protocol}.{name}"] for name in layout.texts]


def main(count: int, seed: int = 0, processes: int = 2, kernels: float = KERNELS) -> int:
    started = reported = time.monotonic()
    tally = Tally()
    for tally in run(count, seed=seed, processes=processes, kernels=kernels):
        if time.monotonic() - reported > EVERY:
            reported = time.monotonic()
            faults = sum(tally.faults.values())
            print(f"{tally.counts['layouts']:,} layouts, {faults} faults, {reported - started:.0f} s", flush=True)
    print(report(tally, started))
    for key in sorted({key for key, _ in tally.findings}):
        print(drawn(int(key.partition(".")[0].removeprefix("drawn"))))
    for why, times in tally.refused.most_common(12):
        print(f"refused {times} times: {why}")
    return 1 if tally.findings else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--show"]:
        print(show(int(sys.argv[2])))
        sys.exit(0)
    numbers = [int(text) for text in sys.argv[1:4]] or [1000]
    sys.exit(main(*numbers, kernels=float(sys.argv[4]) if sys.argv[4:] else KERNELS))
