"""Lists in columns become the lists inside records that they came from, or are refused where they do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wirekit
from tests.agreement.law import LISTS, rebuild
from tests.compiler.test_columns_lists import PROTOCOL, SAMPLES
from tests.own import own
from wirekit.compiler.building import source
from wirekit.compiler.columns import program, scan
from wirekit.compiler.columns.header_variants import selected_by_header
from wirekit.errors import Misuse
from wirekit.registry import BUILT_IN, Layout, Protocol, register
from wirekit.wire import (
    Array,
    Bytes,
    Checked,
    Custom,
    Default,
    If,
    Length,
    Node,
    Padding,
    RecordsToEnd,
    Repeat,
    Sized,
    String,
    Struct,
    Switch,
    float32,
    float64,
    int8,
    int16,
    int32,
    len_,
    rest,
    this,
    uint8,
    uint16,
    uint32,
)

SHOP = Struct(
    "n" / uint8,
    "repeated" / Repeat(this.n, uint16),
    "goods"
    / Array(
        int8,
        Struct(
            "name" / String(uint8),
            "price" / Default(int32, 5),
            "tags" / Array(int8, Bytes(int8, null=-1), null=-1),
        ),
        null=-1,
    ),
    "count" / Default(uint8, len_(this.others)),
    "size" / Length(uint8, of="others"),
    "others" / RecordsToEnd(Struct("k" / uint8, "of" / Switch(this.k, {1: uint8, 2: String(uint8)}, default=uint16))),
    "marked" / Sized(uint8, RecordsToEnd(Struct("v" / uint16, name="V"), until=b"\xff")),
    "more" / If(this.n > 0, Array(uint8, uint8)),
    name="Shop",
)
PADDED = Struct(
    "parts"
    / Array(
        uint8,
        Struct(
            "crc" / Checked(uint32, "crc32", "data"),
            "size" / Length(uint8, of="data"),
            "data" / rest(),
            "fill" / Padding(-this.size % 4),
            name="Part",
        ),
    ),
    "end" / uint8,
    name="Padded",
)
EMPTY = Struct("n" / uint8, "nothing" / Array(uint8, Struct(name="Nothing")), name="Empty")
OWN = Protocol(
    "buildlists",
    "For the tests of lists that are built",
    {"shop": Layout(SHOP), "padded": Layout(PADDED), "empty": Layout(EMPTY)},
)
PROTOCOLS = (PROTOCOL, OWN)


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """The layouts are there for these tests only."""
    registry = wirekit.registry
    for protocol in PROTOCOLS:
        register(protocol)
    yield
    for protocol in PROTOCOLS:
        for name in protocol.layouts:
            del registry._schemas[protocol.key(name)]
        del registry._protocols[protocol.name]


def shop(**changed: Any) -> dict[str, Any]:
    """A record of ``buildlists.shop``."""
    return {
        "n": 2,
        "repeated": [7, 8],
        "goods": [
            {"name": "tea", "price": 3, "tags": [b"hot", None, b""]},
            {"name": "grün", "price": -1, "tags": None},
            {"name": "", "price": 5, "tags": []},
        ],
        "others": [{"k": 1, "of": 9}, {"k": 2, "of": "ab"}, {"k": 3, "of": 300}, {"k": 1, "of": 0}],
        "marked": [{"v": 1}, {"v": 2}],
        "more": [1, 2, 3],
        **changed,
    }


SHOPS = [
    shop(),
    shop(goods=None, others=[], marked=[]),
    shop(n=0, repeated=[], goods=[], more=None),
]


def shops() -> pa.RecordBatch:
    return wirekit.columns("buildlists.shop", b"".join(wirekit.encode("buildlists.shop", each) for each in SHOPS))


def with_column(batch: pa.RecordBatch, name: str, values: Any) -> pa.RecordBatch:
    at = batch.schema.get_field_index(name)
    return batch.set_column(at, name, values if isinstance(values, pa.Array) else pa.array(values))


def build(batch: Any, key: str = "buildlists.shop") -> bytes:
    return wirekit.build_columns(key, batch)


# They come back.


def test_lists_nested_null_and_by_expression_come_back() -> None:
    batch = shops()
    data = b"".join(wirekit.encode("buildlists.shop", each) for each in SHOPS)
    assert batch["goods.tags"].to_pylist() == [[[b"hot", None, b""], None, []], None, []]
    assert build(batch) == data
    for first in range(batch.num_rows):
        one = batch.slice(first, 1)
        assert build(one) == wirekit.encode("buildlists.shop", SHOPS[first])


@pytest.mark.parametrize("key", SAMPLES)
def test_nested_lists_alternatives_and_checksums_in_elements_come_back(key: str) -> None:
    data = SAMPLES[key]()
    batch, _ = scan(key, data)
    end = batch["@offset"][-1].as_py() + batch["@length"][-1].as_py()
    assert build(batch, key) == data[:end]


def test_lists_of_any_type_and_shape_of_arrays() -> None:
    batch = shops()
    expected = build(batch)
    large = pa.large_list(pa.large_list(pa.large_binary()))
    assert build(with_column(batch, "goods.tags", batch["goods.tags"].cast(large))) == expected
    assert build(with_column(batch, "repeated", batch["repeated"].cast(pa.list_(pa.uint64())))) == expected
    assert build(pa.Table.from_batches([batch.slice(0, 1), batch.slice(1)])) == expected
    fixed = pa.FixedSizeListArray.from_arrays(pa.array([7, 8], pa.int16()), 2)
    assert build(with_column(batch.slice(0, 1), "repeated", fixed)) == expected[: batch["@length"][0].as_py()]


def test_a_null_list_may_stand_on_elements_that_nobody_sees() -> None:
    batch = shops().slice(0, 2)
    offsets, elements = pa.py_buffer(np.array([0, 3, 5], np.int32)), pa.array([3, -1, 5, 77, 78], pa.int32())
    prices = pa.Array.from_buffers(pa.list_(pa.int32()), 2, [pa.py_buffer(b"\1"), offsets], children=[elements])
    assert prices.to_pylist() == [[3, -1, 5], None]
    assert build(with_column(batch, "goods.price", prices)) == build(batch)


def test_counts_and_defaults_are_filled_in() -> None:
    batch = shops()
    dropped = batch.drop_columns(
        [name for name in ("count", "size", "@offset", "@length") if name in batch.schema.names]
    )
    assert build(dropped) == build(batch)
    one = dropped.slice(0, 1).drop_columns(["goods.price"])
    goods = [{**each, "price": 5} for each in SHOPS[0]["goods"]]
    assert build(one) == wirekit.encode("buildlists.shop", shop(goods=goods))


def test_a_list_that_may_be_null_and_has_no_columns_is_null() -> None:
    names = [name for name in shops().schema.names if name.startswith("goods.")]
    one = shops().slice(0, 1).drop_columns(names)
    assert build(one) == wirekit.encode("buildlists.shop", shop(goods=None))


def test_a_bad_checksum_in_an_element_is_kept_with_its_verdict() -> None:
    key = "buildlists.padded"
    data = bytearray(wirekit.encode(key, {"parts": [{"data": b"abcde"}, {"data": b""}, {"data": b"xy"}], "end": 0}))
    data[1] ^= 1
    batch = wirekit.columns(key, bytes(data))
    assert batch["parts.crc.ok"].to_pylist() == [[False, True, True]]
    assert build(batch, key) == data
    mended = wirekit.columns(key, build(batch.drop_columns(["parts.crc.ok"]), key))
    assert mended["parts.crc.ok"].to_pylist() == [[True] * 3]


@settings(max_examples=40)
@given(st.lists(st.lists(st.binary(max_size=9), max_size=5), max_size=4))
def test_a_length_is_known_behind_the_list_that_it_covers(records: list[list[bytes]]) -> None:
    key = "buildlists.padded"
    data = b"".join(wirekit.encode(key, {"parts": [{"data": each} for each in parts], "end": 7}) for parts in records)
    assert build(wirekit.columns(key, data), key) == data


# Schemas as they are.


def metadata() -> bytes:
    brokers = [{"node_id": node, "host": f"host{node}", "port": 9092, "rack": (None, "r")[node % 2]} for node in (1, 2)]
    partitions = [{"partition_error_code": 0, "partition_id": 0, "leader": 1, "replicas": [1, 2], "isr": []}]
    topics: list[dict[str, Any]] = [
        {"topic_error_code": 0, "topic": "t", "is_internal": False, "partition_metadata": partitions * count}
        for count in (0, 2)
    ]
    bodies = [
        {"brokers": brokers, "controller_id": 1, "topic_metadata": topics},
        {"brokers": [], "controller_id": 2, "topic_metadata": []},
    ]
    frames = ({"correlation_id": number, "body": body} for number, body in enumerate(bodies))
    return b"".join(wirekit.encode("kafka.metadata.response.v1", frame) for frame in frames)


def entries() -> dict[str, Any]:
    return {"messages": [{"offset": n, "message": {"magic": 1, "timestamp": 5, "value": "6869"}} for n in (3, 4)]}


def fetched() -> bytes:
    parts = [
        {"partition": n, "error_code": 0, "high_watermark": 9, "record_set": entries() if n else {"messages": []}}
        for n in (0, 1)
    ]
    body = {"throttle_time_ms": 0, "responses": [{"topic": "t", "partition_responses": parts}]}
    return wirekit.encode("kafka.fetch.response.v2", {"correlation_id": 1, "body": body})


def produced(codec: int = 0) -> bytes:
    records = entries()
    if codec:
        wrapper = {"magic": 1, "timestamp": 5, "attributes": {"codec": codec}, "value": {"content": records}}
        records = {"messages": [{"offset": 1, "message": wrapper}]}
    topics = [
        {"topic": "t", "data": [{"partition": 3, "record_set": records}, {"partition": 4, "record_set": entries()}]}
    ]
    body = {"acks": 1, "timeout": 5, "topic_data": topics}
    return wirekit.encode("kafka.produce.request.v2", {"correlation_id": 1, "client_id": "c", "body": body})


def acknowledged() -> bytes:
    acks = [{"partition": 1, "data": [{"partition": 1, "index": n, "type": 0} for n in (5, 6)]}]
    topics = [{"topic": "a", "partitions": acks}, {"topic": "b", "partitions": []}]
    return wirekit.encode("joyqueue.commit_ack.request", {"topics": topics, "app": "me"})


def captured() -> bytes:
    from tests.net.building import enhanced, interface, option, section_header

    head = section_header("le", option(4, "wirekit"), option(0, b""))
    return head + interface("le", 1, option(9, {"binary": 0, "exponent": 9})) + enhanced("le", b"abcde", 7)


REAL = {
    "kafka.metadata.response.v1": metadata,
    "kafka.fetch.response.v2": fetched,
    "kafka.produce.request.v2": produced,
    "joyqueue.commit_ack.request": acknowledged,
    "net.pcapng.blocks.le": captured,
}


@pytest.mark.parametrize("key", REAL)
def test_schemas_with_lists_come_back(key: str) -> None:
    data = REAL[key]()
    assert rebuild(key, data) == "built"
    assert build(wirekit.columns(key, data), key) == data


def test_every_schema_that_gives_columns_is_built_from_them() -> None:
    """But for captures, which have a program for each kind of link."""
    lists = 0
    for key in wirekit.registry:
        if key.partition(".")[0] not in (*BUILT_IN, "buildlists"):
            continue  # of another test in this process
        try:
            columnar = program(key)
        except Misuse:
            continue
        if columnar.program.lists:
            lists += 1
        if not selected_by_header(wirekit.registry[key].layout) and key != "buildlists.empty":
            assert "end of record" in source(key)
    assert lists > 100
    assert set(REAL) >= LISTS


def test_a_compressed_value_in_a_list_is_written_unchanged() -> None:
    key = "kafka.produce.request.v2"
    data = produced(codec=1)
    batch = wirekit.columns(key, data)
    assert b"record_set.messages.message.value.content" in batch.schema.metadata[b"wirekit.left_out"]
    assert build(batch, key) == data


# Context.


def test_context_selects_the_layout_to_build() -> None:
    context = {"api": "metadata", "version": 1}
    data = metadata()
    batch = wirekit.columns("kafka.response", data, context=context)
    assert wirekit.build_columns("kafka.response", batch, context=context) == data
    assert rebuild("kafka.response", data, context) == "built"
    assert build(wirekit.columns("kafka.response", data), "kafka.response") == data


def test_context_that_a_layout_does_not_have_is_misuse() -> None:
    with pytest.raises(Misuse, match=r"kafka\.response takes no context apt; it takes api, version"):
        wirekit.build_columns("kafka.response", shops(), context={"apt": "fetch"})
    for key in ("kafka.message_set", "kafka.offset_index"):
        with pytest.raises(Misuse, match=f"{key} takes no context version; it takes none"):
            wirekit.build_columns(key, shops(), context={"version": 1})


def test_explain_prints_the_program_of_a_context() -> None:
    from click.testing import CliRunner

    from wirekit.cli.explain import command

    options = ["--engine", "build-columns", "--context", "api=heartbeat", "--context", "version=0"]
    printed = CliRunner().invoke(command, ["kafka.response", *options]).output
    assert printed == source("kafka.response", context={"api": "heartbeat", "version": 0})


# What does not fit.


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        (
            "goods.name",
            [["a", "b", "c"], None, None],
            r"row 2: goods\.name\.ok: has 0 elements, where goods\.name has null",
        ),
        ("goods.price", [[3, 4], None, []], r"row 0: goods\.price: has 2 elements, where goods\.name has 3 elements"),
        (
            "goods.price",
            [[3, 4, None], None, []],
            r"row 0: goods\.price\[2\]: is null, which the layout does not allow",
        ),
        ("goods.price", [[3, 1 << 40, 4], None, []], r"row 0: goods\.price\[1\]: 1099511627776 does not fit int32"),
        ("goods.name", [["a", "b", "x" * 256], None, []], r"row 0: goods\.name\[2\]: expected at most 255 bytes"),
        ("goods.name", [[b"a", b"\xff", b""], None, []], r"row 0: goods\.name\[1\]: .* does not fit string"),
        ("goods.tags", [[[b"x" * 256], None, []], None, []], r"row 0: goods\.tags\[0\]\[0\]: expected at most 127"),
        ("goods.tags", [[[], [b""] * 128, []], None, []], r"row 0: goods\.tags\[1\]: expected at most 127 elements"),
        ("goods.tags", [[[1], None, []], None, []], r"the column goods\.tags is int64; give it as binary"),
        ("goods.price", [1, 2, 3], r"the column goods\.price is int64; give it as a list"),
        (
            "repeated",
            [[7], [7, 8], []],
            r"row 0: repeated: its number of elements differs from the one the layout requires",
        ),
        ("repeated", [[7, 8], None, []], r"row 1: repeated: is null, which the layout does not allow"),
        ("more", [[1], [2], [3]], r"row 2: more: has a value, but the layout has none here"),
        ("more", [[1], None, None], r"row 1: more: is null, which the layout does not allow"),
        (
            "others.of",
            [[9, 5, 3, 0], [], [9, None, 3, 0]],
            r"row 0: others\.of\[1\]: has a value, but the layout",
        ),
        ("marked.v", [[1, 0xFF00], [], [1]], r"row 0: marked\[1\]: it begins with the bytes that end the list"),
    ],
)
def test_a_list_that_does_not_fit_is_misuse_with_row_and_index(name: str, values: Any, text: str) -> None:
    with pytest.raises(Misuse, match=text):
        build(with_column(shops(), name, values))


def test_a_list_without_columns_that_must_be_there_is_misuse() -> None:
    with pytest.raises(Misuse, match="row 0: repeated: the column is missing, and the field has no default"):
        build(shops().drop_columns(["repeated"]))
    with pytest.raises(Misuse, match=r"row 0: goods\.name\[0\]: the column is missing, and the field has no default"):
        build(shops().drop_columns(["goods.name", "goods.name.ok"]))


def test_offsets_that_point_nowhere_are_misuse() -> None:
    for kind, width in ((pa.list_, np.int32), (pa.large_list, np.int64)):
        for offsets in ([0, 9, 2, 3], [0, -2, 3, 3], [0, 3, 1, 3]):
            buffer = pa.py_buffer(np.array(offsets, width))
            elements = pa.array([1, 2, 3], pa.int32())
            prices = pa.Array.from_buffers(kind(pa.int32()), 3, [None, buffer], children=[elements])
            with pytest.raises(Misuse, match=r"the offsets of the column goods\.price point outside its"):
                build(with_column(shops(), "goods.price", prices))


def test_a_list_of_more_elements_than_32_bits_count_is_refused_before_it_is_read() -> None:
    buffer = pa.py_buffer(np.array([0, 1 << 33], np.int64))
    elements = pa.Array.from_buffers(pa.null(), 1 << 33, [None])  # pa.nulls takes seconds
    prices = pa.Array.from_buffers(pa.large_list(pa.null()), 1, [None, buffer], children=[elements])
    with pytest.raises(Misuse, match=r"row 0: goods\.price: has 8589934592 elements, where goods\.name has 3 elements"):
        build(with_column(shops().slice(0, 1), "goods.price", prices))


def test_a_list_of_elements_without_columns_is_not_built() -> None:
    with pytest.raises(Misuse, match=r"is not built from columns: nothing is a list \(its elements have no columns"):
        build(pa.RecordBatch.from_pydict({"n": [1]}), "buildlists.empty")


@pytest.mark.parametrize(
    ("items", "good", "bad"),
    [
        (RecordsToEnd(uint16, until=b"\xff"), [b"\xff\1", b""], [b"\1\2", b"\1"]),
        (RecordsToEnd(uint16, until=b"\xff", short_tail="stop"), [b"\xff\1", b"\1"], [b"\1\2", b"\1\xff"]),
    ],
)
def test_bytes_after_a_list_that_are_read_as_its_next_element_are_refused(
    items: Node, good: list[bytes], bad: list[bytes]
) -> None:
    """As ``encode`` refuses them."""
    body = Sized(uint8, Struct("items" / items, "tail" / rest()))
    with own(Struct("n" / uint8, "body" / body, "end" / uint8)) as key:
        for tail in good + bad:
            value = {"n": 1, "body": {"items": [3, 4], "tail": good[0]}, "end": 2}
            batch = wirekit.columns(key, 2 * wirekit.encode(key, value))
            place = batch.schema.get_field_index("body.tail")
            batch = batch.set_column(place, "body.tail", pa.array([good[0], tail]))
            if tail in good:
                other = {**value, "body": {"items": [3, 4], "tail": tail}}
                assert wirekit.build_columns(key, batch) == wirekit.encode(key, value) + wirekit.encode(key, other)
                continue
            with pytest.raises(wirekit.Misuse, match=r"row 1: body\.items: bytes follow that are read as its next"):
                wirekit.build_columns(key, batch)


def test_elements_shorter_than_the_bytes_that_end_their_list_are_left_to_encode() -> None:
    """Several of them together may be these bytes."""
    with own(Struct("n" / uint8, "items" / Sized(uint8, RecordsToEnd(uint8, until=b"\1\2")))) as key:
        batch = wirekit.columns(key, wirekit.encode(key, {"n": 1, "items": [5]}))
        with pytest.raises(wirekit.Misuse, match=r"elements may be shorter than 0102, .*; build it with"):
            wirekit.build_columns(key, batch)


@pytest.mark.parametrize("more", [0, 1])
def test_a_default_is_the_length_of_a_later_byte_string(more: int) -> None:
    node = Struct(
        "n" / Default(uint8, len_(this.data) + more if more else len_(this.data)),
        "k" / int8,
        "data" / Bytes(this.n - more),
        "k_again" / Default(uint8, len_(this.data)),
    )
    rows = [{"k": 1, "data": b"abc"}, {"k": 2, "data": b""}]
    with own(node) as key:
        batch = pa.RecordBatch.from_pylist(rows)
        data = b"".join(wirekit.encode(key, row) for row in rows)
        assert wirekit.build_columns(key, batch) == data
        assert wirekit.build_columns(key, wirekit.columns(key, data)) == data


@pytest.mark.parametrize(
    ("field", "value", "data"),
    [
        (String(uint8), "é", "02 c3a9"),
        (String(uint8, encoding="utf-16-le"), "é", "02 e900"),
        (Custom(uint8, parse=bytes.hex, build=bytes.fromhex), "05", "01 05"),
    ],
)
def test_the_length_of_a_text_is_not_the_number_of_its_bytes(field: Any, value: str, data: str) -> None:
    for first in (True, False):
        parts = ["x" / field, "n" / Default(uint8, len_(this.x))]
        with own(Struct(*(parts if first else reversed(parts)))) as key:
            written, size = bytes.fromhex(data), bytes([len(value)])
            assert wirekit.encode(key, {"x": value}) == (written + size if first else size + written)
            with pytest.raises(Misuse, match="is not built from columns: n is an expression"):
                wirekit.build_columns(key, pa.RecordBatch.from_pydict({"x": [value]}))


@pytest.mark.parametrize(
    ("field", "default"),
    [
        (float64, 1),
        (float32, 2.5),
        (String(uint8), "é"),
        (String(uint8, encoding="latin-1"), "é"),
        (Bytes(int16, null=-1), b"ab"),
        (Bytes(2), b"ab"),
        (Bytes(this.n), b"ab"),
    ],
)
def test_a_missing_column_has_the_default_of_its_field(field: Any, default: Any) -> None:
    inner = Struct("n" / int8, "x" / Default(field, default), "y" / int8)
    rows = [{"n": 2, "y": 1}, {"n": 2, "y": 2}]
    nested = Struct("list" / Array(int8, inner), "end" / int8)
    for node, values in ((inner, rows), (nested, [{"list": [], "end": 3}, {"list": rows, "end": 4}])):
        with own(node) as key:
            data = b"".join(wirekit.encode(key, value) for value in values)
            batch = wirekit.columns(key, data)
            missing = [name for name in batch.schema.names if name.split(".")[-1] == "x" or ".x." in f".{name}."]
            assert missing
            assert wirekit.build_columns(key, batch.drop_columns(missing)) == data
            assert wirekit.build_columns(key, batch) == data


def test_a_default_must_have_the_size_that_the_layout_requires() -> None:
    text = "row 1: x: the size of its default differs from the one the layout requires"
    with own(Struct("n" / int8, "x" / Default(Bytes(this.n), b"ab"))) as key, pytest.raises(Misuse, match=text):
        wirekit.build_columns(key, pa.RecordBatch.from_pydict({"n": [2, 3]}))
