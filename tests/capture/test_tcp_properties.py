"""Any segments of TCP: bytes come out at their position, and not one is unaccounted for."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.capture.tcp_segments import CLIENT, MINUTE, MS, SERVER, handshake, of, run, segment
from wirekit.capture.tcp import (
    ACK,
    FIN,
    RST,
    SYN,
    Closed,
    Connection,
    Connections,
    Data,
    Duplicate,
    Event,
    Gap,
    Ignored,
    Opened,
    Segment,
    Settings,
)

# Random captures. A script is a list of sendings, each of which may be captured late, twice, cut or not at all; the
# other side's acknowledgments tell the truth about what was sent.


@dataclass
class Script:
    """Segments in capture order, and what was really sent."""

    sent: dict[str, bytes] = field(default_factory=dict)
    isns: dict[str, int] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    lossless: bool = True  # everything sent was captured, at most the hold time late


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Both directions of one connection, cut at random with overlaps, out of order, with loss."""
    script = Script()
    known_start = draw(st.booleans())
    isns = script.isns = {
        CLIENT: draw(st.integers(0, 2**32 - 1)),
        SERVER: draw(st.sampled_from([0, 2**31 - 20, 2**32 - 20])),
    }
    keep = draw(st.sampled_from([1.0, 1.0, 0.8, 0.3]))
    snap = draw(st.sampled_from([1 << 16, 1 << 16, 7]))
    step_us = draw(st.sampled_from([10, 1000, 4000]))
    window = draw(st.integers(0, 4))
    random = draw(st.randoms(use_true_random=False))
    planned: list[Segment] = []
    ends = dict.fromkeys(isns, 0)
    for source in isns:
        script.sent[source] = draw(st.binary(max_size=120))
    if known_start:
        planned += handshake(0, isn=isns[CLIENT], other_isn=isns[SERVER])
    fins = {source: draw(st.booleans()) for source in isns}
    while any(ends[source] < len(script.sent[source]) or fins[source] for source in isns):
        source = random.choice([s for s in isns if ends[s] < len(script.sent[s]) or fins[s]])
        other = SERVER if source == CLIENT else CLIENT
        start = max(0, ends[source] - random.choice([0, 0, 0, 5, 20]))
        end = min(len(script.sent[source]), max(ends[source], start + random.randint(1, 15)))
        flags = ACK
        if end == len(script.sent[source]) and fins[source] and random.random() < 0.5:
            flags |= FIN
            fins[source] = False
        ends[source] = max(ends[source], end)
        payload = script.sent[source][start:end]
        numbers: dict[str, Any] = {"isn": isns[source], "other_isn": isns[other]}
        planned.append(
            segment(source, 0, start, payload[:snap], length=len(payload), flags=flags, acked=ends[other], **numbers)
        )
    handshake_length = 3 if known_start else 0
    captured = planned[:handshake_length] + [s for s in planned[handshake_length:] if random.random() < keep]
    in_time = not window or step_us * (2 * window + 1) <= Settings().hold_us
    script.lossless = len(captured) == len(planned) and snap > 15 and known_start and in_time
    order = sorted(range(len(captured)), key=lambda i: i if i < handshake_length else i + random.randint(0, window))
    script.segments = [captured[i]._replace(time_us=n * step_us, offset=n * 1000) for n, i in enumerate(order)]
    return script


def both_sides(events: list[Event]) -> dict[str, list[Event]]:
    sides: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if not isinstance(event, Opened | Closed):
            sides[event.direction].append(event)
    return sides


def check_account(segments: list[Segment], events: list[Event]) -> None:
    """Every captured byte is in one event, at the place in the file that the event says."""
    total = sum(len(event.data) for event in events if isinstance(event, Data | Ignored))
    total += sum(event.length for event in events if isinstance(event, Duplicate))
    assert total == sum(len(s.payload) for s in segments)
    for event in events:
        if isinstance(event, Data | Ignored):
            (origin,) = [s for s in segments if s.offset <= event.offset < s.offset + 1000]
            begin = event.offset - origin.offset
            assert origin.payload[begin : begin + len(event.data)] == event.data
            assert origin.time_us == event.time_us


def check_tiling(events: list[Event]) -> None:
    """Within a connection, Data and Gap of a direction follow each other without overlap."""
    position: dict[str, int] = defaultdict(int)
    closed: set[str] = set()
    for event in events:
        match event:
            case Opened():
                position.clear()
                closed.clear()
            case Closed():
                now = {"client", "server"} if event.direction == "both" else {event.direction}
                assert not closed & now
                closed |= now
            case Data() | Gap():
                assert event.direction not in closed
                assert event.stream_offset == position[event.direction]
                size = len(event.data) if isinstance(event, Data) else event.length
                assert size > 0
                position[event.direction] += size
            case _:
                pass
    assert closed == {"client", "server"}


@given(scripts())
def test_captured_bytes_come_out_at_their_position(script: Script) -> None:
    events = run(*script.segments)
    if not script.segments:
        return
    check_account(script.segments, events)
    check_tiling(events)
    assert [type(event) for event in events].count(Opened) == 1
    sides = both_sides(events)
    opening = events[0]
    assert isinstance(opening, Opened)
    for address, role in ((opening.client, "client"), (opening.server, "server")):
        sent = script.sent[address]
        data = of(Data, sides[role])
        if not data:
            continue
        # Without handshake stream offset 0 is the lowest byte captured in time, so only the distances are known.
        bases = [0] if opening.known_start else range(len(sent))
        assert any(
            all(sent[base + d.stream_offset :][: len(d.data)] == d.data for d in data)
            and all(base + g.stream_offset + g.length <= len(sent) + 1 for g in of(Gap, sides[role]))
            for base in bases
        )
        if script.lossless:
            assert b"".join(d.data for d in data) == sent
            assert not of(Gap, sides[role])


@given(scripts())
def test_a_gap_holds_no_byte_that_came_in_time(script: Script) -> None:
    """After a handshake, what was captured is in Data, or it is said that it came after its gap."""
    events = run(*script.segments)
    opening = events[0] if events else None
    if not isinstance(opening, Opened) or not opening.known_start:
        return
    captured: dict[str, set[int]] = defaultdict(set)
    delivered: dict[str, set[int]] = defaultdict(set)
    for each in script.segments:
        start = (each.sequence - script.isns[each.source] - 1) % 2**32
        captured[each.source] |= set(range(start, start + len(each.payload)))
    for event in events:
        if isinstance(event, Data):
            source = opening.client if event.direction == "client" else opening.server
            delivered[source] |= set(range(event.stream_offset, event.stream_offset + len(event.data)))
        elif isinstance(event, Ignored):
            assert event.reason == "after its gap"
            (origin,) = [s for s in script.segments if s.offset <= event.offset < s.offset + 1000]
            start = (origin.sequence - script.isns[origin.source] - 1 + event.offset - origin.offset) % 2**32
            delivered[origin.source] |= set(range(start, start + len(event.data)))
    assert {source: places for source, places in delivered.items() if places} == {
        source: places for source, places in captured.items() if places
    }


@given(scripts(), st.data())
def test_a_state_carried_over_changes_nothing(script: Script, data: st.DataObject) -> None:
    settings = Settings(held_limit=data.draw(st.sampled_from([1 << 20, 2000])))
    expected = run(*script.segments, settings=settings)
    stops = data.draw(st.sets(st.integers(0, len(script.segments)), max_size=4))
    connection = Connection(settings)
    events: list[Event] = []
    for i, each in enumerate(script.segments):
        if i in stops:
            connection = Connection.from_state(json.loads(json.dumps(connection.state())), settings)
        events += connection.feed(each)
    assert events + connection.finish() == expected


hostile = st.builds(
    Segment,
    time_us=st.one_of(st.integers(0, 40), st.sampled_from([6 * MS, MINUTE, 11 * MINUTE, 12 * MINUTE, 25 * MINUTE])),
    source=st.sampled_from([CLIENT, SERVER]),
    target=st.just(""),
    sequence=st.one_of(st.integers(0, 12), st.sampled_from([2**32 - 1, 2**32 - 4, 2**30 + 5, 2**31, 2**31 + 3])),
    acknowledgment=st.one_of(st.integers(0, 20), st.sampled_from([2**32 - 1, 2**31])),
    flags=st.one_of(st.sampled_from([ACK, ACK, ACK, 0, SYN, FIN | ACK, RST]), st.integers(0, 31)),
    payload=st.binary(max_size=4),
    offset=st.just(0),
    file=st.just(0),
    length=st.integers(0, 6),
)


def in_capture_order(segments: list[Segment], *, set_back: bool = False) -> list[Segment]:
    return [
        s._replace(
            target=SERVER if s.source == CLIENT else CLIENT, offset=i * 1000, length=max(s.length, len(s.payload))
        )
        for i, s in enumerate(segments if set_back else sorted(segments, key=lambda s: s.time_us))
    ]


@given(st.lists(hostile, max_size=40), st.sampled_from([1 << 20, 600, 0]), st.sampled_from([0, 5000]), st.booleans())
def test_any_segments_at_all_are_accounted_for(
    segments: list[Segment],
    limit: int,
    hold_us: int,
    set_back: bool,
) -> None:
    segments = in_capture_order(segments, set_back=set_back)
    events = run(*segments, settings=Settings(held_limit=limit, hold_us=hold_us))
    check_account(segments, events)
    if segments:
        check_tiling(events)
    opened_events = of(Opened, events)
    assert [event.connection for event in opened_events] == list(range(len(opened_events)))


@given(st.lists(st.tuples(hostile, st.integers(0, 2)), max_size=40), st.integers(0, 40))
def test_a_whole_capture_gives_the_events_of_each_pair_alone(mixed: list[tuple[Segment, int]], stop: int) -> None:
    """... also when the state of the whole capture is carried over, and idle connections are forgotten."""
    hosts = [(f"10.0.0.{i}:4000{i}", f"10.0.1.{i}:9092") for i in range(3)]
    segments = []
    for i, (each, pair) in enumerate(sorted(mixed, key=lambda item: item[0].time_us)):
        source, target = hosts[pair] if each.source == CLIENT else hosts[pair][::-1]
        length = max(each.length, len(each.payload))
        segments.append(each._replace(source=source, target=target, offset=i * 1000, length=length))
    end_us = 40 * MINUTE

    connections = Connections()
    together: list[tuple[int, Event]] = []
    for i, each in enumerate(segments):
        if i == stop:
            connections = Connections.from_state(json.loads(json.dumps(connections.state())))
        together += connections.feed(each)
    together += connections.finish(end_us)

    alone: list[list[Event]] = []
    for addresses in hosts:
        connection = Connection()
        part = [e for each in segments if each.source in addresses for e in connection.feed(each)]
        part += connection.finish(end_us)
        for event in part:
            if isinstance(event, Opened):
                alone.append([])
            alone[-1].append(event)
    numbers = sorted({number for number, _ in together})
    assert numbers == list(range(len(alone)))
    apart = [[event for n, event in together if n == number] for number in numbers]
    for number, events in enumerate(apart):
        assert isinstance(events[0], Opened)
        assert events[0].connection == number
    unnumbered = [[events[0]._replace(connection=0), *events[1:]] for events in apart]  # type: ignore[call-arg]
    expected = [[events[0]._replace(connection=0), *events[1:]] for events in alone]  # type: ignore[call-arg]
    assert sorted(unnumbered, key=repr) == sorted(expected, key=repr)
