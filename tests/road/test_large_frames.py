"""Frames that are larger than what is searched for them: at the start of a connection, and behind lost bytes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

pytest.importorskip("numba")

import wirekit
from tests.capture.second_parser import packets, write
from tests.kafka.golden import message, message_set
from tests.kafka.sets import call
from tests.pulsar.commands import entry, receipt, send
from tests.pulsar.commands import message as pulsar_message
from tests.road.law import assert_same
from tests.road.test_pairing import capture
from wirekit.conversation.dialogue import LARGEST_WAITED
from wirekit.conversation.joined import RECOGNISE_WITHIN, recognise_piece

SEGMENT = 1448
HANDSHAKE = 2  # packets
CALLS = 3
SIZES = (RECOGNISE_WITHIN // 4, RECOGNISE_WITHIN * 3 // 2, LARGEST_WAITED + 1)
KINDS = ("produce", "fetch", "send", "message")
Turns = list[tuple[int, bytes]]
"""(side, bytes) of each frame; side 0 is the client's."""


def turns(kind: str, size: int) -> Turns:
    """Calls of Kafka or Pulsar; on one side, their frames have about ``size`` bytes."""
    payload = bytes(range(256)) * (size // 256)
    if kind in ("send", "message"):
        send_command = send if kind == "send" else pulsar_message
        commands = chain.from_iterable(
            (send_command(number, entry(payload)), receipt(number)) for number in range(CALLS)
        )
        return [(("client", "server").index(each.side), each.data) for each in commands]
    side = "client" if kind == "produce" else "server"
    frames = dict(call(side, message_set(message(payload))))
    frames.setdefault(
        "server", wirekit.encode("kafka.produce.response.v0", {"correlation_id": 1, "body": {"responses": []}})
    )
    keys = [f"kafka.{kind}.{role}.v0" for role in ("request", "response")]
    values = [wirekit.decode(frames[each], key).value for each, key in zip(("client", "server"), keys, strict=True)]
    if kind == "produce":
        values[0].body.timeout = 30_000
    cut_turns = []
    for number in range(CALLS):
        for value in values:
            value.correlation_id = number
        cut_turns += [
            (which, wirekit.encode(key, value)) for which, (key, value) in enumerate(zip(keys, values, strict=True))
        ]
    return cut_turns


def pieces(frames: Turns, segment: int = SEGMENT) -> Iterator[tuple[int, bytes]]:
    """The frames in segments; each begins with one."""
    for side, data in frames:
        yield from ((side, data[at : at + segment]) for at in range(0, len(data), segment))


def large(frames: Turns, number: int) -> int:
    """Which packet is the third one of a large frame."""
    sizes = [-(-len(data) // SEGMENT) for _, data in frames]
    places = [HANDSHAKE + sum(sizes[:at]) for at, size in enumerate(sizes) if size > 2]
    return places[number] + 2


def follow(path: Path) -> int:
    """How many frames both roads find."""
    rows = assert_same(path, windows=(1 << 26, path.stat().st_size // 5))
    return sum(rows.get("frames", {}).values())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_frame_of_a_connection(kind: str, size: int, tmp_path: Path) -> None:
    frames = turns(kind, size)
    assert follow(capture(tmp_path / "whole.pcap", *pieces(frames))) == len(frames)


@pytest.mark.parametrize("kind", KINDS)
def test_a_first_frame_of_many_segments(kind: str, tmp_path: Path) -> None:
    """It is whole before the next attempt by the number of segments."""
    frames = turns(kind, RECOGNISE_WITHIN + SEGMENT)
    assert follow(capture(tmp_path / "whole.pcap", *pieces(frames, 400))) == len(frames)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_that_is_joined_inside_a_frame(kind: str, size: int, tmp_path: Path) -> None:
    frames = turns(kind, size)
    path = capture(tmp_path / "whole.pcap", *pieces(frames))
    path = write(tmp_path / "joined.pcap", list(packets(path))[large(frames, 0) :])
    lost = 2 if kind in ("produce", "fetch") else 1  # the call, or only the message
    assert follow(path) == len(frames) - lost


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_packet_that_is_lost_inside_a_frame(kind: str, size: int, number: int, tmp_path: Path) -> None:
    frames = turns(kind, size)
    remaining = list(packets(capture(tmp_path / "whole.pcap", *pieces(frames))))
    del remaining[large(frames, number)]
    assert follow(write(tmp_path / "lost.pcap", remaining)) == len(frames) - 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_first_frame_that_the_snap_length_cut(kind: str, tmp_path: Path) -> None:
    path = capture(tmp_path / "whole.pcap", *pieces(turns(kind, SEGMENT * 3)))
    path = write(tmp_path / "cut.pcap", [each._replace(data=each.data[:1000]) for each in packets(path)])
    protocol = "pulsar" if kind in ("send", "message") else "kafka"
    assert all(f"'protocol': '{protocol}'" in row for row in assert_same(path)["connections"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_first_packet_that_is_lost(kind: str, tmp_path: Path) -> None:
    frames = turns(kind, SEGMENT * 3)
    remaining = list(packets(capture(tmp_path / "whole.pcap", *pieces(frames))))
    del remaining[HANDSHAKE]
    lost = 1 if kind in ("send", "message") else 2  # the call, or only the message
    assert follow(write(tmp_path / "lost.pcap", remaining)) == len(frames) - lost


CONNECT = ((0, b"CONNECT broker:9092 HTTP/1.1\r\n\r\n"), (1, b"HTTP/1.1 200 OK\r\n\r\n"))
SOCKS5 = (
    *((0, bytes.fromhex("050100")), (1, bytes.fromhex("0500"))),
    *((0, bytes.fromhex("050100017f0000012384")), (1, bytes.fromhex("05000001000000000000"))),
)
"""The first bytes may begin a frame of 84 MB."""


@pytest.mark.parametrize("size", [40, SEGMENT * 3, RECOGNISE_WITHIN])
@pytest.mark.parametrize("start", [CONNECT, SOCKS5], ids=["connect", "socks5"])
def test_a_connection_through_a_proxy(start: tuple[tuple[int, bytes], ...], size: int, tmp_path: Path) -> None:
    frames = turns("produce", size)
    path = capture(tmp_path / "proxy.pcap", *start, *pieces(frames))
    assert follow(path) == len(frames)


@pytest.mark.parametrize("number", range(len(SOCKS5)))
@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_packet_of_a_proxy(kind: str, number: int, tmp_path: Path) -> None:
    """The bytes of the proxy on the other side are no frame either."""
    frames = turns(kind, 40)
    remaining = list(packets(capture(tmp_path / "proxy.pcap", *SOCKS5, *pieces(frames))))
    del remaining[HANDSHAKE + number]
    assert follow(write(tmp_path / "lost.pcap", remaining)) == len(frames)


def test_other_bytes_do_not_begin_a_frame() -> None:
    late = [recognise_piece(side, bytes(size)) for side in ("client", "server") for size in (0, 11, 64, SEGMENT)]
    assert late == [None] * len(late)
    [(_, request), _] = turns("produce", 1000)[:2]
    assert recognise_piece("client", request[:23]) is None  # the topic of a produce request is behind it
    for side, swapped in (("client", False), ("server", True)):
        for size in (40, len(request)):
            recognised = recognise_piece(side, request[:size])
            assert recognised is not None
            assert (recognised.protocol, recognised.swapped) == ("kafka", swapped)
