"""Captures that end inside frames: their first bytes are calls and messages like those of frames with lost packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pyarrow as pa
import pytest

pytest.importorskip("numba")

import wirekit
from tests.capture.second_parser import packets, write
from tests.conftest import FIXTURES
from tests.kafka.golden import message, message_set
from tests.kafka.sets import call
from tests.road.law import COPIES, EXHAUSTIVE, assert_same, by_columns
from tests.road.law import by_objects as all_by_objects
from tests.road.test_contents import list_groups, undeclared
from tests.road.test_deferred import deferred
from tests.road.test_inspect import assert_same as assert_same_counts
from tests.road.test_large_frames import KINDS, SEGMENT, Turns, pieces, turns
from tests.road.test_pairing import capture
from tests.road.test_rounds import by_objects
from tests.rules.conversations import captured
from wirekit.capture.tcp import Data, Event
from wirekit.conversation import ENDED_INSIDE, SIDES
from wirekit.pipeline.rows import Rows
from wirekit.pipeline.summary import FileSummary
from wirekit.road.tables import _WORTH_COMPRESSING, _Ends
from wirekit.tables.columns import CONNECTIONS

__all__ = ["by_objects"]
NAMES = ["jmq4-odd.pcap", "kafka-0.8.2.2-4-clients.pcapng", "kafka-0.10.2.2-4-clients.pcapng", "pulsar-batch.pcap"]
FEW = ["jmq4-odd.pcap", "kafka-0.10.2.2-4-clients.pcapng", "pulsar-batch.pcap"]


def conversations(name: str) -> Iterator[Turns]:
    """The frames of each connection of a capture."""
    for _, frames in captured(FIXTURES / "pcap" / name):
        yield [(SIDES.index(each.side), each.data) for each in frames]


def ended(frames: Turns, chance: Random) -> Turns:
    """The frames up to one of them, and a part of it; often a part of the next one of the other side, too."""
    number = chance.randrange(len(frames))
    side, data = frames[number]
    cut = [(side, data[: chance.randrange(1, len(data))])]
    other = next((each for each in frames[number:] if each[0] != side), None)
    if other is not None and chance.random() < 0.5:
        cut.append((1 - side, other[1][: chance.randrange(1, len(other[1]))]))
    return [*frames[:number], *cut]


@pytest.mark.parametrize("name", NAMES if EXHAUSTIVE else FEW)
def test_connections_that_end_inside_a_frame(name: str, tmp_path: Path) -> None:
    reasons = 0
    for number, frames in enumerate(conversations(name)):
        for seed in range(COPIES):
            chance = Random(f"{name} {number} {seed}")
            cut = ended(frames, chance)
            path = capture(tmp_path / f"{number}-{seed}.pcap", *pieces(cut))
            rows = assert_same(path, windows=(1 << 26, path.stat().st_size // 3))
            assert_same_counts(path, "--output", "json")
            sent = sum(len(data) for _, data in cut)
            (row,) = wirekit.read(str(path), table="connections").read_all().to_pylist()
            assert sum(row[f"{side}_{fate}"] for side in SIDES for fate in ("frames", "quarantined")) == sent
            reasons += any(ENDED_INSIDE in row for row in rows["quarantine"])
    assert reasons


@pytest.mark.parametrize("handshake", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_last_call_is_a_call(kind: str, handshake: bool, tmp_path: Path) -> None:
    frames = list(pieces(turns(kind, SEGMENT * 4)))
    last = max(number for number, (_, data) in enumerate(frames) if len(data) == SEGMENT)
    path = capture(tmp_path / "cut.pcap", *frames[:last])
    if not handshake:
        write(path, list(packets(path))[2:])
    whole = assert_same(capture(tmp_path / "whole.pcap", *frames[: last + 2]))
    rows = assert_same(path, windows=(1 << 26, path.stat().st_size // 3))
    assert sum(rows["calls"].values()) == sum(whole["calls"].values())
    (piece,) = rows["quarantine"]
    assert ENDED_INSIDE in piece
    assert "'path': ''" not in piece


def test_the_first_messages_of_the_last_frame_are_messages(tmp_path: Path) -> None:
    ((_, question), (_, answer)) = call("server", message_set(*[message(b"v" * 50)] * 4))
    path = capture(tmp_path / "cut.pcap", (0, question), (1, answer[:-10]))
    assert sum(assert_same(path)["messages"].values()) == 3


def test_the_last_answer_is_cut_in_a_window_before_the_last(tmp_path: Path) -> None:
    calls = [each for number in range(9) for each in list_groups(number)]
    later = [list_groups(number)[0] for number in range(9, 30)]
    path = capture(tmp_path / "cut.pcap", *calls[:-1], (1, calls[-1][1][:-3]), *later)
    rows = assert_same(path, windows=range(400, 1200, 100))
    assert sum("'answered'" in row for row in rows["calls"]) == len(calls) // 2


def test_a_client_whose_first_bytes_fit_no_protocol(tmp_path: Path) -> None:
    """The first frame of the server shows the protocol; columns read the frames between the first and the last."""
    (side, junk), *sent = next(conversations("jmq4-consume.pcap"))
    cut = [(side, b"\xff" * len(junk)), *sent, (side, junk[:5])]
    rows = assert_same(capture(tmp_path / "cut.pcap", *cut), windows=(300, 700, 1500))
    position = sum(len(data) for each, data in cut if each == side) - 5
    assert sum(f"'position': {position}," in row for row in rows["quarantine"]) == 1


def test_objects_read_the_last_frames_alone(by_objects: list[Event], tmp_path: Path) -> None:
    calls = [each for number in range(1000) for each in list_groups(number)]
    path = capture(tmp_path / "cut.pcap", *calls[:-1], (1, calls[-1][1][:-3]), (0, calls[0][1][:-1]))
    by_columns(path, window=1 << 26)
    data = [each.data for each in by_objects if isinstance(each, Data)]
    assert data == [calls[-1][1][:-3], calls[0][1][:-1]]


def test_a_connection_whose_units_other_tasks_decode(tmp_path: Path) -> None:
    calls = [each for number in range(100) for each in list_groups(number)]
    path = capture(tmp_path / "cut.pcap", *calls[:-1], (1, calls[-1][1][:-3]))
    counts = Counter[str]()
    assert deferred(path, tmp_path, 2000, counts) == all_by_objects(path)
    assert counts["units"]
    assert not counts["again"]


def test_an_undeclared_request_is_before_the_last_frame(tmp_path: Path) -> None:
    calls = [each for number in range(9) for each in list_groups(number)]
    first = (0, undeclared(99, 0, 77))
    rows = assert_same(capture(tmp_path / "cut.pcap", first, *calls, (0, calls[0][1][:-1])))
    assert sum(rows["calls"].values()) == len(calls) // 2 + 2


@pytest.mark.parametrize("late", [b"", b"late"])
def test_refused_connections_are_without_payload(late: bytes, tmp_path: Path) -> None:
    """Bytes that come after a reset are payload, also after columns have reported the connection."""
    syn, syn_ack, reset, *after = packets(capture(tmp_path / "refused.pcap", (1, b""), (0, late)))
    reset = reset._replace(data=reset.data[:47] + b"\x14" + reset.data[48:])  # RST and ACK
    after = [each._replace(time_us=each.time_us + 1_000_000) for each in after if late]
    others = [
        syn._replace(time_us=syn.time_us + 100_000 * number, data=syn.data[:35] + bytes([number]) + syn.data[36:])
        for number in range(1, 6)  # of the client's port
    ]
    path = write(tmp_path / "copy.pcap", [syn, syn_ack, reset, *others, *after])
    for window in (1 << 26, 280, 100):
        assert_same(path, windows=(window,))
        (summary,) = by_columns(path, window=window)[1].files.values()
        assert (summary.without_payload, summary.connections[""]) == (6 - bool(late), 6)


def connections(count: int) -> pa.RecordBatch:
    rows = Rows(CONNECTIONS.schema)
    for number in range(count):
        times = dict.fromkeys(("time", "opened", "closed"), number)
        sizes = {"client_captured": number + 1, "client_frames": number, "client_duplicate": 1, "server_captured": 0}
        rows.add({"connection_id": f"{number:040}", "file": "a.pcap", **sizes, **times})
    batch = rows.flush()
    assert batch is not None
    return batch


@pytest.mark.parametrize("count", [_WORTH_COMPRESSING - 1, _WORTH_COMPRESSING])
def test_late_packets_correct_the_rows_that_wait(count: int) -> None:
    batch, late = connections(count), {f"{3:040}": {("client", "duplicate"): 7}}
    summary = FileSummary()
    ends = _Ends(SimpleNamespace(late=late), summary)  # type: ignore[arg-type]
    ends.wait(0, batch)
    assert [*ends.take_final(0)] == []
    ((_, corrected),) = ends.take_final(None)
    assert corrected["client_duplicate"].to_pylist() == [8 if number == 3 else 1 for number in range(count)]
    assert corrected.drop_columns("client_duplicate").equals(batch.drop_columns("client_duplicate"))
    assert (late, summary.bytes["duplicate"], summary.without_payload) == ({}, 7, 0)


def test_rows_that_wait_for_late_packets_take_little_memory() -> None:
    batch = connections(2000)
    ends, before = _Ends(SimpleNamespace(late={}), FileSummary()), pa.total_allocated_bytes()  # type: ignore[arg-type]
    ends.wait(0, batch)
    assert pa.total_allocated_bytes() - before < batch.nbytes / 4
    assert [*ends.take_final(None)] == [(CONNECTIONS.name, batch)]
