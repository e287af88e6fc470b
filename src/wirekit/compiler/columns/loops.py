"""What a kernel does to many arrays in the same way: one call each in its source, a loop in ``kernels.arrays``.

Written out, each would cost numba as much as a field. The loops find the arrays in the kernel's table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

ABSENT = "# absent "
"""What a line begins with that stands for writing null to the columns whose slots it names."""
ROOM, COPIES = "# room ", "# copies "
"""The same for a test that byte strings do not fit, and for copying them, from where ``held`` says that they stand."""
MANY = 16
"""Arrays from which on they are written to in a loop."""
_NAME = re.compile(r"\b[slh]\d+\b")
_UNSET = re.compile(r" *held\[\d+\] = np\.int64\(0\)")


def held(lines: list[str], copies: list[tuple[str, str, str]]) -> list[str]:
    """The lines of a record with one array in the place of the variables that say where its byte strings stand.

    Args:
        copies: of each string the variables for its place, its length, and whether it is there.

    >>> held(["l2 = np.int64(0)", "s1, l2 = p, e - p"], [("s1", "l2", "h3")])
    ['held[:] = 0', 'held[0], held[1] = p, e - p']
    """
    places = {
        name: f"held[{3 * number + part}]" for number, each in enumerate(copies) for part, name in enumerate(each)
    }
    found = [_NAME.sub(lambda name: places.get(name[0], name[0]), line) for line in lines]
    indent = " " * (len(lines[0]) - len(lines[0].lstrip()))
    return [f"{indent}held[:] = 0", *(line for line in found if not _UNSET.fullmatch(line))]


def written_out(
    body: list[str], kinds: Mapping[str, str], table: Mapping[str, int], constants: list[str]
) -> Iterator[str]:
    """The lines of a record with what stands for many arrays written out.

    Args:
        kinds: the type of each array.
        table: where each stands in the kernel's table; empty if there is none.
        constants: takes the lists of places that the lines name; ``named`` gives the lines that define them.
    """
    for line in body:
        code = line.lstrip()
        indent = line[: len(line) - len(code)]
        what = next((each for each in (ABSENT, ROOM, COPIES) if code.startswith(each)), "")
        slots = code.removeprefix(what).split()
        if not what:
            yield line
        elif what == ABSENT:
            names = [f"{letter}{slot}" for slot in slots for letter in "cv"]
            yield from (indent + each for each in _absent(names, kinds, table, constants))
        else:
            places = _constant([table.get(f"{letter}{slot}", -1) for slot in slots for letter in "dov"], constants)
            call = f"offsets_copied(table, {places}, held, b, i)"
            yield indent + (call if what == COPIES else f"if not offsets_fit(table, {places}, held, i):")


def _absent(
    names: list[str], kinds: Mapping[str, str], table: Mapping[str, int], constants: list[str]
) -> Iterator[str]:
    if not table or len(names) < MANY:
        yield from (f"{name}[i] = 0" for name in names)
        return
    for kind in sorted({kinds[name] for name in names}):
        places = _constant([table[name] for name in names if kinds[name] == kind], constants)
        yield f"{kind}_cleared(table, {places}, i)"


def _constant(places: list[int], constants: list[str]) -> str:
    """The name of a list of places; the same ones have one name."""
    listed = ", ".join(map(str, places))
    if listed not in constants:
        constants.append(listed)
    return f"PLACES_{constants.index(listed)}"


def named(constants: list[str]) -> list[str]:
    """The lines that define lists of places."""
    return [f"PLACES_{number} = np.array([{listed}], np.int64)" for number, listed in enumerate(constants)]
