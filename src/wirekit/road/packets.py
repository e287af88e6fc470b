"""Reads capture files into arrays of TCP segments, by the layouts of ``net`` in the columns engine.

The payloads of usual tunnels (in UDP, GRE and IP) are scanned as packets again. A packet that is still not plainly a
TCP segment is dissected as an object. Objects read all of a damaged file, because they search for packets after the
damage.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import merge
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.capture.columns import WINDOW, Records, Sections, records
from wirekit.capture.endpoints import host_and_port
from wirekit.capture.files import Capture, Damaged, Packet, Skipped, dissect
from wirekit.capture.files import segments as segments_by_objects
from wirekit.capture.files.dissecting import MOST_LAYERS, count_lost, endpoint_text
from wirekit.capture.files.fragments import Fragments
from wirekit.capture.tcp import ACK, FIN, PSH, RST, SYN, Segment
from wirekit.compiler.columns.arrow import integers
from wirekit.compiler.columns.ranges import REFUSED, scan_ranges
from wirekit.road.compiled import loop
from wirekit.schemas.net import ip, link, tunnels
from wirekit.storage import FileRange
from wirekit.values import SymbolTable

_IPV6 = 1 << 62  # is set in the number of an endpoint whose address is one of IPv6
PORT_BITS = 16
AT_ONCE = 1 << 12
"""The number of packets that are converted to objects at once."""
SCANNED_AT_ONCE = 1 << 16
"""The number of packets that are scanned at once: their columns take some 600 bytes a packet, and those without a TCP
segment are objects."""
_BITS = {"fin": FIN, "syn": SYN, "rst": RST, "psh": PSH, "ack": ACK}
_NETWORKS = {"ipv4": "total_length", "ipv6": "payload_length"}
_FIELDS = {
    "source": ("source", "tcp.source_port"),
    "target": ("destination", "tcp.destination_port"),
    "sequence": ("tcp.sequence_number",),
    "acknowledgment": ("tcp.acknowledgment_number",),
    "flags": tuple(f"tcp.flags.{name}" for name in _BITS),
    "begin": (),
}
"""The columns of ``net.packet`` for an array of ``Packets``; a name without a layer is in each of ``_NETWORKS``."""
ALL = tuple(_FIELDS)
SEGMENTS = (
    "time",
    "source",
    "target",
    "sequence",
    "acknowledgment",
    "flags",
    "begin",
    "size",
    "length",
    "position",
    "file",
)
"""The arrays of ``Packets``, with an element for each segment."""
_LENGTHS = ("tcp.payload", "data.trailer")
_INSIDE: dict[str, tuple[tuple[str | None, str, SymbolTable | None], ...]] = {
    "packet": (("ipv4.protocol", "ipv4.payload", ip.PROTOCOLS), ("ipv6.next_header", "ipv6.payload", ip.PROTOCOLS)),
    "udp": (("destination_port", "payload", tunnels.PORTS),),
    "vxlan_gpe": (("next_protocol", "payload", tunnels.NEXT_PROTOCOLS),),
    "gtp_u": (("protocol", "payload", tunnels.FIRST_BYTES),),
    "geneve": (("protocol_type", "payload", link.ETHERTYPES),),
    "gre": (("protocol_type", "payload", link.ETHERTYPES),),
    **dict.fromkeys(tunnels.FRAMES, ((None, "payload", None),)),
}
"""By layout: the columns of an undecoded payload and of the field that selects its layout, and the field's symbols.

Tunnels of other layouts are left to objects.
"""
REASONS = ("udp", *sorted({each.symbol.lower() for each in ip.PROTOCOLS if each.symbol} - {"tcp", "udp"}))
"""The reasons for which most packets have no segment; objects find the others."""
_PLAINLY = {reason: number for number, reason in enumerate(REASONS, 1)}
_FRAGMENT = ("ipv4.fragment.more_fragments", "ipv4.fragment.fragment_offset")
_LINK_TYPES = {"ethernet": 1, "ppp": 9, "ip": 101}
_REMEMBERED = 1 << 15  # texts of endpoints
_OFFSET_BITS = 44  # of an offset in a file
RANKS = 4
"""The number of ranks of the events with one packet; see ``follow_streams``."""


class Endpoints:
    """Converts addresses with ports to numbers, and back.

    Attributes:
        text: returns the text of an endpoint's number, in the form of ``Segment``.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}  # IPv6 addresses
        self._list: list[bytes] = []
        self.text = lru_cache(_REMEMBERED)(self._text)

    def numbers(self, addresses: pa.Array, ports: NDArray[Any]) -> NDArray[Any]:
        """The endpoints of a column of addresses, all of one length and none null."""
        _, offsets, data = addresses.buffers()
        if not len(addresses):
            return np.zeros(0, np.int64)
        places = np.frombuffer(offsets, np.int32)[addresses.offset :][: len(addresses) + 1]
        values = np.frombuffer(data, np.uint8)[places[0] : places[-1]]
        if values.size == 4 * len(addresses):
            return values.view(">u4").astype(np.int64) << PORT_BITS | ports
        unique, which = np.unique(values.reshape(-1, 16), axis=0, return_inverse=True)
        mapped = np.array([self._number(each.tobytes()) for each in unique], np.int64)
        return mapped[which.ravel()] << PORT_BITS | ports | _IPV6

    def number(self, text: str) -> int:
        """The number of an endpoint, from its text in the form of ``Segment``."""
        host, port = host_and_port(text)
        address = ipaddress.ip_address(host)
        if address.version == 4:
            return int(address) << PORT_BITS | port
        return self._number(address.packed) << PORT_BITS | port | _IPV6

    def _text(self, number: int) -> str:
        port = number & (1 << PORT_BITS) - 1
        if number & _IPV6:
            return endpoint_text(self._list[(number ^ _IPV6) >> PORT_BITS], port)
        return endpoint_text((number >> PORT_BITS).to_bytes(4, "big"), port)

    def _number(self, address: bytes) -> int:
        if address not in self._known:
            self._known[address] = len(self._list)
            self._list.append(address)
        return self._known[address]


@dataclass(slots=True)
class Packets:
    """TCP segments of a capture as arrays, in the order of its files.

    Attributes:
        time: capture time, microseconds since the epoch.
        source, target: numbers of endpoints.
        sequence, acknowledgment, flags: as in ``wirekit.capture.tcp.Segment``.
        begin, size: the start of the payload in ``data``, and the number of captured bytes.
        length: bytes of payload on the wire.
        endpoints: the addresses with the numbers of endpoints.
        data: bytes of one or more files.
        position: the offset of the payload in its file.
        file: the place of the file among those of the capture.
        origin: the range of a file that ``data`` was read from, if other tasks may read it again; else None.
        skipped: the packets without a TCP segment, each with the place of its file.
    """

    time: NDArray[Any]
    source: NDArray[Any]
    target: NDArray[Any]
    sequence: NDArray[Any]
    acknowledgment: NDArray[Any]
    flags: NDArray[Any]
    begin: NDArray[Any]
    size: NDArray[Any]
    length: NDArray[Any]
    endpoints: Endpoints
    data: memoryview
    position: NDArray[Any]
    file: NDArray[Any]
    origin: FileRange | None
    skipped: list[tuple[int, Skipped]] = field(default_factory=list)

    def arrival(self, row: int) -> tuple[int, int]:
        """(time, place in the capture) of a packet, in whose order objects take them.

        A place leaves room for the ranks of events with one packet.
        """
        place = int(self.file[row]) << _OFFSET_BITS | int(self.position[row])
        return int(self.time[row]), place * RANKS

    def arrivals(self, rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The times and the places of some packets."""
        places = self.file[rows].astype(np.int64) << _OFFSET_BITS | self.position[rows]
        return self.time[rows], places * RANKS


def read_packets(capture: Capture) -> Packets | None:
    """The TCP segments of an open capture; None if the file is damaged or truncated, or a packet has no time."""
    errors: list[pa.RecordBatch] = []
    reader = PacketReader(0, Endpoints())
    parts = []
    for part in records(capture, capture.limits, errors):
        if errors or part.rows["time"].null_count:
            return None
        parts.append(reader.segments(part))
    return None if errors else joined(parts)


def segments(
    capture: Capture, place: int = 0, window: int = WINDOW, fragments: Fragments | None = None
) -> Iterator[Segment | Skipped | Damaged]:
    """The rows of ``wirekit.capture.files.segments`` for an open regular file, in the same order but for fragments.

    From the first window with damage on, objects read the file; likewise if a pcapng file has many small sections.

    Args:
        capture: the file.
        place: its place among the files of the capture.
        window: bytes of the file that are scanned at once.
        fragments: those of earlier files; receives those at the end.
    """
    errors: list[pa.RecordBatch] = []
    incomplete = Fragments() if fragments is None else fragments
    reader, following = PacketReader(place, Endpoints(), fragments=incomplete), 0
    sections = Sections()
    for part in records(capture, capture.limits, errors, window):
        if errors or part.rows["time"].null_count or sections.are_small(capture, part):
            break
        for start in range(0, part.rows.num_rows, SCANNED_AT_ONCE):
            packets = reader.segments(part._replace(rows=part.rows.slice(start, SCANNED_AT_ONCE)))
            capture.skipped.update(each.reason for _, each in packets.skipped)
            skipped: Iterator[Segment | Skipped] = (each for _, each in packets.skipped)
            yield from merge(_as_objects(packets), skipped, key=attrgetter("offset"))
        if part.rows.num_rows:
            following = part.rows["@offset"][-1].as_py() + 1
    else:
        if not (capture.incomplete or errors):
            following = -1
    if following >= 0:
        yield from segments_by_objects(capture, place, start=following, fragments=incomplete)
    if fragments is None:
        yield from count_lost(capture, incomplete.end())


def _as_objects(packets: Packets) -> Iterator[Segment | Skipped]:
    """Segments as objects, converted some thousands at once."""
    text, data = packets.endpoints.text, packets.data
    columns = [getattr(packets, name) for name in SEGMENTS]
    for start in range(0, packets.time.size, AT_ONCE):
        lists = [column[start : start + AT_ONCE].tolist() for column in columns]
        ends = {number: text(number) for number in {*lists[1], *lists[2]}}
        for time, source, target, sequence, acknowledgment, flags, begin, size, length, position, file in zip(
            *lists, strict=True
        ):
            payload = bytes(data[begin : begin + size])
            yield Segment(
                time, ends[source], ends[target], sequence, acknowledgment, flags, payload, position, file, length
            )


class PacketReader:
    """Reads the packets of one file into arrays.

    Args:
        place: the place of the file among the files of the capture.
        endpoints: receives the endpoints of the packets.
        number: the number of packets before the first one that is read.
        arrays: the arrays of ``Packets`` that are filled, among those that need fields of headers; by default all.
            ``time``, ``size`` and ``length`` always are.
        fragments: those of the packets before the first one; receives those at the end.
    """

    def __init__(
        self,
        place: int,
        endpoints: Endpoints,
        number: int = 0,
        arrays: Collection[str] = ALL,
        fragments: Fragments | None = None,
    ) -> None:
        self._place = place
        self._endpoints = endpoints
        self._number = number
        self._arrays = [name for name in _FIELDS if name in arrays]
        self._fragments = Fragments() if fragments is None else fragments

    def segments(self, part: Records) -> Packets:
        """The segments in the next packets, which ``wirekit.capture.columns.records`` returned."""
        skipped: list[Skipped] = []
        columns, data = _segments(part, self._number, self._endpoints, skipped, self._arrays, self._fragments)
        self._number += part.rows.num_rows
        placed = [(self._place, each) for each in skipped]
        return Packets(
            **columns,
            endpoints=self._endpoints,
            data=data,
            file=np.full(columns["time"].size, self._place),
            origin=None,
            skipped=placed,
        )


def joined(parts: list[Packets]) -> Packets:
    """Concatenates segments; the bytes are copied if they are in several pieces."""
    first = parts[0]
    if len(parts) == 1:
        return first
    begin = np.concatenate([each.begin for each in parts])
    data = first.data
    if any(each.data is not data for each in parts):
        data = memoryview(b"".join(_around(each) for each in parts))
        sizes = [_around(each).nbytes for each in parts]
        moved = [
            each.begin - _span(each)[0] + before
            for each, before in zip(parts, np.cumsum([0, *sizes]).tolist(), strict=False)
        ]
        begin = np.concatenate(moved)
    columns = {name: np.concatenate([getattr(each, name) for each in parts]) for name in SEGMENTS if name != "begin"}
    skipped = [packet for each in parts for packet in each.skipped]
    return Packets(
        **columns,
        begin=begin,
        endpoints=first.endpoints,
        data=data,
        origin=None,
        skipped=skipped,
    )


def _span(packets: Packets) -> tuple[int, int]:
    """The range of ``Packets.data`` that contains all payloads."""
    if not packets.begin.size:
        return 0, 0
    return int(packets.begin.min()), int((packets.begin + packets.size).max())


def _around(packets: Packets) -> memoryview:
    begin, end = _span(packets)
    return packets.data[begin:end]


def numbered_flows(packets: Packets) -> tuple[NDArray[Any], int, NDArray[Any]]:
    """The flow of each packet, numbered from 0 as they appear; the number of flows; the first packet of each flow."""
    count = packets.time.size
    numbers, known_low, known_high = (np.zeros(count, np.int64) for _ in range(3))
    table = np.full(1 << max(2 * count, 2).bit_length(), -1, np.int64)
    low, high = np.minimum(packets.source, packets.target), np.maximum(packets.source, packets.target)
    flows = loop("number_flows")(low, high, numbers, known_low, known_high, 0, table)
    first = np.zeros(flows, np.int64)
    first[numbers[::-1]] = np.arange(count)[::-1]
    return numbers, flows, first


def _segments(
    records: Records,
    before: int,
    endpoints: Endpoints,
    skipped: list[Skipped],
    arrays: Sequence[str],
    fragments: Fragments,
) -> tuple[dict[str, NDArray[Any]], memoryview]:
    """The arrays of ``Packets`` for some records, and the bytes; ``before`` packets of the file have been read."""
    batch, data, offset, _ = records
    count = batch.num_rows
    times = np.asarray(batch["time"].view(pa.int64()))
    starts = np.asarray(batch["@data"]) - offset
    stops = starts + np.asarray(batch["captured_length"]).astype(np.int64)
    first = int(starts.min()) if count else 0
    end = int(stops.max()) if count else 0
    originals = np.asarray(batch["original_length"])
    ends = np.maximum(starts + originals, stops)  # of whole packets: bytes of others stand for those that were cut off
    ends = np.where(ends > data.nbytes, stops, ends)
    part = data[first : int(ends.max(initial=end))]  # the engine allocates for all bytes that it receives
    kinds = np.asarray(batch["link_type"])
    columns = {name: np.zeros(count, np.int64) for name in (*arrays, "size", "length")}
    usual = np.zeros(count, bool)
    reasons = np.zeros(count, np.int64)  # why a packet has plainly no segment: one more than the index in REASONS
    layers = [
        _Ranges("packet", int(kind), rows, starts[rows] - first, ends[rows] - first)
        for kind in np.unique(kinds)
        if int(kind) in link.LINKS and (rows := np.flatnonzero(kinds == kind)).size
    ]
    for _ in range(MOST_LAYERS):
        for layer in layers:
            if layer.name == "packet":
                _plain(part, layer, stops - first, endpoints, columns, usual)
        layers = [inner for layer in layers for inner in _inside(part, layer, stops - first, usual, reasons)]
    if "begin" in columns:
        columns["begin"][usual] += first
    columns["time"] = times // 1000
    columns["position"] = columns.get("begin", starts) + offset
    apart: list[bytes] = []  # the payloads of datagrams that came in fragments
    behind = end  # where the next one begins
    there = usual.copy()
    for row in np.flatnonzero(~usual).tolist():
        time_ns, begin, number = int(times[row]), int(starts[row]), before + row + 1
        if reasons[row]:
            why = REASONS[reasons[row] - 1]
            skipped.append(Skipped(number, time_ns // 1000, begin + offset, int(stops[row]) - begin, why))
            continue
        content = bytes(data[begin : int(stops[row])])
        place = (begin + offset, int(originals[row]), number)
        item = dissect(Packet(time_ns // 1000, time_ns, int(kinds[row]), content, *place), 0, fragments)
        skipped += fragments.take_lost()
        if isinstance(item, Skipped):
            skipped.append(item)
        if item is None or isinstance(item, Skipped):
            continue
        there[row] = True
        for name, value in _numbers(item, endpoints, offset):
            if name in columns:
                columns[name][row] = value
        begin = item.offset - offset
        if "begin" in columns:
            columns["position"][row] = item.offset
            if data[begin : begin + len(item.payload)] != item.payload:
                columns["begin"][row] = behind
                apart.append(item.payload)
                behind += len(item.payload)
    columns |= {name: np.broadcast_to(np.int64(0), count) for name in _FIELDS if name not in arrays}
    if apart:
        columns["begin"] -= first
        data = memoryview(b"".join((data[first:end], *apart)))
    return columns if there.all() else {name: array[there] for name, array in columns.items()}, data


def _numbers(segment: Segment, endpoints: Endpoints, offset: int) -> Iterator[tuple[str, int]]:
    yield "source", endpoints.number(segment.source)
    yield "target", endpoints.number(segment.target)
    yield "sequence", segment.sequence
    yield "acknowledgment", segment.acknowledgment
    yield "flags", segment.flags
    yield "begin", segment.offset - offset
    yield "size", len(segment.payload)
    yield "length", segment.length


class _Ranges(NamedTuple):
    """Places of one layout in some packets.

    Attributes:
        name: the layout, under its name in the protocol ``net``.
        link_type: the context of ``net.packet``.
        rows: the numbers of the packets.
        starts, ends: of each place.
    """

    name: str
    link_type: int | None
    rows: NDArray[Any]
    starts: NDArray[Any]
    ends: NDArray[Any]

    def scan(self, data: memoryview, fields: Sequence[str], lengths: Sequence[str]) -> tuple[pa.RecordBatch, _Ranges]:
        """The columns of the places that decode, and these places."""
        context = {} if self.link_type is None else {"link_type": self.link_type}
        batch, states = scan_ranges(
            f"net.{self.name}",
            data,
            self.starts,
            self.ends,
            fields=fields,
            context=context,
            lengths=lengths,
            verdicts=False,
        )
        return batch, self.where(states < REFUSED)

    def where(self, chosen: NDArray[Any]) -> _Ranges:
        """Some of the places."""
        return self._replace(rows=self.rows[chosen], starts=self.starts[chosen], ends=self.ends[chosen])


def _inside(
    data: memoryview, layer: _Ranges, stops: NDArray[Any], usual: NDArray[Any], reasons: NDArray[Any]
) -> Iterator[_Ranges]:
    """The payloads that a layout leaves undecoded, by their layouts.

    Args:
        data: the bytes.
        layer: the places of the layout.
        stops: where the captured bytes of each packet end.
        usual: whether each packet is plainly a segment.
        reasons: receives why a packet whose payload has no known layout has no segment.
    """
    layer = layer.where(~usual[layer.rows])
    if layer.name not in _INSIDE or not layer.rows.size:
        return
    selections = _INSIDE[layer.name]
    packet = layer.name == "packet"
    lengths = [payload for _, payload, _ in selections] + ["data.trailer"] * packet
    fields = [*lengths, *(selector for selector, _, _ in selections if selector), *_FRAGMENT * packet]
    batch, layer = layer.scan(data, fields, lengths)
    ends = layer.ends
    is_whole = np.ones(layer.rows.size, bool)
    if packet:
        ends = ends - integers(batch["data.trailer"])
        for each in _FRAGMENT:
            is_whole &= integers(batch[each]) == 0
    for selector, payload, symbols in selections:
        there = is_whole & np.asarray(batch[payload].is_valid())
        starts = ends - integers(batch[payload])
        numbers = integers(batch[selector]) if selector else np.zeros(layer.rows.size, np.int64)
        distinct, which = np.unique(numbers[there], return_inverse=True)
        reason_of = np.zeros(distinct.size, np.int64)
        for index, number in enumerate(distinct.tolist()):
            symbol = (symbols(number).symbol or "") if symbols else "ETHERNET"
            name = tunnels.FOLLOWING.get(symbol)
            if name is not None:
                link_type = _LINK_TYPES.get(name)
                inner = _Ranges("packet" if link_type else name, link_type, layer.rows, starts, ends)
                yield inner.where(there & (numbers == number))
            else:
                reason_of[index] = _PLAINLY.get(symbol.lower() or layer.name, 0)
        captured = stops[layer.rows[there]] >= starts[there]
        reasons[layer.rows[there]] = np.where(captured, reason_of[which], 0)


def _plain(
    data: memoryview,
    layer: _Ranges,
    stops: NDArray[Any],
    endpoints: Endpoints,
    columns: dict[str, NDArray[Any]],
    usual: NDArray[Any],
) -> None:
    """Fills in the rows of packets of one link type that are plainly TCP segments; ``stops``: as captured, of all."""
    inner = [name for array in columns for name in _FIELDS.get(array, ())]
    fields = [*_LENGTHS, *(name for name in inner if "." in name)]
    for network, size_of_all in _NETWORKS.items():
        fields += [f"{network}.{name}" for name in (size_of_all, *inner) if "." not in name]
    batch, layer = layer.scan(data, fields, _LENGTHS)
    rows, lengths = layer.rows, integers(batch["tcp.payload"])
    begins = layer.ends - integers(batch["data.trailer"]) - lengths
    captured = stops[rows] - begins  # negative if the headers are cut
    tcp = np.asarray(batch["tcp.payload"].is_valid()) & (captured >= 0)
    over = {name: np.asarray(batch[f"{name}.{each}"].is_valid()) for name, each in _NETWORKS.items()}
    for name, size_of_all in _NETWORKS.items():
        plain = tcp & over[name]
        for other in _NETWORKS:
            if other != name:
                plain &= ~over[other]
        if not plain.any():
            continue
        plain &= integers(batch[f"{name}.{size_of_all}.ok"]) != 0
        plain &= integers(batch[f"{name}.{size_of_all}"]) > 0
        part = batch if plain.all() else batch.filter(pa.array(plain))
        places = slice(None) if part is batch and rows.size == usual.size else rows[plain]
        columns["length"][places] = lengths[plain]
        columns["size"][places] = np.minimum(lengths, captured)[plain]
        for end in (name for name in ("source", "target") if name in columns):
            address, port = _FIELDS[end]
            columns[end][places] = endpoints.numbers(part[f"{name}.{address}"], np.asarray(part[port]).astype(np.int64))
        for number in (name for name in ("sequence", "acknowledgment") if name in columns):
            columns[number][places] = np.asarray(part[_FIELDS[number][0]])
        if "flags" in columns:
            for flag, bit in _BITS.items():
                columns["flags"][places] |= np.asarray(part[f"tcp.flags.{flag}"]).astype(np.int64) * bit
        if "begin" in columns:
            columns["begin"][places] = begins[plain]
        usual[places] = True
