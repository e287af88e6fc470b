"""Files of real brokers: segments hold what Kafka's own dump tool prints, indexes point into them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import wirekit
from tests.kafka.golden import DISK, message, message_set
from wirekit.protocols.kafka.reading import messages_of
from wirekit.protocols.kafka.segment_file import pieces_of_file

LOGS = sorted(DISK.glob("*.log"))
LINE = re.compile(
    r"offset: (?P<offset>\d+) position: (?P<position>\d+) (?:(?P<type>\w+): (?P<timestamp>-?\d+) )?"
    r"isvalid: (?P<valid>\w+) payloadsize: (?P<size>-?\d+) magic: (?P<magic>\d) compresscodec: \w+ crc: (?P<crc>\d+)"
    r"(?: keysize: (?P<keysize>\d+))?(?: key: (?P<key>.*?))?(?: payload: (?P<payload>.*))?$",
    re.DOTALL,
)
ENTRIES = {"index": "offset_index", "timeindex": "time_index"}
ENTRY_SIZES = {"index": 8, "timeindex": 12}


def dump(log: Path) -> list[dict[str, str]]:
    """What the dump tool says of each message."""
    text = log.with_name(f"{log.name}.dump.txt").read_text(errors="replace")
    lines = re.split(r"\n(?=offset: )", text)[1:]
    matches = [LINE.match(line.removesuffix("\n")) for line in lines]
    assert all(matches)
    return [match.groupdict() for match in matches if match]


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.name)
def test_segment_has_the_messages_of_its_dump(log: Path) -> None:
    decoded = wirekit.decode(log.read_bytes(), "kafka.log_segment")
    assert decoded.clean
    messages = list(messages_of(decoded, topic="t", partition=0))
    lines = dump(log)
    assert len(messages) == len(lines)
    for decoded_message, line in zip(messages, lines, strict=True):
        assert decoded_message.offset == int(line["offset"])
        assert decoded_message.crc == int(line["crc"])
        assert (decoded_message.check == "ok") == (line["valid"] == "true")
        assert (-1 if decoded_message.value is None else len(decoded_message.value)) == int(line["size"])
        assert (None if decoded_message.key is None else len(decoded_message.key)) == (
            line["keysize"] and int(line["keysize"])
        )
        if line["type"]:
            assert (decoded_message.timestamp_type or "NoTimestampType") == line["type"]
            assert (-1 if decoded_message.timestamp is None else decoded_message.timestamp) == int(line["timestamp"])
        if line["payload"] is not None and "__consumer_offsets" not in log.name:
            assert ("null" if decoded_message.value is None else decoded_message.value.decode()) == line["payload"]
            assert (decoded_message.key or b"").decode() == (line["key"] or "")


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.name)
def test_segment_is_rebuilt(log: Path) -> None:
    data = log.read_bytes()
    value = wirekit.decode(data, "kafka.log_segment").value
    assert wirekit.encode("kafka.log_segment", value) == data
    assert wirekit.encode("kafka.log_segment", wirekit.to_json(value)) == data


@pytest.mark.parametrize(
    ("log", "codecs"),
    [
        ("0.10.2.2-t-fmt09-0.log", ["none", "gzip", "lz4", "snappy"]),
        ("0.10.2.2-t-logappend-0.log", ["none", "gzip", "lz4", "snappy"]),
        ("0.10.2.2-t-gzip-0.log", ["gzip"]),
        ("0.9.0.1-t-snappy-0.log", ["snappy"]),
        ("0.8.2.2-t-lz4-0.log", ["lz4"]),
    ],
)
def test_codecs(log: str, codecs: list[str]) -> None:
    messages = messages_of(wirekit.decode((DISK / log).read_bytes(), "kafka.log_segment"))
    assert list(dict.fromkeys(message.codec for message in messages)) == codecs


@pytest.mark.parametrize("path", sorted([*DISK.glob("*.index"), *DISK.glob("*.timeindex")]), ids=lambda path: path.name)
@pytest.mark.parametrize("unused", [0, 1, 1000], ids="{}-unused-entries".format)
def test_index(path: Path, unused: int) -> None:
    """Entries point at messages of the segment, ascending; the zeros of an index that was not closed are no entries.

    A time index over messages of magic 0 has the time of the file.
    """
    kind = path.suffix[1:]
    zeros = bytes(unused * ENTRY_SIZES[kind])
    data = path.read_bytes() + zeros
    decoded = wirekit.decode(data, f"kafka.{ENTRIES[kind]}")
    assert decoded.clean
    assert decoded.value.tail == zeros
    assert wirekit.encode(f"kafka.{ENTRIES[kind]}", decoded.value) == data
    entries = decoded.value.entries
    lines = dump(path.with_suffix(".log"))
    assert [entry.relative_offset for entry in entries] == sorted({entry.relative_offset for entry in entries})
    for entry in entries:
        if kind == "index":
            at = [int(line["offset"]) for line in lines if int(line["position"]) == entry.position]
            before = [int(line["offset"]) for line in lines if int(line["position"]) < entry.position]
            assert before[-1] < entry.relative_offset <= at[-1]
        else:
            until = max(int(line["timestamp"]) for line in lines if int(line["offset"]) <= entry.relative_offset)
            assert entry.timestamp == until or (until == -1 and entry.timestamp > 0)


HELLO = message_set(message(b"hello", offset=0), message(b"again", offset=1))


def test_preallocated_segment_ends_in_zeros() -> None:
    decoded = wirekit.decode(HELLO + bytes(4096), "kafka.log_segment")
    assert decoded.clean
    assert len(decoded.value.messages) == 2
    assert decoded.value.tail == bytes(4096)
    assert wirekit.encode("kafka.log_segment", decoded.value) == HELLO + bytes(4096)


def test_preallocated_segment_without_messages() -> None:
    decoded = wirekit.decode(bytes(4096), "kafka.log_segment")
    assert decoded.clean
    assert decoded.value.messages == []
    assert decoded.value.preallocated == bytes(4096)
    assert wirekit.encode("kafka.log_segment", decoded.value) == bytes(4096)


@pytest.mark.parametrize("cut", range(1, len(HELLO) // 2))
def test_torn_last_message_is_the_tail(cut: int) -> None:
    decoded = wirekit.decode(HELLO[:-cut], "kafka.log_segment")
    assert decoded.clean
    assert len(decoded.value.messages) == 1
    assert len(decoded.value.tail) == len(HELLO) // 2 - cut


@pytest.mark.parametrize("size", [3, 0, -5])
def test_nonsense_after_the_messages_is_an_error_with_the_messages_before_it(size: int) -> None:
    nonsense = (7).to_bytes(8, "big") + size.to_bytes(4, "big", signed=True) + b"\x55" * 20
    decoded = wirekit.decode(HELLO + nonsense, "kafka.log_segment")
    assert isinstance(decoded.error, wirekit.Wrong)
    assert decoded.error.path == "messages[2].message_size"
    assert decoded.error.offset == len(HELLO) + 8
    assert [message.value for message in messages_of(decoded)] == [b"hello", b"again"]


@pytest.mark.parametrize(
    ("directory", "topic", "partition"),
    [
        ("t-none-0", "t-none", 0),
        ("__consumer_offsets-49", "__consumer_offsets", 49),
        ("t-gzip-0.67566479fb0b4d788a4c1e4001bd79c3-delete", "t-gzip", 0),
        ("disk", None, None),
        ("t-2147483647", "t", 2147483647),
        ("t-2147483648", None, None),
    ],
)
def test_directory_names_topic_and_partition(
    directory: str, topic: str | None, partition: int | None, tmp_path: Path
) -> None:
    path = tmp_path / directory / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(HELLO)
    messages = [message for piece in pieces_of_file(str(path)) for message in piece.messages]
    assert {(message.topic, message.partition) for message in messages} == {(topic, partition)}
    assert {message.schema for message in messages} == {"kafka.log_segment"}
