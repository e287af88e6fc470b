"""Expressions of a layout as nopython code over 64-bit integers, with bounds that rule out every overflow."""

from __future__ import annotations

from dataclasses import dataclass

from wirekit.compiler.columns.plan import unfit
from wirekit.compiler.expressions import Expression, Field, LengthOf, Literal, Operation

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
LONGEST = 1 << 40  # bytes of a byte string, more than any buffer has


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
            bounds = (-high, -low) if symbol == "-" else (low, high)
            return _within(key, f"({symbol}{code})", bounds, tree, path)
        case Operation(symbol=symbol, operands=(left, right)):
            one, other = expression(key, left, scope, path), expression(key, right, scope, path)
            if symbol in ("==", "!=", "<", "<=", ">", ">="):
                return f"np.int64({one[0]} {symbol} {other[0]})", 0, 1
            both = _bounds(symbol, one[1:], other[1:])
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


def _bounds(symbol: str, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int] | None:
    """What the result of arithmetic lies between; None where the operation can fail or its bounds are not known."""
    ends: list[int] = []
    match symbol:
        case "+":
            ends = [one[0] + other[0], one[1] + other[1]]
        case "-":
            ends = [one[0] - other[1], one[1] - other[0]]
        case "*":
            ends = [a * b for a in one for b in other]
        case "//" if other[0] == other[1] != 0:
            ends = [a // other[0] for a in one]
        case "%" if other[0] == other[1] > 0:
            ends = [0, other[0] - 1]
        case "&" if one[0] >= 0 and other[0] >= 0:
            ends = [0, min(one[1], other[1])]
        case "&" if one[0] >= 0 or other[0] >= 0:
            ends = [0, other[1] if other[0] >= 0 else one[1]]
        case "|" | "^" if one[0] >= 0 and other[0] >= 0:
            ends = [0, (1 << max(one[1], other[1]).bit_length()) - 1]
        case ">>" if 0 <= other[0] <= other[1] < 64:
            ends = [a >> b for a in one for b in other]
        case "<<" if other[0] == other[1] and 0 <= other[0] < 64:
            ends = [a << other[0] for a in one]
    return (min(ends), max(ends)) if ends else None
