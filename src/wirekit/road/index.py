"""The frame index: the place, the kind and the request of each frame of plain connections.

The protocol is recognised once for each connection; everything else is done for all frames together. A connection with
an irregularity becomes odd, and the index has none of its frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.capture.follow import FIRST_ATTEMPTS
from wirekit.capture.links import Choice
from wirekit.compiler.columns.arrow import integers
from wirekit.compiler.columns.programs import program
from wirekit.compiler.columns.ranges import REFUSED, scan_ranges
from wirekit.compiler.heading import heading
from wirekit.conversation import SIDES, Recognised, recognise
from wirekit.conversation.following import MOST_OVERDUE, MOST_OVERDUE_BYTES
from wirekit.conversation.joined import RECOGNISE_WITHIN
from wirekit.conversation.pairing import Kind, Pairing, pairing_of
from wirekit.conversation.requests import MOST_UNHEARD, MOST_UNHEARD_BYTES, MOST_WAITING, MOST_WAITING_BYTES
from wirekit.decoding import header
from wirekit.errors import Misuse
from wirekit.registry import registry
from wirekit.road.begun import Begun, nothing_begun
from wirekit.road.compiled import byte_ranges, loop
from wirekit.road.streams import Streams, extended

ROLES = {"event": 0, "request": 1, "response": 2}
_LARGEST_REMEMBERED = 1 << 10  # bytes of the beginnings of connections whose protocol is remembered
_REMEMBERED = 1 << 12
_OF_FRAMES = ("connection", "side", "start", "stop", "position", "time", "kind", "number", "version", "request")
_MOST_WAITING = np.array([
    [MOST_WAITING - MOST_OVERDUE, MOST_WAITING_BYTES - MOST_OVERDUE_BYTES], [MOST_UNHEARD, MOST_UNHEARD_BYTES],
])  # fmt: skip
"""How many requests of a connection, and how many bytes of them, may wait; and before the other side is heard."""
_CODES = 1 << 62  # numbers that stand for the values of several columns


@dataclass(slots=True)
class Index:
    """The frames of plain connections, by connection and in the order of arrival.

    Attributes:
        protocols: for each flow, the name of its protocol; "" for flows without payload and odd flows.
        kinds: the kinds of frames that occur.
        connection, side: the flow of each frame, and its side, 0 for the client.
        start, stop: its range in ``Streams.stream``.
        position: its offset in its direction.
        time: the capture time of its last byte, microseconds since the epoch.
        kind: its place in ``kinds``.
        number: its correlation id.
        version: its version, if a field states it.
        request: for a response, the place of its request in the index; else -1.
        odd: for each flow, whether it is odd.
        begins: the place in the index of the first frame of each flow.
        cut: for each flow, whether the bytes of a side end inside a frame.
        irregular: for each flow, the place in the index of the first frame that makes it odd, or of the end of the
            index if none does.
    """

    protocols: list[str]
    kinds: list[Kind]
    connection: NDArray[Any]
    side: NDArray[Any]
    start: NDArray[Any]
    stop: NDArray[Any]
    position: NDArray[Any]
    time: NDArray[Any]
    kind: NDArray[Any]
    number: NDArray[Any]
    version: NDArray[Any]
    request: NDArray[Any]
    odd: NDArray[Any]
    begins: NDArray[Any]
    cut: NDArray[Any]
    irregular: NDArray[Any]


def index_frames(
    streams: Streams,
    choice: Choice,
    address: Callable[[int], str],
    begun: Begun | None = None,
    *,
    begun_only: bool = False,
) -> Index:
    """The frame index of the plain connections that lie within a window, and of begun connections.

    Args:
        streams: the flows; the carried frames are appended to ``stream``.
        choice: how protocols are chosen.
        address: returns the text of an endpoint.
        begun: connections that were followed up to a point in this window.
        begun_only: True for the frames of begun connections alone.
    """
    begun = begun or nothing_begun()
    odd = streams.odd | ~streams.known | streams.resumed | ~streams.final | begun_only
    odd[begun.flows] = True
    protocols = recognised(streams, choice, address, odd)
    starts = streams.starts.copy()
    odd[begun.flows], starts[begun.flows] = False, begun.places
    for flow, name in zip(begun.flows.tolist(), begun.conversations["protocol"].tolist(), strict=True):
        protocols[flow] = name
    names = sorted({name for name in protocols if name})
    pairings = {name: pairing for name in names if (pairing := _usable_pairing(name)) is not None}
    for flow, name in enumerate(protocols):
        if name and name not in pairings:
            odd[flow] = True
    frames, tails = cut_frames(streams, protocols, odd, starts)
    connection, side, start, stop, position, time, overdue = _with_carried(streams, frames, begun, odd)
    count = connection.size
    kinds: list[Kind] = []
    kind = np.full(count, -1, np.int64)
    numbers = {name: np.zeros(count, np.int64) for name in ("number", "version", "first", "second")}
    of_protocol = np.array([names.index(name) if name else -1 for name in protocols], np.int64)[connection]
    for place, name in enumerate(names):
        for which, word in enumerate(SIDES):
            rows = np.flatnonzero((of_protocol == place) & (side == which))
            if name in pairings and rows.size:
                heads = _Heads(name, pairings[name], word, kinds, kind, numbers)
                heads.read(streams.stream, rows, start[rows], stop[rows])
    irregular = np.full(odd.size, count)
    undeclared = np.flatnonzero(kind < 0)
    odd[connection[undeclared]] = True
    np.minimum.at(irregular, connection[undeclared], undeclared)
    begins = np.searchsorted(connection, np.arange(odd.size + 1))
    for place, which in zip(*(each.tolist() for each in np.nonzero(begun.unheard)), strict=True):  # see ``unheard``
        flow = int(begun.flows[place])
        of_flow = slice(begins[flow], begins[flow + 1])
        first = np.flatnonzero(side[of_flow] == which)[:1]
        odd[flow] |= any(kinds[number].headed for number in kind[of_flow][first].tolist() if number >= 0)
    alone = np.zeros(odd.size, bool)
    alone[begun.flows] = begun.alone
    heard = begun.flows[~begun.alone & begun.conversations["one_sided"]]
    odd[heard], irregular[heard] = True, begins[heard]
    opening = ~alone & (starts - streams.starts + streams.offsets == 0).any(axis=1)
    request = _paired(
        odd, irregular, alone, opening, connection, side, stop - start, kinds, kind, numbers, of_protocol,
        [pairings.get(n) for n in names],
    )  # fmt: skip
    index = Index(
        protocols, kinds, connection, side, start, stop, position, time, kind, numbers["number"], numbers["version"],
        request, odd, begins, np.any(tails < streams.stops, axis=1), irregular,
    )  # fmt: skip
    if overdue.any():
        _remove(index, overdue)
    return index


def _remove(index: Index, overdue: NDArray[np.bool_]) -> None:
    """Removes overdue requests; a connection with the response to one becomes odd."""
    answers = (index.request >= 0) & overdue[index.request]
    index.odd[index.connection[answers]] = True
    np.minimum.at(index.irregular, index.connection[answers], np.flatnonzero(answers))
    places = np.append(0, np.cumsum(~overdue))
    index.irregular = places[index.irregular]
    index.request = np.where((index.request >= 0) & ~answers, places[index.request], -1)
    for name in _OF_FRAMES:
        setattr(index, name, getattr(index, name)[~overdue])
    index.begins = np.searchsorted(index.connection, np.arange(index.odd.size + 1))


def recognised(streams: Streams, choice: Choice, address: Callable[[int], str], odd: NDArray[Any]) -> list[str]:
    """The protocol of each flow, "" for odd flows and those without payload; unrecognised flows become odd."""
    recognise_known = partial(recognise, sides_known=True, rivals=False)
    remembered = lru_cache(_REMEMBERED)(recognise_known)

    def recognised_from(client: bytes, server: bytes) -> Recognised:
        ask = remembered if len(client) + len(server) <= _LARGEST_REMEMBERED else recognise_known
        return ask(client, server)

    protocols, nothing = [""] * odd.size, Recognised("", False, False, "")
    flows = np.flatnonzero(~odd)
    if choice.protocol or choice.ports:
        for flow in flows.tolist():
            protocols[flow] = choice.of(address(int(streams.client[flow])), address(int(streams.server[flow])))
    carries = streams.starts[flows] < streams.stops[flows]
    flows, carries = flows[carries.any(axis=1)], carries[carries.any(axis=1)]
    if not flows.size:
        return protocols
    unknown = np.array([not protocols[flow] for flow in flows.tolist()], bool)
    asking, (first, side) = flows[unknown], _first_pieces(streams, flows[unknown], carries[unknown])
    starts, ends = streams.starts[asking, side], streams.ends[first]
    for which in range(2):
        of_side = np.flatnonzero(side == which)
        sizes = np.minimum(ends - starts, RECOGNISE_WITHIN)[of_side]
        heads = byte_ranges(streams.stream, starts[of_side], sizes).dictionary_encode()
        answers = [
            nothing
            if len(head) == RECOGNISE_WITHIN
            else recognised_from(head, b"")
            if which == 0
            else recognised_from(b"", head)
            for head in heads.dictionary.to_pylist()
        ]
        for flow, number in zip(asking[of_side].tolist(), heads.indices.to_pylist(), strict=True):
            answer = answers[number]
            if not (answer.protocol or answer.certain):
                answer = _recognised_by_pieces(streams, flow, recognised_from)
            protocols[flow] = answer.protocol
            odd[flow] = not answer.protocol
    opening = streams.stream[streams.starts[flows][carries]]
    headed = [byte for byte in np.unique(opening).tolist() if header(bytes([byte])) is not None]
    if headed:
        odd[np.repeat(flows, carries.sum(axis=1))[np.isin(opening, headed)]] = True
    return protocols


def _first_pieces(streams: Streams, flows: NDArray[Any], carries: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The first piece of each flow, and its side; ``carries`` says which sides have pieces."""
    firsts = streams.pieces[flows]
    ranks = np.full(firsts.shape, np.iinfo(np.int64).max)
    ranks[carries] = streams.ranks[firsts[carries]]
    side = ranks.argmin(axis=1)
    return firsts[np.arange(flows.size), side], side


def _recognised_by_pieces(streams: Streams, flow: int, ask: Callable[[bytes, bytes], Recognised]) -> Recognised:
    """The protocol of a connection, tried again with each piece that arrives, as in ``wirekit.capture.follow``.

    The rank of the last piece that it takes is stored in ``streams.recognised``.
    """
    starts, stops = streams.starts[flow].tolist(), streams.stops[flow].tolist()
    first = streams.pieces[flow].tolist()
    reached = list(starts)
    recognition = Recognised("", False, False, "")
    count = next_count = next_size = 0
    while more := [side for side in range(2) if reached[side] < stops[side]]:
        side = min(more, key=lambda each: int(streams.ranks[first[each]]))
        streams.recognised[flow] = streams.ranks[first[side]]
        reached[side] = int(streams.ends[first[side]])
        first[side] += 1
        count += 1
        size = sum(reached) - sum(starts)
        if size >= RECOGNISE_WITHIN:
            break
        if count > FIRST_ATTEMPTS and count < next_count and size < next_size:
            continue
        next_count, next_size = 2 * count, 2 * size
        heads = [streams.stream[begin:end].tobytes() for begin, end in zip(starts, reached, strict=True)]
        recognition = ask(*heads)
        if recognition.protocol or recognition.certain:
            break
    return recognition


def cut_frames(
    streams: Streams, protocols: list[str], odd: NDArray[Any], begins: NDArray[Any] | None = None
) -> tuple[tuple[NDArray[Any], ...], NDArray[Any]]:
    """Connection, side, start, stop and time of each frame, by connection and arrival; and the tails.

    Args:
        streams: the flows.
        protocols, odd: for each flow, its protocol, and whether it is odd.
        begins: (flow, side) the start of the first frame; by default the start of the side's bytes.
    """
    begins = streams.starts if begins is None else begins
    flows = np.array([flow for flow, name in enumerate(protocols) if name and not odd[flow]], np.int64)
    lengths = {
        (name, side): _length(name, side) for name in {protocols[flow] for flow in flows.tolist()} for side in SIDES
    }
    each = [lengths[protocols[flow], side] for flow in flows.tolist() for side in SIDES]
    framed = np.array([length is not None for length in each], bool)
    headings = np.array([length or (0, 1, 0, 0, 0, -1) for length in each], np.int64).reshape(-1, 6)
    starts, stops, pieces = (array[flows].ravel() for array in (begins, streams.stops, streams.pieces))
    fits, tails = np.zeros(starts.size, bool), starts.copy()
    room = 1024 + streams.stream.size // 64
    while True:
        outputs = [np.zeros(room, np.int64) for _ in range(4)]
        count = loop("cut_frames")(
            streams.stream, starts, stops, pieces, streams.ends, *headings.T.copy(), fits, tails, *outputs
        )
        if count >= 0:
            break
        room *= 2
    start, stop, number, piece = (array[:count] for array in outputs)
    odd[flows[np.flatnonzero(~(fits & framed)) // 2]] = True
    connection = flows[number // 2] if flows.size else number
    order = np.argsort(streams.ranks[piece], kind="stable")
    order = order[~odd[connection[order]]]
    columns = (connection, number % 2, start, stop, streams.times[piece])
    ends = streams.stops.copy()
    ends[flows] = tails.reshape(-1, 2)
    return tuple(column[order] for column in columns), ends


def _with_carried(
    streams: Streams, frames: tuple[NDArray[Any], ...], begun: Begun, odd: NDArray[Any]
) -> tuple[NDArray[Any], ...]:
    """Frames with those of earlier windows in front.

    Returns:
        Connection, side, start, stop, position and time of each, and whether it is an overdue request.
    """
    connection, side, start, stop, time = frames
    position = start - streams.starts[connection, side] + streams.offsets[connection, side]
    carried = np.append(begun.overdue, begun.carried)
    overdue = np.arange(carried.size) < begun.overdue.size
    chosen = ~odd[carried["connection"]]
    carried, overdue = carried[chosen], overdue[chosen]
    columns = (connection, side, start, stop, position, time, np.zeros(connection.size, bool))
    if not carried.size:
        return columns
    data = carried["data"].tolist()
    sizes = np.array(list(map(len, data)))
    ends = streams.stream.size + np.cumsum(sizes)
    streams.stream = extended(streams.stream, b"".join(data))
    flows = carried["connection"]
    before = (flows, carried["side"], ends - sizes, ends, carried["position"], carried["time"], overdue)
    order = np.argsort(np.append(flows, connection), kind="stable")
    return tuple(np.append(*pair)[order] for pair in zip(before, columns, strict=True))


def _usable_pairing(protocol: str) -> Pairing | None:
    """The pairing of a protocol; None without one, or if a layout at the start of its frames has no columns."""
    pairing = pairing_of(protocol)
    try:
        for heads in () if pairing is None else (pairing.client, pairing.server):
            program(registry.protocol(protocol).key(heads.layout))
    except Misuse:
        return None
    return pairing


def _length(protocol: str, side: str) -> tuple[int, ...] | None:
    """The length field of a frame: offset, size, whether it is little-endian, bytes it does not count, its bounds."""
    declared = registry.protocol(protocol)
    begin = heading(declared.stream(side), declared.limits.frame)
    if begin.number is None:
        return None
    least, most = max(begin.low, 1 - begin.after), begin.most
    return begin.length, begin.number.size, begin.number.format[0] == "<", begin.after, least, most


class _Heads:
    """Reads the headers of the frames of one side of one protocol."""

    def __init__(
        self,
        protocol: str,
        pairing: Pairing,
        side: str,
        kinds: list[Kind],
        kind: NDArray[Any],
        numbers: Mapping[str, NDArray[Any]],
    ) -> None:
        self._heads = pairing.heads(side)
        self._key = registry.protocol(protocol).key(self._heads.layout)
        self._kinds, self._kind, self._numbers = kinds, kind, numbers
        self._places: dict[int, int] = {}

    def read(self, stream: NDArray[Any], rows: NDArray[Any], starts: NDArray[Any], stops: NDArray[Any]) -> None:
        """Fills in the kind and the numbers of frames; frames of no kind keep -1."""
        heads = self._heads
        batch, states = scan_ranges(self._key, stream, starts, stops, fields=heads.paths, prefix=True)
        rows = rows[states < REFUSED]
        for values, mine in self._by_kind(batch):
            kind = heads.kind(values)
            if kind is None or not rows.size:
                continue
            if id(kind) not in self._places:
                self._places[id(kind)] = len(self._kinds)
                self._kinds += [kind] if kind.without is None else [kind, kind.without]
            place = self._places[id(kind)]
            fields = [(name, path) for name, path in _number_paths(kind) if path]
            usual = np.ones(mine.size, bool)
            for path in kind.paths:
                if batch[path].null_count:
                    usual &= np.asarray(batch[path].is_valid())[mine]
            if kind.unusual is not None:
                path, value = kind.unusual
                usual &= (integers(batch[path]) != _signed(value))[mine] | ~np.asarray(batch[path].is_valid())[mine]
            if kind.without is not None:
                self._kind[rows[mine[~np.asarray(batch[kind.number].is_valid())[mine]]]] = place + 1
            plain = mine[usual]
            self._kind[rows[plain]] = place
            for name, path in fields:
                self._numbers[name][rows[plain]] = integers(batch[path])[plain]

    def _by_kind(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[int, ...], NDArray[Any]]]:
        """The rows of each kind that occurs."""
        if not self._heads.fields:
            yield (), np.arange(batch.num_rows)
            return
        columns = [batch[path] for path in self._heads.fields]
        values, valid = np.stack(list(map(integers, columns))), np.ones(batch.num_rows, bool)
        for column in columns:
            if column.null_count:
                valid &= np.asarray(column.is_valid())
        rows = np.flatnonzero(valid)
        for group in grouped(values[:, rows]):
            yield tuple(values[:, rows[group[0]]].tolist()), rows[group]


def grouped(columns: NDArray[Any]) -> list[NDArray[Any]]:
    """Groups the places of some columns of integers, (column, place), by equal values, in the order of the values.

    >>> [places.tolist() for places in grouped(np.array([[1, 0, 1, 1], [7, 7, 7, -(1 << 63)]]))]
    [[1], [3], [0, 2]]
    """
    if not columns.shape[1]:
        return []
    codes, code_count = np.zeros(columns.shape[1], np.int64), 1
    for column in columns:
        low, span = int(column.min()), int(column.max()) - int(column.min()) + 1
        if code_count * span < _CODES:
            codes = codes * span + (column - low)
        else:
            (first, codes), (second, numbers) = (np.unique(each, return_inverse=True) for each in (codes, column))
            code_count, span = first.size, second.size
            codes = codes * span + numbers
        code_count *= span
    order = np.argsort(codes, kind="stable")
    bounds = [0, *(np.flatnonzero(np.diff(codes[order])) + 1).tolist(), order.size]
    return [order[begin:end] for begin, end in pairwise(bounds)]


def _number_paths(kind: Kind) -> Iterator[tuple[str, str]]:
    """(name, path) of the numbers of a frame that the index needs."""
    yield "number", kind.number
    if isinstance(kind.version, str):
        yield "version", kind.version
    yield from zip(("first", "second"), kind.pair, strict=False)


def _signed(value: int) -> int:
    """A number of 64 bits as a signed one."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _paired(
    odd: NDArray[Any],
    irregular: NDArray[Any],
    alone: NDArray[Any],
    opening: NDArray[Any],
    connection: NDArray[Any],
    side: NDArray[Any],
    size: NDArray[Any],
    kinds: list[Kind],
    kind: NDArray[Any],
    numbers: Mapping[str, NDArray[Any]],
    of_protocol: NDArray[Any],
    pairings: list[Pairing | None],
) -> NDArray[Any]:
    """The request of each response."""
    count = connection.size
    roles = np.array([*(ROLES[each.role] for each in kinds), 0], np.int64)
    links = {each.link: place for place, each in enumerate(kinds)}
    of_kind = np.array([*(links[each.link] for each in kinds), 0], np.int64)
    role = roles[kind]
    asker = np.where(role == ROLES["response"], 1 - side, side)
    ordered = np.array([*(each is not None and each.in_order for each in pairings), False], bool)[of_protocol]
    request = np.full(count, -1, np.int64)
    table = np.full(1 << max(2 * count, 2).bit_length(), -1, np.int64)
    loop("pair_frames")(
        connection, side, size, 2 * of_kind[kind] + asker, numbers["first"], numbers["second"], role, ordered,
        _MOST_WAITING, alone, opening, odd, irregular, request, table,
    )  # fmt: skip
    return request
