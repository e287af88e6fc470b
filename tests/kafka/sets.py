"""Captured frames with a message set in which the size of one entry is too large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import wirekit
from tests.kafka.golden import PDUS, Pdu, message, message_set, sized
from wirekit.protocols.kafka.reading import ENTRY_HEAD
from wirekit.strategies import Script, Turn

LISTS = {"produce": ("topic_data", "data"), "fetch": ("responses", "partition_responses")}
CALLS = {(pdu.release, pdu.line, pdu.side): pdu for pdu in PDUS}
LEAST = 3
LARGEST = (1 << 31) - 1


class Damage(NamedTuple):
    """A frame in which an entry's size is too large.

    Attributes:
        number: which entry.
        data: the frame.
        beyond: whether the size leads beyond the set.
    """

    number: int
    data: bytes
    beyond: bool


def frames_with_sets() -> list[Pdu]:
    """The shortest captured frame of each version and codec with a set of some messages, all in order."""
    by_kind: dict[tuple[str, int, str], Pdu] = {}
    for pdu in sorted(PDUS, key=lambda pdu: len(pdu.data)):
        if (pdu.api, pdu.side) in (("produce", "request"), ("fetch", "response")):
            decoded = wirekit.decode(pdu.data, pdu.key)
            topics, partitions = LISTS[pdu.api]
            sets = [each.record_set for topic in decoded.value.body[topics] for each in topic[partitions]]
            if decoded.clean and len(sets) == 1 and len(sets[0].messages) >= LEAST:
                codec = str(sets[0].messages[0].message.attributes.codec)
                by_kind.setdefault((pdu.key, bool(sets[0].partial), codec), pdu)
    return list(by_kind.values())


def script(pdu: Pdu, data: bytes) -> Script:
    """The request and the response of a captured call as they are, and again with other bytes in place of ``pdu``."""
    sides = [("client", CALLS.get((pdu.release, pdu.line, "request")))]
    sides.append(("server", CALLS.get((pdu.release, pdu.line, "response"))))
    call = [(side, each) for side, each in sides if each is not None]
    turns = [Turn(side, each.data, "", "") for side, each in call]
    turns += [Turn(side, data if each is pdu else each.data, "", "") for side, each in call]
    return Script("kafka", tuple(turns))


def entries(pdu: Pdu) -> list[tuple[int, int]]:
    """Where the entries of the frame's set begin and end."""
    spans = [each for each in wirekit.decode(pdu.data, pdu.key).spans if each.kind == "record" and not each.source]
    return [(each.start, each.end) for each in spans if each.path.endswith("]") and ".messages[" in each.path]


def damages(pdu: Pdu) -> Iterator[Damage]:
    """The frame with a size that leads into the next message, to a later one, to the set's end, and beyond."""
    places = entries(pdu)
    last = places[-1][1]
    for number in sorted({0, len(places) // 2, len(places) - 2}):
        start, end = places[number]
        for more in sorted({1, 15, places[number + 1][1] - end, last - end - 1, last - end}):
            yield Damage(number, _resized(pdu.data, start, end - start + more), beyond=False)
        for more in (1_000_000, LARGEST):
            yield Damage(number, _resized(pdu.data, start, end - start + more), beyond=True)


def _resized(data: bytes, start: int, size: int) -> bytes:
    """The frame in which the entry at a place has another size."""
    place = start + ENTRY_HEAD
    return data[: place - 4] + min(size - ENTRY_HEAD, LARGEST).to_bytes(4, "big") + data[place:]


FIRST, SECOND, THIRD = (message_set(message(bytes([value]) * 40, offset=5 + value, magic=1)) for value in range(3))


def undecodable(entry: bytes, place: int) -> bytes:
    """A message that does not decode: its magic or the length of its value is another."""
    return entry[:place] + bytes([entry[place] ^ 0x40]) + entry[place + 1 :]


def call(side: str, *sets: bytes) -> tuple[tuple[str, bytes], ...]:
    """A request and its response, one of which holds sets of some bytes."""
    produced = {"acks": 1, "timeout": 1, "topic_data": []}
    fetched = {"replica_id": -1, "max_wait_time": 1, "min_bytes": 1, "topics": []}
    question = {"correlation_id": 1, "client_id": "c", "body": produced if side == "client" else fetched}
    name = "produce" if side == "client" else "fetch"
    request = wirekit.encode(f"kafka.{name}.request.v0", question)
    topic = bytes.fromhex("00000001 0001 74") + len(sets).to_bytes(4, "big")
    head = b"" if side == "client" else bytes.fromhex("0000 0000000000000009")
    topic += b"".join(number.to_bytes(4, "big") + head + sized(each) for number, each in enumerate(sets))
    if side == "client":
        return (("client", sized(request[4:-4] + topic)),)
    return ("client", request), ("server", sized(bytes.fromhex("00000001") + topic))
