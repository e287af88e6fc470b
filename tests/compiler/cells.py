"""What a row of columns must hold for a value of the reference engine: lists, alternatives, verdicts.

A column is called by the path of a field; in a value that path is walked. A list on the way gives a list. Alternatives
of several types have a column each, ``<path>`` and ``<path>:<type>``: of these one at most has a value. What the kernel
reads once, whatever leads there, is called by its own name, and there is one of it at most.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from wirekit.codings import CustomCoding, is_valid
from wirekit.compiler import ir
from wirekit.compiler.columns import program
from wirekit.program.parts import parts
from wirekit.values import Check, Record, Symbol, field_of

STATUS = {"ok": True, "bad": False, "absent": None}


@functools.cache
def bases(key: str) -> dict[tuple[str, int], list[str]]:
    """The names of columns by the path that they stand for, and verdicts by the lists around them as well: one may be
    on a list, and another on the elements of an alternative to it. Columns of the scan are left out.
    """
    names: dict[tuple[str, int], list[str]] = {}
    for name in program(key).schema.names:
        if not name.startswith("@"):
            base = re.sub(r":[a-z0-9:]+", "", name)
            names.setdefault((base, levels(key, name) if is_verdict(base) else 0), []).append(name)
    return names


def is_verdict(base: str) -> bool:
    return base.rpartition(".")[2] == "ok"


@functools.cache
def codings(key: str) -> dict[str, CustomCoding]:
    """What a user's own functions make of the bytes of columns, by their names."""
    columns = [each for each in program(key).program.columns if each.is_bytes]
    return {each.path: each.coding for each in columns if isinstance(each.coding, CustomCoding)}


def read(coding: CustomCoding | None, cell_value: Any) -> Any:
    """The values of bytes."""
    if isinstance(cell_value, list):
        return [read(coding, each) for each in cell_value]
    if coding is None or cell_value is None:
        return cell_value
    return coding.decode(cell_value) if is_valid(coding, cell_value) else coding.damaged(cell_value)


@functools.cache
def by_own_name(key: str) -> frozenset[str]:
    return frozenset(part.name for part in parts(program(key).plan.element).values())


@functools.cache
def fitting(key: str) -> Mapping[str, frozenset[bool | None]]:
    """The verdicts that a list which fits may have, by the path where bytes could stand in its place: true, and none
    if what stands there is one of several alternatives.
    """
    names = {id(part.node): part.name for part in parts(program(key).plan.element).values()}
    return dict(_fitting(program(key).plan.element, "", names, frozenset({True})))


def _fitting(
    node: ir.Node, path: str, own: Mapping[int, str], verdicts: frozenset[bool | None]
) -> Iterator[tuple[str, frozenset[bool | None]]]:
    if isinstance(node, ir.Fallback):
        yield path, verdicts
    path = own.get(id(node), path)
    verdicts = verdicts | {None} if isinstance(node, ir.Alternatives) else verdicts
    for name, inner in ir.parts(node):
        member = isinstance(node, ir.Structure)
        below = f"{path}.{name}".lstrip(".") if member else path
        yield from _fitting(inner, below, own, frozenset({True}) if member else verdicts)


def differences(key: str, row: Mapping[str, Any], value: Any, checks: list[Check]) -> list[str]:
    """Where a row is not what a record's value and its verdicts say; paths of verdicts begin at the record."""
    verdicts = {check.path: STATUS[check.status] for check in checks if check.source == 0}
    texts = []
    for (base, level), names in bases(key).items():
        cell_value = functools.reduce(merged, (read(codings(key).get(name), row[name]) for name in names))
        where, start, path = "", value, base
        first, _, behind = base.partition(".")
        if first in by_own_name(key):
            where, start = next(records_at(first, value, ""), ("", None))
            path = behind
        verdict = is_verdict(base)
        lists = None if verdict else lists_around(key, names)
        at = base.removesuffix(path).removesuffix(".")
        tree = cell(start, path.removesuffix("ok").removesuffix("."), where, by_own_name(key), at, lists)
        if verdict:
            tree = below_lists(tree, level)
        else:
            tree = trimmed(tree, max(levels(key, name) for name in names))
        if verdict and all(":" in name and name.removesuffix(".ok") in row for name in names):
            tree = present(functools.reduce(merged, (row[name.removesuffix(".ok")] for name in names)), tree)
        bare = base.removesuffix("ok").removesuffix(".") if verdict else base
        fits = fitting(key).get(bare, frozenset({None}))
        if not (judged(verdicts, cell_value, tree, fits) if verdict else same(cell_value, tree)):
            texts.append(f"{base}: {cell_value!r}, not {tree!r}")
    return texts


def lists_around(key: str, names: list[str]) -> frozenset[str]:
    """The paths of the lists that the values of columns are in."""
    columns = [each for each in program(key).program.columns if each.path in names]
    return frozenset(group.path for each in columns for group in each.lists)


def levels(key: str, name: str) -> int:
    """How many lists a column's values are in."""
    kind, depth = program(key).schema.field(name).type, 0
    while pa.types.is_list(kind):
        kind, depth = kind.value_type, depth + 1
    return depth


def below_lists(tree: Any, level: int) -> Any:
    """What verdicts inside of so many lists are on; an alternative with fewer lists has its verdicts in a column of
    its own.
    """
    if not level or tree is None:
        return tree
    return Cells(tree.where, (below_lists(each, level - 1) for each in tree)) if isinstance(tree, Cells) else None


def trimmed(tree: Any, depth: int) -> Any:
    """What cells have without lists in the place of the structure, or the number, that the columns are of."""
    if not isinstance(tree, Cells):
        return tree
    if depth:
        return Cells(tree.where, (trimmed(each, depth - 1) for each in tree))
    return None if blank(tree) else tree


class Cells(list[Any]):
    """What the elements of a list have at a path, and where the list stands."""

    def __init__(self, where: str, cells: Iterator[Any]) -> None:
        super().__init__(cells)
        self.where = where


def cell(
    value: Any, path: str, where: str, own: frozenset[str], at: str = "", lists: frozenset[str] | None = None
) -> Any:
    """What a value has at a path, as (place, value); lists of it below lists. None where the path leads to nothing,
    or into what is called by a name of its own.

    Args:
        at: the path so far, without indexes.
        lists: the paths of lists that count; another list is an alternative to what the path leads through.
    """
    if isinstance(value, list):
        if lists is not None and at not in lists:
            return None
        elements = (cell(each, path, f"{where}[{index}]", own, at, lists) for index, each in enumerate(value))
        return Cells(where, elements)
    if value is None or not path:
        return None if value is None else (where, value)
    name, _, below = path.partition(".")
    if not isinstance(value, Record) or name not in value or type(value[name]).__name__.lower() in own:
        return None
    inner = f"{at}.{name}".lstrip(".")
    return cell(value[name], below, f"{where}.{name}" if where else name, own, inner, lists)


def records_at(name: str, value: Any, where: str) -> Iterator[tuple[str, Record]]:
    """(place, record) of the records of a name inside a value."""
    if isinstance(value, Record):
        if type(value).__name__.lower() == name:
            yield where, value
        for field, inner in value._pairs():
            yield from records_at(name, inner, f"{where}.{field}" if where else field)


def merged(one: Any, other: Any) -> Any:
    """Two columns of alternatives as one."""
    if isinstance(one, list) and isinstance(other, list):
        return [merged(a, b) for a, b in zip(one, other, strict=True)]
    assert one is None or other is None, (one, other)
    return other if one is None else one


def blank(tree: Any) -> bool:
    """Whether a column of its own has nothing of this: records have columns of their own."""
    return all(map(blank, tree)) if isinstance(tree, Cells) else tree is None or plain(tree[1]) is None


def same(cell_value: Any, tree: Any) -> bool:
    """Whether columns have what a value has; a record has columns of its own."""
    if isinstance(tree, list):
        return isinstance(cell_value, list) and len(cell_value) == len(tree) and all(map(same, cell_value, tree))
    expected = plain(None if tree is None else tree[1])
    return bool(cell_value == expected or (cell_value != cell_value and expected != expected))


def plain(value: Any) -> Any:
    if isinstance(value, Record):
        return field_of(value, "compressed")
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="replace")
    return int(value) if isinstance(value, Symbol) else value


def present(cell_value: Any, tree: Any) -> Any:
    """What a value has where columns have the alternatives that verdicts are of, and None where it has others."""
    if isinstance(tree, Cells) and isinstance(cell_value, list):
        return Cells(tree.where, (present(one, other) for one, other in zip(cell_value, tree, strict=True)))
    return None if cell_value is None else tree


def judged(verdicts: Mapping[str, bool | None], cell_value: Any, tree: Any, fits: frozenset[bool | None]) -> bool:
    """Whether verdicts are those of the reference engine, which says nothing of what fits and of good text.

    Args:
        fits: the verdicts that a list may have on which the reference engine says nothing.
    """
    if isinstance(tree, Cells) and isinstance(cell_value, list):
        return len(cell_value) == len(tree) and all(
            judged(verdicts, one, other, fits) for one, other in zip(cell_value, tree, strict=True)
        )
    if isinstance(tree, Cells):  # of the list itself
        return cell_value == verdicts[tree.where] if tree.where in verdicts else cell_value in fits
    if tree is None:
        return cell_value is None
    where, value = tree
    if where in verdicts:
        return cell_value == verdicts[where]
    if isinstance(value, str):
        return cell_value == (value == plain(value))
    return cell_value in (True, None)
