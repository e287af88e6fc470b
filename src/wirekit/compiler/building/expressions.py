"""Expressions of a layout as nopython code over 64-bit integers, with bounds that rule out every overflow."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression, Field, LengthOf, Literal, Operation
from wirekit.program.columns import Repeated
from wirekit.program.unfit import unfit
from wirekit.program.values import HIGHEST, LONGEST, LOWEST, bounds
from wirekit.values import SymbolTable


@dataclass(slots=True)
class Value:
    """What expressions can read.

    Attributes:
        code: of an integer: what gives it as int64.
        low, high: its bounds.
        length: of a byte string: what gives its length.
        inside: of a structure or bit fields: what is in it, by name.
        unfit: why expressions cannot read it, or "".
        present: what tells whether it is there, or "" for what always is.
    """

    code: str = ""
    low: int = 0
    high: int = 0
    length: str = ""
    inside: dict[str, Value] | None = None
    unfit: str = ""
    present: str = ""


@dataclass(slots=True)
class Scope:
    """A structure whose fields expressions can read, and the one around it."""

    fields: dict[str, Value]
    outer: Scope | None

    def value(self, key: str, tree: Expression, path: str) -> Value:
        """What a field's name stands for.

        Raises:
            Misuse: for what is no field, or is not read before.
        """
        if not isinstance(tree, Field):
            raise unfit(key, path, f"an expression, {tree}, that columns cannot compute")
        return _field(key, tree, self, path)


def expression(key: str, tree: Expression, scope: Scope, path: str) -> tuple[str, int, int]:
    """Code that gives an int64, and its bounds.

    Args:
        key: the schema, for the error.
        tree: what to compute.
        scope: what can be read.
        path: the field that needs it, for the error.

    Raises:
        Misuse: for what may not be there, for arithmetic that can fail or exceed 64 bits.
    """
    match tree:
        case Literal(value=int(value)) if LOWEST <= value <= HIGHEST:
            return str(int(value)), int(value), int(value)
        case LengthOf(of=Field() as of) if (found := _field(key, of, scope, path)).length and not found.present:
            return found.length, 0, LONGEST
        case Field():
            found = _field(key, tree, scope, path)
            if not found.unfit and not found.present and found.inside is None:
                return found.code, found.low, found.high
            why = found.unfit or ("a field that may not be there" if found.present else "a structure")
            raise unfit(key, path, f"an expression over {tree}", why)
        case Operation(symbol="==", operands=(Field() as left, Literal(value=int(value)))) if (
            found := _field(key, left, scope, path)
        ).present and not found.unfit:
            return f"np.int64({found.present} and {found.code} == {int(value)})", 0, 1
        case Operation(symbol="not ", operands=(only,)):
            return f"np.int64(({expression(key, only, scope, path)[0]}) == 0)", 0, 1
        case Operation(symbol=symbol, operands=(only,)):
            code, low, high = expression(key, only, scope, path)
            both_ends = (-high, -low) if symbol == "-" else (low, high)
            return _within(key, f"({symbol}{code})", both_ends, tree, path)
        case Operation(symbol=symbol, operands=(left, right)):
            one, other = expression(key, left, scope, path), expression(key, right, scope, path)
            if symbol in ("==", "!=", "<", "<=", ">", ">="):
                return f"np.int64({one[0]} {symbol} {other[0]})", 0, 1
            both = bounds(symbol, one[1:], other[1:])
            if both is not None:
                return _within(key, f"({one[0]} {symbol} {other[0]})", both, tree, path)
    raise unfit(key, path, f"an expression, {tree}, that columns cannot compute")


def _within(key: str, code: str, bounds: tuple[int, int], tree: Expression, path: str) -> tuple[str, int, int]:
    if bounds[0] < LOWEST or bounds[1] > HIGHEST:
        raise unfit(key, path, f"an expression, {tree}, that can exceed 64 bits")
    return code, *bounds


def _field(key: str, tree: Field, scope: Scope, path: str) -> Value:
    at: Scope | None = scope
    for _ in range(tree.up):
        at = at.outer if at is not None else None
    found = at.fields.get(tree.names[0]) if at is not None else None
    for name in tree.names[1:]:
        found = found.inside.get(name) if found is not None and found.inside is not None else None
    if found is None:
        raise unfit(key, path, f"an expression over {tree}", "it is not read before it in the record")
    return found


def maybe(value: Value, present: str) -> Value:
    """A value that may not be there."""
    if value.inside is not None:
        inside = {name: maybe(each, present) for name, each in value.inside.items()}
        return Value(inside=inside)
    both = f"({present} and {value.present})" if value.present else present
    return replace(value, present=both)


def index_of(group: Repeated | None) -> str:
    """The variable for where an element of a list stands in its arrays; None: where the row does."""
    return "i" if group is None else f"lj{group.number}"


def reader(number: ir.Number) -> str:
    kind = "float" if number.real else "int" if number.signed else "uint"
    return f"{kind}{8 * number.size}" + ("" if number.size == 1 else "_le" if number.little else "_be")


def none_of(variable: str, table: SymbolTable) -> str:
    """The condition that a number has no name."""
    values = sorted(int(symbol) for symbol in table)
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    tests = [f"{variable} == {low}" if low == high else f"{low} <= {variable} <= {high}" for low, high in runs]
    return f"not ({' or '.join(tests)})" if tests else "True"
