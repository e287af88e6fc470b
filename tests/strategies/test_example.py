"""An example of every layout: valid, small, the same at every call, and taken by ``encode``."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import wirekit
from tests.own import declared, own
from wirekit.exports import export
from wirekit.registry import BUILT_IN, Layout, Protocol
from wirekit.wire import (
    Bytes,
    Const,
    Custom,
    If,
    IfMore,
    Length,
    Node,
    Padding,
    RecordsToEnd,
    Ref,
    Repeat,
    String,
    Struct,
    int8,
    int16,
    len_,
    rest,
    this,
    uint64,
)

ALL = wirekit.registry.keys()
KEYS = [key for key in ALL if key.partition(".")[0] in BUILT_IN]
WITHOUT = {"net.pcapng"}  # its first block must be a section header, which the list of blocks does not tell


@pytest.mark.parametrize("key", [key for key in KEYS if key not in WITHOUT])
def test_every_layout_has_a_valid_example(key: str) -> None:
    value = wirekit.example(key)
    data = wirekit.encode(key, value)
    assert wirekit.decode(data, key).clean
    assert len(data) < 1_000
    assert wirekit.example(key) == json.loads(json.dumps(value)) == value


@pytest.mark.parametrize("key", sorted(WITHOUT))
def test_a_schema_without_an_example_points_to_strategies(key: str) -> None:
    with pytest.raises(wirekit.Misuse, match="strategies"):
        wirekit.example(key)


def test_context_chooses_the_layout() -> None:
    value = wirekit.example("kafka.response", context={"api": "metadata", "version": 1})
    assert [broker["rack"] for broker in value["body"]["brokers"]] == ["text"]


def test_encode_accepts_the_output_of_example() -> None:
    command = [sys.executable, "-m", "wirekit"]
    shown = subprocess.run([*command, "example", "joyqueue.frame"], capture_output=True, check=True)
    built = subprocess.run([*command, "encode", "joyqueue.frame"], input=shown.stdout, capture_output=True, check=True)
    assert wirekit.decode(built.stdout, "joyqueue.frame").clean


def _hex_of_nonzero(data: bytes) -> str:
    if not data[0]:
        raise KeyError("zero")
    return data.hex()


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (Struct("n" / int8, "b" / Bytes(this.n - 2)), {"n": 2, "b": ""}),
        (Struct("n" / int8, "b" / Bytes(10 // this.n - 9)), {"n": 1, "b": "00"}),
        (Struct("id" / Custom(2, parse=_hex_of_nonzero, build=bytes.fromhex)), {"id": "0101"}),
        (Struct("a" / IfMore(int8), "b" / int8), {"a": 0, "b": 0}),
        (Struct("s" / Padding(2), "c" / Bytes(len_(this.s))), {"s": "0000", "c": "0000"}),
        (Struct("l" / Repeat(20, int8)), {"l": [0] * 20}),
        (Struct("start" / uint64, "gap" / Bytes(this.start - 64)), {"start": 64, "gap": ""}),
        (Struct("n" / Length(int8), "b" / Bytes(this.n - 1), "c" / int8), {"n": 5, "b": "00000000", "c": 0}),
        (
            Struct("n" / Length(int8), "p" / Length(int8, "c"), "b" / String(this.n - this.p - 1), "c" / rest()),
            {"n": 9, "p": 4, "b": "0000", "c": "74657874"},
        ),
        (Struct("l" / RecordsToEnd(int16, until=b"\1"), "end" / rest()), {"l": [0], "end": "01"}),
        (Struct("l" / RecordsToEnd(int8, until=b"\0"), "end" / Const(int8, 0)), {"l": [], "end": 0}),
        (Struct("l" / RecordsToEnd(int8, until=b"\1"), "end" / String()), {"l": [0], "end": "\1"}),
        (Struct("l" / RecordsToEnd(int8, until=b"a\0"), "end" / String(encoding="utf-16-le")), {"l": [0], "end": "a"}),
    ],
)
def test_numbers_and_bytes_are_changed_until_they_are_valid(node: Node, value: Any) -> None:
    with own(node) as key:
        assert wirekit.example(key) == value


def test_a_layout_that_is_referred_to_reads_fields_of_the_outer_one() -> None:
    outer, inner = Struct("n" / int8, "b" / Ref("referring.inner")), Struct("v" / Bytes(this._.n - 1))
    with declared(Protocol("referring", "A test's own", {"outer": Layout(outer), "inner": Layout(inner)})):
        assert wirekit.example("referring.outer") == {"n": 1, "b": {"v": ""}}


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (Struct("k" / int8, "n" / If(this.k > 0, int8), "l" / Repeat(this.n, int8)), "found None"),
        (Struct("v" / Bytes(this._.n)), r"the size \^n must be from 0 to 16777216, not None"),
        (Struct("k" / int8, "v" / If(10 // this.k > 0, int8)), r"\(\(10 // k\) > 0\) has no value"),
    ],
)
def test_a_layout_without_an_example_is_misuse_with_a_reason_and_is_exported(node: Node, reason: str) -> None:
    with own(node) as key:
        with pytest.raises(wirekit.Misuse, match=f"has no example.*{reason}.*strategies"):
            wirekit.example(key)
        assert "No small value is valid" in export([key.partition(".")[0]], "markdown").text
