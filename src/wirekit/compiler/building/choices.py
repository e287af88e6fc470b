"""Which of several alternatives holds, as code for the kernels that build."""

from __future__ import annotations

from dataclasses import dataclass, field

from wirekit.compiler import ir
from wirekit.compiler.building.expressions import Scope
from wirekit.compiler.expressions import Expression, Field
from wirekit.program.unfit import unfit


@dataclass(slots=True)
class Chosen:
    """What a field holds that may be, or hold compressed, records of another layout.

    Attributes:
        codecs: names of codecs.
        element: the layout of one record inside, None where there are only bytes.
        variables: those of the kernel for the number of the codec plus one, whether there are records (1) or a message
            (more), how many are announced and how many bytes there are when decompressed.
        opaque: the kernel's variable that tells whether the bytes are not the plain content.
        messages: names of protobuf messages.
    """

    codecs: tuple[str, ...]
    element: ir.Node | None
    variables: tuple[str, str, str, str]
    opaque: str
    messages: list[str] = field(default_factory=list)


class Choices:
    """Code that decides between alternatives by the fields in front of them."""

    key: str
    depth: int

    def put(self, line: str) -> None:
        """Writes a line."""
        raise NotImplementedError

    def expression(self, tree: Expression, scope: Scope, path: str) -> tuple[str, int, int]:
        """Code that gives an int64, and its bounds."""
        raise NotImplementedError

    def announced(self, tree: Expression, scope: Scope, path: str) -> str:
        """Code for how many elements a list should have."""
        raise NotImplementedError

    def alternatives(self, node: ir.Choice | ir.Either, scope: Scope, path: str) -> list[tuple[str, ir.Node | None]]:
        """(condition, node) of each alternative; the last one's condition is "". None: another value is wrong."""
        if isinstance(node, ir.Either):
            condition = f"{self.expression(node.condition, scope, path)[0]} != 0"
            return [(condition, node.then), ("", node.otherwise)]
        tests: dict[int, list[str]] = {}
        nodes: dict[int, ir.Node] = {}
        for values, inner in node.cases:
            if len(values) != len(node.on):
                raise unfit(self.key, path, node)
            parts = [self.matches(tree, value, scope, path) for tree, value in zip(node.on, values, strict=True)]
            nodes[id(inner)] = inner
            tests.setdefault(id(inner), []).append(" and ".join(parts))
        found: list[tuple[str, ir.Node | None]] = [(" or ".join(tests[key]), nodes[key]) for key in nodes]
        return [*found, ("", node.otherwise)]

    def matches(self, tree: Expression, value: object, scope: Scope, path: str) -> str:
        """The condition that an expression has a value."""
        present, code = "", ""
        if isinstance(tree, Field) and (found := scope.value(self.key, tree, path)).present and not found.unfit:
            present, code = found.present, found.code
        else:
            code = self.expression(tree, scope, path)[0]
        if value is None:
            return f"not {present}" if present else "False"
        if not isinstance(value, int):
            raise unfit(self.key, path, "a choice", f"{value!r} is no number")
        test = f"{code} == {int(value)}"
        return f"({present} and {test})" if present else f"({test})"

    def branch(self, node: ir.Node, path: str, scope: Scope, found: Chosen) -> None:
        """Finds out what the bytes are."""
        codec, listed, count, size = found.variables
        match node:
            case ir.Blob(length=None, part=part):
                self.put(f"{found.opaque} = 1" if part else "pass")
            case ir.Fallback(node=ir.Protobuf(message=message)):
                found.messages.append(message)
                self.put(f"{listed} = {1 + len(found.messages)}")
            case ir.Several(count=None, until=b"", stop=False, element=element):
                if found.element is not None and found.element is not element:
                    raise unfit(self.key, path, node, "records of two layouts")
                found.element = element
                self.put(f"{listed} = 1")
                if node.announced is not None:
                    self.put(f"{count} = {self.announced(node.announced, scope, path)}")
            case ir.Either() | ir.Choice():
                for at, (condition, inner) in enumerate(self.alternatives(node, scope, path)):
                    if inner is None:
                        raise unfit(self.key, path, node)
                    self.put(f"{'elif' if at else 'if'} {condition}:" if condition else "else:")
                    self.depth += 1
                    self.branch(inner, path, scope, found)
                    self.depth -= 1
            case ir.Packed(blob=ir.Blob(length=None)):
                names = tuple(dict.fromkeys(name for _, name in node.codecs))
                if found.codecs not in ((), names):
                    raise unfit(self.key, path, node, "compressed in two ways")
                found.codecs = names
                self.put(f"{found.opaque} = 1")
                for values, name in node.codecs:
                    tests = [
                        self.matches(tree, value, scope, path) for tree, value in zip(node.on, values, strict=True)
                    ]
                    self.put(f"if {' and '.join(tests)}:")
                    self.put(f"    {codec} = {names.index(name) + 1}")
                self.put(f"if {codec}:")
                self.depth += 1
                if node.size is not None:
                    self.put(f"{size} = {self.or_none(node.size, scope, path)}")
                self.branch(node.node, path, scope, found)
                self.depth -= 1
            case _:
                raise unfit(self.key, path, node)

    def or_none(self, tree: Expression, scope: Scope, path: str) -> str:
        """Code for a number, -1 where it is not there."""
        found = scope.value(self.key, tree, path)
        return f"({found.code} if {found.present} else np.int64(-1))" if found.present else found.code
