"""Every schema lowers to the IR completely; what cannot be seen through is refused with its path."""

from __future__ import annotations

from typing import Any

import construct
import pytest
from construct import len_, this

import wirekit
from wirekit.compiler import ir
from wirekit.compiler.expressions import Context, Field, LengthOf, Literal, Operation, expression, fields_of
from wirekit.compiler.lower import lower
from wirekit.registry import Layout, Protocol, Registry
from wirekit.wire import Bytes, Const, Length, String, Struct, context, int8, int16

KEYS = wirekit.registry.keys()


def test_every_schema_lowers() -> None:
    for key in KEYS:
        schema = wirekit.registry[key]
        assert ir.dump(schema.layout)
        for path, node in ir.walk(schema.layout):
            assert isinstance(node, ir.Node), f"{key}: {path}"


def test_expressions_read_fields_that_are_there() -> None:
    layouts = ((key, *each) for key in KEYS for each in ir.walk(wirekit.registry[key].layout))
    for key, path, node in layouts:
        if not isinstance(node, ir.Structure):
            continue
        names = {member.name for member in node.members}
        for member in node.members:
            for field in own_fields(member.node):
                assert field.names[0] in names, f"{key}: {path}.{member.name} reads {field}"


def own_fields(node: ir.Node) -> list[Field]:
    """The fields of the same structure that a member's expressions read."""
    fields: list[Field] = []
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if isinstance(at, ir.Structure):
            continue
        for name in ("condition", "length", "count", "announced", "value", "size"):
            tree = getattr(at, name, None)
            if isinstance(tree, (Field, Context, LengthOf, Operation)):
                fields += [field for field in fields_of(tree) if field.up == 0]
        for tree in getattr(at, "on", ()):
            fields += [field for field in fields_of(tree) if field.up == 0]
        waiting += [inner for _, inner in ir.parts(at)]
    return fields


@pytest.mark.parametrize(
    ("node", "path"),
    [
        (Struct("a" / Struct("b" / construct.GreedyRange(construct.Int8ub))), "a.b: a GreedyRange"),
        (Struct("a" / Struct("b" / construct.VarInt)), r"a\.b: a VarInt"),
        (Struct("a" / int8, "b" / Const(int8, lambda scope: scope["a"])), "b: .*lambda"),
        (Struct("a" / int8, "b" / Bytes(this.a**9)), r"b: the operator of \(this\['a'\] \*\* 9\)"),
        (Struct("a" / construct.OneOf(construct.Int8ub, [1, 2])), "a: a ExprValidator"),
    ],
    ids=["construct node", "in an array", "lambda", "operator", "adapter"],
)
def test_opaque_node_is_refused_at_registration(node: Any, path: str) -> None:
    with pytest.raises(wirekit.Misuse, match=f"opaque.x: {path}"):
        Registry().register(Protocol("opaque", "a test", {"x": Layout(node)}))


def test_expressions_are_walked() -> None:
    tree = expression((this._.head.size - 4) // 2 > len_(this.name))
    assert str(tree) == "(((^head.size - 4) // 2) > len(name))"
    assert fields_of(tree) == [Field(1, ("head", "size")), Field(0, ("name",))]
    assert expression(context.version) == Context("version")
    assert expression(~(this.a == 1)) == Operation("not ", (Operation("==", (Field(0, ("a",)), Literal(1))),))


def test_recursion_is_a_node() -> None:
    references = {
        node.key for _, node in ir.walk(wirekit.registry["kafka.message_set"].layout) if isinstance(node, ir.Reference)
    }
    assert references == {"kafka.message_set"}


def test_dump_of_a_small_layout() -> None:
    text = ir.dump(lower(Struct("size" / Length(int16), "name" / String(int16), name="Greeting")))
    assert text.splitlines() == [
        "Structure name=Greeting measures=[Measure(at=0 first=1 last=1)]",
        "  size: Number code=h size=2 signed=True",
        "  name: Blob text=True",
        "    length: Number code=h size=2 signed=True",
    ]
