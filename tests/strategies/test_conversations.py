"""Made-up conversations: plausible ones break no rule however they arrive, damaged ones show what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import find, settings

import wirekit
from tests.own import declared, own
from tests.strategies.laws import examples
from wirekit.conversation import NEED_DATA, Conversation, Description, Dialogue, Frame
from wirekit.conversation.pairing import Heads, Kind, Pairing
from wirekit.decoding import Decoded
from wirekit.errors import Misuse
from wirekit.registry import Layout, Protocol
from wirekit.rules import check
from wirekit.strategies import (
    Exchange,
    conversation,
    conversation_kinds,
    conversations,
    damaged_conversation,
    damaged_conversations,
    in_pieces,
)
from wirekit.values import SymbolTable
from wirekit.wire import Bit, Bits, Bytes, Length, Struct, Switch, this, uint8

PROTOCOLS = ["kafka", "pulsar", "joyqueue", "jmq4"]
EXPECTED = {
    "answer twice": {
        "answer_without_request",
        "answered_twice",
        "response_without_request",
        "receipt_without_send",
        "one_way_answered",
    },
    "answer to nobody": {"answer_without_request", "response_without_request", "receipt_without_send"},
    "answers out of order": {"response_out_of_order"},
    "answer left out": {"response_out_of_order"},
    "ends inside a frame": {wirekit.conversation.ENDED_INSIDE},
    "opening left out": {"command_before_connect", "lookup_before_handshake", "first_command_not_add_connection"},
}
"""The rules, or reasons, of which one names the damage; other damage shows in many ways."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_plausible_conversation_breaks_no_rule(protocol: str) -> None:
    roles = set()
    for seed in range(2):
        script = conversation(protocol, seed=seed)
        assert script.faults() == []
        follower = Conversation(protocol)
        events = [event for side, data in in_pieces(script, seed) for event in follower.receive(side, data)]
        frames = [event for event in events if event is not NEED_DATA]
        assert all(isinstance(frame, Frame) and frame.decoded.clean for frame in frames)
        assert check(protocol, frames) == []
        for side in ("client", "server"):
            sent = b"".join(turn.data for turn in script.turns if turn.side == side)
            assert b"".join(frame.data for frame in frames if isinstance(frame, Frame) and frame.side == side) == sent
        roles |= {turn.role for turn in script.turns}
        assert all(script.turns[turn.request].role == "request" for turn in script.turns if turn.request is not None)
    assert {"request", "response"} <= roles


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers_name_the_request_that_a_conversation_pairs_them_with(protocol: str) -> None:
    script, follower = conversation(protocol, seed=1), Conversation(protocol)
    frames = [event for turn in script.turns for event in follower.receive(turn.side, turn.data)]
    for turn, frame in zip(script.turns, frames, strict=True):
        assert isinstance(frame, Frame)
        assert frame.description.api == turn.api
        assert frame.request is (None if turn.request is None else frames[turn.request])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_damage_of_every_kind_shows(protocol: str) -> None:
    for kind in conversation_kinds(protocol):
        script = damaged_conversation(protocol, seed=2, length=6, kinds=[kind])
        faults = script.faults()
        assert script.damage == kind
        assert script.at is not None
        assert 0 <= script.at < len(script.turns)
        assert EXPECTED.get(kind, set(faults)) & set(faults), (kind, faults)


def test_the_shortest_conversation_can_be_damaged() -> None:
    for seed in range(10):
        assert damaged_conversation("kafka", seed=seed, length=1).faults()


def test_the_same_seed_gives_the_same_and_a_shorter_one_begins_it() -> None:
    script = conversation("pulsar", seed=3, length=10)
    assert conversation("pulsar", seed=3, length=10) == script
    assert conversation("pulsar", seed=4, length=10) != script
    shorter = conversation("pulsar", seed=3, length=5).turns
    assert script.turns[: len(shorter)] == shorter


def test_conversations_shrink_to_the_turns_that_matter() -> None:
    answers = settings(max_examples=20, database=None)
    drawn = conversations("kafka", length=5)
    answered = find(drawn, lambda script: any(turn.role == "response" for turn in script.turns), settings=answers)
    assert [turn.role for turn in answered.turns][-1] == "response"
    assert len(answered.turns) <= 4
    kinds: list[str] = []
    examples(
        damaged_conversations("kafka", kinds=["answer twice"], length=4), lambda s: kinds.append(s.damage), count=3
    )
    assert set(kinds) == {"answer twice"}


def test_given_fields_are_in_every_turn() -> None:
    script = conversation("kafka", seed=2, length=30, fields={"topic": "t", "error_code": lambda random: 0})
    follower = Conversation("kafka")
    events = [event for turn in script.turns for event in follower.receive(turn.side, turn.data)]
    text = repr([event.value for event in events if isinstance(event, Frame)])
    assert "topic='t'" in text
    assert text.count("topic=") == text.count("topic='t'")


def test_a_kind_or_pairing_that_the_protocol_lacks_is_misuse() -> None:
    with pytest.raises(Misuse, match="pulsar has no kind 'answers out of order'; choose from answer twice"):
        damaged_conversation("pulsar", kinds=["answers out of order"])
    with own(Struct("size" / Length(uint8), "kind" / uint8)) as key, pytest.raises(Misuse, match="declares no Pairing"):
        Exchange(key.partition(".")[0], Random(0))


def test_a_peer_that_floods_costs_no_search_per_frame() -> None:
    class Counted(list[Frame]):
        read = 0

        def __iter__(self) -> Iterator[Frame]:
            for each in super().__iter__():
                Counted.read += 1
                yield each

    exchange = Exchange("kafka", Random(0))
    exchange.frames = Counted()
    exchange.hear("server", (b"\0\0\0\x0a" + bytes(10)) * 200)  # responses that nobody requested
    assert len(exchange.turns) == 200
    assert Counted.read <= 200


class _Numbered(Dialogue):
    def describe(self, side: str, decoded: Decoded) -> Description:
        number = decoded.value and decoded.value.get("number")
        if side == "client":
            return Description(api="ask", correlation_id=number, role="request")
        request = self.requests.get(number)
        return Description(api=request and request.description.api, correlation_id=number, role="response")


def test_without_rules_the_kinds_are_those_that_show(monkeypatch: pytest.MonkeyPatch) -> None:
    asks, answers = (
        Heads("frame", kinds={(): kind})
        for kind in (
            Kind("ask", "frame", "request", number="number", pair=("number",), answer="frame"),
            Kind("", "", "response", number="number", pair=("number",)),
        )
    )
    module = ModuleType("numbered_pairing")
    monkeypatch.setattr(module, "PAIRING", Pairing(asks, answers), raising=False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    protocol = Protocol(
        "numbered",
        "Numbered",
        {"frame": Layout(Struct("size" / Length(uint8, frame=True), "number" / uint8))},
        client="frame",
        server="frame",
        dialogue=lambda: _Numbered,
        pairing="numbered_pairing:PAIRING",
    )
    with declared(protocol):
        kinds = conversation_kinds("numbered")
        assert kinds == ["ends inside a frame", "damaged frame"]
        assert all(
            damaged_conversation("numbered", seed=seed, kinds=[kind]).faults() for kind in kinds for seed in "ab"
        )


def test_a_kind_with_both_forms_of_answers_is_refused() -> None:
    with pytest.raises(Misuse, match="the kind 'ask' has answer='reply' and answers=\\('told',\\)"):
        Kind("ask", "ask", "request", answer="reply", answers=("told",))


class _Packets(Dialogue):
    """Requests of type 1 and 2, and their responses of type 3 and 4, by a number."""

    def describe(self, side: str, decoded: Decoded) -> Description:
        head, number = decoded.value.head, decoded.value.body.number
        role = "request" if head.type < 3 else "response"
        return Description(head.type.symbol, None, number, role, pair=(head.type % 2, number))


def test_kinds_that_bits_select(monkeypatch: pytest.MonkeyPatch) -> None:
    table = SymbolTable("type", {1: "STORE", 2: "PING", 3: "STORED", 4: "PONG"})
    bodies = {kind: Struct("number" / uint8, "text" / Bytes(kind)) for kind in range(1, 5)}
    head = Bits(uint8, "type" / Bit(4, table), "flags" / Bit(4), order="msb")
    frame = Struct("head" / head, "size" / Length(uint8, frame=True), "body" / Switch(this.head.type, bodies))
    number: dict[str, Any] = {"number": "body.number", "pair": ("body.number",)}
    asks, answers = (
        Heads("frame", ("head.type",), kinds)
        for kinds in (
            {
                (1,): Kind("STORE", "frame", "request", answers=("STORED",), **number),
                (2,): Kind("PING", "frame", "request", answers=("PONG",), **number),
            },
            {(3,): Kind("STORED", "frame", "response", **number), (4,): Kind("PONG", "frame", "response", **number)},
        )
    )
    module = ModuleType("packets_pairing")
    monkeypatch.setattr(module, "PAIRING", Pairing(asks, answers), raising=False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    layouts, pairing = {"frame": Layout(frame)}, "packets_pairing:PAIRING"
    protocol = Protocol("packets", "P", layouts, "frame", "frame", dialogue=lambda: _Packets, pairing=pairing)
    with declared(protocol):
        scripts = [conversation("packets", seed=seed, length=8) for seed in range(10)]
    assert all(len(script.turns) == 8 for script in scripts)
    assert all(turn.request is not None for script in scripts for turn in script.turns if turn.side == "server")
