"""Protobuf messages in a kernel, and fields that hold records, compressed or not, told by other fields."""

from __future__ import annotations

from dataclasses import dataclass

from wirekit.compiler import ir
from wirekit.compiler.columns.expressions import LONGEST, Scope, Value
from wirekit.compiler.columns.kernel import Contents
from wirekit.compiler.columns.plan import unfit
from wirekit.compiler.columns.protobuf import LOST, Place, Tables, slot_at, tables
from wirekit.compiler.columns.shared import Sharing
from wirekit.compiler.expressions import Expression

WIDTHS = {"int32": (-(1 << 31), (1 << 31) - 1), "enum": (-(1 << 31), (1 << 31) - 1), "bool": (0, 1)}
WIDTHS |= {"sint32": WIDTHS["int32"], "uint32": (0, (1 << 32) - 1), "int64": (-(1 << 63), (1 << 63) - 1)}
WIDTHS |= {"sint64": WIDTHS["int64"]}


@dataclass(slots=True)
class Contained(Sharing):
    """Messages, and the lists that a record holds."""

    def protobuf(self, node: ir.Protobuf, path: str, e: str) -> Value:
        """A message up to the limit."""
        number = len(self.messages)
        made = tables(self.key, node, path, len(self.columns))
        self.messages.append(made)
        first = len(self.reasons)
        self.reasons += made.reasons()
        there, wrong, where = self.fresh("h"), self.fresh("q"), self.fresh("q")
        self.walked.append(there)
        self.uses |= {"walk", "ready", "keep", "holds"}
        self.put(f"{there} = np.int64(1)")
        self.put(f"{wrong}, p, {where} = walk(b, p, {e}, n, m{number}, t{number})")
        self.put(f"if {wrong} < 0:")
        self.put("    full = 3")
        self.put("    break")
        self.put(f"if {wrong}:")
        self.put(f"    reason = np.int64({first} + 5 * {where} + {wrong})")
        self.put("    break")
        self.gaps = True
        self.put(f"gap0 += np.int64(m{number}[{LOST}])")
        self.store(self.column(f"{path}.ok" if path else "ok", "flag", "uint8"), f"np.int64(m{number}[4])")
        return Value(inside=_fields(made, number, 1))

    def kept(self) -> None:
        """Adds what the messages hold to their columns, now that the record is good."""
        for number, there in enumerate(self.walked):
            self.put(f"if {there} and not ready(m{number}, y{number}):")
            self.put("    full = 3")
            self.put("    break")
        for number, there in enumerate(self.walked):
            self.put(f"if {there}:")
            self.put(f"    keep(m{number}, y{number}, x{number}, n)")

    def content(self, node: ir.Either | ir.Choice, path: str, e: str, scope: Scope) -> Value:
        """A field that takes all bytes to the limit: bytes, records, or either of them compressed."""
        if self.contents is not None or self.packing is not None:
            raise unfit(self.key, path, node, "a second field that holds records")
        start, length, present = self.fresh("s"), self.fresh("l"), ""
        codec, listed, count, size = (self.fresh("k", value) for value in ("0", "0", "np.int64(-1)", "np.int64(-1)"))
        opaque = self.fresh("k", "0")
        if not self.maybe:
            self.put(f"{codec}, {listed}, {count}, {size}, {opaque} = 0, 0, np.int64(-1), np.int64(-1), 0")
        self.put(f"{start}, {length}, p = p, {e} - p, {e}")
        if self.maybe:
            present = self.fresh("h")
            self.put(f"{present} = np.int64(1)")
        column = self.column(path, "bytes")
        self.copy(column, start, length, present)
        found = Contents(column.slot, (), None, (codec, listed, count, size), opaque)
        self.contents = found
        self.branch(node, path, scope, found)
        return Value(unfit="a field that holds records", length=length)

    def announced(self, tree: Expression, scope: Scope, path: str) -> str:
        return self.amount(tree, scope, path)[0]

    def told(self, node: ir.Structure, told: ir.Told, path: str, values: list[Value]) -> None:
        """The verdict on a size that a message tells of a member that is there as it stands."""
        if told.what != "size":
            return
        name, of = (f"{path}.{node.members[at].name}" if path else node.members[at].name for at in (told.at, told.of))
        message, length = values[told.at].inside, values[told.of].length
        if message is None or not length or values[told.at].present:
            raise unfit(self.key, of, node.members[told.of].node, "whose size a message tells")
        number = message[told.field]
        tests = [f"{number.code} != {length}", *filter(None, [number.present])]
        if self.contents is not None and self.columns[self.contents.column].path == of:
            tests.append(f"not {self.contents.opaque}")
        verdict = next(column for column in reversed(self.columns) if column.path == f"{name}.ok")
        self.put(f"if {' and '.join(reversed(tests))}:")
        self.put(f"    c{verdict.slot}[i] = 0")


def _fields(made: Tables, number: int, first: int, end: int | None = None) -> dict[str, Value]:
    """What expressions can read of a message."""
    inside = {}
    slot, end = first, len(made.places) if end is None else end
    while slot < end:
        place = made.places[slot]
        inside[place.path.rpartition(".")[2]] = _value(made, number, slot, place)
        slot = place.end
    return inside


def _value(made: Tables, number: int, slot: int, place: Place) -> Value:
    each = place.field
    assert each is not None
    present, code = f"holds(m{number}, {slot_at(slot)})", f"np.int64(m{number}[{slot_at(slot)}])"
    if each.repeated:
        return Value(length=f"({code} if {present} else np.int64(0))", high=LONGEST, unfit="a list")
    if each.message is not None:
        return Value(inside=_fields(made, number, slot + 1, place.end))
    if each.kind not in WIDTHS:
        return Value(unfit=f"a field of type {each.kind}")
    low, high = WIDTHS[each.kind]
    return Value(code, low, high, present=present)
