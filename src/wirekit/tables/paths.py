"""Paths in a declaration: parsing, and the part that a path shares with ``each``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from wirekit.errors import Misuse

ALL: Final = -1
"""The step ``[]``."""

Step = str | int
"""A field's name, the index of an element, or ALL."""

_STEP = re.compile(r"([A-Za-z_]\w*)((?:\[\d*\])*)")


@lru_cache(1024)
def parse(path: str) -> tuple[Step, ...]:
    """Parses a path into its steps.

    Raises:
        Misuse: the text is not a path.

    >>> parse("body.responses[].topic"), parse("topics[0]")
    (('body', 'responses', -1, 'topic'), ('topics', 0))
    """
    steps: list[Step] = []
    for part in path.split("."):
        match = _STEP.fullmatch(part)
        if match is None:
            raise Misuse(f"{path!r} is not a path; write names with dots, [] for every element, [0] for the first")
        steps.append(match[1])
        steps += [int(index) if index else ALL for index in re.findall(r"\[(\d*)\]", match[2])]
    return tuple(steps)


@lru_cache(1024)
def column_at(path: str) -> str:
    """The name of the column that has the values at a path.

    >>> column_at("body.responses[].topic"), column_at("topics[0]")
    ('body.responses.topic', 'topics')
    """
    return ".".join(step for step in parse(path) if isinstance(step, str))


def bound(each: tuple[Step, ...], steps: tuple[Step, ...]) -> tuple[int, tuple[Step, ...]]:
    """The number of lists that a path shares with ``each``, and its steps inside the element of the last one.

    >>> bound(parse("a[].b[]"), parse("a[].c[].d"))
    (1, ('c', -1, 'd'))
    """
    depth = count = 0
    for index, step in enumerate(each[: len(steps)]):
        if step != steps[index]:
            break
        if step == ALL:
            depth, count = depth + 1, index + 1
    return depth, steps[count:]
