"""Rules on captures: what real clients and brokers do keeps them, and where a capture begins changes nothing."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from tests.rules.conversations import CAPTURES, FIXTURES, broken, captured, joined_late, names, violations
from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.links import Missing
from wirekit.capture.tcp import Segment
from wirekit.conversation import Conversation, Event
from wirekit.rules import Checker, check, rules_of

RECORDED = sorted([*FIXTURES.glob("kafka*"), *FIXTURES.glob("pulsar*")])
MADE = {
    "jmq4-consume.pcap": {
        "consume_without_add_consumer",
        "ack_without_fetch",
        "produce_without_add_producer",
        "transaction_not_prepared",
        "request_id_not_rising",
    },
    "jmq4-document.pcap": {
        "first_command_not_add_connection",
        "produce_without_add_producer",
        "consume_without_add_consumer",
    },
    "jmq4-odd.pcap": {
        "command_after_refused_connection",
        "produce_without_add_producer",
        "request_id_not_rising",
        "consume_without_add_consumer",
        "ack_without_fetch",
    },
    "jmq4-produce.pcap": {"request_id_not_rising"},
    "jmq4-versions.pcap": {"first_command_not_add_connection", "request_id_not_rising"},
}
"""Captures that were put together from golden frames, not recorded, and what is wrong with their order."""

COMPOSED = {"4b-probe.pcapng": {"produce_after_not_leader", "fetch_after_not_leader"}}
"""Requests composed by hand, sent to one broker whatever it answers."""

APPLICATION = {"metadata.pcap": {"sequence_id_goes_back"}}
"""The application set sequence ids itself: 1000, then 0 again."""

KEPT = {path.read_bytes() for path in RECORDED}
SHARED = [
    path
    for path in (*sorted(CAPTURES.glob("pulsar/*.pcap")), *sorted(CAPTURES.glob("kafka/*/*.pcapng")))
    if path.read_bytes() not in KEPT
]
"""Captures of a larger collection, where there is one, without those that are fixtures."""

FRAMES_TO_CUT = 150
MOST_DAMAGES = 120


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_conversations_keep_the_rules(path: Path) -> None:
    assert not any(broken(path))


@pytest.mark.parametrize("name", MADE)
def test_composed_conversations_break_exactly_the_listed_rules(name: str) -> None:
    broken_rules = {
        each for link, frames in captured(FIXTURES / name) for each in names(violations(link.protocol, frames))
    }
    assert broken_rules == MADE[name]


@pytest.mark.parametrize("path", [*RECORDED, *(FIXTURES / name for name in MADE)], ids=lambda path: path.name)
def test_a_capture_that_begins_later_has_no_other_violation(path: Path) -> None:
    for link, frames in captured(path):
        joined_late(link.protocol, frames[:FRAMES_TO_CUT])


@pytest.mark.parametrize("path", SHARED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_all_recorded_captures(path: Path) -> None:
    expected = {**COMPOSED, **APPLICATION}.get(path.name, set())
    for link, frames in captured(path):
        joined_late(link.protocol, frames[:FRAMES_TO_CUT])
    assert set(chain(*broken(path))) == expected


@pytest.mark.parametrize("path", [*FIXTURES.glob("pulsar*"), *FIXTURES.glob("jmq4*")], ids=lambda path: path.name)
def test_segments_that_are_missing_or_late_break_nothing(path: Path) -> None:
    """Each segment left out, alone or with three more; each three in reverse order; one direction left out."""
    with open_capture(str(path)) as capture:
        recorded = [each for each in segments(capture) if isinstance(each, Segment)]
    whole = judged(recorded)
    damaged = [recorded[:at] + recorded[at + count :] for at in range(len(recorded)) for count in (1, 4)]
    damaged += [recorded[:at] + recorded[at : at + 3][::-1] + recorded[at + 3 :] for at in range(len(recorded))]
    damaged += [[each for each in recorded if each.source != source] for source in {each.source for each in recorded}]
    for left in damaged[:: 1 + len(damaged) // MOST_DAMAGES]:
        assert judged(left) <= whole


@pytest.mark.parametrize("path", [*FIXTURES.glob("pulsar*"), *FIXTURES.glob("jmq4*")], ids=lambda path: path.name)
def test_one_direction_from_the_middle_on_breaks_nothing(path: Path) -> None:
    """What the other side acknowledges shows that bytes are missing, although none of them was captured."""
    with open_capture(str(path)) as capture:
        recorded = [each for each in segments(capture) if isinstance(each, Segment)]
    for source in {each.source for each in recorded}:
        alone = [each for each in recorded if each.source == source]
        for begin in range(1, len(alone), 1 + len(alone) // 20):
            left = alone[begin:]
            acknowledged = {each.acknowledgment for each in left}
            assert len(acknowledged) == 1 or judged(left) == set()


@pytest.mark.parametrize("most", [20, 40, 60, 80, 200])
@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.pcap*")), ids=lambda path: path.name)
def test_frames_that_are_cut_break_nothing(path: Path, most: int) -> None:
    for (link, frames), whole in zip(captured(path), broken(path), strict=True):
        conversation, items = Conversation(link.protocol, started=link.known_start), list[Event]()
        for side, data, time_us in frames:
            items += conversation.receive(side, data[:most], time_us=time_us)
            if len(data) > most:
                items += conversation.gap(side, len(data) - most)
        assert set(names(check(link.protocol, items, started=link.known_start))) <= set(whole)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.pcap*")), ids=lambda path: path.name)
def test_a_frame_that_never_ends_breaks_nothing(path: Path) -> None:
    for (link, frames), whole in zip(captured(path), broken(path), strict=True):
        for end in range(1, len(frames), 1 + len(frames) // 40):
            conversation, items = Conversation(link.protocol, started=link.known_start), list[Event]()
            for side, data, time_us in frames[: end - 1]:
                items += conversation.receive(side, data, time_us=time_us)
            side, data, time_us = frames[end - 1]
            items += conversation.receive(side, data[:-1], time_us=time_us)
            items += conversation.close(side)
            other = [each for each in frames[end:] if each.side != side][:1]
            items += [item for each in other for item in conversation.receive(*each[:2], time_us=each.time_us)]
            assert set(names(check(link.protocol, items, started=link.known_start))) <= set(whole)


def judged(recorded: list[Segment]) -> set[str]:
    """The rules that a capture's one connection breaks."""
    checker = None
    for link, item in follow(recorded):
        if item is None:
            return set(names(checker.close(link.closed_us or None))) if checker is not None else set()
        rules = rules_of(link.protocol) if link.protocol else None
        if checker is None and rules is not None:
            checker = Checker(rules, started=link.known_start)
        if checker is not None and isinstance(item, Missing):
            checker.lose(item.side)
        elif checker is not None:
            checker.take(item)
    return set()
