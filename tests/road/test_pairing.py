"""What protocols declare for the columns road: one of somebody else's, and those that come with wirekit."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("numba")

import wirekit
from tests.capture.second_parser import Packet, write
from tests.own import declared
from tests.road.law import assert_same, by_columns, odd_packets
from wirekit.compiler.columns import scan_ranges
from wirekit.compiler.columns.ranges import CLEAN, REFUSED
from wirekit.conversation import OTHER_SIDES, Description, Dialogue
from wirekit.conversation.pairing import Heads, Kind, Pairing, pairing_of
from wirekit.conversation.search import HEADS
from wirekit.engine import Decoded
from wirekit.errors import Misuse
from wirekit.registry import Layout, Protocol, register, registry
from wirekit.strategies import bulk_mutations
from wirekit.wire import IfMore, Length, Ref, String, Struct, int16, uint8, uint32

NOTE = Struct("size" / Length(uint32, minimum=6), "kind" / uint8, "number" / uint8, "text" / String(int16))
HEAD = Struct("size" / uint32, "kind" / uint8, "number" / uint8)
ASK, ANSWER, NEWS = 1, 2, 3
ROLES = {ASK: "request", ANSWER: "response", NEWS: "event"}
NAMES = {ASK: "ask", ANSWER: "answer", NEWS: "news"}


class NoteDialogue(Dialogue):
    """Requests and responses by their number."""

    def describe(self, side: str, decoded: Decoded) -> Description:
        if decoded.value is None or decoded.value.get("kind") not in NAMES:
            return Description()
        kind, number = decoded.value.kind, decoded.value.get("number")
        return Description(NAMES[kind], None, number, ROLES[kind])


KINDS = {(kind,): Kind(NAMES[kind], "note", ROLES[kind], number="number", pair=("number",)) for kind in NAMES}
PAIRING = Pairing(*[Heads("head", ("kind",), KINDS)] * 2)


@pytest.fixture(autouse=True)
def notes() -> Iterator[None]:
    register(
        Protocol(
            "notes",
            "Notes",
            {"note": Layout(NOTE, "a note"), "head": Layout(HEAD, "what it begins with")},
            client="note",
            server="note",
            recognised_by=("note",),
            dialogue=lambda: NoteDialogue,
            pairing=f"{__name__}:PAIRING",
        )
    )
    yield
    registry.unregister("notes")


def note(kind: int, number: int, text: str) -> bytes:
    return wirekit.encode("notes.note", {"kind": kind, "number": number, "text": text})


def capture(path: Path, *pieces: tuple[int, bytes], port: int = 7000, client: int = 40000) -> Path:
    """A capture of one connection with a handshake: (side, bytes) of each packet, side 0 the client's."""
    numbers = [99, 499]
    ends = ((b"\x0a\0\0\1", client), (b"\x0a\0\0\2", port))
    packets = []
    for at, (side, flags, payload) in enumerate(
        [(0, 2, b""), (1, 18, b""), *((side, 24, data) for side, data in pieces)]
    ):
        (source, source_port), (target, target_port) = ends[side], ends[1 - side]
        acknowledgment = numbers[1 - side] if flags & 16 else 0
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0, source, target)
        ports = (source_port, target_port)
        tcp = struct.pack(">HHIIBBHHH", *ports, numbers[side], acknowledgment, 0x50, flags, 65535, 0, 0)
        data = bytes(12) + b"\x08\0" + ip + tcp + payload
        packets.append(Packet(1_600_000_000_000_000 + 100 * at, len(data), data))
        numbers[side] += len(payload) + (flags & 2 == 2)
    return write(path, packets)


def test_a_protocol_of_somebody_else_is_indexed(tmp_path: Path) -> None:
    path = capture(
        tmp_path / "notes.pcap",
        (0, note(ASK, 7, "who") + note(ASK, 8, "where")[:5]),
        (0, note(ASK, 8, "where")[5:]),
        (1, note(NEWS, 0, "hello") + note(ANSWER, 8, "here")),
        (1, note(ANSWER, 7, "me")),
        (0, note(ASK, 7, "when")),
    )
    assert odd_packets(path) == (0, 0)
    assert_same(path)
    assert sum(by_columns(path, window=1 << 26)[0]["frames"].values()) == 6


def test_the_last_answer_may_be_cut(tmp_path: Path) -> None:
    path = capture(tmp_path / "notes.pcap", (0, note(ASK, 7, "who")), (1, note(ANSWER, 7, "me")[:-1]))
    assert sum(assert_same(path)["calls"].values()) == 1


def test_frames_whose_beginning_has_no_columns_are_left_to_the_dialogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaf = Struct("name" / String(uint8), "next" / IfMore(Ref("trees.leaf")))
    tree = Struct("size" / Length(uint32), "kind" / uint8, "number" / uint8, "leaf" / Ref("trees.leaf"))
    kinds = {number: replace(kind, layout="tree") for number, kind in KINDS.items()}
    pairing = Pairing(*[Heads("tree", ("kind",), kinds)] * 2)
    layouts = {"tree": Layout(tree), "leaf": Layout(leaf)}
    monkeypatch.setitem(globals(), "TREES", pairing)
    protocol = Protocol("trees", "Trees", layouts, "tree", "tree", ("tree",), dialogue=lambda: NoteDialogue)
    with declared(replace(protocol, pairing=f"{__name__}:TREES")):
        value = {"number": 7, "leaf": {"name": "a", "next": {"name": "b", "next": None}}}
        frames = [wirekit.encode("trees.tree", {**value, "kind": kind}) for kind in (ASK, ANSWER)]
        path = capture(tmp_path / "trees.pcap", *enumerate(frames))
        plain, _ = odd_packets(path)
        assert not plain
        assert sum(assert_same(path)["frames"].values()) == len(frames)


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, note_kind) for note_kind in (b"\0\0\0\x06\x09\x01\0\0", b"\0\0\0\x06\x01\x01\0\0")],
        [(0, b"\0\0\0\x06\x01\x07\0\0"), (1, b"\0\0\0\x06\x02\x08\0\0")],
        [(0, b"\0\0\0\x06\x01\x07\0\0"), (0, b"\0\0\0\x06\x01\x07\0\0")],
    ],
    ids=["a kind that is not declared", "a response without request", "a number that is in use"],
)
def test_unusual_frames_are_left_to_the_dialogue(pieces: list[tuple[int, bytes]], tmp_path: Path) -> None:
    path = capture(tmp_path / "notes.pcap", *pieces)
    plain, not_indexed = odd_packets(path)
    assert not plain
    assert not_indexed
    assert_same(path)


@pytest.mark.parametrize("name", ["kafka", "pulsar", "joyqueue", "jmq4"])
def test_layouts_that_pairings_name_are_there(name: str) -> None:
    pairing = pairing_of(name)
    assert pairing is not None
    protocol = registry.protocol(name)
    for side in ("client", "server"):
        heads = pairing.heads(side)
        layouts = {heads.layout, *(layout for kind in heads.every for layout in (kind.layout, kind.answer))}
        assert layouts - {""} <= protocol.layouts.keys()
        assert all(kind.role in ("request", "response", "event") for kind in heads.every)
        others = {kind.api for kind in pairing.heads(OTHER_SIDES[side]).kinds.values() if kind.role == "response"}
        assert {name for kind in heads.kinds.values() for name in kind.answers} <= others
        for layout in () if heads.unasked is None else heads.unasked.layouts:
            nothing = np.zeros(0, np.int64)
            batch, _ = scan_ranges(protocol.key(layout), b"", nothing, nothing, fields=[heads.unasked.text])
            assert batch.schema.field(heads.unasked.text).type == pa.list_(pa.field("item", pa.string(), False))


def test_the_search_accepts_what_a_pairing_declares_as_unasked() -> None:
    pairing, protocol = pairing_of("kafka"), registry.protocol("kafka")
    assert pairing is not None
    assert pairing.server.unasked is not None
    layouts, text = pairing.server.unasked.layouts, pairing.server.unasked.text
    counts = {"accepted": 0, "refused": 0}
    for layout in layouts:
        for mutation in islice(bulk_mutations(protocol.key(layout), seed=5), 1000):
            data = mutation.data
            fits = clean = False
            for each in layouts:
                one = np.array([0]), np.array([len(data)])
                batch, states = scan_ranges(protocol.key(each), data, *one, fields=[text, "@gap"])
                fits |= states[0] < REFUSED
                whole = states[0] == CLEAN and batch.column("@gap").to_pylist() == [0]
                clean |= whole and any(batch.column(text)[0].as_py()[:1])
            parts = [data[:size] for size in HEADS if size < len(data)] + [data]
            plausible = all(protocol.follow().plausible("server", part, len(data)) for part in parts)
            assert plausible or not clean, data.hex()
            assert fits or not plausible, data.hex()
            counts["accepted"] += clean
            counts["refused"] += not fits
    assert min(counts.values()) > 100


@pytest.mark.parametrize("answers", [[5, 9], [9, 5], [5]])
def test_a_partition_that_is_asked_for_twice_has_a_row_for_each_answer(answers: list[int], tmp_path: Path) -> None:
    """The first answer belongs to the first, the second to the second; Kafka's brokers answer it once."""
    questions = [{"partition": 0, "timestamp": time} for time in (-2, -1)]
    body = {"replica_id": -1, "topics": [{"topic": "t", "partitions": questions}]}
    request = wirekit.encode("kafka.list_offsets.request.v1", {"correlation_id": 1, "client_id": "c", "body": body})
    answered = [{"partition": 0, "error_code": 0, "timestamp": -1, "offset": offset} for offset in answers]
    body = {"responses": [{"topic": "t", "partition_responses": answered}]}
    response = wirekit.encode("kafka.list_offsets.response.v1", {"correlation_id": 1, "body": body})
    rows = assert_same(capture(tmp_path / "twice.pcap", (0, request), (1, response)))["call_topics"]
    offsets = [re.search(r"'log_offset': (\w+)", row)[1] for row in rows.elements()]
    assert sorted(offsets) == sorted(["None"] * (2 - len(answers)) + [str(offset) for offset in answers])


CLIENT = Heads("head", ("kind",), {(ASK,): Kind("ask", "note", "request", number="number", answers=("answer",))})
SERVER = Heads("head", ("kind",), {(ANSWER,): Kind("answer", "note", "response", number="number")})


@pytest.mark.parametrize(
    ("client", "problem"),
    [
        (replace(CLIENT, layout="had"), "client: no layout 'had'; choose from note, head"),
        (replace(CLIENT, fields=("knd",)), "client: head has no 'knd'; it has kind, number, size"),
        (replace(CLIENT, kinds={(ASK, 2): KINDS[ASK,]}), "client: (1, 2) must have as many numbers as fields, 1"),
        (Kind("ask", "note", "request", number="nmber"), "client ask: head has no 'nmber'; it has kind, number, size"),
        (Kind("ask", "note", "request", pair=("text",)), "client ask: head has no 'text'; it has kind, number, size"),
        (replace(CLIENT, layout="note", fields=("text",)), "client: 'text' of note is not an integer"),
        (Kind("ask", "note", "request", silent=("text", 1)), "client ask: 'text' of note is not an integer"),
        (Kind("ask", "not", "request"), "client ask: no layout 'not'; choose from note, head"),
        (Kind("ask", "note", "request", answer="not"), "client ask: no layout 'not'; choose from note, head"),
        (
            Kind("ask", "note", "request", answers=("news",)),
            "client ask: the other side has no kind 'news'; choose from an",
        ),
        (
            Kind("ask", "note", "request", silent=("txt", 1)),
            "client ask: note has no 'txt'; it has kind, number, size, ",
        ),
        (
            Kind("ask", "note", "request", answer="note", refusal=("txt", 1)),
            "client ask: note has no 'txt'; it has kind, number, size, text",
        ),
        (5, "quiz: tests.road.test_pairing:QUIZ must be a wirekit.conversation.pairing.Pairing, not 5"),
    ],
)
def test_a_pairing_that_names_nothing_is_refused(client: Any, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise all frames would be left to the dialogue, without a word."""
    heads = replace(CLIENT, kinds={(ASK,): client}) if isinstance(client, Kind) else client
    monkeypatch.setitem(globals(), "QUIZ", client if isinstance(client, int) else Pairing(heads, SERVER))
    layouts = {"note": Layout(NOTE), "head": Layout(HEAD)}
    protocol = Protocol("quiz", "Quiz", layouts, "note", "note", dialogue=lambda: Dialogue, pairing=f"{__name__}:QUIZ")
    with declared(protocol), pytest.raises(Misuse, match=re.escape(problem)):
        pairing_of("quiz")


def test_a_kind_without_a_known_role_is_refused() -> None:
    with pytest.raises(Misuse, match="the kind 'ask' has no role 'reqest'; choose from request, response, event"):
        Kind("ask", "note", "reqest")
