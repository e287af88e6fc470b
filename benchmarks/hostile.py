"""Inputs that would take a reader the longest: what looks like frames and is none, and what never ends.

Each function gives the bytes, or segments, of about ``size`` bytes of a capture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial

import wirekit
from wirekit.capture.follow import follow
from wirekit.capture.tcp import ACK, SYN, Segment
from wirekit.compression import compress
from wirekit.conversation.dialogue import LEAST_BEGUN

HEADERS = 70
"""Bytes of a packet in a pcap file besides its payload: record, Ethernet or IP, and TCP headers."""
CLIENT, SERVER = "10.0.0.1:40000", "10.0.0.2:9092"
MSS = 1448

PING = bytes.fromhex("00000009000000050812920100")

Work = Callable[[], object]


def times(data: bytes, size: int) -> bytes:
    """The same bytes again and again."""
    return data * (size // len(data))


def request(number: int = 7) -> bytes:
    """The smallest request of Kafka."""
    value = {"correlation_id": number, "client_id": None, "body": {}}
    return wirekit.encode("kafka.list_groups.request.v0", value)


@cache
def _requests(count: int) -> bytes:
    return b"".join(map(request, range(count)))


OVERLAPPING = 20
"""The number of bytes from the start of one to the start of the next in ``overlapping``."""


def overlapping(size: int) -> bytes:
    """Requests that begin inside each other: each decodes far into the others before it fails."""
    value = {"correlation_id": 0x01010101, "client_id": "", "body": {"topics": [""] * (size // OVERLAPPING)}}
    head = wirekit.encode("kafka.metadata.request.v0", value)[:18]
    return times(head + len(head).to_bytes(2, "big"), size)


def conversation(protocol: str, parts: Iterable[tuple[str, bytes]], *, started: bool = True, step: int = MSS) -> None:
    """Both directions, in pieces."""
    follower = wirekit.Conversation(protocol, started=started)
    for side, data in parts:
        for at in range(0, len(data), step):
            follower.receive(side, data[at : at + step])
    follower.close()


def segment(
    at: int, data: bytes = b"x", *, time_us: int = 0, flags: int = ACK, source: str = CLIENT, target: str = SERVER
) -> Segment:
    """A segment whose payload begins at a sequence number."""
    return Segment(time_us, source, target, at & 0xFFFFFFFF, 0, flags, data, 0, 0, len(data))


def _followed(segments: Iterable[Segment]) -> None:
    for _ in follow(segments):
        pass


def _inside(data: bytes) -> list[Segment]:
    """A connection that was joined in the middle."""
    return [segment(1 + at, data[at : at + MSS], time_us=at) for at in range(0, len(data), MSS)]


def _chunks(count: int) -> bytes:
    metadata = {"producer_name": "p", "sequence_id": 7, "publish_time": 1, "uuid": "u", "num_chunks_from_msg": 10**6}
    command = {"type": "SEND", "send": {"producer_id": 1, "sequence_id": 7}}
    return b"".join(
        wirekit.encode(
            "pulsar.frame",
            {"command": command, "entry": {"metadata": metadata | {"chunk_id": number}, "payload": "aa"}},
        )
        for number in range(count)
    )


def _unfinished(count: int) -> bytes:
    """First chunks of messages that never go on."""
    metadata = {"producer_name": "p", "sequence_id": 7, "publish_time": 1, "chunk_id": 0, "num_chunks_from_msg": 9}
    command = {"type": "SEND", "send": {"producer_id": 1, "sequence_id": 7}}
    return b"".join(
        wirekit.encode(
            "pulsar.frame", {"command": command, "entry": {"metadata": metadata | {"uuid": str(number)}, "payload": ""}}
        )
        for number in range(count)
    )


def _in_conversation(size: int) -> dict[str, Work]:
    junk = times(request() + b"\xff" * 3, size)
    answers = times(bytes.fromhex("000000040000002a"), size)
    small = times(bytes.fromhex("0000001000000001000200000003"), size)
    requests = _requests(size // 32)
    answered = b"".join(b"\0\0\0\x0a" + number.to_bytes(4, "big") + bytes(6) for number in range(size // 32))
    cases: dict[str, Work] = {
        "kafka: frames with junk between them, at once": partial(
            conversation, "kafka", [("client", junk)], step=len(junk)
        ),
        "kafka: requests that have one correlation id": partial(
            conversation, "kafka", [("client", times(request(), size))]
        ),
        "kafka: requests, then their answers": partial(
            conversation, "kafka", [("client", requests), ("server", answered)]
        ),
        "kafka: answers that nobody asked for": partial(conversation, "kafka", [("server", answers)]),
        "kafka: zeros": partial(conversation, "kafka", [("client", bytes(size))]),
        "kafka: overlapping requests, one byte a time": partial(
            conversation, "kafka", [("client", overlapping(size // HEADERS))], started=False, step=1
        ),
        "pulsar: pings with junk between them": partial(
            conversation, "pulsar", [("client", times(PING + b"\xff" * 3, size))]
        ),
        "pulsar: chunks of one message": partial(conversation, "pulsar", [("client", _chunks(size // 75))]),
        "pulsar: first chunks that never go on": partial(conversation, "pulsar", [("client", _unfinished(size // 75))]),
    }
    sought = {"overlapping requests": overlapping(size), "small numbers": small, "ones": b"\1" * size}
    for protocol in ("kafka", "pulsar", "jmq4"):
        for side in ("client", "server"):
            for name, data in sought.items():
                work = partial(conversation, protocol, [(side, data)], started=False)
                cases[f"{protocol}: search in {name} of the {side}"] = work
    return cases


def _in_capture(size: int) -> dict[str, Work]:
    count = size // HEADERS
    even = [segment(2 * number, time_us=number) for number in range(count // 2)]
    odd = [segment(2 * number + 1, time_us=count + number) for number in range(count // 2)]
    lone = [segment(1, b"", flags=SYN, source=f"10.1.{number >> 8}.{number & 255}:4000") for number in range(count)]
    other = [segment(0, b"", flags=SYN), segment(1, b"GET / HTTP/1.1\r\n\r\n")]
    begun = overlapping(size)[: 20 * OVERLAPPING] + b"\xff" * 40
    request_data = request()
    clients = [f"10.1.{number >> 8}.{number & 255}:4000" for number in range(size // (HEADERS + len(request_data)))]
    tiny = [segment(1, request_data, source=client) for client in clients]
    begins = [
        each
        for client in clients[: size // (2 * HEADERS + LEAST_BEGUN)]
        for each in (segment(0, b"", flags=SYN, source=client), segment(1, begun[:LEAST_BEGUN], source=client))
    ]
    gaps = [segment(3 + 2 * number, time_us=number) for number in range(count)]
    cut = [
        segment(1 + MSS * number, begun[:OVERLAPPING] * 2, time_us=number)._replace(length=MSS)
        for number in range(size // (HEADERS + 2 * OVERLAPPING))
    ]
    cases = {
        "capture: gaps that recognition waits for": [*other[:1], *gaps],
        "capture: requests that the snap length cuts": [*other[:1], *cut],
        "capture: recognition inside overlapping requests": _inside(overlapping(size)),
        "capture: segments that begin as requests and fail": other
        + [segment(19 + at, begun, time_us=at) for at in range(0, size, len(begun))],
        "capture: sequence numbers that fall": [segment(2 * (count - number)) for number in range(count)],
        "capture: a gap between every packet": [segment(2 * number, time_us=number) for number in range(count)],
        "capture: every other byte, then the others": even + odd,
        "capture: the same byte": [segment(1, time_us=number) for number in range(count)],
        "capture: zeros, one byte a packet": [segment(1 + at, b"\0", time_us=at) for at in range(count)],
        "capture: connections of one SYN": lone,
        "capture: connections of one request": tiny,
        "capture: connections that end inside their first request": begins,
    }
    return {name: partial(_followed, segments) for name, segments in cases.items()}


def _in_frames(size: int) -> dict[str, Work]:
    def run(protocol: str, data: bytes) -> None:
        for _ in wirekit.frames(protocol, data):
            pass

    return {f"{protocol}: frames of zeros": partial(run, protocol, bytes(size)) for protocol in ("kafka", "pulsar")}


def _resized(frame: bytes) -> bytes:
    """A frame whose length is that of its bytes."""
    return (len(frame) - 4).to_bytes(4, "big") + frame[4:]


@cache
def _entry(value: str = "61", codec: int = 0) -> bytes:
    """A message with its offset; the value of a compressed one is hex as it stands."""
    message = {"magic": 0, "attributes": {"codec": codec}, "value": value}
    return wirekit.encode("kafka.message_set", {"messages": [{"offset": 0, "message": message}]})


def _produced(sets: list[list[bytes]]) -> bytes:
    """A produce request without answer; entries have the length of a good one, or are written in place of one."""
    good = [[_entry("00" * (len(entry) - len(_entry("")))) for entry in entries] for entries in sets]
    data = [
        {"partition": number, "record_set": wirekit.decode(b"".join(entries), "kafka.message_set").value}
        for number, entries in enumerate(good)
    ]
    value = {"acks": 0, "timeout": 1, "topic_data": [{"topic": "t", "data": data}]}
    frame = wirekit.encode("kafka.produce.request.v0", {"correlation_id": 1, "client_id": "c", "body": value})
    for entries, others in zip(good, sets, strict=True):
        frame = frame.replace(b"".join(entries), b"".join(others), 1)
    return frame


def _nested(depth: int) -> bytes:
    """A message in compressed sets, each with a wrong checksum."""
    data = _entry()
    for _ in range(depth):
        data = _with_wrong_sum(_entry(compress("gzip", data).hex(), codec=1))
    return data


def _with_wrong_sum(entry: bytes) -> bytes:
    return entry[:12] + bytes([entry[12] ^ 1]) + entry[13:]


def with_errors(size: int) -> dict[str, Work]:
    """Frames that end in errors, or whose checks fail, and sets in which the search for messages takes the longest."""
    metadata = wirekit.encode(
        "kafka.metadata.request.v0", {"correlation_id": 1, "client_id": "c", "body": {"topics": ["topic"]}}
    )
    good = _entry()
    undecodable = good[:18] + b"\x40" + good[19:]
    oversized = good[:11] + bytes([good[11] + 2]) + good[12:] + b"\0\0"
    packed = _entry("1f8b00", codec=1)
    send = _chunks(1)
    frames = {
        "kafka: frames that are too short between others": bytes.fromhex("0000000400000007") * 63 + request(),
        "kafka: requests that end in the client's name": bytes.fromhex("0000000a0010000000000007000a"),
        "pulsar: frames that are too short between others": bytes.fromhex("0000000400000000") * 63 + PING,
        "pulsar: messages that lack what they require": bytes.fromhex("000000090000000508129a0100"),
        "kafka: requests that end inside a field": _resized(metadata[:-3]),
        "kafka: requests with a byte too many": _resized(request() + b"x"),
        "kafka: a message that does not decode": _produced([[undecodable]]),
        "kafka: sets of a message that does not decode": _produced([[undecodable]] * 40),
        "kafka: messages behind one that does not decode": _produced([[good] * 20 + [undecodable] + [good] * 20]),
        "kafka: a set of messages that do not decode": _produced([[undecodable] * 1000]),
        "kafka: sizes that are too large": _produced([[oversized] * 40]),
        "kafka: sets of a size that is too large": _produced([[oversized]] * 40),
        "kafka: zeros behind a message that does not decode": _produced([[undecodable, bytes(16_000)]]),
        "kafka: what may begin a message at each place": _produced([[undecodable, bytes.fromhex("00000010") * 4000]]),
        "kafka: wrong checksums": _produced([[_with_wrong_sum(good)] * 40]),
        "kafka: nested compressed sets with wrong checksums": _produced([[_nested(3)] * 20]),
        "kafka: compressed sets that cannot be opened": _produced([[packed] * 20]),
        "pulsar: commands that end inside a field": bytes.fromhex("0000000900000005081292") + b"\1\5",
        "pulsar: messages with a wrong checksum": send[:-1] + bytes([send[-1] ^ 1]),
    }
    cases = {
        name: partial(conversation, name.partition(":")[0], [("client", times(frame, max(size, len(frame))))])
        for name, frame in frames.items()
    }
    count = size // 32
    requests = _requests(count)
    cut = b"".join(_resized(bytes(4) + number.to_bytes(4, "big") + bytes(3)) for number in range(count))
    empty = b"".join(_resized(bytes(4) + number.to_bytes(4, "big")) for number in range(count))
    return cases | {
        "kafka: answers without a body": partial(conversation, "kafka", [("client", requests), ("server", empty)]),
        "kafka: answers that end inside a field": partial(
            conversation, "kafka", [("client", requests), ("server", cut)]
        ),
    }


def cases(size: int) -> dict[str, Work]:
    """What reads about ``size`` bytes of each kind, by what they are."""
    return _in_conversation(size) | _in_capture(size) | _in_frames(size) | with_errors(size)
