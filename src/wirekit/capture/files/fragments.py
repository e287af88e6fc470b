"""Puts the fragments of IP datagrams together, in bounded memory."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from typing import Any, NamedTuple

from wirekit.capture.files.items import Skipped
from wirekit.schemas.net.ip import FRAGMENT_UNIT

MOST_DATAGRAMS = 1 << 12
"""The largest number of incomplete datagrams."""
MOST_BYTES = 16 << 20
"""The maximum bytes of held fragments; each counts ``COST`` bytes besides its content."""
COST = 256
LONGEST_US = 30_000_000
"""The maximum microseconds of capture time between the first and the last fragment of a datagram."""
_LARGEST = (1 << 16) - 1


class Identity(NamedTuple):
    """The fields that all fragments of a datagram share."""

    networks: tuple[Any, ...]  # the addresses, and the identifiers of VLANs and tunnels around them
    protocol: int
    identification: int


class Fragments:
    """The fragments of datagrams that are not whole yet.

    If there are too many datagrams, or too many bytes of them, the oldest is given up; a datagram that is too old is
    given up when another of its fragments comes. Two fragments that disagree about a byte, or about the end, end their
    datagram.

    Attributes:
        lost: the packets with fragments of datagrams that were given up; the reader of the capture removes them.
        completed: the number of datagrams that became whole.
    """

    def __init__(self) -> None:
        self.lost: list[Skipped] = []
        self.completed = 0
        self._datagrams: OrderedDict[Identity, _Datagram] = OrderedDict()  # the first one is found in constant time
        self._cost = 0

    def add(
        self, identity: Identity, begin: int, content: bytes, packets: list[Skipped], *, more: bool
    ) -> tuple[bytes, list[Skipped]] | None:
        """Takes a fragment; returns the content of its datagram, and the other packets of it, if it is whole now.

        Args:
            identity: the identity of the datagram.
            begin: the place of the fragment in the datagram, in bytes.
            content: the fragment.
            packets: the packets that the fragment came in: its own, after those with fragments of a tunnel around it.
            more: whether the datagram continues after the fragment.
        """
        if not content or begin + len(content) > _LARGEST or (more and len(content) % FRAGMENT_UNIT):
            self.lost += packets
            return None
        datagram = self._datagrams.get(identity)
        if datagram is not None and abs(packets[-1].time_us - datagram.first_us) > LONGEST_US:
            self._give_up(identity)
            datagram = None
        if datagram is None:
            if len(self._datagrams) == MOST_DATAGRAMS:
                self._give_up(next(iter(self._datagrams)))
            datagram = self._datagrams[identity] = _Datagram(packets[-1].time_us)
        cost = len(content) + COST * len(packets)
        datagram.packets += packets
        datagram.cost += cost
        self._cost += cost
        if not datagram.place(begin, content, more=more):
            self._give_up(identity)
        elif datagram.size == datagram.end:
            self._cost -= self._datagrams.pop(identity).cost
            self.completed += 1
            return b"".join(content for _, content in datagram.pieces), datagram.packets[:-1]
        while self._cost > MOST_BYTES:
            self._give_up(next(iter(self._datagrams)))
        return None

    def end(self) -> list[Skipped]:
        """Gives up all datagrams; returns the result of ``take_lost``."""
        while self._datagrams:
            self._give_up(next(iter(self._datagrams)))
        return self.take_lost()

    def take_lost(self) -> list[Skipped]:
        """Removes and returns ``lost``."""
        lost, self.lost = self.lost, []
        return lost

    def _give_up(self, identity: Identity) -> None:
        datagram = self._datagrams.pop(identity)
        self._cost -= datagram.cost
        self.lost += datagram.packets


class _Datagram:
    """The fragments of a datagram.

    Attributes:
        first_us: capture time of the first one.
        packets: their packets.
        pieces: (place, bytes) of each part, in order and disjoint.
        size: bytes of the pieces.
        end: bytes of the datagram, -1 while unknown.
        cost: the bytes that the fragments count against the limit.
    """

    __slots__ = ("cost", "end", "first_us", "packets", "pieces", "size")

    def __init__(self, first_us: int) -> None:
        self.first_us = first_us
        self.packets: list[Skipped] = []
        self.pieces: list[tuple[int, bytes]] = []
        self.size, self.end, self.cost = 0, -1, 0

    def place(self, begin: int, content: bytes, *, more: bool) -> bool:
        """Adds the bytes that are not there yet; False if the fragment contradicts others."""
        stop = begin + len(content)
        if not more:
            if self.end not in (-1, stop):
                return False
            self.end = stop
        furthest = max(stop, self.pieces[-1][0] + len(self.pieces[-1][1])) if self.pieces else stop
        if 0 <= self.end < furthest:
            return False
        fresh, at = list[tuple[int, bytes]](), begin
        first = max(bisect_left(self.pieces, (begin,)) - 1, 0)
        for number in range(first, len(self.pieces)):
            place, content_there = self.pieces[number]
            end = place + len(content_there)
            if end <= at:
                continue
            if place >= stop:
                break
            low, high = max(place, at), min(end, stop)
            if content_there[low - place : high - place] != content[low - begin : high - begin]:
                return False
            if at < low:
                fresh.append((at, content[at - begin : low - begin]))
            at = high
        if at < stop:
            fresh.append((at, content[at - begin :]))
        for piece in fresh:
            insort(self.pieces, piece)
            self.size += len(piece[1])
        return True
