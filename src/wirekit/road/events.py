"""Converts packets and streams of a window to the events that objects process."""

from __future__ import annotations

import heapq
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from wirekit.capture.tcp import Closed, Data, Event, Segment, Side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirekit.road.packets import Packets
    from wirekit.road.streams import Streams

SIDES: tuple[Side, Side] = ("client", "server")


def segment_of(packets: Packets, row: int, files: list[int]) -> Segment:
    """A packet of a window.

    Args:
        packets: the window.
        row: the packet.
        files: the number of each file of the capture.
    """
    begin, size = int(packets.begin[row]), int(packets.size[row])
    return Segment(
        int(packets.time[row]),
        packets.endpoints.text(int(packets.source[row])),
        packets.endpoints.text(int(packets.target[row])),
        int(packets.sequence[row]),
        int(packets.acknowledgment[row]),
        int(packets.flags[row]),
        bytes(packets.data[begin : begin + size]),
        int(packets.position[row]),
        files[packets.file[row]],
        int(packets.length[row]),
    )


def events(streams: Streams, flow: int, places: tuple[int, int] | None = None) -> Iterator[tuple[int, Event]]:
    """(rank, event) for the bytes and the ends of both sides of a plain connection, in the order of their ranks.

    Args:
        streams: the window.
        flow: the connection.
        places: the place in ``Streams.stream`` from which each side is read; by default the start of its bytes.
    """
    begins = streams.starts[flow].tolist() if places is None else places
    stops, ended = streams.stops[flow].tolist(), streams.ended[flow, :, 0].tolist()
    sides = [
        _events_of(streams, flow, side, begins[side])
        for side in range(2)
        if begins[side] < stops[side] or ended[side] >= 0
    ]
    return heapq.merge(*sides, key=itemgetter(0)) if len(sides) > 1 else chain.from_iterable(sides)


def _events_of(streams: Streams, flow: int, side: int, begin: int) -> Iterator[tuple[int, Event]]:
    """The events of one side."""
    name, first = SIDES[side], int(streams.starts[flow, side])
    before = int(streams.offsets[flow, side])
    stop, piece = int(streams.stops[flow, side]), int(streams.pieces[flow, side])
    if begin > first:
        piece = int(np.searchsorted(streams.ends, begin, side="right"))
    while begin < stop:
        end, time_us = int(streams.ends[piece]), int(streams.times[piece])
        data = streams.stream[begin:end].tobytes()
        yield int(streams.ranks[piece]), Data(name, data, before + begin - first, time_us, 0, 0)
        begin, piece = end, piece + 1
    rank, time_us = streams.ended[flow, side].tolist()
    if rank >= 0:
        yield rank, Closed(name, "fin", time_us)
