"""Tools for generating Python, shared by all parts of the rows engine: functions, names, expressions, scopes.

Nothing here knows whether the code decodes, builds or loads. Each of these parts generates the code of every node.
"""

from __future__ import annotations

import functools
import keyword
import linecache
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from wirekit.compiler import ir
from wirekit.compiler.expressions import Context, Expression, Field, LengthOf, Literal, Operation
from wirekit.compiler.generated import by_key
from wirekit.errors import Misuse, WirekitError
from wirekit.values import Record
from wirekit.wire.message_fields import Derived
from wirekit.wire.references import referred

G = TypeVar("G", bound="Generator")

REMEMBERED = 4096  # numbers whose bit fields are cached
PLAIN = (bool, int, float, str, bytes, type(None))


class Unusual(Exception):
    """The bytes or the value are not usual; the reference engine handles them, and explains errors."""


REASONS = (
    *(Unusual, WirekitError, TypeError, AttributeError, LookupError, ArithmeticError, ValueError, struct.error),
    RecursionError,
)
"""The exceptions of generated code for bytes or a value that it does not handle, or that do not fit."""


def missing() -> None:
    """A sentinel for a value that is not set; generated code calls it where a required value is missing."""
    raise Unusual


def by_name(*helpers: Any) -> dict[str, Any]:
    """Functions and classes by their names."""
    return {helper.__name__: helper for helper in helpers}


class Splits(dict[int, tuple[Any, ...]]):
    """The values of bit fields by their whole number; a cache."""

    def __init__(self, fields: tuple[ir.BitField, ...]) -> None:
        self.fields = fields

    def __missing__(self, number: int) -> tuple[Any, ...]:
        values = tuple([bit.value(number) for bit in self.fields])
        if len(self) < REMEMBERED:
            self[number] = values
        return values


@dataclass(slots=True)
class Code:
    """A function that is being generated.

    Attributes:
        loops: the number of loops around the current place.
        opening: the first lines of the function.
    """

    lines: list[str] = field(default_factory=list)
    depth: int = 1
    names: int = 0
    loops: int = 0
    opening: list[str] = field(default_factory=list)

    def add_line(self, line: str) -> None:
        """Adds a line to the current block."""
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """A block of lines, under a condition or in a loop; it may be empty."""
        self.add_line(header)
        lines = len(self.lines)
        self.depth += 1
        yield
        if len(self.lines) == lines:
            self.add_line("pass")
        self.depth -= 1

    def fresh(self, stem: str) -> str:
        """A new variable of the function."""
        self.names += 1
        return f"{stem}{self.names}"

    def let(self, stem: str, value: str) -> str:
        """A new variable of the function with the value of an expression."""
        variable = self.fresh(stem)
        self.add_line(f"{variable} = {value}")
        return variable

    def unless_same(self, values: list[str], write: Callable[[], None]) -> None:
        """A block in a loop that runs only if some values are not the same objects as in the last iteration."""
        if not self.loops or not values:
            write()
            return
        last = [self.fresh("w") for _ in values]
        self.opening.append(f"    {' = '.join(last)} = missing")
        pairs = zip(values, last, strict=True)
        with self.block(f"if {' or '.join(f'{value} is not {old}' for value, old in pairs)}:"):
            write()
            self.add_line(f"{', '.join(last)} = {', '.join(values)}")

    def all_lines(self) -> list[str]:
        """The lines of the whole function."""
        return [self.lines[0], *self.opening, *self.lines[1:]]


@dataclass(slots=True)
class Scope:
    """A structure whose fields expressions can read: name → local variable."""

    variables: dict[str, str]
    outer: Scope | None


@dataclass(frozen=True, slots=True)
class Function:
    """The function of a node.

    Attributes:
        free: the fields of enclosing structures that it reads, as further arguments: (structures further out, name).
    """

    name: str
    node: ir.Node
    free: list[tuple[int, str]]


class Generator:
    """Generates the module of one schema.

    Args:
        key: the schema's key.
        layout: its IR.
        resolve: returns the unit of another schema by key, at run time.

    Attributes:
        NAMES: the initial names of the module.
        evaluated: returns the expressions of a node that the code evaluates.
    """

    NAMES: ClassVar[dict[str, Any]] = {}
    evaluated: ClassVar[staticmethod[[ir.Node], list[Expression]]]
    purpose = ""
    arguments = ""

    def __init__(self, key: str, layout: ir.Node, resolve: Callable[[str], Callable[..., Any]]) -> None:
        self.key = key
        self.names = {"Unusual": Unusual, "missing": missing, "resolve": resolve, **self.NAMES}
        self._units: dict[int, Function] = {}
        self._unwritten: dict[str, Function] = {}
        self._functions: list[list[str]] = []
        self._lines: list[str] = []
        self._constants: dict[tuple[str, int], str] = {}
        self._tables: list[tuple[dict[Any, Any], dict[Any, str]]] = []
        self._lock = threading.RLock()
        self.root = self._unit(layout).name

    @functools.cached_property
    def source(self) -> str:
        """The text of all functions."""
        while self._unwritten:
            self._write(next(iter(self._unwritten)))
        return "\n\n\n".join("\n".join(lines) for lines in self._functions) + "\n"

    def _function(self, header: str, node: ir.Node, scope: Scope | None) -> list[str]:
        """The lines of a node's function."""
        raise NotImplementedError

    def compile(self) -> Callable[..., Any]:
        """The function of the whole layout; functions that it calls are generated and compiled on their first call."""
        self._compile(self.root)
        unit: Callable[..., Any] = self.names[self.root]
        return unit

    def _compile(self, name: str) -> None:
        """Generates and compiles a function, with the small functions that only it calls."""
        functions = len(self._functions)
        self._write(name)
        file = f"<wirekit {self.purpose} {self.key}>"
        for lines in self._functions[functions:]:
            text = "\n" * len(self._lines) + "\n".join(lines)
            exec(compile(text, file, "exec"), self.names)  # the text is generated here, from numbers and names
            self._lines += [*(f"{line}\n" for line in lines), "\n", "\n"]
        linecache.cache[file] = (len(self._lines), None, self._lines, file)
        for table, names in self._tables:
            table.update({key: self.names[unit] for key, unit in names.items()})

    def _write(self, name: str) -> None:
        unit = self._unwritten[name]
        header = f"def {name}({self.arguments}{_parameters(unit.free)}):"
        self._functions.append(self._function(header, unit.node, _outside(unit.free)))
        del self._unwritten[name]

    def _first(self, name: str) -> Callable[..., Any]:
        """A function that compiles the function of a name, replaces itself by it, and calls it."""

        def first(*arguments: Any) -> Any:
            with self._lock:
                if self.names[name] is first:
                    self._compile(name)
            return self.names[name](*arguments)

        return first

    def _constant(self, value: Any, stem: str) -> str:
        """A name of the module for an object; the same object gets the same name."""
        key = (stem, id(value))
        if key not in self._constants:
            self._constants[key] = f"{stem}{len(self._constants)}"
            self.names[self._constants[key]] = value  # keeps the object, so that its id is not reused
        return self._constants[key]

    def _unit(self, node: ir.Node) -> Function:
        """The function of a node; a shared node has one function."""
        if id(node) not in self._units:
            free = sorted(ir.read_outside(node, self.evaluated))
            unit = self._units[id(node)] = Function(f"unit{len(self._units)}", node, free)
            self._unwritten[unit.name] = unit
            self.names[unit.name] = self._first(unit.name)
        return self._units[id(node)]

    def _call(self, node: ir.Node, scope: Scope | None) -> tuple[str, str]:
        """(function, further arguments) of a node's unit."""
        unit = self._unit(node)
        return unit.name, _arguments(unit.free, scope)

    def _chosen(self, code: Code, node: ir.Choice, scope: Scope | None) -> tuple[str, str]:
        """(variable with the unit of the selected case, further arguments of all units)."""
        unit, table = code.fresh("u"), dict[Any, Any]()
        free = sorted({pair for case in node.nodes for pair in self._unit(case).free})
        self._tables.append((table, {_single(values): self._adapted(case, free) for values, case in node.cases}))
        otherwise = "None" if node.otherwise is None else self._adapted(node.otherwise, free)
        code.add_line(f"{unit} = {self._constant(table, 'cases')}.get({self._key(node.on, scope)}, {otherwise})")
        code.add_line(f"if {unit} is None: raise Unusual")
        return unit, _arguments(free, scope)

    def _adapted(self, node: ir.Node, free: list[tuple[int, str]]) -> str:
        """A node's unit with a list of further arguments, of which it may need only some."""
        unit = self._unit(node)
        if unit.free == free:
            return unit.name
        adapted = f"{unit.name}_of{len(self._functions)}"
        call = f"{unit.name}({self.arguments}{_parameters(unit.free)})"
        self._functions.append([f"def {adapted}({self.arguments}{_parameters(free)}):", f"    return {call}"])
        return adapted

    def _key(self, on: tuple[Expression, ...], scope: Scope | None) -> str:
        """The key of a choice: one expression, or a tuple of several."""
        parts = [self._expression(part, scope) for part in on]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def _blank(self, code: Code, record: type[Record], extra: str = "None") -> str:
        """A variable with an empty record."""
        variable = code.let("r", f"{self._constant(record._blank, 'new')}()")
        code.add_line(f"{variable}._extra = {extra}")
        return variable

    def _split(self, code: Code, node: ir.BitFields, number: str) -> str:
        """A variable with the record of the bit fields of a number."""
        record = self._blank(code, node.record)
        targets = "".join(f"{field_of(record, bit.name)}, " for bit in node.fields)
        parts, table = code.fresh("t"), self._constant(Splits(node.fields), "bits")
        code.unless_same([number], lambda: code.add_line(f"{parts} = {table}[{number}]"))
        code.add_line(f"{targets}= {parts}")
        return record

    def _message(self, node: ir.Protobuf) -> str:
        """The name of a message's type."""
        from wirekit.wire.protobuf import Message

        return self._constant(Message.by_full_name[node.message], "message")

    def _codecs(self, node: ir.Packed) -> str:
        """The name of the table of codecs by the values that select them."""
        return self._constant({_single(values): name for values, name in node.codecs}, "codecs")

    def _default(self, node: ir.Node, scope: Scope | None) -> str | None:
        """The default of a field; None if a value is required, or the reference engine decides."""
        match node:
            case ir.Optional(default=Literal(value=value)):
                bits = ir.bare(node)
                if isinstance(bits, ir.BitFields):
                    return self._default_bits(bits, value)
                return self._expression(node.default, scope) if isinstance(value, PLAIN) else None
            case ir.BitFields():
                return self._default_bits(node, 0)
            case ir.WhenNext():
                return "None"
            case ir.Bounded() | ir.Several() | ir.Blob() if node.null is not None:
                return "None"
        return None

    def _default_bits(self, node: ir.BitFields, value: Any) -> str | None:
        """The default of bit fields, given as one number or by field."""
        return self._constant(node.record_of(value), "default") if isinstance(value, int | Mapping) else None

    def _expression(self, tree: Expression, scope: Scope | None) -> str:
        """An expression in Python."""
        match tree:
            case Literal(value=value):
                return repr(int(value) if isinstance(value, int) and not isinstance(value, bool) else value)
            case Context(name=name):
                return f"S.params[{name!r}]"
            case LengthOf(of=of):
                return f"len({self._expression(of, scope)})"
            case Field(up=up, names=(first, *inner)):
                return functools.reduce(field_of, inner, _local(scope, up, first))
            case Operation(symbol=symbol, operands=(only,)):
                return f"({symbol}{self._expression(only, scope)})"
            case Operation(symbol=symbol, operands=(left, right)):
                return f"({self._expression(left, scope)} {symbol} {self._expression(right, scope)})"
        raise Misuse(f"{self.key}: {tree} cannot be compiled")

    @staticmethod
    def _members_read(node: ir.Structure, trees: Callable[[ir.Node], list[Expression]]) -> set[str]:
        """The members that expressions read; ``trees`` returns the expressions of a node."""
        reads = (pair for each in node.members for pair in ir.read_outside(each.node, trees))
        return {name for up, name in reads if up == 0}


def units(generator: Callable[..., G]) -> tuple[Callable[[str], Callable[..., Any]], Callable[[str], G]]:
    """Two functions: one returns the function generated from a schema, the other its module; both cache.

    The module is generated, not compiled; its ``source`` can be read.
    """

    def module(key: str) -> G:
        return generator(key, referred(key).layout, unit)

    unit = by_key(lambda key: module(key).compile())
    return unit, module


def of_roles(*roles: str) -> Callable[[ir.Node], list[Expression]]:
    """A function that returns the expressions of a node of these roles, and those that a choice depends on."""
    return lambda node: [tree for role, tree in ir.expressions(node) if role in roles or role == "on"]


def choosing(node: ir.Node) -> list[Expression]:
    """The expressions of a node that select the layout of a mapping."""
    return [tree for role, tree in ir.expressions(node) if role == "on" or isinstance(node, ir.Either)]


def integer_variable(code: Code, value: str) -> str:
    """A new variable with the value of a size or count as an integer: a symbol or flag counts as its number."""
    variable = code.let("n", value)
    code.add_line(f"if {variable}.__class__ is not int:")
    code.add_line(f"    if not isinstance({variable}, int): raise Unusual")
    code.add_line(f"    {variable} = int({variable})")
    return variable


def conditional(node: ir.Node) -> bool:
    """Whether a member may be absent."""
    return isinstance(ir.core(node), ir.Conditional)


def is_large(node: ir.Node) -> bool:
    """Whether a branch has the node in a function of its own."""
    return isinstance(node, (ir.Structure, ir.Choice)) and sum(1 for _ in ir.parts(node)) > 1


def field_of(record: str, name: str) -> str:
    """The expression of a field of a record; reading an unset field raises AttributeError or KeyError."""
    return f"{record}[{name!r}]" if keyword.iskeyword(name) else f"{record}.{name}"


def _single(values: tuple[Any, ...]) -> Any:
    """The key of a case: its value, or the tuple of several."""
    return values[0] if len(values) == 1 else values


def _above(level: int, variable: str) -> str:
    return f"up{level}_{variable}"


def _parameters(free: list[tuple[int, str]]) -> str:
    return "".join(f", {_above(level, variable)}" for level, variable in free)


def _arguments(free: list[tuple[int, str]], scope: Scope | None) -> str:
    return "".join(f", {_local(scope, level, variable)}" for level, variable in free)


def _outside(free: list[tuple[int, str]]) -> Scope | None:
    """The scopes around a unit, whose fields are arguments."""
    scope = None
    for level in range(max((level for level, _ in free), default=-1), -1, -1):
        scope = Scope({variable: _above(level, variable) for at, variable in free if at == level}, scope)
    return scope


def _local(scope: Scope | None, up: int, name: str) -> str:
    for _ in range(up):
        scope = scope.outer if scope is not None else None
    if scope is None or name not in scope.variables:
        raise Misuse(f"an expression reads {name}, which is not read before it")
    return scope.variables[name]


def put_derived(code: Code, derived: Derived, message: str, value: str, extent: str, wrong_if_packed: str) -> None:
    """Generates the check of a number in a message against the member from which it is derived.

    Args:
        message, value: the variables with the message and with that member.
        extent: the size of the member in the input or output, as an expression; not used for a count.
        wrong_if_packed: the condition for a wrong number with compressed data, with ``{}`` for the number.
    """
    number = code.fresh("n")
    code.add_line(f"if {message} is not None:")
    code.add_line(f"    {number} = getattr({message}, {derived.field!r})")
    if derived.quantity == "count":
        code.add_line(f"    if elements({value}) not in (None, {number}): raise Unusual")
        return
    code.add_line(f"    if {value}.__class__ is Opened:")
    code.add_line(f"        if {wrong_if_packed.format(number)}: raise Unusual")
    code.add_line(f"    elif {number} not in (None, {extent}) and {value} is not S.part: raise Unusual")
