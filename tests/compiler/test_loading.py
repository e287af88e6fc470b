"""Both engines make the same records and bytes of JSON and of plain mappings, or refuse with the same words."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirekit
from tests.fuzz.drawing import one_of
from tests.fuzz.test_any_bytes import CONTEXT, HALF, KEYS, samples
from wirekit import encoding
from wirekit.compiler.rows import build as rows_build
from wirekit.compiler.rows import direct as rows_direct
from wirekit.compiler.rows import load as rows_load
from wirekit.engine import TIMES_BEFORE_REFERENCE, TIMES_BEFORE_RETRY, Params
from wirekit.strategies.choices import upto
from wirekit.values import Record, Symbol

FEW = 12  # samples of a key whose JSON form is edited
ODD = [
    None,
    True,
    -1,
    3,
    1 << 70,
    0.5,
    "zz",
    "0a",
    "",
    b"\x01",
    [],
    [None],
    {},
    {"value": 2},
    {"$keep": ["x"]},
    {"$no": 1},
    [[]],
    {"value": []},
]
EXTRAS = {
    "$keep": [[], {}, 5, "size", ["sise"], [1], None],
    "$trailing": [{}, 5, {"size": "zz"}, {"size": 1}, {"sise": "00"}],
    "$raw": [{}, [], 5, {"size": "zz"}, {"size": 1 << 70}],
    "$bytes": ["zz", 5, "00", None],
    "$unknown": [7, [7], [{}], [{"number": 99, "wire_type": 3, "value": 1}], [{"number": 99, "wire_type": 5}]],
    "$other": [None],
    "nothing": [{}],
}


def outcome(key: str, obj: Any, engine: str) -> Any:
    """The value with all its classes, or what the error says."""
    try:
        return spelled(wirekit.from_json(key, obj, context=CONTEXT.get(key, {}), engine=engine))
    except wirekit.WirekitError as error:
        return type(error), str(error)


def spelled(value: Any) -> Any:
    """A value with what equality does not see: classes, names of symbols, extras."""
    if isinstance(value, Record):
        fields = {name: spelled(item) for name, item in value._pairs()}
        return type(value), fields, spelled(value._extra)
    if isinstance(value, Symbol):
        return "symbol", int(value), value.symbol
    if isinstance(value, dict):
        return {name: spelled(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [spelled(item) for item in value]
    return type(value), repr(value)


def built(key: str, obj: Any, engine: str) -> Any:
    """The bytes, or what the error says."""
    try:
        return wirekit.encode(key, obj, context=CONTEXT.get(key, {}), engine=engine)
    except wirekit.WirekitError as error:
        return type(error), str(error), error.to_json() if isinstance(error, wirekit.WireError) else None


def same(key: str, obj: Any) -> None:
    before = repr(obj)
    assert outcome(key, obj, "rows") == outcome(key, obj, "reference")
    assert built(key, obj, "rows") == built(key, obj, "reference")
    assert repr(obj) == before, "loading changes nothing"


@cache
def json_forms(key: str) -> list[Any]:
    """What the command line prints of the samples."""
    decoded = [wirekit.decode(data, key, context=CONTEXT.get(key, {})) for data in samples()[key]]
    return [json.loads(json.dumps(wirekit.to_json(each.value))) for each in decoded]


def plain(value: Any) -> Any:
    """A value as somebody who writes it by hand would: dicts, bytes, bare numbers; lengths and checksums left out."""
    if isinstance(value, Record):
        names = {"Bits": ()}.get(type(value).__name__, ("size", "length", "crc", "checksum", "message_size"))
        return {name: plain(item) for name, item in value._pairs() if name not in names}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, Symbol) else value


@cache
def plain_forms(key: str) -> list[Any]:
    """The samples, written by hand."""
    return [plain(wirekit.decode(data, key, context=CONTEXT.get(key, {})).value) for data in samples()[key]]


def places(obj: Any) -> Iterable[tuple[Any, Any]]:
    """(object or list, name or index) of everything inside a piece of JSON."""
    fields: list[tuple[Any, Any]] = []
    for name, item in obj.items() if isinstance(obj, dict) else enumerate(obj):
        fields.append((obj, name))
        if isinstance(item, (dict, list)):
            fields += places(item)
    return fields


def test_code_is_generated_for_every_schema() -> None:
    for key in KEYS:
        assert callable(rows_load.unit(key))
        assert callable(rows_direct.unit(key))


@pytest.mark.parametrize("key", samples())
def test_real_values(key: str) -> None:
    for obj in json_forms(key):
        same(key, obj)
        assert rows_load.unit(key)(rows_load.State(Params(CONTEXT.get(key, {}))), obj) is not None


@pytest.mark.parametrize("key", samples())
def test_plain_values(key: str) -> None:
    for obj in plain_forms(key):
        same(key, obj)


@pytest.mark.parametrize("forms", [json_forms, plain_forms])
@pytest.mark.parametrize("key", samples())
@HALF
@given(data=st.data())
def test_edited_values(key: str, forms: Callable[[str], list[Any]], data: st.DataObject) -> None:
    obj = copy.deepcopy(one_of(data, forms(key)[:FEW]))
    for _ in range(1 + data.draw(upto(2))):
        fields = list(places(obj))
        if not fields:
            break
        inside, name = one_of(data, fields)
        edit = one_of(data, ("odd", "absent", "more"))
        if edit == "odd":
            inside[name] = copy.deepcopy(one_of(data, ODD))
        elif edit == "absent":
            del inside[name]
        elif isinstance(inside, dict):
            more = one_of(data, sorted(EXTRAS))
            inside[more] = copy.deepcopy(one_of(data, EXTRAS[more]))
    same(key, obj)


def test_values_pass_through() -> None:
    message = {"magic": 1, "attributes": {"codec": "GZIP"}, "timestamp": 5, "value": b"a"}
    whole = wirekit.from_json("kafka.message", message, engine="rows")
    assert whole == wirekit.from_json("kafka.message", message, engine="reference")
    assert (whole.attributes.codec, whole.value, "key" in whole) == (1, b"a", False)
    assert wirekit.from_json("kafka.message", whole, engine="rows") is whole
    table = wirekit.from_json("kafka.message_set", {"messages": [{"offset": 1, "message": whole}]}, engine="rows")
    assert table.messages[0].message is whole


def test_plain_mappings_need_no_records() -> None:
    message = {"magic": 1, "attributes": 0, "timestamp": 5, "value": "61"}
    value = {"messages": [{"offset": 1, "message": message}, {"offset": 2, "message": {**message, "value": b"b"}}]}
    buffer = bytearray()
    state = rows_build.State("kafka.message_set", Params({}), wirekit.Limits())
    rows_direct.unit("kafka.message_set")(state, buffer, value)
    assert bytes(buffer) == wirekit.encode("kafka.message_set", value, engine="reference")
    for odd in ({**value, "other": 1}, {**value, "$keep": []}, {"messages": ()}, {"messages": [None]}):
        with pytest.raises(rows_build.REASONS):
            rows_direct.unit("kafka.message_set")(state, bytearray(), odd)


@pytest.mark.parametrize("engine", ["rows", "reference"])
@pytest.mark.parametrize(
    ("key", "more", "problem"),
    [
        ("kafka.metadata.request.v0", {"$keep": 5}, r"v0: \$keep must be a list of field names, not 5"),
        ("kafka.metadata.request.v0", {"$keep": "size"}, r"\$keep must be a list of field names, not 'size'"),
        ("kafka.metadata.request.v0", {"$keep": ["sise"]}, "there is no field 'sise'"),
        ("kafka.metadata.request.v0", {"$keep": ["size"]}, "but no value is given for it"),
        ("kafka.metadata.request.v0", {"$raw": {"size": "zz"}}, r"\$raw of 'size' must be an integer"),
        ("kafka.metadata.request.v0", {"$trailing": 5}, r"\$trailing must be an object"),
        ("kafka.metadata.request.v0", {"$trailing": {"size": "zz"}}, r"\$trailing of 'size' must be bytes in hex"),
        ("pulsar.frame", {"command": {"type": "PING", "$unknown": 7}}, r"command: \$unknown must be a list"),
        ("pulsar.frame", {"command": {"$bytes": "zz"}}, r"command: \$bytes must be bytes in hex"),
        ("pulsar.frame", {"command": {"type": "PING", "ping": {"x": 1}}}, r"command\.ping: .* it has none"),
        (
            "kafka.message_set",
            {"messages": [{}, {"message": {"magic": 1, "crc": [], "key": "z"}}]},
            r"messages\[1\]\.m",
        ),
    ],
)
def test_an_error_in_json_names_the_field(key: str, more: Any, problem: str, engine: str) -> None:
    plain = {"correlation_id": 1, "client_id": "me", "body": {"topics": []}} if key.startswith("kafka.metadata") else {}
    with pytest.raises(wirekit.Misuse, match=problem):
        wirekit.encode(key, {**plain, **more}, engine=engine)


@pytest.mark.parametrize("engine", ["rows", "reference"])
@pytest.mark.parametrize(
    ("key", "record"),
    [("kafka.list_groups.request.v0", {"client_id": "c", "body": {}}), ("pulsar.command", {"type": "PING"})],
)
@pytest.mark.parametrize(
    "more",
    [
        {"\x1b" * 500: 1},
        {"$\x1b" * 500: 1},
        {"$trailing": {"\x1b" * 500: "00"}},
        {"$trailing": {"size\x1b" * 500: "z"}},
        {"$raw": {"size\x1b" * 500: "z"}},
        {"$width": {"size\x1b" * 500: "z"}},
        {"$keep": ["size\x1b" * 500]},
    ],
)
def test_a_name_in_an_error_is_short_and_printable(key: str, record: Any, more: Any, engine: str) -> None:
    with pytest.raises(wirekit.Misuse) as error:
        wirekit.encode(key, {**record, **more}, engine=engine)
    assert len(str(error.value)) < 2_000
    assert str(error.value).isprintable()


def test_a_choice_without_its_selecting_field_is_an_error() -> None:
    with pytest.raises(wirekit.Wrong, match=r"^kafka\.request: api_key: expected a value, found nothing$"):
        wirekit.encode("kafka.request", {"correlation_id": 1, "body": {}})


def test_mappings_that_are_loaded_are_not_tried_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []

    def directly(*args: Any, real: Callable[..., bytes | None] = encoding._directly_built) -> bytes | None:
        tried.append(args)
        return real(*args)

    monkeypatch.setattr(encoding, "_directly_built", directly)
    plain = {"correlation_id": 1, "client_id": "c", "body": {}}
    loaded = {"size": {"value": 11}, **plain}
    key = "kafka.list_groups.request.v0"
    expected = wirekit.encode(key, plain, engine="reference")
    for _ in range(5 * TIMES_BEFORE_RETRY):
        assert wirekit.encode(key, loaded, engine="rows") == expected
    assert len(tried) < 2 * TIMES_BEFORE_REFERENCE
    while len(tried) < 2 * TIMES_BEFORE_REFERENCE:
        wirekit.encode(key, plain, engine="rows")
    tried.clear()
    wirekit.encode(key, plain, engine="rows")
    assert tried
