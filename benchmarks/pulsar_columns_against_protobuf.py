"""How fast do Pulsar SEND frames become Arrow columns, next to google.protobuf and a loop?"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import wirekit
from benchmarks.timing import best
from wirekit.compiler import cache
from wirekit.compiler.columns import program, warm

COUNT = 100_000
KEY = "pulsar.frame"
FIELDS = (
    "command.send.producer_id",
    "command.send.sequence_id",
    "entry.checksum.ok",
    "entry.metadata.producer_name",
    "entry.metadata.sequence_id",
    "entry.metadata.publish_time",
    "entry.metadata.partition_key",
    "entry.payload",
)


def send_frames(count: int) -> bytes:
    """SEND frames of one message each: about 200 bytes, 100 of payload."""
    frames = [
        {
            "command": {"type": "SEND", "send": {"producer_id": 1, "sequence_id": index, "num_messages": 1}},
            "entry": {
                "metadata": {
                    "producer_name": "standalone-0-0",
                    "sequence_id": index,
                    "publish_time": 1_700_000_000_000 + index,
                    "partition_key": f"key-{index:012d}",
                },
                "payload": bytes(range(100)),
            },
        }
        for index in range(count)
    ]
    return b"".join(wirekit.encode(KEY, frame) for frame in frames)


def chosen(data: bytes) -> pa.RecordBatch:
    """Ours, the columns that the loop gathers."""
    return wirekit.columns(KEY, data, fields=FIELDS, times="int")


def everything(data: bytes) -> pa.RecordBatch:
    """Ours, all fields of all messages."""
    return wirekit.columns(KEY, data, times="int")


def by_loop(data: bytes) -> pa.RecordBatch:
    """google.protobuf parses command and metadata, crc32c verifies, lists gather the fields."""
    from crc32c import crc32c

    from wirekit.proto import PulsarApi_pb2 as api

    columns: tuple[list[Any], ...] = tuple([] for _ in FIELDS)
    producers, sequences, verdicts, names, numbers, times, keys, payloads = columns
    view, position = memoryview(data), 0
    command, metadata = api.BaseCommand(), api.MessageMetadata()
    whole = int.from_bytes
    while position < len(data):
        end = position + 4 + whole(view[position : position + 4], "big")
        at = position + 8 + whole(view[position + 4 : position + 8], "big")
        command.ParseFromString(view[position + 8 : at])
        covered = view[at + 6 : end]
        verdicts.append(whole(view[at + 2 : at + 6], "big") == crc32c(covered))
        size = whole(covered[:4], "big")
        metadata.ParseFromString(covered[4 : 4 + size])
        send = command.send
        producers.append(send.producer_id)
        sequences.append(send.sequence_id)
        names.append(metadata.producer_name)
        numbers.append(metadata.sequence_id)
        times.append(metadata.publish_time)
        keys.append(metadata.partition_key if metadata.HasField("partition_key") else None)
        payloads.append(bytes(covered[4 + size :]))
        position = end
    kinds = (pa.uint64(), pa.uint64(), pa.bool_(), pa.string(), pa.uint64(), pa.uint64(), pa.string(), pa.binary())
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(FIELDS))


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per contender."""
    data = send_frames(1_000) * (COUNT // 1_000)
    for fields in (FIELDS, None):
        program(KEY).scan_program(fields, verdicts=False, wide=False).choose(cache.interpreter())
    ours, theirs = chosen(data), by_loop(data)
    for name in FIELDS:
        assert ours[name].equals(theirs[name]), name
    everything(data)
    few = best(lambda: chosen(data)) / COUNT
    every = best(lambda: everything(data)) / COUNT
    loop = best(lambda: by_loop(data)) / COUNT
    assert warm(KEY, fields=FIELDS)
    assert chosen(data).equals(ours)
    kernel = best(lambda: chosen(data)) / COUNT
    size = len(data) // COUNT
    return str(__doc__), [
        (f"wirekit.columns, {COUNT:,} frames of {size} bytes, {len(FIELDS)} fields", f"{kernel * 1e9:.0f} ns a frame"),
        ("the same without a kernel: the interpreter", f"{few * 1e9:.0f} ns a frame"),
        ("the interpreter, all fields", f"{every * 1e9:.0f} ns a frame"),
        (
            "google.protobuf, crc32c and a loop",
            f"{loop * 1e9:.0f} ns a frame, {loop / kernel:.1f} × ours, {loop / few:.1f} × the interpreter",
        ),
    ]
