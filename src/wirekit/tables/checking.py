"""Checks declarations of tables and of pairings: names exist, and paths lead to fields of their layouts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from wirekit.compiler import ir
from wirekit.compiler.expressions import expression, fields_of
from wirekit.errors import Misuse
from wirekit.tables.columns import DECLARED, MESSAGES
from wirekit.tables.declaration import (
    Asked,
    Elements,
    Embedded,
    Except,
    Extract,
    First,
    Fixed,
    Inside,
    Messages,
    Named,
    Names,
    Rows,
    Tables,
    Text,
    Total,
    Value,
)
from wirekit.tables.paths import ALL, Step, bound, parse
from wirekit.values import SymbolTable
from wirekit.wire.protobuf import Message

if TYPE_CHECKING:
    from wirekit.conversation.pairing import Heads, Kind, Pairing


@dataclass(frozen=True, slots=True)
class _Repeated:
    """A repeated field of a protobuf message, whose elements are messages or plain values."""

    message: Message | None


Reached = ir.Node | Message | _Repeated | SymbolTable | None
"""The target of a path: a node, a protobuf message, the names of a number, or a field without inner fields."""

Layouts = Mapping[str, Callable[[], ir.Node]]
"""{key without the protocol: function that returns its IR}."""

ONE_ROW = ("calls", "connections")


def check_tables(protocol: str, tables: Tables, layouts: Layouts) -> None:
    """Refuses a declaration that refers to something that does not exist.

    Args:
        protocol: its name, for errors.
        tables: the declaration.
        layouts: the layouts of the protocol.

    Raises:
        Misuse: the text names the table, column and path, and lists the valid ones.
    """
    try:
        _Checker(tables, layouts).check()
    except Misuse as error:
        raise Misuse(f"the tables of {protocol}: {error}") from None


def check_pairing(protocol: str, pairing: Pairing, layouts: Layouts) -> None:
    """Refuses a pairing that refers to something that does not exist: frames would be left to the dialogue silently.

    Args:
        protocol: its name, for errors.
        pairing: the declaration.
        layouts: the layouts of the protocol.

    Raises:
        Misuse: the text names the side, kind and path, and lists the valid ones.
    """
    checker = _Checker(Tables(), layouts)
    try:
        for side, other in (("client", pairing.server), ("server", pairing.client)):
            checker.heads(side, pairing.heads(side), {kind.api for kind in other.every})
    except Misuse as error:
        raise Misuse(f"the pairing of {protocol}: {error}") from None


def matching(layouts: Mapping[str, Any], patterns: str | tuple[str, ...]) -> list[str]:
    """The keys that match one of the patterns.

    Raises:
        Misuse: a pattern matches no key.
    """
    keys: list[str] = []
    for pattern in (patterns,) if isinstance(patterns, str) else patterns:
        names = [name for name in layouts if fnmatchcase(name, pattern)]
        if not names:
            raise Misuse(f"no layout {pattern!r}; choose from {', '.join(layouts)}")
        keys += names
    return keys


def _may_be_number(reached: Reached) -> bool:
    """Whether a path leads to an integer, or to a plain field of a protobuf message, whose type is not known here."""
    match reached:
        case ir.Number(real=real):
            return not real
        case ir.Delimited(decimal=decimal):
            return decimal
        case ir.Boolean() | SymbolTable() | None:
            return True
    return False


class _Checker:
    def __init__(self, tables: Tables, layouts: Layouts) -> None:
        self._tables = tables
        self._layouts = layouts
        self._columns: dict[str, set[str]] = {}
        for each in tables.names:
            self._columns.setdefault(each.name, set()).update(each.columns)

    def check(self) -> None:
        tables = self._tables
        for layout, path in tables.kinds.items():
            for name in matching(self._layouts, layout):
                self._kinds(name, path)
        for names in tables.names:
            self._frames(names, f"names {names.name}", "", {**names.columns, "its key": names.key})
        for rows in tables.rows:
            if rows.table not in DECLARED or rows.table == MESSAGES.name:
                choices = ", ".join(name for name in DECLARED if name != MESSAGES.name)
                raise Misuse(f"no table {rows.table!r} can be declared; choose from {choices}")
            self._check_columns(rows.table, rows.columns)
            if rows.each and rows.table in ONE_ROW:
                raise Misuse(f"{rows.table} has one row per frame; leave out each={rows.each!r}")
            self._frames(rows, rows.table, rows.each, rows.columns)
        for messages in tables.messages:
            self._check_columns(MESSAGES.name, messages.columns)
            self._frames(messages, MESSAGES.name, messages.each, messages.columns)
            for path in messages.payloads:
                self._exists(matching(self._layouts, messages.layouts), path, "payloads")
        for column in sorted(tables.detail_columns - set(MESSAGES.names)):
            raise Misuse(f"details: no column {column!r} of messages; choose from {', '.join(MESSAGES.names)}")
        for embedded in tables.embedded:
            self._embedded(embedded)

    def heads(self, side: str, heads: Heads, apis: set[str]) -> None:
        """Checks the kinds of frames of a side; ``apis`` are those of the other side."""
        self._layout(heads.layout, side)
        for path in heads.fields:
            self._number(heads.layout, path, side)
        for numbers in heads.kinds:
            if len(numbers) != len(heads.fields):
                raise Misuse(f"{side}: {numbers} must have as many numbers as fields, {len(heads.fields)}")
        for kind in heads.every:
            self._kind(kind, heads.layout, f"{side} {kind.api}".strip(), apis)

    def _kind(self, kind: Kind, head: str, where: str, apis: set[str]) -> None:
        for layout in filter(None, (kind.layout, kind.answer)):
            self._layout(layout, where)
        for path in (*kind.paths, *(kind.unusual or ())[:1]):
            self._number(head, path, where)
        for path in (kind.most, *(kind.silent or ())[:1]):
            if path:
                self._number(kind.layout, path, where)
        for fact in (kind.refusal, kind.unusual_answer):
            if fact is not None:
                self._number(kind.answer, fact[0], where)
        for api in kind.answers:
            if api not in apis:
                raise Misuse(f"{where}: the other side has no kind {api!r}; choose from {', '.join(sorted(apis))}")

    def _number(self, name: str, path: str, where: str) -> None:
        self._exists([name], path, where)
        if not all(map(_may_be_number, self._reach(self._layouts[name](), parse(path)))):
            raise Misuse(f"{where}: {path!r} of {name} is not an integer")

    def _layout(self, name: str, where: str) -> None:
        if name not in self._layouts:
            raise Misuse(f"{where}: no layout {name!r}; choose from {', '.join(self._layouts)}")

    def _check_columns(self, table: str, columns: Mapping[str, Value]) -> None:
        for column in columns:
            if column not in DECLARED[table].declared:
                choices = ", ".join(sorted(DECLARED[table].declared))
                raise Misuse(f"no column {column!r} of {table} can be declared; choose from {choices}")

    def _frames(self, of: Rows | Names | Messages, where: str, each: str, columns: Mapping[str, Value]) -> None:
        names = matching(self._layouts, of.layouts)
        for name in names:
            path = self._tables.kind_of(name)
            if of.kinds and path is None:
                raise Misuse(
                    f"{where}: the layout {name} declares no kinds; name its field in Tables(kinds=...), or "
                    "Asked(FIELD) of its request"
                )
            declared = self._kinds(name, path) if path is not None else []
            for kind in of.kinds:
                if kind not in declared:
                    raise Misuse(f"{where}: {name} has no kind {kind!r}; choose from {', '.join(declared)}")
        self._values(names, each, of.when, columns, where)

    def _values(self, names: list[str], each: str, when: Value, columns: Mapping[str, Value], where: str) -> None:
        """Checks a list, a condition and columns of a declaration for layouts."""
        if each:
            self._list(names, each, where)
        if when is not None:
            self._value(names, "", when, f"{where}, when", True)
        types = DECLARED[where].types if where in DECLARED else {}
        for column, value in columns.items():
            plural = types.get(column, "").startswith("list<")
            self._value(names, each, value, f"{where}.{column}", not plural)

    def _embedded(self, embedded: Embedded) -> None:
        if embedded.table not in ("group_events", "offsets"):
            raise Misuse(f"Embedded fills group_events and offsets, not {embedded.table!r}")
        self._check_columns(embedded.table, embedded.columns)
        layouts = {"key": embedded.key} | ({"value": embedded.value} if embedded.value else {})
        for layout in layouts.values():
            matching(self._layouts, layout)
        both = _Checker(self._tables, {**self._layouts, "": lambda: self._content(layouts)})
        both._values([""], embedded.each, embedded.when, embedded.columns, embedded.table)

    def _content(self, layouts: Mapping[str, str]) -> ir.Node:
        members = tuple(ir.Member(name, self._layouts[layout]()) for name, layout in layouts.items())
        return ir.Structure("Embedded", members, (), ())

    def _kinds(self, name: str, path: str | Asked) -> list[str]:
        """The kinds of frames of a layout: the symbols of one of its fields, or of a field of the request."""
        place = path if isinstance(path, str) else path.value
        kinds = [
            str(symbol.symbol)
            for each in ([name] if isinstance(path, str) else self._layouts)
            for reached in self._reach(self._layouts[each](), parse(place))
            if isinstance(reached, SymbolTable)
            for symbol in reached
        ]
        if not kinds:
            of = f"{name} has no number" if isinstance(path, str) else "no layout has a number"
            raise Misuse(f"{of} with symbols at {place!r}, which must select the kind of frames of {name}")
        return kinds

    def _list(self, names: list[str], each: str, where: str) -> None:
        steps = parse(each)
        if steps[-1] != ALL:
            raise Misuse(
                f"{where}: each={each!r} is not a list; write {each}[] for a list, or each='' for one per frame"
            )
        self._exists(names, each, where)

    def _exists(self, names: list[str], path: str, where: str) -> None:
        steps = parse(path)
        if any(self._reach(self._layouts[name](), steps) for name in names):
            return
        longest: tuple[Step, ...] = ()
        for end in range(len(steps)):
            if any(self._reach(self._layouts[name](), steps[:end]) for name in names):
                longest = steps[:end]
        fields = sorted({field for name in names for field in self._names(self._layouts[name](), longest)})
        advice = f"; it has {', '.join(fields)}" if fields else ""
        raise Misuse(f"{where}: {names[0]}{' and similar ones have' if len(names) > 1 else ' has'} no {path!r}{advice}")

    def _value(self, names: list[str], each: str, value: Value, where: str, single: bool) -> None:
        """Checks the paths of a value.

        Args:
            single: whether the value must not be a list.
        """
        match value:
            case str():
                if single and ALL in bound(parse(each) if each else (), parse(value))[1]:
                    raise Misuse(f"{where}: {value!r} is a list here; write Elements, Total, or [0] for the first")
                self._exists(names, value, where)
            case Fixed():
                pass
            case First(values=values) | Text(values=values):
                for inner in values:
                    self._value(names, each, inner, where, single)
            case Except(value=inner):
                self._value(names, each, inner, where, single)
            case Extract(value=inner, pattern=pattern):
                if re.compile(pattern).groups < 1:
                    raise Misuse(f"{where}: {pattern!r} has no group; put parentheses around the part to extract")
                self._value(names, each, inner, where, single)
            case Total(path=path):
                self._exists(names, path, where)
            case Asked(value=inner):
                self._value(list(self._layouts), "", inner, where, single)
            case Named(names=name, key=key, column=column):
                if column not in self._columns.get(name, ()):
                    choices = [f"{name}.{column}" for name, columns in self._columns.items() for column in columns]
                    raise Misuse(
                        f"{where}: no Names declare {name}.{column}; choose from {', '.join(choices) or 'none'}"
                    )
                self._value(names, each, key, where, True)
            case Inside(path=path, layout=layout, value=inner):
                self._exists(names, path, where)
                self._value(matching(self._layouts, layout), "", inner, where, single)
            case Elements(each=path, columns=columns):
                self._list(names, path, where)
                for column, inner in columns.items():
                    self._value(names, path, inner, f"{where}.{column}", True)
            case _:
                for field in fields_of(expression(value)):
                    if field.up:
                        raise Misuse(f"{where}: {field} refers to a field outside the frame")
                    self._exists(names, ".".join(field.names), where)

    # Along a layout

    def _reach(self, node: Reached, steps: tuple[Step, ...]) -> list[Reached]:
        """The nodes that a path leads to: several for alternatives, none if it leads nowhere."""
        at = list(self._plain(node, set()))
        for step in steps:
            at = [inner for each in at for inner in self._inside(each, step)]
        return at

    def _names(self, node: Reached, steps: tuple[Step, ...]) -> Iterator[str]:
        for reached in self._reach(node, steps):
            if isinstance(reached, ir.Structure):
                yield from (member.name for member in reached.members)
            elif isinstance(reached, ir.BitFields):
                yield from (field.name for field in reached.fields)
            elif isinstance(reached, Message):
                yield from reached.by_name

    def _inside(self, at: Reached, step: Step) -> Iterator[Reached]:
        if isinstance(step, int):
            if isinstance(at, ir.Several):
                yield from self._plain(at.element, set())
            elif isinstance(at, _Repeated):
                yield at.message
        elif isinstance(at, ir.Structure):
            for member in at.members:
                if member.name == step:
                    yield from self._plain(member.node, set())
        elif isinstance(at, ir.BitFields):
            yield from (field.table for field in at.fields if field.name == step)
        elif isinstance(at, ir.Packed) and step == "content":
            yield from self._plain(at.node, set())
        elif isinstance(at, Message) and step in at.by_name:
            field = at.by_name[step]
            yield _Repeated(field.message) if field.repeated else field.message or field.table

    def _plain(self, node: Reached, entered: set[str]) -> Iterator[Reached]:
        """The node inside wrappers that only decide on its presence."""
        match node:
            case ir.Around(node=inner):
                yield from self._plain(inner, entered)
            case ir.Alternatives(nodes=nodes):
                for inner in nodes:
                    yield from self._plain(inner, entered)
            case ir.Reference(key=key):
                name = key.partition(".")[2]
                if name in self._layouts and name not in entered:
                    yield from self._plain(self._layouts[name](), entered | {name})
            case ir.Named(table=table):
                yield table
            case ir.Protobuf(message=name):
                yield Message.by_full_name[name]
            case _:
                yield node
