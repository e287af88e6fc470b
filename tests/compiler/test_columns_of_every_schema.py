"""Every schema gives columns and is built from them, whole frames with a payload for each command as well."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import wirekit
from tests.agreement.law import rebuild
from tests.agreement.walk import compare
from wirekit.compiler.columns import program
from wirekit.compiler.columns.header_variants import selected_by_header
from wirekit.errors import WireError
from wirekit.program.passes import all_steps
from wirekit.program.steps import Copy, Emit, Load, Prefixed, Split
from wirekit.registry import BUILT_IN
from wirekit.runtime.loop import module_text

FRAMES = ["kafka.request", "joyqueue.frame", "joyqueue.frame_unsigned", "jmq4.frame"]
CLOSED = [
    "kafka.message",
    "joyqueue.message_opened",
    "joyqueue.frame_opened",
    "jmq4.message_opened",
    "jmq4.frame_opened",
]
TEXTS = ["kafka.offset_checkpoint", "kafka.meta_properties", "net.proxy_v1", "net.proxy_v2"]
MESSAGES = ["pulsar.command", "pulsar.message_metadata", "pulsar.single_message_metadata"]


def example(key: str) -> bytes:
    return wirekit.encode(key, wirekit.example(key))


@pytest.mark.parametrize("key", [*FRAMES, *CLOSED, *TEXTS, *MESSAGES])
def test_records_are_those_of_the_reference_engine_damaged_or_not_and_come_back(key: str) -> None:
    draw = random.Random(key)
    data = example(key)
    batch, errors = compare(key, data)
    assert (batch.num_rows, errors.num_rows) == (1, 0)
    assert rebuild(key, data) == "built"  # the very bytes: an example is in the usual form already
    outcomes: Counter[str] = Counter()
    for _ in range(60):
        damaged = bytearray(data * draw.choice((1, 2)))
        for _ in range(draw.randrange(1, 4)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        changed = bytes(damaged[: draw.randrange(len(damaged) + 1)] if draw.random() < 0.3 else damaged)
        compare(key, changed)
        outcomes[rebuild(key, changed)] += 1
    assert outcomes["not built"] < sum(outcomes.values())


def test_every_schema_gives_columns() -> None:
    keys = [key for key in wirekit.registry if key.partition(".")[0] in BUILT_IN]
    assert keys
    for key in keys:
        if not selected_by_header(wirekit.registry[key].layout):
            assert program(key).schema.names


@pytest.mark.parametrize("key", ["kafka.message_set", "pulsar.frame", "jmq4.message", "net.packet", "kafka.request"])
def test_every_column_is_filled_by_a_step(key: str) -> None:
    context = {"link_type": 1} if key == "net.packet" else None
    read = program(key, context).program
    filled: set[int] = set()
    for step in all_steps(read.steps):
        match step:
            case Emit(column=column) | Copy(column=column):
                filled.add(id(column))
            case Load(column=column) | Prefixed(column=column):
                filled.add(id(column))
            case Split():
                filled |= {id(column) for *_, column in step.parts}
    assert all(id(column) in filled for column in read.columns)


def test_a_new_layout_needs_no_compilation() -> None:
    """One interpreter reads all layouts, and another one writes them."""
    from wirekit.compiler import cache

    before = dict(cache._modules)
    for key in ("kafka.offset_index", "jmq4.header", "kafka.request"):
        try:
            wirekit.build_columns(key, wirekit.columns(key, example(key)))
        except WireError:
            continue
    assert set(cache._modules) - set(before) <= {module_text(), cache.BUILDER}
