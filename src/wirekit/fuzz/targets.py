"""Targets in processes of this machine: a Python function, a command. Running a case returns an ``Outcome``."""

from __future__ import annotations

import json
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wirekit.errors import Misuse
from wirekit.fuzz.cases import Case
from wirekit.fuzz.process import DONE, HANG, MEMORY, Child
from wirekit.values import whole_number

START_SECONDS = 60.0
"""Seconds that the import of a Python target may take."""
ACCEPTED = "accepted"
REFUSED = "refused"
LONGEST_TEXT = 300
NO_VALUE: Any = object()
_FILE = rb"(?<![^\s:])[^\s:]+"  # not from each byte of a long word: the search would be quadratic
SANITIZER = re.compile(
    rb"==\d+==\s?(?:ERROR|WARNING): (\w+Sanitizer: [^\n]*)|(" + _FILE + rb":\d+:\d+: runtime error: [^\n]*)"
)
SUMMARY = re.compile(rb"SUMMARY: (\w+Sanitizer: [^\n]*)")
ASSERTION = re.compile(rb"(" + _FILE + rb":\d+): (?>[^\n]{0,999}?Assertion [`'])([^\n]{0,999})' failed")
FRAME = re.compile(rb'File "([^"]+)", line (\d{1,9}) in (\S+)')


@dataclass(frozen=True)
class Outcome:
    """The outcome of one case on a target.

    Attributes:
        kind: ``accepted``, ``refused``, or a kind of finding (docs/fuzzing.md).
        says: the error, as text.
        place: the place in the target, if known; findings of one kind and place are equal.
        value: the target's value as JSON data; ``NO_VALUE`` without one.
        log: the end of standard error.
        sent: the bytes that a scripted server sent to a client, or None.
    """

    kind: str
    says: str = ""
    place: str = ""
    value: Any = NO_VALUE
    log: str = ""
    sent: bytes | None = None


@dataclass(frozen=True)
class Bounds:
    """Limits of a target for one case.

    Attributes:
        seconds: time.
        memory: bytes; for a Python target, in addition to its memory before the first case.
        allowed: names of the exceptions that refuse an input, their subclasses included.
        statuses: exit statuses of a command that are not a finding; 0 accepts the input.
        want_values: whether the target must return the decoded value.
    """

    seconds: float = 5.0
    memory: int = 512 << 20
    allowed: frozenset[str] = frozenset(("ValueError", "EOFError"))
    statuses: frozenset[int] = frozenset((0, 1))
    want_values: bool = False


class Target(ABC):
    """Runs cases; one thread uses it."""

    @abstractmethod
    def run(self, case: Case) -> Outcome:
        """Runs a case on the target; returns the outcome."""

    def restart(self) -> None:  # noqa: B027  # a target that keeps nothing has nothing to do
        """Resets the target to its initial state."""

    def close(self) -> None:  # noqa: B027
        """Ends running processes."""


class PythonTarget(Target):
    """A function that takes bytes, in a process that serves case after case."""

    def __init__(self, module: str, function: str, bounds: Bounds) -> None:
        self._words = (module, function)
        self._bounds = bounds
        self._child: Child | None = None
        self._base = 0

    def run(self, case: Case) -> Outcome:
        if self._child is None:
            self._child = self._start()
        child, bounds = self._child, self._bounds
        child.complaint.clear()
        pipe = child.process.stdin
        assert pipe is not None
        try:
            pipe.write(struct.pack(">I", len(case.data)) + case.data)
            pipe.flush()
        except BrokenPipeError:
            pass  # it has ended, which is seen below
        state = child.wait(bounds.seconds, self._base + bounds.memory, lambda: _result_size(child.output) >= 0)
        result = _result(child) if state == DONE else None
        if result is None:
            self.restart()
            return _broken(child, state, bounds, base=self._base)
        outcome = self._judge(result)
        grown = max(_number(result, "peak"), _number(result, "resident")) - self._base
        if self._base and grown > bounds.memory:
            outcome = _memory(grown, bounds)
        if outcome.kind == MEMORY:
            self.restart()
        return outcome

    def _start(self) -> Child:
        worker = str(Path(__file__).with_name("worker.py"))
        child = Child([sys.executable, worker, *self._words, str(int(self._bounds.want_values))], subprocess.PIPE)
        state = child.wait(START_SECONDS, 1 << 62, lambda: _result_size(child.output) >= 0)
        result = _result(child) if state == DONE else None
        if result is None:
            child.kill()
            complaint = child.complaint.decode(errors="replace").strip() or f"the function did not load: {state}"
            raise Misuse(f"python:{':'.join(self._words)}: {complaint[-LONGEST_TEXT:]}")
        self._base = _number(result, "resident")
        return child

    def _judge(self, result: dict[str, Any]) -> Outcome:
        raised = result.get("exception")
        if isinstance(raised, dict):
            types = [str(each) for each in raised.get("types", [])]
            short = [each.rpartition(".")[2] for each in types]
            says = f"{types[0].removeprefix('builtins.') if types else '?'}: {raised.get('message', '')}"
            if "MemoryError" in short:
                return Outcome(MEMORY, says, _last(raised))
            if self._bounds.allowed.isdisjoint([*types, *short, *(each.removeprefix("builtins.") for each in types)]):
                return Outcome("exception", says, f"{short[0] if short else '?'} {_last(raised)}")
            return Outcome(REFUSED, says)
        if "unprintable" in result:
            return Outcome("no-json", f"the value has no JSON form: {result['unprintable']}", "the value")
        return Outcome(ACCEPTED, value=_parsed(result["value"]) if "value" in result else NO_VALUE)

    def restart(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    close = restart


class CommandTarget(Target):
    """A command that is run for each case: ``{file}`` is the path of the bytes; without it they are standard input."""

    def __init__(self, command: str, bounds: Bounds) -> None:
        self._words = words_of(command)
        if not self._words:
            raise Misuse("command: needs a command, as in command:./parser {file}")
        self._bounds = bounds

    def run(self, case: Case) -> Outcome:
        with tempfile.NamedTemporaryFile(prefix="wirekit_", suffix=".bin") as file:
            file.write(case.data)
            file.flush()
            file.seek(0)
            words = [word.replace("{file}", file.name) for word in self._words]
            child, state = ran(words, subprocess.DEVNULL if words != self._words else file, self._bounds)
        return outcome_of(child, state, self._bounds)


def words_of(command: str) -> list[str]:
    """The words of a command; refuses a quotation mark without another one."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise Misuse(f"the command {command!r} cannot be split into words: {error}") from None


def ran(words: Sequence[str], stdin: Any, bounds: Bounds) -> tuple[Child, str]:
    """Runs a command to its end or a bound; returns it, and the result of waiting for it."""
    try:
        child = Child(words, stdin)
    except OSError as error:
        raise Misuse(f"{words[0]} cannot be run: {error.strerror}") from None
    try:
        return child, child.wait(bounds.seconds, bounds.memory)
    finally:
        child.kill()


def outcome_of(child: Child, state: str, bounds: Bounds) -> Outcome:
    """The outcome of a command that was run for one case.

    Args:
        state: the result of waiting for it.
    """
    if state in (HANG, MEMORY) or child.status is None or child.status < 0 or SANITIZER.search(child.complaint):
        return _broken(child, state, bounds)
    if child.status not in bounds.statuses:
        return Outcome("exit-status", f"exit status {child.status}", str(child.status), log=_log(child))
    if child.status:
        return Outcome(REFUSED, log=_log(child))
    if not bounds.want_values:
        return Outcome(ACCEPTED)
    value = _parsed(child.output.decode(errors="replace"))
    if value is NO_VALUE:
        return Outcome("no-json", "the command accepts the bytes and prints no JSON", "the output", log=_log(child))
    return Outcome(ACCEPTED, value=value)


def _broken(child: Child, state: str, bounds: Bounds, *, base: int | None = None) -> Outcome:
    """The outcome of a process that did not end by itself, or with an error.

    Args:
        base: for a process that serves many cases, and so should not have ended: its memory before the first one.
    """
    log = _log(child)
    if state == HANG:
        return Outcome("hang", f"no result in {bounds.seconds:g} s", log=log)
    if state == MEMORY:
        return _memory(child.measured - (base or 0), bounds)
    complaint = bytes(child.complaint)
    sanitizer = SANITIZER.search(complaint)
    if sanitizer is not None:
        summary = SUMMARY.search(complaint)
        first = (sanitizer.group(1) or sanitizer.group(2)).decode(errors="replace")
        place = summary.group(1).decode(errors="replace") if summary is not None else first
        return Outcome("sanitizer", first[:LONGEST_TEXT], place[:LONGEST_TEXT], log=log)
    frame = FRAME.search(complaint)
    place = f"{Path(frame.group(1).decode(errors='replace')).name}:{int(frame.group(2))}" if frame is not None else ""
    assertion = ASSERTION.search(complaint)
    if assertion is not None:
        place = f"{assertion.group(1).decode(errors='replace')} {assertion.group(2).decode(errors='replace')}"
    if child.status is not None and child.status < 0:
        name = signal.Signals(-child.status).name if -child.status in set(signal.Signals) else str(-child.status)
        return Outcome("crash", f"ended by {name}", f"{name} {place}".strip(), log=log)
    says = f"exit status {child.status}" if base is None else f"the process ended with exit status {child.status}"
    return Outcome("exit-status", says, str(child.status), log=log)


def _memory(size: int, bounds: Bounds) -> Outcome:
    return Outcome(MEMORY, f"the target uses more than {bounds.memory >> 20} MiB ({size >> 20} MiB when measured)")


def _log(child: Child) -> str:
    return child.complaint[-4096:].decode(errors="replace")


def _last(raised: dict[str, Any]) -> str:
    frames = raised.get("frames")
    return str(frames[-1]) if isinstance(frames, list) and frames else ""


def _number(result: dict[str, Any], name: str) -> int:
    number = result.get(name)
    return number if isinstance(number, int) else 0


def _result_size(output: bytearray) -> int:
    """The size of the result at the start of an output, or -1 while it is incomplete."""
    if len(output) < 4:
        return -1
    size = int(struct.unpack_from(">I", output)[0])
    return size if len(output) >= 4 + size else -1


def _result(child: Child) -> dict[str, Any] | None:
    """Removes the result from an output; None if it is invalid, so that a target that prints there is restarted."""
    size = _result_size(child.output)
    result = _parsed(child.output[4 : 4 + size].decode(errors="replace"))
    del child.output[: 4 + size]
    return result if isinstance(result, dict) else None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NO_VALUE


@dataclass(frozen=True)
class Place:
    """A parsed ``--target``.

    Attributes:
        form: ``python``, ``command``, ``client`` or ``tcp``.
        text: the text after the first colon.
        parts: module and function, or host and port.
    """

    form: str
    text: str
    parts: Sequence[str] = field(default=())


def parse_target(text: str) -> Place:
    """``python:module:function``, ``command:WORDS``, ``client:WORDS`` or ``tcp:HOST:PORT``.

    Raises:
        Misuse: for anything else.

    >>> parse_target("python:json:loads").parts
    ['json', 'loads']
    """
    form, _, where = text.partition(":")
    if form in ("command", "client") and where.strip():
        return Place(form, where)
    first, _, second = where.rpartition(":")
    if form == "python" and first and second:
        return Place(form, where, [first, second])
    if form == "tcp" and first and 0 < (whole_number(second) or 0) < 1 << 16:
        return Place(form, where, [first.strip("[]"), second])
    targets = "python:module:function, command:./parser {file}, tcp:host:port or client:./client {port}"
    raise Misuse(f"{text!r} is not a target; write {targets}")
