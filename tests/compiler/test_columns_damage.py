"""Damaged records in columns: each is an error, and loses no neighbour."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import wirekit
from tests.agreement.walk import compare
from tests.compiler.samples import CASES, SAMPLES, entries, message, mixed
from wirekit.compiler import cache as columns_cache
from wirekit.compiler.columns import program, scan, warm

pytestmark = pytest.mark.usefixtures("own_layouts")


def test_a_bad_crc_is_a_verdict() -> None:
    data = bytearray(wirekit.encode("kafka.message_set", {"messages": [message(n, 1, b"value") for n in range(3)]}))
    data[entries(data)[1] + 36] ^= 1
    batch, errors = compare("kafka.message_set", bytes(data))
    assert batch["message.crc.ok"].to_pylist() == [True, False, True]
    assert errors.num_rows == 0


def test_a_damaged_record_loses_no_neighbour() -> None:
    data = mixed()
    whole = wirekit.columns("kafka.message_set", data)
    for start, end in zip(entries(data), entries(data)[1:], strict=False):
        damaged = bytearray(data)
        damaged[start + 16] = 9  # no such magic
        batch, errors = compare("kafka.message_set", bytes(damaged))
        assert errors.to_pylist()[0] == {
            "offset": start,
            "length": end - start,
            "kind": "wrong",
            "path": "message.magic",
            "at": start + 16,
            "reason": "expected magic: V0 (0), V1 (1), found 9",
            "limit": None,
            "depth": 0,
            "wrapper": None,
            "at_depth": 0,
        }
        mine = [
            (whole["@depth"][i].as_py(), whole["@wrapper"][i].as_py(), whole["@offset"][i].as_py())
            for i in range(whole.num_rows)
        ]
        undamaged = [
            index for index, (depth, wrapper, offset) in enumerate(mine) if (wrapper if depth else offset) != start
        ]
        assert batch.num_rows == len(undamaged)
        assert batch["message.value"].to_pylist() == whole["message.value"].take(pa.array(undamaged)).to_pylist()


@pytest.mark.parametrize("key", SAMPLES)
def test_cut_at_every_length(key: str) -> None:
    data = SAMPLES[key]()
    for size in range(0, len(data), max(1, len(data) // 250)):
        compare(key, data[:size])


NUMBERS = [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0", b"\0\0\xff\xff", b"\0\0\0\x0e"]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A part of some bytes, of which a few are others, or gone."""
    damaged = bytearray(data[: chance.randrange(1, min(len(data), 900) + 1)])
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(damaged))
        if chance.random() < 0.4:
            damaged[place : place + 4] = chance.choice(NUMBERS)
        elif chance.random() < 0.5:
            damaged[place] = chance.randrange(256)
        else:
            del damaged[place : place + chance.randrange(1, 9)]
        if not damaged:
            break
    return bytes(damaged)


@pytest.mark.parametrize("key", SAMPLES)
def test_mutated_bytes(key: str) -> None:
    data, chance = SAMPLES[key](), random.Random(17)
    for _ in range(CASES):
        compare(key, mutated(data, chance))


def as_bits(column: pa.Array) -> pa.Array:
    """A column in which nothing differs from itself, as a float may that is no number."""
    return column.view(pa.int64()) if column.type == pa.float64() else column


@pytest.mark.parametrize("key", ["kafka.message_set", "pulsar.frame", "columnstest.readings", "columnstest.marked"])
def test_a_kernel_gives_the_rows_of_the_interpreter(key: str, kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is in the bytes. Kernels are kept apart, so that all other tests are of the interpreter."""
    data, chance = SAMPLES[key](), random.Random(29)
    inputs = [data, data * 50, b"", *(mutated(data, chance) for _ in range(CASES // 5))]
    scan_program = program(key).scan_program(None, verdicts=False, wide=False)
    interpreted = [scan(key, each) for each in inputs]
    monkeypatch.setenv(columns_cache.VARIABLE, str(kernels / "own"))
    monkeypatch.setattr(columns_cache, "_modules", {})
    try:
        assert warm(key)
        assert columns_cache.has_kernels()
        assert scan_program.scan() is not columns_cache.interpreter()
        for each, (batch, errors) in zip(inputs, interpreted, strict=True):
            again, wrong = scan(key, each)
            assert again.schema.equals(batch.schema, check_metadata=True)
            pairs = zip(again.columns, batch.columns, strict=True)
            assert all(as_bits(column).equals(as_bits(other)) for column, other in pairs)
            assert wrong.equals(errors)
        compiled = columns_cache._modules
        monkeypatch.setattr(columns_cache, "_modules", {})  # as in another process
        columns_cache._has_stored_kernels.cache_clear()
        scan_program.choose(None)
        assert columns_cache.has_kernels()
        assert scan_program.scan().__name__ == "scan"
        assert [each.__name__ for each in columns_cache._modules.values()] == [compiled[scan_program.kernel].__name__]
    finally:
        columns_cache._has_stored_kernels.cache_clear()
        scan_program.choose(columns_cache.interpreter())


@pytest.mark.parametrize("key", SAMPLES)
def test_random_bytes(key: str) -> None:
    chance = random.Random(23)
    for _ in range(CASES // 2):
        size = chance.randrange(120)
        data = (
            chance.randbytes(size)
            if chance.random() < 0.5
            else bytes(chance.choice(b"\0\0\0\1\2\xff\x0e") for _ in range(size))
        )
        compare(key, data)
