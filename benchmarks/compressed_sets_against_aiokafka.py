"""How fast do compressed message sets become Arrow columns, next to aiokafka's reading them?

Sets of 12 messages, as brokers store what one producer sends at a time, and of 200; times are per message. Aiokafka's
``MemoryRecords`` is Cython and verifies the checksums of wrappers, ours those of all; native libraries open the sets.
"""

from __future__ import annotations

import random

import wirekit
from benchmarks.columns_against_peers import columns, read_all
from benchmarks.timing import best

KEY = "kafka.message_set"
CODECS = ("GZIP", "SNAPPY", "LZ4")
COUNT = 48_000
SIZES = (12, 200)
DIFFERENT = 20  # sets


def compressed(codec: str, size: int) -> bytes:
    """A set of wrappers of so many messages of about 100 bytes each."""
    chance = random.Random(1)
    sets = b""
    for _ in range(DIFFERENT):
        inner = [_message(chance, number) for number in range(size)]
        wrapper = {"magic": 1, "timestamp": 1, "attributes": {"codec": codec}}
        outer = {"offset": size - 1, "message": wrapper | {"value": {"content": {"messages": inner}}}}
        sets += wirekit.encode(KEY, {"messages": [outer]})
    return sets * max(1, COUNT // (DIFFERENT * size))


def _message(chance: random.Random, number: int) -> dict[str, object]:
    note = "".join(chance.choices("abcdef ghij", k=40))
    value = f'{{"user": {chance.randrange(10**6)}, "name": "n{number}", "note": "{note}"}}'.encode()
    key = f"key-{number % 7}".encode()
    return {"offset": number, "message": {"magic": 1, "timestamp": 1, "key": key.hex(), "value": value.hex()}}


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per contender."""
    from aiokafka.record import MemoryRecords

    rows = []
    for codec in CODECS:
        for size in SIZES:
            data = compressed(codec, size)
            count = wirekit.columns(KEY, data).num_rows
            mine = best(lambda data=data: columns(data)) / count
            peer = best(lambda data=data: read_all(MemoryRecords(data))) / count
            label = f"{codec.lower()}, sets of {size} messages"
            rows.append((label, f"{mine * 1e9:.0f} ns; aiokafka {peer * 1e9:.0f} ns, {peer / mine:.1f} × ours"))
    return str(__doc__).partition("\n")[0], rows
