"""Bytes and values that are nested without end: they meet a bound, not the end of the stack."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

import wirekit
from tests.own import declared
from wirekit.compiler.engines import DECODERS, ENCODERS
from wirekit.registry import Layout, Protocol, registry
from wirekit.values import SHOWN
from wirekit.wire import Array, Bytes, Compressed, Ref, Struct, int8, int32, this, uint8
from wirekit.wire.message import Protobuf
from wirekit.wire.protobuf import DEEPEST

KEY = "nesting.node"
CHILD, CHILDREN = b"\x0a", b"\x12"
UNKNOWN = b"\xc0\x02\x01"  # stands before the known fields, which is not how it would be written


def node_class() -> Any:
    """A message with messages of its own type inside."""
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="nesting.proto", package="nesting", syntax="proto2")
    node = file.message_type.add(name="Node")
    inner: dict[str, Any] = {"type": kind.TYPE_MESSAGE, "type_name": ".nesting.Node"}
    node.field.add(name="child", number=1, label=kind.LABEL_OPTIONAL, **inner)
    node.field.add(name="children", number=2, label=kind.LABEL_REPEATED, **inner)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("nesting.Node"))


NODE = node_class()


@pytest.fixture(scope="module", autouse=True)
def layouts() -> None:
    """A message inside itself, and a layout compressed inside itself."""
    layer = Struct("codec" / int8, "value" / Compressed(Bytes(int32), this.codec, {1: "gzip"}, Ref("nesting.layer")))
    registry.register(
        Protocol("nesting", "a test", {"node": Layout(Protobuf(NODE.DESCRIPTOR)), "layer": Layout(layer)})
    )


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def message(levels: int, tag: bytes = CHILD, before: bytes = b"") -> bytes:
    """A message with ``levels`` messages, one inside the other."""
    data = b""
    for _ in range(levels):
        data = before + tag + varint(len(data)) + data
    return data


def value(levels: int, around: Callable[[Any], Any] = lambda inner: {"child": inner}) -> Any:
    nested: Any = {}
    for _ in range(levels):
        nested = around(nested)
    return nested


def test_the_bound_is_that_of_protobuf() -> None:
    NODE.FromString(message(DEEPEST))
    with pytest.raises(DecodeError):
        NODE.FromString(message(DEEPEST + 1))


@pytest.mark.parametrize("engine", DECODERS)
@pytest.mark.parametrize(("tag", "step"), [(CHILD, "child"), (CHILDREN, "children[0]")])
class TestDecoding:
    def test_up_to_the_bound(self, engine: str, tag: bytes, step: str) -> None:
        data = message(DEEPEST, tag)
        decoded = wirekit.decode(data, KEY, engine=engine)
        assert (decoded.error, decoded.consumed) == (None, len(data))
        assert wirekit.from_json(KEY, wirekit.to_json(decoded.value)) == decoded.value
        assert any(span.path == ".".join([step] * DEEPEST) for span in decoded.spans)
        for encoder in ENCODERS:
            assert wirekit.encode(KEY, decoded.value, engine=encoder) == data

    @pytest.mark.parametrize("levels", [DEEPEST + 1, 5000])
    def test_beyond_it(self, engine: str, tag: bytes, step: str, levels: int) -> None:
        data = message(levels, tag)
        decoded = wirekit.decode(data, KEY, engine=engine, offset=1000)
        error = decoded.error
        assert isinstance(error, wirekit.Limit)
        assert (error.limit, error.allowed, error.actual) == ("messages", DEEPEST, DEEPEST + 1)
        assert error.path == ".".join([step] * (DEEPEST + 1))
        assert error.offset == 1000 + len(data) - len(message(levels - DEEPEST - 1, tag))
        assert repr(decoded.value).count("Node(") == DEEPEST + 1


@pytest.mark.parametrize("engine", DECODERS)
def test_each_message_is_read_a_few_times_at_most(engine: str) -> None:
    """Bytes are kept at every level here; to see that they are needed must not take twice as long a level."""
    data = message(DEEPEST, before=UNKNOWN)
    decoded = wirekit.decode(data, KEY, engine=engine)
    assert decoded.error is None
    for encoder in ENCODERS:
        assert wirekit.encode(KEY, decoded.value, engine=encoder) == data
        assert wirekit.encode(KEY, wirekit.to_json(decoded.value), engine=encoder) == data
    decoded.value.child.child.child = None
    assert wirekit.encode(KEY, decoded.value) == bytes.fromhex("0a080a03c00201c00201c00201")


def itself() -> Any:
    node: dict[str, Any] = {}
    node["child"] = node
    return node


@pytest.mark.parametrize("engine", ENCODERS)
@pytest.mark.parametrize(
    ("key", "obj"),
    [
        (KEY, value(DEEPEST + 1)),
        (KEY, value(5000)),
        (KEY, value(5000, lambda inner: {"children": [inner]})),
        (KEY, itself()),
        (KEY, {"$bytes": "0a00", "child": value(5000)}),
        ("nesting.layer", value(5000, lambda inner: {"codec": 1, "value": {"content": inner}})),
        ("kafka.heartbeat.response.v0", value(5000, lambda inner: {"body": inner})),
    ],
    ids=["one more", "mapping", "list", "itself", "bytes", "compressed", "no such layout"],
)
def test_values_nested_too_deep_are_misuse(engine: str, key: str, obj: Any) -> None:
    for refused in (wirekit.from_json, wirekit.encode):
        with pytest.raises(wirekit.Misuse):
            refused(key, obj, engine=engine)  # type: ignore[operator]


@pytest.mark.parametrize("engine", ENCODERS)
def test_an_error_shows_the_beginning_of_a_value_however_deep(engine: str) -> None:
    deep = value(5000, lambda inner: [inner])
    with pytest.raises(wirekit.Wrong, match=rf"child: expected a nesting\.Node, found {re.escape('[' * SHOWN)}…$"):
        wirekit.encode(KEY, {"child": deep}, engine=engine)


@pytest.mark.parametrize("engine", ENCODERS)
def test_records_nested_too_deep_are_not_written(engine: str) -> None:
    whole = wirekit.decode(message(DEEPEST), KEY).value
    outer = type(whole)(child=whole, children=[])
    with pytest.raises(wirekit.Limit, match=r"child\.child: 101 exceeds the limit of 100 \(messages\)"):
        wirekit.encode(KEY, outer, engine=engine)
    outer.child = outer
    with pytest.raises(wirekit.Limit):
        wirekit.encode(KEY, outer, engine=engine)


@pytest.mark.parametrize("engine", DECODERS)
def test_a_layout_nested_deeper_than_the_stack_is_beyond_the_limit(engine: str) -> None:
    """At a depth of 150 there is room, wherever Python's stack ends."""
    limits = wirekit.Limits(depth=100_000)
    layouts = {"main": Layout(Struct("children" / Array(uint8, Ref("stacked.main"))))}
    with declared(Protocol("stacked", "A test's own", layouts)):
        assert wirekit.decode(b"\1" * 150 + b"\0", "stacked.main", engine=engine, limits=limits).error is None
        error = wirekit.decode(b"\1" * 5000 + b"\0", "stacked.main", engine=engine, limits=limits).error
        assert isinstance(error, wirekit.Limit)
        assert (error.limit, error.offset) == ("depth", error.actual)
        assert error.path == ".".join(["children[0]"] * error.actual)
        assert "Python's stack ends before the limit of 100000" in str(error)


def test_a_value_nested_deeper_than_the_stack_has_no_json_form() -> None:
    deep: list[Any] = []
    deep.append(deep)
    with pytest.raises(wirekit.Misuse, match="nested too deeply or contains itself"):
        wirekit.to_json(deep)
