"""Protobuf's groups, the old way to put a message into another: refused with a word, never misread."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.duration_pb2 import Duration

import wirekit
from wirekit.registry import Layout, Protocol, registry
from wirekit.wire.message import Protobuf

KIND = descriptor_pb2.FieldDescriptorProto


def descriptor(name: str, group: bool) -> Any:
    """A message with a number, and with a message inside that has a group or a number."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package=name, syntax="proto2")
    inner = file.message_type.add(name="Inner")
    if group:
        inner.nested_type.add(name="Old")
        old: dict[str, Any] = {"type": KIND.TYPE_GROUP, "type_name": f".{name}.Inner.Old"}
        inner.field.add(name="old", number=1, label=KIND.LABEL_OPTIONAL, **old)
    outer = file.message_type.add(name="Outer")
    outer.field.add(name="number", number=1, label=KIND.LABEL_OPTIONAL, type=KIND.TYPE_INT32)
    kind: dict[str, Any] = {"type": KIND.TYPE_MESSAGE, "type_name": f".{name}.Inner"}
    outer.field.add(name="inner", number=2, label=KIND.LABEL_OPTIONAL, **kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool.FindMessageTypeByName(f"{name}.Outer")


def test_a_declared_group_is_refused_when_it_is_registered() -> None:
    layouts = {"message": Layout(Protobuf(descriptor("grouped", group=True)))}
    with pytest.raises(wirekit.Misuse, match=r"grouped\.Inner\.old is a group; wirekit does not decode groups"):
        registry.register(Protocol("grouped", "a test", layouts))


@pytest.mark.parametrize(
    ("data", "wire_type", "offset"),
    [
        ("0801 1b 0802 1c", 3, 3),
        ("0801 1c", 4, 3),
        ("1202 1b1c", 3, 3),
        ("0801 9b01 9c01", 3, 4),
    ],
)
def test_an_unknown_group_is_an_error_that_says_so(data: str, wire_type: int, offset: int) -> None:
    if "ungrouped" not in registry.protocols():
        layouts = {"message": Layout(Protobuf(descriptor("ungrouped", group=False)))}
        registry.register(Protocol("ungrouped", "a test", layouts))
    decoded = wirekit.decode(bytes.fromhex(data), "ungrouped.message")
    assert isinstance(decoded.error, wirekit.Wrong)
    assert decoded.error.reason == f"expected a wire type of 0, 1, 2 or 5, found {wire_type}"
    assert decoded.error.offset == offset


@pytest.mark.parametrize("descriptor", ["google.protobuf.duration_pb2:Duration", Duration, Duration.DESCRIPTOR])
def test_a_message_is_named_by_its_class_descriptor_or_module(descriptor: Any) -> None:
    assert Protobuf(descriptor).message.name == "google.protobuf.Duration"


@pytest.mark.parametrize(
    ("descriptor", "reason"),
    [
        ("google.protobuf.duration_pb2:Durations", "has no attribute 'Durations'"),
        ("google.protobuf.no_such_module:Duration", "No module named"),
        ("Duration", "Protobuf"),
        (5, "needs a message class, its descriptor, or module:Message, not 5"),
    ],
)
def test_a_descriptor_without_a_message_is_refused(descriptor: Any, reason: str) -> None:
    with pytest.raises(wirekit.Misuse, match=reason):
        registry.register(Protocol("unnamed", "a test", {"message": Layout(Protobuf(descriptor))}))


@pytest.mark.parametrize("name", ["__init__", "_fields", "_extra", "_pairs", "__dict__"])
def test_a_field_with_the_name_of_an_attribute_of_records_is_refused(name: str) -> None:
    package = f"named{name}"
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto2")
    message = file.message_type.add(name="Odd")
    message.field.add(name=name, number=1, label=KIND.LABEL_OPTIONAL, type=KIND.TYPE_INT32)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    layouts = {"message": Layout(Protobuf(pool.FindMessageTypeByName(f"{package}.Odd")))}
    with pytest.raises(wirekit.Misuse, match=rf"Odd\.{name} has the name of an attribute of all records"):
        registry.register(Protocol("odd", "a test", layouts))
