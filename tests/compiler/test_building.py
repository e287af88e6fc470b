"""Both engines build the same bytes, or refuse with the same words, and values in order are for the generated code."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirekit
from tests.fuzz.drawing import one_of
from tests.fuzz.test_any_bytes import CONTEXT, FEWER, KEYS, damaged, samples
from wirekit.compiler.lower import lower
from wirekit.compiler.rows import build as rows_build
from wirekit.encoding import encoded
from wirekit.engine import Params
from wirekit.errors import WirekitError
from wirekit.strategies.choices import upto
from wirekit.values import Record, Symbol
from wirekit.wire import (
    Bit,
    Bits,
    Bytes,
    Checked,
    Const,
    Default,
    Flag,
    If,
    IfMore,
    Length,
    Padding,
    Sized,
    String,
    Struct,
    float64,
    int8,
    int16,
    int32,
    int32le,
    rest,
    this,
    uint8,
    uint16,
    uint32,
)
from wirekit.wire.stream import Scope, Writer

FEW = 12  # samples of a key whose values are edited


def outcome(key: str, value: Any, context: dict[str, Any], engine: str) -> tuple[Any, str]:
    """(bytes, or what the error says; the engine that built)."""
    try:
        return encoded(key, value, context=context, engine=engine)
    except (WirekitError, TypeError, ValueError, LookupError, AttributeError) as error:
        where = (error.path, error.to_json()) if isinstance(error, wirekit.WireError) else None
        return (type(error), str(error), where), "none"


def same(key: str, value: Any, context: dict[str, Any]) -> tuple[Any, str]:
    """Builds on both engines and compares what they give; the generated code's answer."""
    before = copy.deepcopy(value)
    expected, by = outcome(key, value, context, "reference")
    built, engine = outcome(key, value, context, "rows")
    assert built == expected
    assert by in ("reference", "none")
    if engine != "none" and not nan(value):
        assert value == before, "building changes nothing"
    return built, engine


def nan(value: Any) -> bool:
    return "nan" in repr(value)


@cache
def decoded(key: str) -> list[wirekit.Decoded]:
    """The samples of a key, those with an error as far as they were decoded."""
    return [wirekit.decode(data, key, context=CONTEXT.get(key, {})) for data in samples()[key]]


def in_order(decoding: wirekit.Decoded) -> bool:
    """Whether a value is whole, and nothing is kept beside its fields."""
    return decoding.error is None and "$" not in json.dumps(wirekit.to_json(decoding.value))


def test_code_is_generated_for_every_schema() -> None:
    for key in KEYS:
        assert callable(rows_build.unit(key))


@pytest.mark.parametrize("key", samples())
def test_real_values(key: str) -> None:
    for decoding in decoded(key):
        built, engine = same(key, decoding.value, CONTEXT.get(key, {}))
        if decoding.error is None:
            assert built == decoding.data[: decoding.consumed]
        if in_order(decoding):
            assert engine == "rows", "values in order are for the generated code"


@pytest.mark.parametrize("key", samples())
def test_json_mappings(key: str) -> None:
    for decoding in decoded(key):
        mapping = json.loads(json.dumps(wirekit.to_json(decoding.value)))
        _, engine = same(key, mapping, CONTEXT.get(key, {}))
        assert engine == "rows" or not in_order(decoding)


@pytest.mark.parametrize("key", samples())
def test_values_without_kept_bytes_build_alike(key: str) -> None:
    for decoding in decoded(key)[:FEW]:
        stripped = copy.deepcopy(decoding.value)
        for record in records(stripped):
            record._extra = None
        same(key, stripped, CONTEXT.get(key, {}))


def test_without_lengths_and_checksums() -> None:
    entry = {"offset": 1, "message": {"magic": 1, "timestamp": 5, "value": "61"}}
    value = wirekit.from_json("kafka.message_set", {"messages": [entry, entry]})
    built, engine = same("kafka.message_set", value, {})
    assert engine == "rows"
    assert wirekit.decode(built, "kafka.message_set").clean


def records(value: Any) -> Iterator[Record]:
    """All records inside a value, outer first."""
    if isinstance(value, Record):
        yield value
        for _, item in value._pairs():
            yield from records(item)
    elif isinstance(value, list):
        for item in value:
            yield from records(item)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(record or list, name or index) of everything inside a value."""
    if isinstance(value, Record):
        for name, item in value._pairs():
            yield value, name
            yield from places(item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield value, index
            yield from places(item)


REPLACEMENTS = [
    None,
    True,
    0,
    1,
    3,
    -1,
    255,
    2**15,
    2**31,
    2**63,
    2**64,
    1.5,
    1.0,
    "",
    "text",
    "é\udcff",
    "\ud800",
    "x" * 40000,
    b"",
    b"bytes",
    bytearray(b"array"),
    [],
    [1],
    (),
    {},
    {"value": 1},
    Symbol(1, "ONE"),
    wirekit.from_json("kafka.message", {"magic": 0}),
]


def edit(data: st.DataObject, value: Any) -> None:
    """Changes one field or element: another value, twice as many, one less, not set."""
    fields = list(places(value))
    if not fields:
        return
    holder, at = one_of(data, fields)
    kind = one_of(data, ("replace", "more", "less", "unset"))
    if kind == "replace":
        replacement = copy.deepcopy(one_of(data, REPLACEMENTS))
        if at != "compressed" or not isinstance(replacement, int):  # a number would ask for so many zeros
            holder[at] = replacement
    elif kind == "unset" and isinstance(holder, Record):
        delattr(holder, at)
    elif kind == "less" and isinstance(holder, list):
        del holder[at]
    elif isinstance(holder[at], (str, bytes, list)):
        holder[at] = holder[at] * 2 if kind == "more" else holder[at][1:]
    elif isinstance(holder[at], int):
        holder[at] = holder[at] + (1 if kind == "more" else -1)


@pytest.mark.parametrize("key", samples())
@FEWER
@given(data=st.data())
def test_edited_values(key: str, data: st.DataObject) -> None:
    value = copy.deepcopy(one_of(data, decoded(key)[:FEW]).value)
    for _ in range(1 + data.draw(upto(1), label="edits")):
        edit(data, value)
    same(key, value, CONTEXT.get(key, {}))


@pytest.mark.parametrize("key", samples())
@FEWER
@given(data=st.data())
def test_values_of_damaged_bytes(key: str, data: st.DataObject) -> None:
    context = CONTEXT.get(key, {})
    decoding = wirekit.decode(damaged(data, samples()[key]), key, context=context)
    if decoding.value is not None:
        same(key, decoding.value, context)


def test_changed_content_is_compressed_anew() -> None:
    inner = {"messages": [{"offset": 0, "message": {"magic": 0, "value": "61" * 50}}]}
    wrapper = {"magic": 0, "attributes": {"codec": 1}, "value": {"content": inner}}
    data = wirekit.encode("kafka.message_set", {"messages": [{"offset": 0, "message": wrapper}]})
    value = wirekit.decode(data, "kafka.message_set").value
    assert same("kafka.message_set", value, {}) == (data, "rows")
    wrapper_value = value.messages[0].message.value
    wrapper_value.content.messages[0].message.value = b"changed"
    built, engine = same("kafka.message_set", value, {})
    assert engine == "rows"
    again = wirekit.decode(built, "kafka.message_set").value.messages[0].message.value
    assert again.content.messages[0].message.value == b"changed"
    wrapper_value.content = None
    assert same("kafka.message_set", value, {}) == (data, "rows")
    wrapper_value.content, wrapper_value.compressed = again.content, b"no gzip at all"
    assert same("kafka.message_set", value, {})[1] == "rows"


def test_a_key_gets_generated_code_when_it_is_encoded_often() -> None:
    value = wirekit.from_json("kafka.heartbeat.response.v0", {"correlation_id": 7, "body": {"error_code": 0}})
    engines = [encoded("kafka.heartbeat.response.v0", value)[1] for _ in range(10)]
    assert engines[-1] == "rows"


def test_unknown_engine_is_misuse() -> None:
    with pytest.raises(wirekit.Misuse, match="choose from rows, reference"):
        wirekit.encode("kafka.message", {}, engine="fast")


def test_generated_code_shows_up_in_tracebacks() -> None:
    import traceback

    state = rows_build.State("kafka.sasl_token", {}, wirekit.Limits())
    with pytest.raises(rows_build.Unusual) as caught:
        rows_build.unit("kafka.sasl_token")(state, bytearray(), {"token": b""})
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert frame.filename == "<wirekit build kafka.sasl_token>"
    assert "raise Unusual" in str(frame.line)


# Layouts for what the protocols do not have, and what they have in one place only.
FLAGS = Bits(uint16, "ack" / Bit(1), "class" / Bit(3), "rest" / Bit(12), order="msb")
ODD: dict[str, tuple[Struct, dict[str, Any]]] = {
    "known_length": (
        Struct("size" / Length(int16), "crc" / Checked(uint32, "crc32"), "a" / int32, "b" / int32le),
        {"a": 1, "b": 2},
    ),
    "inclusive_length_behind": (Struct("text" / String(int8), "size" / Length(int16, "text", add=3)), {"text": "abc"}),
    "read_length": (
        Struct("size" / Length(int8, "data"), "data" / rest(), "again" / If(this.size > 2, int8)),
        {"data": "616263", "again": 5},
    ),
    "conditional_sum": (
        Struct("is_checked" / Flag(int8), "crc" / If(this.is_checked, Checked(uint32, "crc32")), "data" / rest()),
        {"is_checked": True, "data": "6162"},
    ),
    "conditional_sum_absent": (
        Struct("is_checked" / Flag(int8), "crc" / If(this.is_checked, Checked(uint32, "crc32")), "data" / rest()),
        {"is_checked": False, "data": "6162"},
    ),
    "sum_if_more": (Struct("data" / Bytes(int8), "crc" / IfMore(Checked(uint32, "crc32c", "data"))), {"data": "61"}),
    "sum_if_more_given": (
        Struct("data" / Bytes(int8), "crc" / IfMore(Checked(uint32, "crc32c", "data"))),
        {"data": "61", "crc": 0},
    ),
    "sum_of_content": (
        Struct("crc" / Checked(uint32, "crc32", "key", content=True), "key" / Bytes(int16)),
        {"key": "01"},
    ),
    "sum_inside": (
        Struct("a" / int16, "sum" / Checked(uint16, "internet", ("a", "b")), "b" / int16, "c" / int16),
        {"a": 1, "b": 2, "c": 3},
    ),
    "default_of_length": (
        Struct("size" / Default(int8, 4), "bytes" / Bytes(4), "pad" / Padding((4 - this.size) % 4)),
        {"bytes": "01020304"},
    ),
    "constants": (
        Struct("kind" / Const(uint8, 7), "more" / If(this.kind == 7, int8), "last" / Const(int16, this.kind + 1)),
        {"kind": 7, "more": 1},
    ),
    "flags": (Struct("flags" / FLAGS, "class" / Default(FLAGS, 5)), {"flags": {"class": 3}}),
    "reals": (Struct("a" / float64, "b" / If(this.a > 1, float64)), {"a": 1.5, "b": 2}),
    "sized": (
        Struct("in" / Sized(int8, Struct("a" / int8, "b" / rest())), "c" / int8),
        {"in": {"a": 1, "b": "02"}, "c": 3},
    ),
    "sized_null": (Struct("in" / Sized(int8, Struct("a" / int8), null=-1), "c" / int8), {"in": None, "c": 3}),
    "null_in_loop": (
        Struct("list" / Sized(int8, Struct("s" / String(int16, null=-1), "t" / String(int16, null=0)))),
        {"list": {"s": None, "t": ""}},
    ),
}


def built(name: str, value: Any) -> tuple[bytes, bytes | None]:
    """What the reference engine and the generated code make of a value; None when the code hands it over."""
    layout, _ = ODD[name]
    buffer = bytearray()
    try:
        generated(name)(rows_build.State(name, Params(), wirekit.Limits()), buffer, value)
        built_bytes: bytes | None = bytes(buffer)
    except rows_build.REASONS:
        built_bytes = None
    writer = Writer(name, wirekit.Limits())
    layout._build(value, writer, Scope.root(Params()), "")
    return bytes(writer.buffer), built_bytes


@cache
def generated(name: str) -> rows_build.Unit:
    return rows_build.Builder(name, lower(ODD[name][0]), rows_build.unit).compile()


@cache
def odd_value(name: str) -> Any:
    layout, mapping = ODD[name]
    return layout.load(mapping, Scope.root(Params()))


@pytest.mark.parametrize("name", ODD)
def test_odd_layouts(name: str) -> None:
    expected, built_bytes = built(name, odd_value(name))
    assert built_bytes == expected


@pytest.mark.parametrize("name", ODD)
@given(data=st.data())
def test_edited_values_of_odd_layouts(name: str, data: st.DataObject) -> None:
    value = copy.deepcopy(odd_value(name))
    for _ in range(data.draw(st.integers(1, 3), label="edits")):
        edit(data, value)
    try:
        expected, built_bytes = built(name, value)
    except (WirekitError, TypeError, ValueError, LookupError, AttributeError):
        with pytest.raises(rows_build.REASONS):
            generated(name)(rows_build.State(name, Params(), wirekit.Limits()), bytearray(), value)
    else:
        assert built_bytes in (None, expected)


SMALL = """\
def unit0(S, o, x):
    if x.__class__ is not R0 or x._extra: raise Unusual
    m1 = len(o)
    try: v2 = x.token
    except (AttributeError, KeyError): v2 = b''
    d3 = v2 if v2.__class__ is bytes else octets(v2)
    o += pack_be_4x()
    o += d3
    m4 = len(o)
    patch_be_l(o, m1, m4 - m1 - 4)
"""


def test_generated_source_of_a_small_schema() -> None:
    assert rows_build.builder("kafka.sasl_token").source == SMALL


def test_explain_prints_the_encoder() -> None:
    from click.testing import CliRunner

    from wirekit.cli.explain import command

    assert CliRunner().invoke(command, ["kafka.sasl_token", "--engine", "build"]).output == SMALL
