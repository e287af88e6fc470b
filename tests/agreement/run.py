"""Runs many inputs through all engines, in several processes, and collects what they do not agree on."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import wirekit
from tests.agreement.generated_inputs import inputs
from tests.agreement.law import agree, prepare
from wirekit.errors import WirekitError

MEMORY = 4 << 30
"""Bytes of address space a process may take beyond what it has: what eats memory fails instead."""
SECONDS = 20
"""How long one input may take."""
EVERY = 30.0
"""Seconds between lines that say how far a run is."""
SOUND = 300
"""Inputs for which kernels are compiled before, where what stands in front of records chooses one."""
BUGS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NameError,
    OSError,
    RuntimeError,
    StopIteration,  # of which a pool would take the first for the end of the run
    TypeError,
    ValueError,
    WirekitError,  # of generating inputs, or of a call that gives errors instead of raising them
)


@dataclass(frozen=True, slots=True)
class Task:
    """So many inputs of a schema, from a seed."""

    key: str
    seed: int
    count: int


@dataclass(frozen=True, slots=True)
class Finding:
    """An input on which engines do not agree, and where that was seen."""

    key: str
    context: dict[str, Any]
    data: bytes
    where: str
    error: str

    def __str__(self) -> str:
        call = f"agree({self.key!r}, bytes.fromhex({self.data.hex()!r}), {self.context!r})"
        return f"{self.key}: {self.error}\n  at {self.where}\n  {call}"


@dataclass
class Tally:
    """What became of inputs, the shortest that shows each fault of each schema, and why layouts were refused."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.counts.update(other.counts)
        self.refused.update(other.refused)
        self.faults.update(other.faults)
        for finding in other.findings.values():
            self.note(finding)

    def note(self, finding: Finding) -> None:
        fault = (finding.key, finding.where)
        earlier = self.findings.get(fault)
        if earlier is None or len(finding.data) < len(earlier.data):
            self.findings[fault] = finding


def work(task: Task) -> Tally:
    """The inputs of one task, one after the other; a fault ends none but its own."""
    tally = Tally()
    with noting(tally, task.key, {}, b""):
        prepare(task.key, inputs(task.key, task.seed, SOUND, sound=SOUND, named=0))
    for context, data in inputs(task.key, task.seed, task.count):
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        with noting(tally, task.key, context, data):
            agree(task.key, data, context, counts=tally.counts)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return tally


@contextmanager
def noting(tally: Tally, key: str, context: dict[str, Any], data: bytes) -> Iterator[None]:
    """Notes a fault instead of raising it."""
    try:
        yield
    except BUGS as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.line}"
        tally.faults[key, where] += 1
        tally.note(Finding(key, context, data, where, f"{type(error).__name__} {error}"[:600]))
        tally.counts["inputs"] += 1


def tasks(keys: Sequence[str], count: int, seed: int, each: int) -> Iterator[Task]:
    """About ``count`` inputs in all, evenly over the schemas, at most ``each`` from one set of generated frames."""
    of_a_key = max(1, -(-count // len(keys)))
    rounds = -(-of_a_key // each)
    for start in range(rounds):
        for key in keys:
            yield Task(key, seed + start, of_a_key * (start + 1) // rounds - of_a_key * start // rounds)


def run(
    keys: Sequence[str],
    count: int,
    *,
    seed: int = 0,
    processes: int = 2,
    each: int = 1500,
    work: Callable[[Task], Tally] = work,
) -> Iterator[Tally]:
    """Gives what was found so far each time that a task has ended."""
    tally = Tally()
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, bounded, maxtasksperchild=200) as pool:
        for part in pool.imap_unordered(work, tasks(keys, count, seed, each)):
            tally.add(part)
            yield tally


def main(arguments: Sequence[str], work: Callable[[Task], Tally] = work) -> int:
    """Runs ``COUNT [SEED [PROCESSES [KEY...]]]`` and prints what was found; the exit status."""
    count, seed, processes = [int(text) for text in (*arguments[:3], *("1000000", "0", "2")[len(arguments[:3]) :])]
    starts = tuple(arguments[3:])
    keys = [key for key in wirekit.registry if not starts or key.startswith(starts)]
    started = reported = time.monotonic()
    tally = Tally()
    for tally in run(keys, count, seed=seed, processes=processes, work=work):
        if time.monotonic() - reported > EVERY:
            reported = time.monotonic()
            faults = sum(tally.faults.values())
            print(f"{tally.counts['inputs']:,} inputs, {faults} faults, {reported - started:.0f} s", flush=True)
    print(report(tally, started))
    return 1 if tally.findings else 0


def bounded() -> None:
    """Has a process fail that eats memory or time."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, late)


def late(signum: int, frame: Any) -> None:
    """Fails what has taken too long."""
    raise TimeoutError(f"one input took more than {SECONDS} s")


def report(tally: Tally, started: float) -> str:
    """Figures, then a call that shows each fault."""
    seconds = time.monotonic() - started
    lines = [f"{tally.counts['inputs']:,} inputs in {seconds:.0f} s, {tally.counts['inputs'] / seconds:.0f} a second"]
    lines += [f"  {name:<14}{number:>12,}" for name, number in tally.counts.most_common() if name != "inputs"]
    lines.append(f"{len(tally.findings)} faults")
    for fault, finding in sorted(tally.findings.items()):
        lines.append(f"{tally.faults[fault]} times {finding}")
    return "\n".join(lines)
