"""An optional field whose presence the bytes tell is written so that a reader takes it as it was, or refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import wirekit
from tests.own import own
from wirekit.errors import Misuse, WireError
from wirekit.wire import (
    Array,
    Bytes,
    Checked,
    Const,
    IfMore,
    IfNext,
    Length,
    Node,
    Sized,
    Struct,
    Varint,
    rest,
    uint8,
    uint16,
    uint32,
)

Value = dict[str, Any]
TEXTS = [bytes(each) for size in range(4) for each in product((0, 1, 2), repeat=size)]
NUMBERS = (None, 1, 2)


def written(*values: int | bytes | None) -> bytes:
    """Fields one after the other, whatever a reader makes of them; numbers of a byte."""
    return b"".join(value if isinstance(value, bytes) else b"" if value is None else bytes([value]) for value in values)


def sized(data: bytes) -> bytes:
    return bytes([len(data)]) + data


ONE = Struct("a" / IfNext(b"\1", uint8), "b" / IfMore(uint8))
LAYOUTS: dict[str, tuple[Node, Iterator[tuple[Value, Value, bytes]]]] = {
    "bytes of two": (
        Struct("a" / IfNext(b"\1\2", uint16), "b" / rest()),
        (
            ({"a": a, "b": b}, {"a": a, "b": b}, written(None if a is None else a.to_bytes(2, "big"), b))
            for a, b in product((None, 0x0102, 0x0103, 0x0201), TEXTS)
            if a or b
        ),
    ),
    "two in front of the end": (
        Struct("a" / IfMore(uint8), "b" / IfMore(uint8)),
        (({"a": a, "b": b}, {"a": a, "b": b}, written(a, b)) for a, b in product(NUMBERS, NUMBERS) if a or b),
    ),
    "inside a length": (
        Struct("s" / Sized(uint8, ONE), "c" / rest()),
        (
            ({"s": {"a": a, "b": b}, "c": c}, {"s.a": a, "s.b": b, "c": c}, sized(written(a, b)) + c)
            for a, b, c in product(NUMBERS, NUMBERS, TEXTS)
        ),
    ),
    "inside a varint's length, in front of a field outside": (
        Struct("size" / Length(Varint(32), ("a", "b")), "a" / IfNext(b"\1", uint8), "b" / IfMore(uint8), "c" / rest()),
        (
            ({"a": a, "b": b, "c": c}, {"a": a, "b": b, "c": c}, sized(written(a, b)) + c)
            for a, b, c in product(NUMBERS, NUMBERS, TEXTS)
        ),
    ),
    "in front of a length": (
        Struct("all" / Length(uint8), "a" / IfNext(b"\2\1", uint16), "size" / Length(uint8), "b" / rest()),
        (
            ({"a": a, "b": b}, {"a": a, "b": b}, sized(written(a and a.to_bytes(2, "big"), sized(b))))
            for a, b in product((None, 0x0201, 0x0102), TEXTS)
        ),
    ),
    "in a list": (
        Struct("n" / uint8, "l" / Array(uint8, Struct("x" / uint8, "a" / IfNext(b"\1", uint8))), "t" / rest()),
        (
            (
                {"n": 0, "l": [{"x": x, "a": a} for x, a in items], "t": t},
                {"n": 0, "l.x": [x for x, _ in items], "l.a": [a for _, a in items], "t": t},
                written(0, len(items), *(value for item in items for value in item), t),
            )
            for items in (((x, a), (y, b)) for x, a, y, b in product((1, 2), NUMBERS, (1, 2), NUMBERS))
            for t in (b"", b"\1", b"\2\1")
        ),
    ),
    "in a list, in front of the end": (
        Struct("n" / uint8, "l" / Array(uint8, Sized(uint8, ONE))),
        (
            (
                {"n": 0, "l": [{"a": a, "b": b} for a, b in items]},
                {"n": 0, "l.a": [a for a, _ in items], "l.b": [b for _, b in items]},
                written(0, len(items), *(sized(written(a, b)) for a, b in items)),
            )
            for items in (((a, b), (c, d)) for a, b, c, d in product(NUMBERS, repeat=4))
        ),
    ),
}


def outcome(build: Callable[[], bytes]) -> bytes | str:
    """The bytes, or the path of the field that is refused, without indexes."""
    try:
        return build()
    except WireError as error:
        return re.sub(r"\[\d+\]", "", error.path)
    except Misuse as error:
        return re.sub(r".*: row 0: |\[\d+\]|: .*", "", str(error))


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_built_value_is_read_again_and_all_others_are_refused(name: str) -> None:
    node, cases = LAYOUTS[name]
    refused = 0
    with own(node) as key:
        types = {
            field.name: pa.list_(field.type.value_type) if pa.types.is_list(field.type) else field.type
            for field in wirekit.columns(key, b"").schema
        }
        for value, columns, data in cases:
            decoded = wirekit.decode(data, key, engine="reference")
            expressible = decoded.error is None and not decoded.gaps and _without_lengths(decoded.value) == value
            batch = pa.RecordBatch.from_pydict({each: pa.array([columns[each]], types[each]) for each in columns})
            results = [
                outcome(lambda: wirekit.encode(key, value, engine="reference")),  # noqa: B023
                outcome(lambda: wirekit.encode(key, value, engine="rows")),  # noqa: B023
                outcome(lambda: wirekit.build_columns(key, batch)),  # noqa: B023
            ]
            if expressible:
                assert results == [data] * 3, value
            else:
                assert all(isinstance(each, str) for each in results), (value, results)
                assert len({*results}) == 1, (value, results)
            refused += not expressible
    assert refused


def _without_lengths(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_lengths(each) for each in value]
    if isinstance(value, wirekit.Record):
        return {name: _without_lengths(each) for name, each in value.items() if name not in ("all", "size")}
    return value


def test_in_front_of_a_checksum() -> None:
    """Inside a length that ends with it, so that it is computed later."""
    layout = Struct(
        "size" / Length(uint8, ("a", "sum")),
        "a" / IfNext(b"\x35\x24", uint16),
        "sum" / Checked(uint32, "crc32", "b"),
        "b" / rest(),
    )
    with own(layout) as key:
        for data, is_taken in ((b"abc", True), (b"abd", False)):
            batch = pa.RecordBatch.from_pydict({"a": pa.array([None], pa.uint16()), "b": [data]})
            results = [outcome(lambda: wirekit.encode(key, {"a": None, "b": data}, engine=engine))  # noqa: B023
                       for engine in ("reference", "rows")]  # fmt: skip
            results.append(outcome(lambda: wirekit.build_columns(key, batch)))  # noqa: B023
            if is_taken:
                assert results == ["a"] * 3
            else:
                assert results[0] == results[1] == results[2] != "a"


@pytest.mark.parametrize("engine", ["reference", "rows"])
def test_kept_fields_are_written(engine: str) -> None:
    """A constant with another value, and a length that does not end where its fields do."""
    constant = Struct("a" / IfNext(b"\1", Struct("magic" / Const(uint8, 1), "x" / uint8)), "b" / rest())
    with own(constant) as key:
        unchanged = {"magic": 2, "x": 3, "$keep": ["magic"]}
        assert wirekit.encode(key, {"a": unchanged, "b": b"\5"}, engine=engine) == b"\2\3\5"
    with own(Struct("m" / IfNext(b"\1", Const(uint8, 1)), "b" / rest())) as key:
        assert wirekit.encode(key, {"m": 2, "b": b"\5", "$keep": ["m"]}, engine=engine) == b"\2\5"
    with own(Struct("size" / Length(uint8, "a"), "a" / IfMore(uint8), "b" / Bytes(1))) as key:
        value = {"size": 1, "a": None, "b": b"\5", "$keep": ["size"]}
        assert wirekit.encode(key, value, engine=engine) == b"\1\5"


def test_the_error_names_the_field() -> None:
    layout = Struct("items" / Array(uint8, Struct("a" / IfNext(b"\1\2", uint16), "b" / uint8)), "c" / rest())
    with own(layout) as key:
        value = {"items": [{"a": None, "b": 1}, {"a": None, "b": 2}], "c": b""}
        with pytest.raises(WireError, match=r"items\[0\]\.a: expected a value, because a reader takes .* 0102"):
            wirekit.encode(key, value)
