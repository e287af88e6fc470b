"""Any bytes give a value or one of our errors, and what decodes without error encodes to the same bytes.

The short form runs with the other tests; ``make fuzz`` runs it with many more examples.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wirekit
from tests.fuzz.drawing import one_of
from wirekit.errors import WireError
from wirekit.strategies.choices import upto

FIXTURES = Path(__file__).parents[2] / "fixtures"
KEYS = [key for key in wirekit.registry if key.partition(".")[0] in ("net", "kafka", "pulsar", "joyqueue", "jmq4")]
# A response says neither its API nor its version.
CONTEXT = {"kafka.response": {"api": "fetch", "version": 2}, "kafka.consumer_offsets.value": {"key_version": 1}}

FEWER = settings(max_examples=max(4, settings().max_examples // 3))
"""For what every schema's engines are also shown to agree on by ``tests.agreement``."""
HALF = settings(max_examples=max(4, settings().max_examples // 2))

INSERTED = st.binary(max_size=8)
NUMBERS = [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0", b"\0\0\xff\xff"]


@cache
def samples() -> dict[str, list[bytes]]:
    """Real bytes by schema key."""
    by_key: dict[str, list[bytes]] = {}
    for path in sorted((FIXTURES / "pulsar" / "frames").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            data = bytes.fromhex(json.loads(line)["hex"])
            if len(data) < 2000:
                by_key.setdefault("pulsar.frame", []).append(data)
    for path in sorted((FIXTURES / "kafka" / "golden").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            _add_kafka(by_key, json.loads(line))
    for line in (FIXTURES / "jmq4" / "frames.jsonl").read_text().splitlines():
        for dialect in ("joyqueue", "jmq4"):
            by_key.setdefault(f"{dialect}.frame", []).append(bytes.fromhex(json.loads(line)["hex"]))
    for name in ("pcap", "pcapng"):
        for path in sorted((FIXTURES / "pcap").glob(f"*.{name}")):
            by_key.setdefault(f"net.{name}", []).append(path.read_bytes()[:3000])
    return by_key


def _add_kafka(by_key: dict[str, list[bytes]], pair: dict[str, Any]) -> None:
    for kind in ("request", "response"):
        if pair[kind] and len(pair[kind]) < 4000:
            data = bytes.fromhex(pair[kind])
            framed = len(data).to_bytes(4, "big") + data
            by_key.setdefault(f"kafka.{kind}", []).append(framed)
            api = pair["name"]
            snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in api).lstrip("_")
            by_key.setdefault(f"kafka.{snake}.{kind}.v{pair['version']}", []).append(framed)


def check(key: str, data: bytes) -> None:
    """The law: a value or an error of ours; no error, no loss."""
    context = CONTEXT.get(key, {})
    decoded = wirekit.decode(data, key, context=context)
    assert decoded.error is None or isinstance(decoded.error, WireError)
    assert all(gap.length > 0 for gap in decoded.gaps)
    if decoded.error is not None:
        assert decoded.error.offset is not None
        wirekit.to_json(decoded.value)
        return
    assert wirekit.encode(key, decoded.value, context=context) == data[: decoded.consumed]
    shown = json.loads(json.dumps(wirekit.to_json(decoded.value)))
    assert wirekit.encode(key, shown, context=context) == data[: decoded.consumed]
    if '"nan"' not in json.dumps(shown):  # not a number is not equal to itself
        assert wirekit.from_json(key, shown, context=context) == decoded.value
    for span in decoded.spans:
        assert span.start <= span.end


@pytest.mark.parametrize("key", KEYS)
@given(data=st.binary(max_size=200))
def test_random_bytes(key: str, data: bytes) -> None:
    check(key, data)


def damaged(data: st.DataObject, originals: list[bytes]) -> bytes:
    """One of the originals with up to four changes: a byte, a number, a cut, an insertion."""
    sample = bytearray(one_of(data, originals))
    for _ in range(data.draw(upto(4), label="changes")):
        if not sample:
            break
        at = data.draw(upto(len(sample) - 1))
        kind = one_of(data, ("byte", "number", "cut", "insert"))
        if kind == "byte":
            sample[at] = data.draw(upto(255))
        elif kind == "number":
            sample[at : at + 4] = one_of(data, NUMBERS)
        elif kind == "cut":
            del sample[at:]
        else:
            sample[at:at] = data.draw(INSERTED)
    return bytes(sample)


@pytest.mark.parametrize("key", [key for key in KEYS if key in samples()])
@given(data=st.data())
def test_damaged_samples(key: str, data: st.DataObject) -> None:
    check(key, damaged(data, samples()[key]))
