"""A size that is too large in a message set of a frame: its message is bad, and those behind it are found."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

import wirekit
from tests.kafka.golden import Pdu, message, message_set
from tests.kafka.sets import FIRST, SECOND, THIRD, call, damages, entries, frames_with_sets, script, undecodable
from wirekit.compression import compress
from wirekit.conversation import Conversation, Frame, Message
from wirekit.protocols.kafka import damaged_sets

FRAMES = frames_with_sets()


def read(pdu: Pdu, data: bytes) -> Frame:
    """The frame in its conversation."""
    conversation = Conversation("kafka")
    events = [event for turn in script(pdu, data).turns for event in conversation.receive(turn.side, turn.data)]
    return [event for event in events if isinstance(event, Frame) and event.data == data][-1]


def facts(messages: list[Message]) -> list[tuple[Any, ...]]:
    return [(each.offset, each.key, each.value, each.codec, each.timestamp, each.timestamp_type) for each in messages]


def of_entry(messages: list[Message], number: int) -> list[int]:
    """Which of the messages are those of an entry: of one message, or a wrapper."""
    inside = [place for place, each in enumerate(messages) if each.facts.get("batch") == number]
    return inside or [number]


@pytest.mark.parametrize("pdu", FRAMES, ids=str)
def test_only_the_message_of_a_size_that_is_too_large_is_bad(pdu: Pdu) -> None:
    whole = read(pdu, pdu.data).messages
    for number, data, beyond in damages(pdu):
        frame = read(pdu, data)
        assert facts(frame.messages) == facts(whole), number
        bad = [place for place, each in enumerate(frame.messages) if each.check != "ok"]
        assert bad == of_entry(whole, number), number
        assert not frame.decoded.clean
        if frame.decoded.error is None:
            assert wirekit.encode(frame.schema, frame.value) == data
            assert bool(frame.decoded.gaps) is (not beyond or pdu.api == "produce")
            failed = [check.path for check in frame.decoded.checks if check.status == "bad"]
            assert any(path.endswith(".partial") for path in failed) is beyond


@pytest.mark.parametrize("pdu", FRAMES, ids=str)
def test_a_frame_or_set_decoded_alone_has_the_verdict_that_the_conversation_gives(pdu: Pdu) -> None:
    protocol = wirekit.registry.protocol("kafka")
    for _, data, _ in damages(pdu):
        frame = read(pdu, data)
        verdicts = [check for check in frame.decoded.checks if check.path.endswith(".partial")]
        alone = wirekit.decode(data, frame.schema, offset=frame.offset)
        protocol.examine(alone)
        assert [check for check in alone.checks if check.path.endswith(".partial")] == verdicts
    first, second = (message_set(message(b"v", offset=number)) for number in (1, 2))
    size = damaged_sets.ENTRY_HEAD - 1
    beyond = first[:size] + bytes([first[size] + 60]) + first[size + 1 :] + second
    decoded = wirekit.decode(beyond, "kafka.message_set", offset=100)
    protocol.examine(decoded)
    assert [(check.path, check.offset, check.status) for check in decoded.checks] == [("partial", 108, "bad")]


@pytest.mark.parametrize("pdu", FRAMES, ids=str)
def test_a_crc_is_verified_over_all_that_its_size_names_wherever_it_is_shown(pdu: Pdu) -> None:
    """Java verifies so, and a message is as good as its CRC: in the frame, alone, and again."""
    protocol = wirekit.registry.protocol("kafka")
    for number, data, beyond in damages(pdu):
        frame = read(pdu, data)
        alone = wirekit.decode(data, frame.schema, offset=frame.offset)
        protocol.examine(alone)
        assert alone.checks == frame.decoded.checks, number
        protocol.examine(alone)
        assert [each for each in alone.checks if each.kind == "crc32"] == [
            each for each in frame.decoded.checks if each.kind == "crc32"
        ]
        bad = [each for each in frame.decoded.checks if each.kind == "crc32" and each.status == "bad"]
        assert bool(bad) or beyond or frame.decoded.error is not None, number


@pytest.mark.parametrize("key", ["kafka.message_set", "kafka.log_segment"])
@pytest.mark.parametrize("covered", [False, True])
def test_bytes_behind_the_fields_count_for_the_crc_of_a_set_and_of_a_wrapper(key: str, covered: bool) -> None:
    plain = bytearray(message_set(message(b"v", offset=1)) + b"\0\0")
    plain[8:12] = (int.from_bytes(plain[8:12], "big") + 2).to_bytes(4, "big")
    if covered:
        plain[12:16] = zlib.crc32(plain[16:]).to_bytes(4, "big")
    wrapper = {"magic": 0, "attributes": {"codec": 1}, "key": None, "value": compress("gzip", bytes(plain)).hex()}
    packed = wirekit.encode("kafka.message_set", {"messages": [{"offset": 1, "message": wrapper}]})
    for data in (bytes(plain), packed):
        decoded = wirekit.decode(data, key)
        wirekit.registry.protocol("kafka").examine(decoded)
        assert all(each.status == "ok" for each in decoded.checks if each.kind == "crc32") is covered
        assert decoded.gaps


@pytest.mark.parametrize("pdu", FRAMES, ids=str)
def test_a_wrong_checksum_alone_changes_nothing_but_its_verdict(pdu: Pdu) -> None:
    whole = read(pdu, pdu.data).messages
    for number, (start, _) in enumerate(entries(pdu)):
        data = bytearray(pdu.data)
        data[start + damaged_sets.ENTRY_HEAD] ^= 1
        frame = read(pdu, bytes(data))
        assert facts(frame.messages) == facts(whole)
        assert [each.facts for each in frame.messages] == [each.facts for each in whole]
        bad = [place for place, each in enumerate(frame.messages) if each.check != "ok"]
        assert bad == of_entry(whole, number)
        assert not frame.decoded.gaps


def last_frame(side: str, *sets: bytes) -> Frame:
    conversation = Conversation("kafka")
    events = [event for who, data in call(side, *sets) for event in conversation.receive(who, data)]
    return [event for event in events if isinstance(event, Frame)][-1]


@pytest.mark.parametrize("cut", range(1, len(THIRD)))
def test_a_message_that_a_broker_cut_is_no_damage_but_a_gap_in_a_produce_request(cut: int) -> None:
    fetched, produced = (last_frame(side, FIRST + SECOND + THIRD[:cut]) for side in ("server", "client"))
    assert fetched.decoded.clean
    assert [gap.length for gap in produced.decoded.gaps] == [cut]
    for frame in (fetched, produced):
        assert [(each.value[:1], each.check) for each in frame.messages] == [(b"\0", "ok"), (b"\1", "ok")]


@pytest.mark.parametrize("side", ["server", "client"])
@pytest.mark.parametrize(("tail", "verdict"), [(bytes(11), (None, None)), (bytes(11) + b"\x60junk", (0x60, 4))])
def test_a_wrapper_that_holds_more_than_whole_messages_is_bad(
    side: str, tail: bytes, verdict: tuple[int | None, int | None]
) -> None:
    """no-kafka 3.4.3 compresses a buffer of which it has filled only a part; brokers read the messages before."""
    wrapper = message([])
    wrapper["message"]["attributes"]["codec"] = "GZIP"
    wrapper["message"]["value"] = compress("gzip", FIRST + SECOND + tail).hex()
    whole = wrapper | {"message": wrapper["message"] | {"value": compress("gzip", FIRST + SECOND).hex()}}
    frame = last_frame(side, THIRD + message_set(wrapper), message_set(whole))
    bad = [check for check in frame.decoded.checks if check.status == "bad"]
    (check,) = bad
    assert check.path.endswith("record_set.messages[1].message.value.content.partial")
    assert (check.kind, check.stored, check.computed) == ("length", *verdict)
    assert (check.source, check.offset) == (1, len(FIRST + SECOND) + (8 if verdict[0] else 0))
    alone = wirekit.decode(frame.data, frame.schema, offset=frame.offset)
    wirekit.registry.protocol("kafka").examine(alone)
    assert [check for check in alone.checks if check.status == "bad"] == bad
    assert [(each.value[:1], each.check) for each in frame.messages] == [
        (bytes([number]), "ok") for number in (2, 0, 1, 0, 1)
    ]


@pytest.mark.parametrize("side", ["server", "client"])
def test_contents_of_a_cut_or_damaged_wrapper_are_not_taken_for_messages_behind_it(side: str) -> None:
    """Compressed bytes may hold what they are of nearly as it stands."""
    stored = SECOND + THIRD
    entry = message(b"", offset=8, codec="NONE")
    entry["message"]["value"] = stored.hex()
    holds = message_set(entry)
    broken = bytearray(holds)
    broken[12] ^= 1
    for data in (FIRST + holds[:-1], FIRST + bytes(broken), FIRST + bytes(broken) + holds[:-1]):
        assert not {b"\1", b"\2"} & {each.value[:1] for each in last_frame(side, data).messages if each.value}


@pytest.mark.parametrize("side", ["server", "client"])
def test_a_message_that_does_not_decode_hides_none_behind_it(side: str) -> None:
    for place in (8, 9, 10, 11, 16):
        damaged = bytearray(SECOND)
        damaged[place] ^= 0xF0
        frame = last_frame(side, FIRST + bytes(damaged) + THIRD)
        assert not frame.decoded.clean or side == "server"
        good = [each for each in frame.messages if each.check == "ok"]
        assert [each.value[:1] for each in good] == [b"\0", b"\2"], place
        assert [each.offset for each in good] == ([5, 7] if side == "server" else [None, None])


@pytest.mark.parametrize("side", ["server", "client"])
@pytest.mark.parametrize("codec", ["NONE", "GZIP"])
def test_each_set_of_a_frame_is_searched(side: str, codec: str) -> None:
    """Also where a message at the end of one has a wrong size and nothing is behind it, and another does not decode."""
    good = message_set(message([message(b"g", magic=1)] if codec == "GZIP" else b"g", offset=9, magic=1, codec=codec))
    sizes = 1 << 20, len(SECOND + good) - 12, 3
    beyond, inside, wrong = (SECOND[:8] + size.to_bytes(4, "big") + SECOND[12:] for size in sizes)
    sets = FIRST + inside + good, beyond, FIRST + beyond + good, good, FIRST + wrong + good
    frame = last_frame(side, *sets)
    assert [(each.value[:1], each.check) for each in frame.messages] == [
        *((b"\0", "ok"), (b"\1", "bad"), (b"g", "ok")),
        *((b"\0", "ok"), (b"\1", "bad"), (b"g", "ok")),
        (b"g", "ok"),
        *((b"\0", "ok"), (b"\1", "bad"), (b"g", "ok")),
    ]
    assert [each.facts.get("batch") for each in frame.messages if each.codec == "gzip"] == (
        [2, 2, 0, 2] if codec == "GZIP" else []
    )


@pytest.mark.parametrize("place", [16, 30])
@pytest.mark.parametrize("side", ["server", "client"])
def test_an_error_in_a_set_hides_no_other_partition(side: str, place: int) -> None:
    bad = undecodable(SECOND, place)
    frame = last_frame(side, FIRST, FIRST + bad + THIRD, bad, FIRST + THIRD)
    assert [(each.partition, each.value[:1]) for each in frame.messages if each.check == "ok"] == [
        *((0, b"\0"), (1, b"\0"), (1, b"\2"), (3, b"\0"), (3, b"\2"))
    ]
    decoded = frame.decoded
    assert decoded.error is not None
    assert "[1].record_set.messages[1]" in decoded.error.path
    assert [each.path[-14:] for each in decoded.contained] == ["[1].record_set", "[2].record_set"]
    (check,) = (each for each in decoded.checks if each.kind == "layout")
    assert (check.status, "[2].record_set.messages[0]" in check.path) == ("bad", True)


MEASURED = """
import sys
import wirekit
from wirekit.tuning import collect_rarely
collect_rarely()
conversation = wirekit.Conversation("kafka")
data = [open(path, "rb").read() for path in sys.argv[1:]]
events = [event for side, part in zip(("client", "server"), data) for event in conversation.receive(side, part)]
assert len(events[-1].messages) > 100_000
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
SMALL = message_set(message(b"", magic=0))
OVERSIZED = SMALL[:11] + bytes([SMALL[11] + 4]) + SMALL[12:] + bytes(4)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measured by Linux")
@pytest.mark.parametrize(
    "sets",
    [
        [OVERSIZED * (4_000_000 // len(OVERSIZED))],
        [undecodable(SMALL, 16) + SMALL * (4_000_000 // len(SMALL))],
        [undecodable(SMALL, 16) + SMALL * 20] * (4_000_000 // (21 * len(SMALL))),
    ],
    ids=["sizes", "one set", "many sets"],
)
def test_messages_that_are_searched_take_no_more_memory_than_others(sets: list[bytes], tmp_path: Path) -> None:
    """300 MB and 20 times the input at most, with the frame's own value."""
    paths = [tmp_path / side for side in ("client", "server")]
    for path, (_, data) in zip(paths, call("server", *sets), strict=True):
        path.write_bytes(data)
    run = [sys.executable, "-c", MEASURED, *map(str, paths)]
    kibibytes = int(subprocess.run(run, capture_output=True, check=True, text=True).stdout)
    assert kibibytes * 1024 <= 300_000_000 + 20 * sum(map(len, sets))


@pytest.mark.parametrize("damaged", [False, True])
def test_messages_in_a_wrapper_up_to_a_limit_are_given(damaged: bool) -> None:
    entry = message([message(b"v", offset=number) for number in range(400)], offset=399, codec="GZIP")
    data = FIRST + (undecodable(SECOND, 16) if damaged else b"") + message_set(entry)
    limits = wirekit.Limits(memory=200_000, memory_ratio=0)
    conversation = Conversation("kafka", limits=limits)
    events = [event for who, each in call("server", data) for event in conversation.receive(who, each)]
    frame = [event for event in events if isinstance(event, Frame)][-1]
    if not damaged:
        assert isinstance(frame.decoded.error, wirekit.Limit)
        assert 100 < len(frame.messages) < 400
    assert all(each.check == "ok" for each in frame.messages)
