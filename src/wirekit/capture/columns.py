"""The packets of pcap and pcapng files as Arrow columns in one form, down to TCP.

In a pcapng file, each section has its own byte order, and each interface its own link type and unit of time. Therefore
the blocks of a section are scanned first, and then the bytes of all packets, once for each link type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.capture.files.blocks import DATA_LEADS, described
from wirekit.capture.files.items import SECOND, Interface, Place
from wirekit.capture.files.walking import LEAD
from wirekit.compiler.columns import scan, scan_column
from wirekit.compiler.columns.arrow import numbers
from wirekit.compiler.columns.errors import NO_ERRORS, Details, details_of, error_batch
from wirekit.compiler.columns.run import as_array
from wirekit.decoding import decode
from wirekit.errors import Misuse, WireError
from wirekit.program.columns import field_metadata
from wirekit.registry import registry
from wirekit.schemas.net import pcap, pcapng
from wirekit.schemas.net.link import LINK_TYPES, LINKS
from wirekit.wire.stream import Limits

TIME = pa.timestamp("ns", "UTC")
OTHER_LINK = -1
"""The value for all link types without a layout, which share one kernel."""

_HEAD = 64  # bytes; enough to identify a file or a section
_LEAST = 64  # bytes of a window; few records are shorter
_HIGHEST = (1 << 63) - 1
_RECORD = ("@offset", "seconds", "fraction", "captured_length", "original_length")
_BLOCK = (
    *("@offset", "@length", "block_type", "block_total_length_again.ok"),
    *("body.interface_id", "body.timestamp_high", "body.timestamp_low", "body.original_length", "body.data"),
)
WINDOW = 64 << 20
"""The number of bytes whose records are scanned at once; more if one record is longer."""

_FRACTION = 33  # the most bits of a fraction of a second whose nanoseconds fit 64 bits

_FIELDS = [
    pa.field("time", TIME),
    pa.field("interface", pa.int32(), False),
    pa.field("link_type", pa.int32(), False, field_metadata(LINK_TYPES, None)),
    pa.field("captured_length", pa.uint32(), False),
    pa.field("original_length", pa.uint32(), False),
    pa.field("@offset", pa.int64(), False),
    pa.field("@data", pa.int64(), False),
    pa.field("bytes", pa.large_binary()),
]
_FOUND = pa.schema(_FIELDS)


class Source(Protocol):
    """A capture file.

    Attributes:
        format: ``pcap`` or ``pcapng``.
        size: its decompressed size in bytes.
    """

    @property
    def format(self) -> str: ...

    @property
    def size(self) -> int: ...

    def load(self, offset: int, size: int) -> memoryview:
        """The bytes at an offset, fewer if the file ends, which may have become shorter than ``size``."""


class Records(NamedTuple):
    """Records of a capture file.

    Attributes:
        rows: the fields that the file stores for each packet.
        data: the bytes of the file that contain the records.
        begin: the offset of ``data`` in the file.
        place: the place of the first record, from which the file can be read.
    """

    rows: pa.RecordBatch
    data: memoryview
    begin: int
    place: Place


START = Place(0)
NO_RECORDS = Records(pa.RecordBatch.from_pylist([], schema=_FOUND), memoryview(b""), 0, START)


MANY_SECTIONS = 64
SMALL_SECTION = 1 << 15
"""Objects read a pcapng file with more sections faster than columns, if the sections have fewer bytes on average."""


class Sections:
    """The sections of a pcapng file while its records are read."""

    def __init__(self) -> None:
        self._count = 0

    def are_small(self, source: Source, part: Records) -> bool:
        """Whether the file, up to the next records, consists of many small sections."""
        self._count += source.format == "pcapng" and not part.place.order
        return self._count > MANY_SECTIONS and part.begin < self._count * SMALL_SECTION


class _Until(NamedTuple):
    """A file up to an offset at the end of a record."""

    source: Source
    size: int

    @property
    def format(self) -> str:
        return self.source.format

    def load(self, offset: int, size: int) -> memoryview:
        return self.source.load(offset, min(size, max(self.size - offset, 0)))


class _Buffer(NamedTuple):
    """A file in memory."""

    data: memoryview
    format: str

    @property
    def size(self) -> int:
        return len(self.data)

    def load(self, offset: int, size: int) -> memoryview:
        return self.data[offset : offset + size]


def packets(buffer: Any, *, limits: Limits | None = None) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The packets of a pcap or pcapng file.

    Args:
        buffer: the whole file, decompressed: bytes, or any object with the buffer protocol.
        limits: limits for decoding; by default the protocol's.

    Returns:
        A batch with one row per packet: ``time`` (timestamp[ns, UTC]; null if the file has none, or 64 bits do not
        hold it), ``interface`` (its number in the section; 0 in a pcap file), ``link_type``, ``captured_length`` and
        ``original_length`` (bytes), ``@offset`` of the packet's record or block in the file, and the columns of
        ``net.packet``: ``data.*`` of the link layer, ``ipv4.*``, ``ipv6.*``, ``tcp.*``. And the errors, as
        ``wirekit.compiler.columns.scan`` returns them: damaged or cut records, and packets of an interface that is not
        described. A record or block that does not decode ends the packets; ``open_capture`` searches for more after it.

    Raises:
        Misuse: the bytes are not a capture.

    >>> import wirekit
    >>> header = {"magic_number": 0xA1B2C3D4, "header": {"link": {"type": 1}}}
    >>> file = wirekit.encode("net.pcap", {**header, "packets": [{"seconds": 1, "data": "00"}]})
    >>> batch, errors = packets(file)
    >>> [batch[name][0].as_py() for name in ("link_type", "captured_length", "data", "data.ok")]
    [1, 1, b'\\x00', False]
    """
    bounds = limits or registry["net.pcap"].limits
    errors: list[pa.RecordBatch] = [NO_ERRORS]
    data = as_array(buffer).data
    source = _Buffer(data, "pcap" if _is_pcap(data, bounds) else "pcapng")
    parts = [each.rows for each in records(source, bounds, errors, contents=True)]
    return _layers(pa.concat_batches(parts), bounds, errors), pa.concat_batches(errors)


def records(
    source: Source,
    limits: Limits,
    errors: list[pa.RecordBatch],
    window: int = WINDOW,
    *,
    contents: bool = False,
    start: Place = START,
    end: int | None = None,
) -> Iterator[Records]:
    """The packet records of a capture file, not decoded, in parts.

    Args:
        source: the file; only one part of it is in memory.
        limits: limits for decoding.
        errors: receives the errors of damaged or truncated records, in batches as ``scan`` returns them; none is empty.
        window: size of a part in bytes, 64 at least; larger if one record is longer.
        contents: whether to fill ``bytes``; otherwise it may be null.
        start, end: to read a part of the file: the ``place`` of its first records, and that of the records after it.

    Yields:
        Rows with the columns of ``packets`` except those of the layers; ``@data``, the offset in the file of a packet's
        bytes; and ``bytes``, these bytes.
    """
    source, window = source if end is None else _Until(source, end), max(window, _LEAST)
    if source.format == "pcap":
        return _pcap(source, limits, errors, window, start, contents)
    return _pcapng(source, limits, errors, window, start)


def _is_pcap(data: memoryview, limits: Limits) -> bool:
    """Whether a capture is a pcap file; otherwise it is a pcapng file."""
    head = bytes(data[:_HEAD])
    if decode(head, "net.pcap.header", limits=limits).error is None:
        return True
    start = decode(head, "net.pcapng.start", limits=limits)
    if start.error is None and start.value.byte_order is not None:
        return False
    beginning = f"it begins with {head[:4].hex(' ')}" if head else "it is empty"
    raise Misuse(f"not a pcap or pcapng file; {beginning}")


def _layers(located: pa.RecordBatch, limits: Limits, errors: list[pa.RecordBatch]) -> pa.RecordBatch:
    """The columns of the packets' layers, without the fields of their records."""
    facts = pa.table(located).drop_columns(["@data", "bytes"])
    kinds = np.asarray(located["link_type"])
    kinds = np.where(np.isin(kinds, list(LINKS)), kinds, OTHER_LINK)
    tables, orders = [], []
    for kind in np.unique(kinds) if kinds.size else [OTHER_LINK]:
        rows = np.flatnonzero(kinds == kind)
        selects_all = rows.size == kinds.size
        content = located["bytes"] if selects_all else located["bytes"].take(pa.array(rows))
        batch, wrong = scan_column("net.packet", content, limits=limits, context={"link_type": int(kind)})
        chosen = facts if selects_all else facts.take(pa.array(rows))
        schema = pa.schema([*chosen.schema, *batch.schema])
        tables.append(pa.Table.from_arrays([*chosen.columns, *batch.columns], schema=schema))
        orders.append(rows)
        if wrong.num_rows:
            place = wrong.schema.get_field_index("wrapper")
            errors.append(wrong.set_column(place, "wrapper", chosen["@offset"].combine_chunks().take(wrong["wrapper"])))
    table = tables[0]
    if len(tables) > 1:
        table = pa.concat_tables(tables, promote_options="permissive")
        table = table.take(pa.array(np.argsort(np.concatenate(orders), kind="stable")))
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _pcap(
    source: Source, limits: Limits, errors: list[pa.RecordBatch], size: int, start: Place, contents: bool
) -> Iterator[Records]:
    header = decode(bytes(source.load(0, _HEAD)), "net.pcap.header", limits=limits)
    if header.error is not None:
        errors.append(_error(header.error, 0, source.size))
        return
    magic, fields, begin = header.value.magic_number, header.value.header, max(header.consumed, start.offset)
    order = "be" if magic in (pcap.BIG_MICROSECONDS, pcap.BIG_NANOSECONDS) else "le"
    unit = 1 if magic in (pcap.BIG_NANOSECONDS, pcap.LITTLE_NANOSECONDS) else 1000
    interface, key = int(fields.link.type), f"net.pcap.packets.{order}"
    columns = [*_RECORD, "data"] if contents else _RECORD
    number, ended = start.number, False
    while not ended:
        data, rows, wrong, ended = _scanned(source, key, begin, size, limits, fields=columns)
        _add_moved(wrong, begin, errors)
        position = begin + _consumed(rows)
        if ended and not wrong.num_rows:
            _add_incomplete(data[position - begin :], position, f"net.pcap.packet.{order}", limits, errors)
        part = [Records(_pcap_records(rows, begin, interface, unit), data, begin, Place(begin, number))]
        number += rows.num_rows
        del data, rows
        yield part.pop()  # so that only the caller keeps it
        begin, ended = position, ended or wrong.num_rows > 0


def _scanned(
    source: Source,
    key: str,
    begin: int,
    size: int,
    limits: Limits,
    loaded: memoryview | None = None,
    fields: Sequence[str] | None = None,
) -> tuple[memoryview, pa.RecordBatch, pa.RecordBatch, bool]:
    """Scans bytes from an offset on: returns whole records, the errors, and whether the file ends there.

    Args:
        source, key, begin, size, limits: the file, layout, offset, and number of bytes (more for a longer record).
        loaded: bytes from this offset on that were read already.
        fields: the columns to return, None for all.
    """
    while True:
        data = source.load(begin, size) if loaded is None else loaded
        ended = begin + len(data) >= source.size or (loaded is None and len(data) < size)
        rows, wrong = scan(key, data, limits=limits, fields=fields)
        if ended or rows.num_rows or wrong.num_rows:
            return data, rows, wrong, ended
        size, loaded = size if loaded is not None else 2 * size, None


def _pcap_records(rows: pa.RecordBatch, begin: int, link_type: int, unit: int) -> pa.RecordBatch:
    """The packets of scanned records from an offset on; ``unit`` is the unit of their fractions in ns."""
    count = rows.num_rows
    times = _numbers(rows, "seconds").astype(np.int64) * SECOND + _numbers(rows, "fraction").astype(np.int64) * unit
    offsets = _numbers(rows, "@offset") + begin
    return pa.RecordBatch.from_arrays(
        [
            pa.array(times).view(TIME),
            pa.array(np.zeros(count, np.int32)),
            pa.array(np.full(count, link_type, np.int32)),
            rows["captured_length"],
            rows["original_length"],
            pa.array(offsets),
            pa.array(offsets + LEAD),
            rows["data"].cast(pa.large_binary()) if "data" in rows.schema.names else pa.nulls(count, pa.large_binary()),
        ],
        schema=_FOUND,
    )


def _pcapng(source: Source, limits: Limits, errors: list[pa.RecordBatch], size: int, start: Place) -> Iterator[Records]:
    position, number, order, another, loaded = start.offset, start.number, start.order, True, None
    given_order = order  # before a section's first block, the order is in it
    interfaces = [_Described(each, -1) for each in start.interfaces]
    while another:
        if not order:
            head = bytes(source.load(position, _HEAD))
            section = decode(head, "net.pcapng.start", limits=limits)
            if section.error is not None:
                errors.append(_error(section.error, position, source.size - position))
                return
            order = "be" if section.value.byte_order == pcapng.BIG_ENDIAN else "le"
            interfaces = []
        key, ended, another = f"net.pcapng.blocks.{order}", False, False
        while not (ended or another):
            data, rows, wrong, ended = _scanned(source, key, position, size, limits, loaded, _BLOCK)
            _add_moved(wrong, position, errors)
            place = Place(position, number, order=given_order, interfaces=tuple(each.interface for each in interfaces))
            located = _of_section(rows, data, order, errors, position, interfaces)
            yield Records(located, data, position, place)
            number, given_order = number + located.num_rows, order
            position, unread = position + _consumed(rows), data[_consumed(rows) :]
            if wrong.num_rows:
                return
            another = _consumed(rows) > 0 and bytes(source.load(position, 4)) == pcapng.SECTION_START
            loaded = unread if another else None
        order = given_order = ""
    _add_incomplete(unread, position, key.replace("blocks", "block"), limits, errors)


class _Described(NamedTuple):
    """An interface, and the number of the block that describes it among those read; -1 if it is before them."""

    interface: Interface
    row: int


def _of_section(
    rows: pa.RecordBatch,
    section: memoryview,
    order: str,
    errors: list[pa.RecordBatch],
    begin: int,
    before: list[_Described],
) -> pa.RecordBatch:
    """The packets in blocks of a section; ``before`` has the interfaces described so far, and receives new ones."""
    kinds, offsets = _numbers(rows, "block_type"), _numbers(rows, "@offset")
    good = _numbers(rows, "block_total_length_again.ok").astype(bool)
    interfaces = [*before, *_interfaces(rows, kinds, section, order)]
    before[:] = [each._replace(row=-1) for each in interfaces]
    described_at = np.array([each.row for each in interfaces], np.int64)
    holds = (kinds == pcapng.ENHANCED_PACKET) | (kinds == pcapng.PACKET) | (kinds == pcapng.SIMPLE_PACKET)
    places = np.flatnonzero(holds & good)
    numbers = _numbers(rows, "body.interface_id")[places].astype(np.int64)
    described_before = np.searchsorted(described_at, places)
    for row in np.flatnonzero(~good):
        errors.append(_refused(rows, int(row), begin, "block_total_length_again", "disagrees with block_total_length"))
    for row in places[numbers >= described_before]:
        errors.append(
            _refused(
                rows, int(row), begin, "body.interface_id", "belongs to an interface that no earlier block describes"
            )
        )
    places, numbers = places[numbers < described_before], numbers[numbers < described_before]
    chosen = rows if places.size == rows.num_rows else rows.take(pa.array(places))
    content = chosen["body.data"].cast(pa.large_binary())
    high, low = (_numbers(rows, f"body.timestamp_{half}")[places].astype(np.uint64) for half in ("high", "low"))
    units, simple = high << np.uint64(32) | low, kinds[places] == pcapng.SIMPLE_PACKET
    times, timed = np.zeros(places.size, np.int64), ~simple
    links, snaps = np.zeros(places.size, np.int32), np.zeros(places.size, np.int64)
    for number in np.unique(numbers):
        of_interface, interface = numbers == number, interfaces[number].interface
        times[of_interface], fits = nanoseconds(units[of_interface], interface)
        timed[of_interface] &= fits
        links[of_interface], snaps[of_interface] = interface.link_type, interface.snap_length
    content = _snapped(content, np.where(simple, snaps, 0))
    sizes = np.asarray(pc.binary_length(content)).astype(np.uint32)
    leads = np.select([kinds[places] == kind for kind in DATA_LEADS], list(DATA_LEADS.values()))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(times, mask=~timed).view(TIME),
            pa.array(numbers.astype(np.int32)),
            pa.array(links),
            pa.array(sizes),
            chosen["body.original_length"],
            pa.array(offsets[places] + begin),
            pa.array(offsets[places] + begin + leads),
            content,
        ],
        schema=_FOUND,
    )


def _interfaces(rows: pa.RecordBatch, kinds: NDArray[Any], section: memoryview, order: str) -> list[_Described]:
    """The interfaces that a section describes; they are few, so they are decoded one by one."""
    offsets, lengths = _numbers(rows, "@offset"), _numbers(rows, "@length")
    interfaces = []
    for row in np.flatnonzero(kinds == pcapng.INTERFACE_DESCRIPTION):
        data = bytes(section[offsets[row] : offsets[row] + lengths[row]])
        interfaces.append(_Described(described(decode(data, f"net.pcapng.block.{order}").value.body), int(row)))
    return interfaces


def nanoseconds(units: NDArray[Any], interface: Interface) -> tuple[NDArray[Any], NDArray[Any]]:
    """Times of an interface in nanoseconds since the epoch, and whether each of them fits in 64 bits.

    >>> times, fit = nanoseconds(np.array([5, 1 << 63], np.uint64), Interface(1))
    >>> times.tolist(), fit.tolist()
    ([5000, 0], [True, False])
    """
    exponent, quick = interface.exponent, np.zeros(units.size, bool)
    times = np.zeros(units.size, np.int64)
    shift = interface.shift * SECOND
    if abs(shift) < _HIGHEST // 2:
        if interface.binary and exponent <= _FRACTION:
            seconds, fraction = units >> np.uint64(exponent), units & np.uint64((1 << exponent) - 1)
            quick = seconds < _HIGHEST // 4 // SECOND
            nanos = seconds * np.uint64(SECOND) + (fraction * np.uint64(SECOND) >> np.uint64(exponent))
        elif not interface.binary and exponent <= 9:
            factor = 10 ** (9 - exponent)
            quick = units < _HIGHEST // 4 // factor
            nanos = units * np.uint64(factor)
        else:
            nanos = units
        times = np.where(quick, nanos, 0).astype(np.int64) + np.where(quick, shift, 0)
    fits = quick.copy()
    for row in np.flatnonzero(~quick):
        exact = interface.nanoseconds(int(units[row]))
        if -_HIGHEST <= exact <= _HIGHEST:
            times[row], fits[row] = exact, True
    return times, fits


def _snapped(content: pa.Array, snaps: NDArray[Any]) -> pa.Array:
    """Byte strings truncated to a length; 0 for no limit. In a simple packet, they may include the padding."""
    sizes = np.asarray(pc.binary_length(content))
    longer = np.flatnonzero((snaps > 0) & (sizes > snaps))
    if not longer.size:
        return content
    pieces = [content[row].as_py()[: snaps[row]] for row in longer.tolist()]
    rows = np.arange(len(content))
    rows[longer] = len(content) + np.arange(longer.size)
    return pa.concat_arrays([content, pa.array(pieces, content.type)]).take(pa.array(rows))


def _numbers(rows: pa.RecordBatch, name: str) -> NDArray[Any]:
    return numbers(rows[name])


def _consumed(rows: pa.RecordBatch) -> int:
    return int(rows.schema.metadata[b"wirekit.consumed"])


def _add_moved(wrong: pa.RecordBatch, begin: int, errors: list[pa.RecordBatch]) -> None:
    """Adds the errors of a part that begins at an offset, with offsets in the file."""
    if wrong.num_rows:
        for name in ("offset", "at"):
            index = wrong.schema.get_field_index(name)
            wrong = wrong.set_column(index, wrong.schema.field(index), pc.add(wrong[name], begin))
        errors.append(wrong)


def _add_incomplete(unread: memoryview, position: int, key: str, limits: Limits, errors: list[pa.RecordBatch]) -> None:
    """Adds the error for bytes after the last record that are no whole record, if there are any."""
    error = decode(bytes(unread), key, limits=limits).error if unread else None
    if error is not None:
        errors.append(_error(error, position, len(unread)))


def _error(error: WireError, position: int, size: int) -> pa.RecordBatch:
    at = position + min(error.offset or 0, size)
    return error_batch(position, size, details_of(error, at)._replace(at=at))


def _refused(rows: pa.RecordBatch, row: int, begin: int, path: str, why: str) -> pa.RecordBatch:
    offset, size = begin + rows["@offset"][row].as_py(), rows["@length"][row].as_py()
    return error_batch(offset, size, Details("wrong", path, offset, why))
