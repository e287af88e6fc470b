"""Bodies opened in columns: a row a message, of batches too, and what is damaged stays and is told."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import wirekit
from tests.compiler.cells import differences
from tests.jmq4.test_opened import MESSAGES, message
from wirekit.compiler.columns import scan
from wirekit.values import Record

JOYQUEUE, DOCUMENTED = "joyqueue.message_opened", "jmq4.message_opened"
BATCH: dict[str, Any] = {"content": {"messages": MESSAGES}}


def of(key: str, body: Any, **code: Any) -> bytes:
    value = message(body, **code)
    if key == DOCUMENTED:
        del value["magic"]
        if code.get("batch"):
            named = [{**each, "business_id": (each["business_id"] or "").encode() or None} for each in MESSAGES]
            value["body"] = {"content": {"messages": named}}
    return wirekit.encode(key, value)


def samples(key: str) -> list[bytes]:
    zlib = 2 if key == JOYQUEUE else 1
    return [
        of(key, b"plain"),
        of(key, None),
        of(key, {"content": b"a body " * 20}, compressed=1, compression=zlib),
        of(key, BATCH, batch=1),
        of(key, BATCH, batch=1, compressed=1, compression=zlib),
        of(key, b"last"),
    ]


def compare(key: str, parts: list[bytes]) -> pa.RecordBatch:
    """Rows against what the reference engine gives of each message; what it cannot open has a verdict."""
    batch, errors = scan(key, b"".join(parts))
    batch.validate(full=True)
    errors.validate(full=True)
    rows = iter(batch.to_pylist())
    for data in parts:
        decoded = wirekit.decode(data, key, engine="reference")
        assert decoded.error is None
        checks = [check for check in decoded.checks if check.kind != "decompression"]
        body = decoded.value.body
        content = body.content if isinstance(body, Record) else body
        wanted = list(content.messages) if isinstance(content, Record) else [None]
        for index, inner in enumerate(wanted or [None]):
            row = next(rows)
            assert not [each for each in differences(key, row, decoded.value, checks) if not each.startswith("body:")]
            if inner is None:
                opened = content is not body
                assert (row["body"], row["body.ok"]) == (None if wanted == [] else content, opened or row["body.ok"])
                continue
            assert (row["@index"], row["body"], row["body.ok"]) == (index, None, True)
            assert {name: row[f"body.messages.{name}"] for name in inner._fields} == dict(inner.items())
    assert next(rows, None) is None
    return batch


@pytest.mark.parametrize("key", [JOYQUEUE, DOCUMENTED])
def test_bodies_are_opened(key: str) -> None:
    batch = compare(key, samples(key))
    assert batch["@index"].to_pylist() == [None, None, None, 0, 1, 0, 1, None]
    assert batch["body"].to_pylist() == [b"plain", None, b"a body " * 20, None, None, None, None, b"last"]
    assert batch["body.ok"].to_pylist() == [None, None, True, True, True, True, True, None]
    assert set(batch["body_crc.ok"].to_pylist()) == {True}


def test_what_does_not_decompress_stays_as_it_is() -> None:
    data = wirekit.encode("joyqueue.message", message(b"no zlib", compressed=1, compression=2))
    batch, errors = scan(JOYQUEUE, data * 2)
    assert batch["body"].to_pylist() == [b"no zlib"] * 2
    assert batch["body.ok"].to_pylist() == [False] * 2
    assert errors["kind"].to_pylist() == ["decompression"] * 2


@pytest.mark.parametrize("key", [JOYQUEUE, DOCUMENTED])
def test_damage_in_a_batch_keeps_what_is_good_and_its_neighbours(key: str) -> None:
    chance = random.Random(5)
    whole = of(key, BATCH, batch=1)
    body = wirekit.decode(whole, key).value.body.compressed
    at = whole.index(body)
    for _ in range(150):
        damaged = bytearray(body)
        damaged[chance.randrange(len(damaged))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        data = whole[:at] + bytes(damaged) + whole[at + len(body) :]
        decoded = wirekit.decode(data, key, engine="reference")
        batch, errors = scan(key, of(key, b"before") + data + of(key, b"after"))
        batch.validate(full=True)
        assert (batch["body"].to_pylist()[0], batch["body"].to_pylist()[-1]) == (b"before", b"after")
        bad = False in batch["body.ok"].to_pylist()
        told = [check.status == "bad" for check in decoded.checks if check.kind == "decompression"]
        assert (bad, errors.num_rows > 0) == (any(told), any(told))
        if not bad:
            found = batch["body.messages.body"].to_pylist()[1:-1]
            assert found in ([each.body for each in decoded.value.body.content.messages], [None])


def test_what_asks_for_too_much_is_an_error_and_its_neighbours_are_rows() -> None:
    bomb = of(JOYQUEUE, {"content": bytes(200_000)}, compressed=1, compression=2)
    batch, errors = scan(
        JOYQUEUE, of(JOYQUEUE, b"a") + bomb + of(JOYQUEUE, b"b"), limits=wirekit.Limits(decompressed=99)
    )
    assert batch["body"].to_pylist() == [b"a", b"b"]
    assert errors["kind"].to_pylist() == ["limit"]
