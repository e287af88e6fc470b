"""A column is nullable where the layout lets a field be absent, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import wirekit
from tests.compiler.samples import joyqueue_batch, joyqueue_messages, mixed, packets
from tests.fuzz.test_any_bytes import samples
from wirekit.compiler import ir
from wirekit.compiler.columns import program, scan
from wirekit.errors import Misuse

NEVER = ("@offset", "@length", "@gap", "@depth")


def columnar_keys() -> list[str]:
    """All keys that give columns and have one kernel."""
    keys = []
    for key in wirekit.registry:
        try:
            program(key)
        except Misuse:
            continue
        keys.append(key)
    return keys


def always(node: ir.Node, path: str = "") -> Iterator[tuple[str, bool]]:
    """(path, whether its bytes may be null) of the fields that stand behind no condition and in no choice."""
    match node:
        case ir.Structure(members=members):
            for member in members:
                yield from always(member.node, f"{path}.{member.name}" if path else member.name)
        case ir.Optional(node=inner) | ir.Constant(node=inner) | ir.Packed(blob=inner):
            yield from always(inner, path)
        case ir.Number() | ir.Boolean() | ir.Named():
            yield path, False
        case ir.BitFields(fields=fields):
            yield from ((f"{path}.{field.name}", False) for field in fields)
        case ir.Blob(length=length, null=null) if length is not None:
            yield path, isinstance(length, ir.Number) and null is not None


def test_a_field_that_is_always_present_is_not_nullable() -> None:
    keys = columnar_keys()
    assert {"kafka.message_set", "pulsar.frame", "joyqueue.batch", "net.pcap.packets.le"} <= set(keys)
    for key in keys:
        columnar = program(key)
        nullable = {field.name: field.nullable for field in columnar.schema}
        fields = dict(always(columnar.plan.element))
        assert {name: nullable[name] for name in fields if name in nullable} == {
            name: may_be_null for name, may_be_null in fields.items() if name in nullable
        }, key
        assert not any(nullable[name] for name in NEVER if name in nullable)


def frames() -> bytes:
    return b"".join(samples()["pulsar.frame"])


def entries() -> bytes:
    """Entries of one message and of several, as a broker keeps them."""
    metadata: dict[str, Any] = {"producer_name": "p", "sequence_id": 7, "publish_time": 1}
    messages = [{"metadata": {"payload_size": 60}, "payload": b"v" * 60}] * 2
    batch = {"metadata": metadata | {"num_messages_in_batch": 2}, "payload": messages}
    return wirekit.encode("pulsar.entry", batch)


@pytest.mark.parametrize(
    ("key", "sample"),
    [
        ("kafka.message_set", mixed),
        ("joyqueue.message", joyqueue_messages),
        ("joyqueue.batch", joyqueue_batch),
        ("net.pcap.packets.le", lambda: packets()[:3000]),
        ("pulsar.frame", frames),
        ("pulsar.entry", entries),
    ],
)
def test_a_column_that_is_not_nullable_holds_no_null(key: str, sample: Any) -> None:
    data, chance = sample(), random.Random(key)
    rows = 0
    for wrappers in (False, True):
        for damaged in (False, *[True] * 20):
            scanned = scan(key, spoilt(data, chance) if damaged else data, wrappers=wrappers)
            rows += scanned[0].num_rows
            for batch in scanned:
                batch.validate(full=True)
                for field in batch.schema:
                    column = batch[field.name]
                    assert field.nullable or not column.null_count, field.name
                    if pa.types.is_list(field.type) and not field.type.value_field.nullable:
                        assert not column.flatten().null_count, field.name
    assert rows > 4


def spoilt(data: bytes, chance: random.Random) -> bytes:
    """Bytes of which some are others."""
    spoilt = bytearray(data)
    for _ in range(chance.randrange(1, 8)):
        spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
    return bytes(spoilt[: chance.randrange(len(spoilt) // 2, len(spoilt) + 1)])


def test_the_form_of_names_and_times_does_not_change_nullability() -> None:
    data = mixed()
    plain = wirekit.columns("kafka.message_set", data, times="int")
    dictionaries = wirekit.columns("kafka.message_set", data, enums="dictionary")
    assert [field.nullable for field in dictionaries.schema] == [field.nullable for field in plain.schema]
