"""The code of a record in fewer statements: numba's time grows with the variables that are set in several places.

- The writer gives each variable that a condition may leave unset a value first, as it cannot know yet who will read it.
  When all is written, that is known: a variable that nobody reads goes, and so does the first value of one that is read
  only where it was surely set, in the lines of the same block behind.
- The position moves once behind several numbers that are read one after the other, not behind each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

_NAME = re.compile(r"\b[a-z]+\d+\b")
_SET = re.compile(r"(?P<indent> *)(?P<names>[a-z]+\d+(?:, [a-z]+\d+)*) = (?P<values>.*)")
_MOVE = re.compile(r"(?P<indent> *)p \+= (?P<size>\d+)")
_READ = re.compile(r"(?P<indent> *)(?P<name>\w+) = (?P<function>\w+)\(b, p\)")
_STORE = re.compile(r"(?P<indent> *)\w+(?:\[i\])? = (?P<value>.*)")
_OPENING = re.compile(r":(?:  #.*)?$")
_POSITION = re.compile(r"\bp\b")
_PLAIN = re.compile(r"(?:np\.u?int64\()?[\w.]+\)?")


def trimmed(lines: list[str]) -> list[str]:
    """The same in fewer lines.

    >>> trimmed(["a1 = np.int64(0)", "b2 = np.int64(0)", "if x:", "    a1, b2 = np.int64(1), p", "    y[i] = b2"])
    ['if x:', '    b2 = p', '    y[i] = b2']
    >>> trimmed(["a1 = np.int64(0)", "if x:", "    a1 = np.int64(1)"])
    ['if x:', '    pass']
    """
    while True:
        read = {name for line in lines for name in _read(line)}
        less = [line for each in lines if (line := _without(each, read)) is not None]
        if less == lines:
            return list(_filled(_moved_once(_without_first_values(lines))))
        lines = less


def _filled(lines: list[str]) -> Iterator[str]:
    """Lines in which no block is empty."""
    for line, after in pairwise([*lines, ""]):
        yield line
        if _OPENING.search(line) and _depth(after) <= _depth(line):
            yield f"{' ' * (_depth(line) + 4)}pass"


def _read(line: str) -> Iterator[str]:
    """The variables that a line reads."""
    found = _SET.fullmatch(line)
    yield from _NAME.findall(line if found is None else found["values"])


def _without(line: str, read: set[str]) -> str | None:
    """A line that sets variables without those that nobody reads; None if there is no other, and nothing is called."""
    found = _SET.fullmatch(line)
    if found is None:
        return line
    names, values = found["names"].split(", "), found["values"].split(", ")
    if len(names) != len(values) or not all(_PLAIN.fullmatch(value) for value in values):
        return line
    kept = [(name, value) for name, value in zip(names, values, strict=True) if name in read]
    if not kept:
        return None
    names, values = [name for name, _ in kept], [value for _, value in kept]
    return f"{found['indent']}{', '.join(names)} = {', '.join(values)}"


def _without_first_values(lines: list[str]) -> list[str]:
    """Lines without the first value of variables that are set once more, and read only behind that in its block."""
    times: Counter[str] = Counter()
    where: dict[str, int] = {}
    first: dict[str, int] = {}
    for at, line in enumerate(lines):
        found = _SET.fullmatch(line)
        for name in found["names"].split(", ") if found is not None else ():
            times[name] += 1
            first.setdefault(name, at)
            where[name] = at
    twice = {
        name for name, count in times.items() if count == 2 and _PLAIN.fullmatch(lines[first[name]].split(" = ")[1])
    }
    for at, line in enumerate(lines):
        twice -= {name for name in _read(line) if name in twice and at <= where[name]}
    last = {name: _end(lines, where[name]) for name in twice}
    for at, line in enumerate(lines):
        twice -= {name for name in _read(line) if name in twice and at >= last[name]}
    gone = {first[name] for name in twice if _SET.fullmatch(lines[first[name]])["names"] == name}  # type: ignore[index]
    return [line for at, line in enumerate(lines) if at not in gone]


def _end(lines: list[str], at: int) -> int:
    """Where the block of a line ends."""
    depth = _depth(lines[at])
    return next((later for later in range(at + 1, len(lines)) if _depth(lines[later]) < depth), len(lines))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _moved_once(lines: list[str]) -> list[str]:
    """Lines in which the position moves once behind numbers that are read one after the other."""
    found: list[str] = []
    behind, depth = 0, 0
    for line in lines:
        move, read, store = _MOVE.fullmatch(line), _READ.fullmatch(line), _STORE.fullmatch(line)
        if move is not None and (not behind or _depth(line) == depth):
            behind, depth = behind + int(move["size"]), _depth(line)
            continue
        if behind and _depth(line) == depth and read is not None:
            found.append(f"{read['indent']}{read['name']} = {read['function']}(b, p + {behind})")
            continue
        if behind and not (_depth(line) == depth and store is not None and not _POSITION.search(line)):
            found.append(f"{' ' * depth}p += {behind}")
            behind = 0
            if move is not None:
                behind, depth = int(move["size"]), _depth(line)
                continue
        found.append(line)
    return [*found, f"{' ' * depth}p += {behind}"] if behind else found
