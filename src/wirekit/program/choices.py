"""Selects the branch of a record, or the content of a field, by earlier fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression, Field
from wirekit.compiler.references import is_padded
from wirekit.errors import first_of
from wirekit.program.columns import Contents
from wirekit.program.facts import holds_records
from wirekit.program.maker import Maker
from wirekit.program.parts import Part
from wirekit.program.steps import Body, Let, Step, Switch, Test
from wirekit.program.unfit import unfit
from wirekit.program.values import Scope, Value
from wirekit.wire.blobs import BEGIN

Join = Callable[[list[Body]], Step]
"""Makes a step of the bodies of alternatives."""


@dataclass(slots=True)
class Choices(Maker):
    """Selects branches by earlier fields.

    Attributes:
        opaque: register for whether a field's bytes are not the plain content.
        once: the structures that are read or written once, by id.
    """

    opaque: int = 0
    once: dict[int, Part] = field(default_factory=dict)

    def visit_Structure(self, node: ir.Structure, path: str, scope: Scope) -> Value:
        if self.maybe and id(node) in self.once:
            return self.reach(self.once[id(node)])
        if any(is_padded(member.node) for member in node.members):
            scope.fields[BEGIN] = Value(self.mark())
        return self.structure(node, path, scope)

    def reach(self, part: Part) -> Value:
        """Handles a part at this position."""
        raise NotImplementedError

    def visit_Choice(self, node: ir.Alternatives, path: str, scope: Scope) -> Value:
        if self.around is None and holds_records(node):
            return self.content(node, path, scope)
        return self.choice(node, path, scope)

    visit_Either = visit_Choice

    def content(self, node: ir.Alternatives, path: str, scope: Scope) -> Value:
        """The bytes of a field that holds records."""
        raise NotImplementedError

    def choice(self, node: ir.Alternatives, path: str, scope: Scope) -> Value:
        """Handles one of several nodes."""
        raise NotImplementedError

    def alternatives(self, node: ir.Alternatives, scope: Scope, path: str) -> tuple[list[ir.Node | None], Join]:
        """The nodes of a choice, None for an invalid value, and a function that builds the step from their bodies."""
        if isinstance(node, ir.Either):
            condition, zero = self.expression(node.condition, scope, path)[0], self.constant(0)
            return [node.then, node.otherwise], lambda bodies: Test("!=", condition, zero, *bodies)
        assert isinstance(node, ir.Choice)
        rows: dict[int, list[tuple[int | None, ...]]] = {}
        nodes: dict[int, ir.Node | None] = {}
        for values, inner in node.cases:
            rows.setdefault(id(inner), []).append(self.values(values, path))
            nodes[id(inner)] = inner
        on = [self.selector(tree, scope, path) for tree in node.on]
        listed = list(rows.values())

        def join(bodies: list[Body]) -> Step:
            return Switch(on, list(zip(listed, bodies[:-1], strict=True)), bodies[-1])

        return [*nodes.values(), node.otherwise], join

    def no_case(self, node: ir.Alternatives) -> str:
        """The reason for a value without a case."""
        cases = node.cases if isinstance(node, ir.Choice) else ()
        return f"expected one of {first_of([value for values, _ in cases for value in values])}"

    def values(self, values: tuple[object, ...], path: str) -> tuple[int | None, ...]:
        """The values of a case."""
        for value in values:
            if value is not None and not isinstance(value, int):
                raise unfit(self.key, path, "a choice", f"{value!r} is not a number")
        return tuple(int(value) if isinstance(value, int) else None for value in values)

    def selector(self, tree: Expression, scope: Scope, path: str) -> tuple[int, int | None]:
        """(register, register for its presence) of the selecting value of a choice."""
        if isinstance(tree, Field):
            value = scope.value(self.key, tree, path)
            if value.present and not value.unfit:
                return self.operand(value.place), self.all_of(value.present)
        return self.expression(tree, scope, path)[0], None

    def branch(self, node: ir.Node, path: str, scope: Scope, contents: Contents) -> None:
        """Determines the content of a field's bytes."""
        match node:
            case ir.Blob(length=None, coding=None, part=part):
                if part:
                    self.add_step(Let(self.opaque, "=", self.constant(1)))
            case ir.Fallback(node=ir.Protobuf(message=message)):
                contents.messages.append(message)
                self.add_step(Let(self.content_registers["listed"], "=", self.constant(1 + len(contents.messages))))
            case ir.Several(count=None, until=b"", stop=False, element=element):
                if contents.element is not None and contents.element is not element:
                    raise unfit(self.key, path, node, "records of two layouts")
                contents.element = element
                self.add_step(Let(self.content_registers["listed"], "=", self.constant(1)))
                if node.announced is not None:
                    self.add_step(
                        Let(self.content_registers["count"], "=", self.announced(node.announced, scope, path))
                    )
            case ir.Alternatives():
                nodes, join = self.alternatives(node, scope, path)
                bodies: list[Body] = []
                for inner in nodes:
                    if inner is None:
                        raise unfit(self.key, path, node)
                    with self.block() as body:
                        self.branch(inner, path, scope, contents)
                    bodies.append(body)
                self.add_step(join(bodies))
            case ir.Packed(blob=ir.Blob(length=None)):
                names = tuple(dict.fromkeys(name for _, name in node.codecs))
                if contents.codecs and (contents.codecs, contents.streamed) != (names, node.streamed):
                    raise unfit(self.key, path, node, "compressed in two ways")
                contents.codecs, contents.streamed = names, node.streamed
                codec = self.content_registers["codec"]
                self.add_step(Let(self.opaque, "=", self.constant(1)))
                self.add_step(self.codec_of(node, codec, names, scope, path))
                with self.block() as body:
                    if node.size is not None:
                        self.add_step(Let(self.content_registers["size"], "=", self.or_none(node.size, scope, path)))
                    self.branch(node.node, path, scope, contents)
                self.add_step(Test("!=", codec, self.constant(0), body))
            case _:
                raise unfit(self.key, path, node)

    def codec_of(self, node: ir.Packed, to: int, names: tuple[str, ...], scope: Scope, path: str) -> Step:
        """The step that sets a register to the number of the codec plus one."""
        on = [self.selector(tree, scope, path) for tree in node.on]
        rows: dict[str, list[tuple[int | None, ...]]] = {}
        for values, name in node.codecs:
            rows.setdefault(name, []).append(self.values(values, path))
        bodies: list[Body] = [[Let(to, "=", self.constant(names.index(name) + 1))] for name in rows]
        return Switch(on, list(zip(rows.values(), bodies, strict=True)), [])

    def or_none(self, tree: Expression, scope: Scope, path: str) -> int:
        """The register of a number, with -1 if the number is absent."""
        value = scope.value(self.key, tree, path)
        register = self.operand(value.place)
        if not value.present:
            return register
        either = self.let("=", self.constant(-1))
        self.add_step(Test("!=", self.all_of(value.present), self.constant(0), [Let(either, "=", register)]))
        return either

    def announced(self, tree: Expression, scope: Scope, path: str) -> int:
        """The register with the announced number of elements of a list."""
        return self.amount(tree, scope, path)[0]
