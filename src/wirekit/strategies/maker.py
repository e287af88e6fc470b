"""Draws one value of a schema from the outside in: structures, conditions, lists, compressed data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirekit import engine
from wirekit.compiler import ir
from wirekit.compiler.expressions import Field, Literal
from wirekit.compiler.values import LENGTH, Names, Unknown
from wirekit.errors import Misuse
from wirekit.registry import registry
from wirekit.strategies.choices import Rejected, StackEnds
from wirekit.strategies.domains import ELEMENTS, LARGEST
from wirekit.strategies.fields import Fields
from wirekit.strategies.messages import Messages
from wirekit.strategies.packing import pack, size_of, taken_apart
from wirekit.strategies.settling import Settling
from wirekit.wire.message_fields import Derived, elements
from wirekit.wire.protobuf import Message
from wirekit.wire.stream import Scope

_LEFT_OUT: Any = object()
TRIES = 20
"""Attempts to generate a record that peers do not refuse."""


class Maker(Fields, Settling, Messages):
    """Draws one value."""

    def draw(self) -> Any:
        """Draws a value of the schema.

        Raises:
            Rejected: the choices lead to no value; another attempt may succeed.
            StackEnds: the value is too deep for Python's stack.
        """
        try:
            value = self.make(self.layout.root, Scope.root(engine.Params(self.context)), {})
        except Unknown:
            raise Rejected from None
        except RecursionError:
            raise StackEnds from None
        if any(want.must for want in self.wants) or self.depth_reached < self.dive:
            raise Rejected
        return value

    def make(self, node: ir.Node, scope: Scope, forced: dict[Names, Any]) -> Any:
        """Draws a value for a node.

        Args:
            node: the node.
            scope: the fields drawn before.
            forced: values of fields inside the node; ``()`` is the node itself.
        """
        self.pieces -= 1
        match node:
            case ir.Number():
                return self._number(node, forced)
            case ir.Boolean():
                value = bool(forced[()]) if () in forced else self.upto(1) == 1
                return self.number(node, value)
            case ir.Named():
                return self._named(node, forced)
            case ir.BitFields():
                return self._bits(node, forced)
            case ir.Blob(coding=coding):
                return self._blob(node, scope, forced) if coding is None else self._coded(node, coding, scope, forced)
            case ir.Delimited():
                return self._delimited(node, forced)
            case ir.Structure():
                return self._structure(node, scope, forced)
            case ir.Several():
                return self._several(node, scope, forced)
            case ir.When(condition=condition, node=inner):
                present = self._decided(condition, scope)
                self.take(node, "present" if present else "absent")
                return self.make(inner, scope, forced) if present else None
            case ir.WhenNext(magic=b""):
                return self._when_more(node, scope, forced)
            case ir.WhenNext():
                return self._when_next(node, scope, forced)
            case ir.Either(condition=condition, then=then, otherwise=otherwise):
                holds = self._decided(condition, scope)
                self.take(node, "then" if holds else "otherwise")
                return self.make(then if holds else otherwise, scope, forced)
            case ir.Choice():
                return self._choice(node, scope, forced)
            case ir.Ahead():
                return self._ahead(node, scope, forced)
            case ir.Bounded():
                return self._bounded(node, scope, forced)
            case ir.Fallback():
                return self._fallback(node, scope, forced)
            case ir.Reference(key=key):
                return self._reference(key, scope, forced)
            case ir.Constant(value=expression):
                return self._constant(node, self._value(expression, scope))
            case ir.Optional(node=inner):
                return self.make(inner, scope, forced)
            case ir.Packed():
                return self._packed(node, scope, forced)
            case ir.Protobuf(message=message):
                sent = self._message(Message.by_full_name[message], forced)
                self.advance(None)
                self.full = True
                return sent
        raise Misuse(f"a {type(node).__name__} has no strategy")

    # Structures

    def _structure(self, node: ir.Structure, scope: Scope, forced: dict[Names, Any]) -> dict[str, Any]:
        """A record; with ``clean``, one without values that peers refuse."""
        place = self.at, self.wants, self.full, self.tail
        for _ in range(TRIES if self.clean and node.refusals else 1):
            self.at, self.wants, self.full, self.tail = place[0], list(place[1]), *place[2:]
            inner = scope.inner()
            value = self._record(node, inner, forced)
            if not self.clean or not any(self._value(refusal, inner) for refusal in node.refusals):
                return value
        raise Rejected

    def _record(self, node: ir.Structure, inner: Scope, forced: dict[Names, Any]) -> dict[str, Any]:
        computed = node.computed
        caller_values: dict[str, Any] = {}
        if self.caller_fields:
            cores = {each.name: ir.core(each.node) for at, each in enumerate(node.members) if at not in computed}
            caller_values = self._caller_values(
                (name, core.table if isinstance(core, ir.Named) else None) for name, core in cores.items()
            )
            forced = {**forced, **{(name,): item for name, item in caller_values.items()}}
            for name, core in cores.items():
                if isinstance(core, ir.BitFields):
                    self.path.append(name)
                    bits = self._caller_values((bit.name, bit.table) for bit in core.fields)
                    self.path.pop()
                    forced |= {(name, bit): item for bit, item in bits.items()}
        fixed = self._settled(node, inner, forced)
        value: dict[str, Any] = {}
        bounds: list[tuple[int, bool]] = []
        for index, member in enumerate(node.members):
            for measure in ir.opening(node, index):
                bounds.append((measure.last, self.full))
                self.full = False
            if index in computed:
                self._skip(member.node, inner)
                if isinstance(member.node, ir.Blob) and (size := ir.fixed_size(member.node)) is not None:
                    inner[member.name] = bytes(size)  # expressions read its length
            else:
                inside = {names[1:]: item for names, item in fixed.items() if names[0] == member.name}
                if member.name in caller_values:
                    item = caller_values[member.name]
                    self.advance(ir.fixed_size(member.node))
                else:
                    self.path.append(member.name)
                    item = self._member(member.name, member.node, inner, inside)
                    self.path.pop()
                if item is not _LEFT_OUT:
                    value[member.name] = inner[member.name] = item
            while bounds and bounds[-1][0] == index:
                self.full = bounds.pop()[1]
                self.tail = None
                self.wants = [want for want in self.wants if want.must]
        for derived in node.derived:
            self._derive(derived, value.get(node.members[derived.at].name), value.get(node.members[derived.of].name))
        return value

    @staticmethod
    def _derive(derived: Derived, message: Any, value: Any) -> None:
        """Sets the fields of a message that are derived from later members, except those that only encoding gives."""
        if not isinstance(message, dict) or derived.field in message.get("$keep", ()):
            return
        number = elements(value) if derived.quantity == "count" else len(value) if isinstance(value, bytes) else None
        if number is not None and derived.field in message:
            message[derived.field] = number
        elif derived.quantity == "size":
            message.pop(derived.field, None)

    def _skip(self, node: ir.Node, scope: Scope) -> None:
        """Moves past a field that the encoder computes."""
        while isinstance(node, ir.When | ir.Optional):
            if isinstance(node, ir.When):
                present = self._decided(node.condition, scope)
                self.take(node, "present" if present else "absent")
                if not present:
                    return
            node = node.node
        self.advance(ir.fixed_size(node))

    def _member(self, name: str, node: ir.Node, scope: Scope, forced: dict[Names, Any]) -> Any:
        """A value for a member, or a marker that it is omitted, with its default in the scope."""
        leaves = not forced and not self.full and not self.wants and not self.leads(node)
        if leaves and isinstance(node, ir.Optional) and isinstance(node.default, Literal) and self.chance(4):
            self.advance(ir.fixed_size(node.node))
            default, core = node.default.value, ir.core(node)
            if isinstance(core, ir.BitFields):
                number = default if isinstance(default, int) else 0
                default = {**taken_apart(core, number), **(default if isinstance(default, Mapping) else {})}
            scope[name] = default
            return _LEFT_OUT
        try:
            return self.make(node, scope, forced)
        except Unknown:
            if not isinstance(node, ir.Constant):
                raise
            self.advance(ir.fixed_size(node))  # the encoder knows the field that it follows from
            return _LEFT_OUT

    # Conditions

    def _when_next(self, node: ir.WhenNext, scope: Scope, forced: dict[Names, Any]) -> Any:
        if () in forced:
            present = forced[()] is not None
        else:
            present = not self.full and (self.leads(node.node) or self.upto(1) == 1)
        if self.diving and not self.layout.refers(node.node):
            present = False
        self.take(node, "present" if present else "absent")
        if not present:
            return None
        self.want(node.magic, must=True)
        return self.make(node.node, scope, forced)

    def _when_more(self, node: ir.WhenNext, scope: Scope, forced: dict[Names, Any]) -> Any:
        present = not self.full and not (() in forced and forced[()] is None) and self.upto(2) > 0
        if self.diving:
            present = self.layout.refers(node.node)
        elif self.clean and isinstance(node.node, ir.Blob) and not node.node.explained:
            present = False
        self.take(node, "present" if present else "absent")
        if not present:
            self.full = True
            return None
        if isinstance(node.node, ir.Blob) and node.node.coding is None:
            return self._blob(node.node, scope, forced, some=True)
        return self.make(node.node, scope, forced)

    def _choice(self, node: ir.Choice, scope: Scope, forced: dict[Names, Any]) -> Any:
        results = self._values(node.on, scope)
        fitting = [each for each in node.cases if each[0] == results]
        if results is None:
            name, chosen = self.one_of(list(ir.parts(node)))
        elif fitting:
            name, chosen = ",".join(map(str, fitting[0][0])), fitting[0][1]
        elif node.otherwise is not None:
            name, chosen = "otherwise", node.otherwise
        else:
            raise Rejected
        self.take(node, name)
        return self.make(chosen, scope, forced)

    def _ahead(self, node: ir.Ahead, scope: Scope, forced: dict[Names, Any]) -> Any:
        saved = self.at, self.wants
        self.at = None if self.at is None else self.at + node.at
        value = self.make(node.node, scope, forced)
        self.at, self.wants = saved
        data = pack(node.node, value)
        if data is not None:
            self.want(data, node.at, must=True)
        return value

    def _bounded(self, node: ir.Bounded, scope: Scope, forced: dict[Names, Any]) -> Any:
        null = node.null is not None and not self.diving and self._null(node, 6)
        if () in forced:
            null = forced[()] is None
        self.advance(None if node.length.groups else node.length.size)
        self.take(node, "null" if null else "present")
        if null:
            return None
        full, self.full = self.full, False
        value = self.make(node.node, scope, forced)
        self.full, self.tail = full, None
        self.wants = [want for want in self.wants if want.must]
        return value

    def _fallback(self, node: ir.Fallback, scope: Scope, forced: dict[Names, Any]) -> Any:
        shape = self._shape(node.node, scope)
        size = ir.minimum(shape) if shape is not None else 0
        apt = not self.clean and not forced and size and not self.full and not self.wants
        if apt and (self.aims(node, "bytes") or (self.chance(6) and not self.leads(node.node))):
            self.take(node, "bytes")
            data = self.choices.exactly(self.upto(size - 1))
            self.advance(len(data))
            self.full = True
            return data
        self.take(node, "layout")
        return self.make(node.node, scope, forced)

    def _shape(self, node: ir.Node, scope: Scope) -> ir.Node | None:
        """The node that a choice selects here; None if that is unknown."""
        if not isinstance(node, ir.Choice):
            return node
        results = self._values(node.on, scope)
        return None if results is None else node.case(results) or node.otherwise

    def _reference(self, key: str, scope: Scope, forced: dict[Names, Any]) -> Any:
        if self.depth > max(self.deepest, self.dive):
            raise Rejected
        self.depth += 1
        self.depth_reached = max(self.depth_reached, self.depth)
        value = self.make(registry[key].layout, scope, forced)
        self.depth -= 1
        return value

    # Lists

    def _several(self, node: ir.Several, scope: Scope, forced: dict[Names, Any]) -> Any:
        wants = node.count is None and any(want.must for want in self.wants)
        count = self._count(node, scope, forced, least=1 if wants else 0)
        if count is None:
            self.advance(size_of(node.count, node.null or 0) if isinstance(node.count, ir.Number) else 0)
            return None
        if isinstance(node.count, ir.Number):
            self.advance(size_of(node.count, count))
        items: list[Any] = []
        unmeasured = ir.minimum(node.element) == 0
        for _ in range(count):
            if self.full and node.count is None:
                break
            place = self.at, list(self.wants), self.full
            item = self.make(node.element, scope, {})
            may_end = bool(node.until) and len(items) >= node.except_first
            if node.count is None and (unmeasured or may_end):
                data = self._written(node.element, item, scope)
                if not data or (may_end and data.startswith(node.until)):
                    self.at, self.wants, self.full = place
                    continue
            items.append(item)
        if isinstance(node.count, ir.Number):
            self.take(node, "some" if items else "empty")
        elif node.count is None:
            self._end(node, items, scope)
        return items

    def _count(self, node: ir.Several, scope: Scope, forced: dict[Names, Any], *, least: int) -> int | None:
        """The number of elements, None for null."""
        if (LENGTH,) in forced:
            return forced[LENGTH,]
        number = node.announced if node.count is None else node.count
        if number is not None and not isinstance(number, ir.Number):
            try:
                number = self._value(number, scope)
            except Unknown:
                pass
            else:
                if not isinstance(number, int) or not 0 <= number <= LARGEST:
                    raise Rejected
                return number
        if self.full and node.count is None:
            return 0
        refers = self.layout.refers(node.element)
        if self.diving and refers:
            return 1
        nullable = node.null is not None and node.null < 0 and not least
        leads = self.leads(node)
        if nullable and self._null(node, 6):
            self.take(node, "null")
            return None
        if not least and self.aims(node, "empty"):
            return 0
        if leads and self.pieces > 0 and not self.shallow:
            return 1 + self.upto(1)
        if self.pieces <= 0 or (self.shallow and refers) or self.diving:
            return least
        return max(least, (1, 0, 2, ELEMENTS)[self.upto(3)])

    def _end(self, node: ir.Several, items: list[Any], scope: Scope) -> None:
        """Chooses the bytes that may follow a list up to the limit."""
        if self.full:
            return
        if node.stop:
            self.tail = node, items, scope
        elif node.until and len(items) >= node.except_first:
            self.want(node.until, must=False)
        else:
            self.full = True

    # Compressed data

    def _packed(self, node: ir.Packed, scope: Scope, forced: dict[Names, Any]) -> Any:
        results = self._values(node.on, scope)
        codec = next((item for item in node.codecs if item[0] == results), None)
        null = node.blob.null is not None and not self.diving and not self.leads(node.node) and self.upto(5) == 0
        if codec is None or null:
            self.take(node, "as it stands")
            return None if codec is not None else self._blob(node.blob, scope, forced)
        if self.compression_depth > max(self.deepest, self.dive):
            raise Rejected
        values, name = codec
        self.take(node, f"{','.join(map(str, values))} {name}")
        saved = self.at, self.wants, self.full, self.tail
        self.at, self.wants, self.full, self.tail = 0, [], False, None
        self.compression_depth += 1
        content = self.make(node.node, scope, forced)
        self.compression_depth -= 1
        self.at, self.wants, self.full, self.tail = saved
        self._tell_size(node, content, scope)
        self.advance(None)
        if node.blob.length is None:
            self.full = True
        return {"content": content}

    def _tell_size(self, node: ir.Packed, content: Any, scope: Scope) -> None:
        """Sets the field with the size after decompression."""
        if not isinstance(node.size, Field):
            return
        size = len(self._written(node.node, content, scope))
        at: Any = scope
        for _ in range(node.size.up):
            at = at["_"]
        for name in node.size.names[:-1]:
            at = at[name]
        at[node.size.names[-1]] = size
