"""The application messages of message sets as Arrow columns; ``reading`` returns the same one by one.

The rules for offsets and timestamps are those of ``reading``; here they are applied to whole columns, depth by depth,
because the offset and time of a wrapper must be known before those of its messages.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.compiler.columns import scan
from wirekit.compiler.columns.arrow import integers
from wirekit.compiler.columns.arrow import numbers as numbers_of
from wirekit.compiler.columns.ranges import CLEAN, REFUSED, scan_lists, scan_ranges
from wirekit.compiler.costs import cost_of_elements
from wirekit.compiler.generated import by_key
from wirekit.compression_quick import opener
from wirekit.errors import WireError
from wirekit.protocols.kafka.reading import CODEC_NAMES, ENTRY_HEAD, LOG_APPEND_TIME, NO_TIMESTAMP, SEGMENT
from wirekit.protocols.kafka.searching import LARGEST_RELATIVE
from wirekit.protocols.kafka.segment_file import ZEROS, SegmentFile
from wirekit.protocols.kafka.tables import SET_FIELDS
from wirekit.registry import registry
from wirekit.schemas.kafka.messages import COMPRESSIONS, TIMESTAMP_TYPES
from wirekit.storage import open_binary
from wirekit.stored import Part, Piece, Start, Walked
from wirekit.tables.paths import parse
from wirekit.tables.scopes import Frames, Opened, Scope, refuse_crowds
from wirekit.wire.costs import OPENED
from wirekit.wire.stream import SHARED, Allowance, Limits

_WALKED = ("@offset", "@gap", "offset", "message_size", "message.crc.ok", "message.attributes.codec")
UNCOMPRESSED = 0
CODECS = 8  # values of the field
TIME = pa.timestamp("ms", "UTC")
PLACES = frozenset(("position", "batch", "batch_index", "wire_bytes"))
FIELDS = (
    *(f"@{name}" for name in ("offset", "length", "gap", "depth", "parent", "left", "wrapper")),
    *(name for name in SET_FIELDS if name not in ("message.crc", "message.key")),
    "message.crc.ok",
    "message.value.ok",
)
"""The fields that places, offsets, times and verdicts of messages depend on."""


def messages(
    buffer: Any, key: str = "kafka.message_set", *, limits: Limits | None = None
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The messages in a message set or log segment: decompressed, with absolute offsets and effective timestamps.

    Args:
        buffer: the bytes, or an object with the buffer protocol.
        key: ``kafka.message_set`` or ``kafka.log_segment``.
        limits: the limits; by default the protocol's.

    Returns:
        Two batches. The first has a row per message: ``offset`` (null if unknown, because the content of the
        wrapper is damaged or cut, or the sum exceeds 64 bits), ``timestamp`` (UTC, milliseconds; null for magic 0 and
        for none), ``timestamp_type``, ``key``, ``value``, ``attributes``, ``codec`` (that of the wrapper for a message
        in one), ``crc`` and ``check`` (ok or bad: the worse of its own verdict and that of its wrapper). The second has
        the errors, as from ``wirekit.compiler.columns.scan``.

    >>> import wirekit
    >>> message = {"offset": 5, "message": {"magic": 1, "timestamp": 1000, "value": "6869"}}
    >>> batch, errors = messages(wirekit.encode("kafka.message_set", {"messages": [message]}))
    >>> [batch[name][0].as_py() for name in ("offset", "value", "codec", "check")]
    [5, b'hi', 'none', 'ok']
    """
    rows, errors = scan(key, buffer, limits=limits, wrappers=True)
    return _messages(rows), errors


_cost_of_elements = by_key(lambda key: cost_of_elements(registry[key].layout))
_FURTHEST = 1 << 62
"""Sums of offsets beyond this may exceed 64 bits."""
SCANNED_AT_ONCE = 16 << 20
"""Decompressed bytes of one frame whose messages are read before it is checked that the frame may have more."""


_TYPES = pa.array([TIMESTAMP_TYPES(number).symbol for number in (0, 1)])
_CODECS = pa.array([CODEC_NAMES.get(number, f"codec {number}") for number in range(CODECS)])
_VERDICTS = pa.array(["bad", "ok"])
_NO_MESSAGES = pa.RecordBatch.from_pydict({"@row": pa.array([], pa.int64())})


def produced(frames: Frames) -> pa.RecordBatch:
    """The messages of produce requests; no offset is known yet (see ``wirekit.tables.Messages``)."""
    return _of_frames(frames, "body.topic_data[]", "data[]", offsets=False)


def fetched(frames: Frames) -> pa.RecordBatch:
    """The messages of fetch responses.

    A frame is left to objects if the last entry of a set exceeds the set although all its fields are present.
    """
    place = "body.responses[].partition_responses[]"
    scope = Scope(frames, parse(place))
    partial = scope.path(f"{place}.record_set.partial").array
    sizes = integers(pc.binary_length(partial)) if len(partial) else np.zeros(0, np.int64)
    longer = np.flatnonzero(sizes > ENTRY_HEAD)
    if longer.size:
        ends = np.cumsum(sizes[longer])
        begins = ends - sizes[longer] + ENTRY_HEAD
        data = b"".join(partial.take(pa.array(longer)).to_pylist())
        _, states = scan_ranges("kafka.message", data, begins, ends, fields=["magic"], prefix=True)
        frames.doubted(frames, np.unique(scope.rows[longer[states < REFUSED]]))
    return _of_frames(frames, "body.responses[]", "partition_responses[]", offsets=True)


def _of_frames(frames: Frames, topics: str, partitions: str, *, offsets: bool) -> pa.RecordBatch:
    place = f"{topics}.{partitions}"
    entries = f"{place}.record_set.messages[]"
    scope = Scope(frames, parse(entries))
    if not scope.size:
        return _NO_MESSAGES
    refuse_crowds(scope.rows)
    fields = {name: scope.path(f"{entries}.{name}").array for name in SET_FIELDS}
    fields["topic"], fields["partition"] = scope.path(f"{topics}.topic").array, scope.path(f"{place}.partition").array
    fields["@row"] = pa.array(scope.rows)
    codec = integers(fields["message.attributes.codec"])
    wrapper_rows = np.flatnonzero(codec != UNCOMPRESSED)
    if wrapper_rows.size:
        fields, codec = _unwrapped(frames, scope, fields, wrapper_rows)
    else:
        _within_limits(frames, scope.rows, {})
    magic, times = integers(fields["message.magic"]), integers(fields["message.timestamp"], NO_TIMESTAMP)
    kinds = fields.get("@type")
    types = integers(fields["message.attributes.timestamp_type"])
    attributes = (
        integers(fields["message.attributes.codec"]) | types << 3 | integers(fields["message.attributes.reserved"]) << 4
    )
    columns = {
        "@row": fields["@row"],
        "topic": fields["topic"],
        "partition": fields["partition"],
        "timestamp_ms": pa.array(times, mask=(magic < 1) | (times == NO_TIMESTAMP)),
        "timestamp_type": _TYPES.take(pa.array(types if kinds is None else integers(kinds), mask=magic < 1)),
        "key": fields["message.key"],
        "value": fields["message.value"],
        "attributes": pa.array(attributes),
        "codec": _CODECS.take(pa.array(codec)),
        "crc": fields["message.crc"].cast(pa.int64()),
        "crc_status": pa.repeat("ok", codec.size),
        "wire_bytes": pa.array(integers(fields["message_size"]) + ENTRY_HEAD),
        **{name: fields[name] for name in ("batch", "batch_index") if name in fields},
        **({"log_offset": fields["offset"]} if offsets else {}),
    }
    return pa.RecordBatch.from_pydict(columns)


def _unwrapped(
    frames: Frames, scope: Scope, fields: dict[str, pa.Array], wrapper_rows: NDArray[Any]
) -> tuple[dict[str, pa.Array], NDArray[Any]]:
    """The messages, with wrappers replaced by their contents, and the codec of each; offsets and times are resolved.

    A frame with anything unusual in a wrapper is left to objects.
    """
    magics, codecs = integers(fields["message.magic"]), integers(fields["message.attributes.codec"])
    rows = scope.rows
    values = fields["message.value"].take(pa.array(wrapper_rows)).to_pylist()
    kinds = zip(magics[wrapper_rows].tolist(), codecs[wrapper_rows].tolist(), strict=True)
    names = [COMPRESSIONS.get(kind) for kind in kinds]
    inner, counts, good, allowances = _contents(frames, rows, rows[wrapper_rows].tolist(), names, values)
    firsts = np.concatenate([[0], np.cumsum(counts)])
    which = np.repeat(np.arange(wrapper_rows.size), counts)
    refuse_crowds(rows[wrapper_rows][which])
    nested = (numbers(inner, "message.attributes.codec") != UNCOMPRESSED) | (numbers(inner, "@gap") != 0)
    stored, above = numbers(inner, "offset"), integers(fields["offset"])[wrapper_rows]
    nested |= (stored < 0) | (stored > _FURTHEST) | (above[which] < 0) | (above[which] > _FURTHEST)
    good[which[nested]] = False
    frames.doubted(frames, np.unique(rows[wrapper_rows[~good]]))
    _within_limits(frames, np.concatenate([rows, rows[wrapper_rows][which]]), allowances)
    wrapper_magic = magics[wrapper_rows]
    last = stored[np.maximum(firsts[1:] - 1, 0)] if stored.size else np.zeros(wrapper_rows.size, np.int64)
    base = np.where(wrapper_magic >= 1, np.maximum(above - last, 0), 0)
    own_types = numbers(inner, "message.attributes.timestamp_type")
    wrapper_types = integers(fields["message.attributes.timestamp_type"])[wrapper_rows]
    types = np.where(wrapper_magic[which] >= 1, wrapper_types[which], own_types)
    times = numbers(inner, "message.timestamp", NO_TIMESTAMP)
    stamped = (wrapper_magic[which] >= 1) & (types == LOG_APPEND_TIME)
    times = np.where(stamped, integers(fields["message.timestamp"], NO_TIMESTAMP)[wrapper_rows][which], times)
    places = wrapper_rows[which]
    change = np.concatenate([[True], np.diff(scope.owners) != 0]) if scope.size else np.zeros(0, bool)
    entry = np.arange(scope.size) - np.maximum.accumulate(np.where(change, np.arange(scope.size), 0))
    alone = np.ones(scope.size, bool)
    alone[wrapper_rows] = False
    outside = np.flatnonzero(alone)
    size = outside.size
    order = np.argsort(np.concatenate([outside, places]), kind="stable")
    take, nothing = pa.array(order), np.concatenate([np.ones(size, bool), np.zeros(which.size, bool)])
    added = {
        "offset": pa.array(stored + base[which]),
        "message.timestamp": pa.array(times),
        **{name: frames.repeats.repeated(fields[name], places) for name in ("topic", "partition", "@row")},
    }
    columns = {}
    for name, column in fields.items():
        more = added[name] if name in added else inner.column(name)
        columns[name] = pa.concat_arrays([column.take(pa.array(outside)), more.cast(column.type)]).take(take)
    own = integers(fields["message.attributes.timestamp_type"])[outside]
    columns["@type"] = pa.array(np.concatenate([own, types])[order])
    columns["batch"] = pa.array(np.concatenate([np.zeros(size, np.int64), entry[places]])[order], mask=nothing[order])
    index = np.arange(which.size) - firsts[:-1][which]
    columns["batch_index"] = pa.array(
        np.concatenate([np.zeros(size, np.int64), index])[order].astype(np.int32), mask=nothing[order]
    )
    return columns, np.concatenate([codecs[outside], codecs[places]])[order]


def _contents(
    frames: Frames, rows: NDArray[Any], owners: list[int], codecs: list[str | None], values: list[bytes | None]
) -> tuple[pa.RecordBatch, NDArray[Any], NDArray[Any], dict[int, Allowance]]:
    """The messages in wrappers.

    Once a frame has more messages than ``_within_limits`` allows, no more of them are read.

    Args:
        rows: the frame of each message outside wrappers, and of each wrapper.
        owners, codecs, values: for each wrapper, its frame, its codec (None if unknown), and its compressed value.

    Returns:
        (batch, counts, good, allowances): the messages; for each wrapper, their number, and whether all of them are
        there and clean; {frame: its allowance after decompression}.
    """
    limits = registry.protocol("kafka").limits
    lengths = np.asarray(frames.batch.column("@length"))
    outside, read = np.bincount(rows).tolist(), Counter[int]()
    allowances: dict[int, Allowance] = {}
    openers: dict[str, Callable[[bytes, Allowance], bytes | None]] = {}
    decompressed, good = Opened(), np.ones(len(owners), bool)
    batches: list[pa.RecordBatch] = []
    counts: list[NDArray[Any]] = []
    pieces: list[bytes] = []
    most: list[int] = []
    unread, cost = 0, _cost()

    def scan_pieces() -> None:
        ends = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)))
        begins, place = np.concatenate([[0], ends[:-1]]), sum(each.size for each in counts)
        content = b"".join(pieces)
        pieces.clear()
        batch, firsts, states = scan_lists(
            "kafka.message_set", content, begins, ends, fields=[*SET_FIELDS, "@gap"], most=np.array(most, np.int64)
        )
        good[place : place + ends.size] &= states == CLEAN
        batches.append(batch)
        counts.append(np.diff(firsts))
        for owner, count in zip(owners[place : place + ends.size], counts[-1].tolist(), strict=True):
            read[owner] += count
        most.clear()

    for number, (owner, codec, value) in enumerate(zip(owners, codecs, values, strict=True)):
        if owner not in allowances:
            allowances[owner] = Allowance(limits, int(lengths[owner]))
        allowance, piece = allowances[owner], None
        full = read[owner] > allowance.room // cost - outside[owner]
        if codec is not None and value is not None and not full:
            if codec not in openers:
                openers[codec] = opener(codec, limits)
            piece = openers[codec](value, allowance)
            if piece is None:
                with suppress(WireError):
                    piece = allowance.decompress(codec, value)
        good[number] = piece is not None
        pieces.append(piece or b"")
        most.append(max(allowance.room // cost - outside[owner] - read[owner], 0) + 1)
        decompressed.add(owner, len(pieces[-1]))
        unread += len(pieces[-1])
        if owner == owners[0] and unread >= SCANNED_AT_ONCE:
            scan_pieces()
            unread = 0
    if pieces:
        scan_pieces()
    return pa.concat_batches(batches), np.concatenate(counts), good, allowances


def _cost() -> int:
    """The most memory that a message takes, in bytes."""
    return _cost_of_elements("kafka.message_set") + OPENED


def _within_limits(frames: Frames, rows: NDArray[Any], allowances: Mapping[int, Allowance]) -> None:
    """Leaves frames to objects if their messages may exceed the memory limit.

    Args:
        rows: the frame of each message.
        allowances: {frame with compressed messages: its allowance after their decompression}.
    """
    limits = registry.protocol("kafka").limits
    lengths = np.asarray(frames.batch.column("@length")).astype(np.int64)
    room = limits.memory + limits.memory_ratio * lengths
    for row, allowance in allowances.items():
        room[row] = allowance.room
    frames.doubted(frames, np.flatnonzero(np.bincount(rows, minlength=room.size) > room // _cost()))


def pieces_of_file(path: str, requested: Set[str] | None = None, part: Part | None = None) -> Iterator[Piece]:
    """The pieces of ``reading.pieces_of_file``, with the messages of each piece in columns.

    An irregular piece (a record that does not decode or decompress, bytes left over) is read one message at a time by
    the layout, so that all errors have one source. So is a piece without any good checksum, and one right after damage.

    Args:
        path: the file.
        requested: the columns of the batches; by default all. ``offset`` is always included.
        part: the part to read, between starts that ``walk`` returned; by default the whole file.

    Raises:
        OSError: the file cannot be read, or the part does not end where the next one begins.
    """
    fields = None
    if requested is not None:
        fields = [name for name in FIELDS if name != "message.value" or not requested.isdisjoint(("value", "check"))]
        fields += [f"message.{name}" for name in ("crc", "key") if name in requested]
    with open_binary(path) as file:
        segment = SegmentFile(path, file)
        end = None if part is None else part.end
        if part is not None:
            segment.begin(part.start)
        more = True
        while more and (end is None or segment.stretch < end.stretch):
            data = segment.window()
            piece, more = _in_columns(segment, data, requested, fields) or segment.one_by_one(data)
            if piece is not None:
                yield piece
        if end is not None and segment.position != end.position:
            raise OSError(errno.EIO, "was changed while it was read", path)


def walk(path: str, number: int, start: Start | None = None) -> Walked | None:
    """Walks over the messages of a stretch of a segment.

    Args:
        path: the file.
        number: the number of the stretch.
        start: its start, which is searched for if it is not known.

    Returns:
        None if no start is found, or if a reader might not find the next message by the size of one: a message does not
        decode, is torn or has a wrong CRC, or its compressed messages do not decode and the next one would not be
        recognised.
    """
    with open_binary(path) as file:
        segment = SegmentFile(path, file)
        base = segment.search.before
        start = segment.start_of(number) if start is None else start
        if start is None:
            return None
        segment.begin(start)
        while segment.stretch == number:
            data = segment.window()
            size = _stepped(segment, data, -1 if base is None else base)
            if size is None:
                return None
            segment.take(size)
        return Walked(start, Start(segment.stretch, segment.position, segment.search.before))


def _stepped(segment: SegmentFile, data: memoryview, base: int) -> int | None:
    """The size of the whole messages of a window; None if a reader might not find one by the size of the one before.

    Args:
        segment: the segment.
        data: the window.
        base: the offset before the base offset of the segment.
    """
    rows, _, _ = scan_lists("kafka.message_set", data, np.array([0]), np.array([len(data)]), fields=_WALKED)
    if not rows.num_rows:
        claim = segment.search.claim(segment.position)
        return None if segment.last or claim is None or claim <= len(data) else 0
    places = numbers(rows, "@offset")
    ends = places + numbers(rows, "message_size") + ENTRY_HEAD
    good = numbers(rows, "message.crc.ok").astype(bool) & (numbers(rows, "@gap") == 0)
    if not good.all() or (places != np.concatenate([[0], ends[:-1]])).any():
        return None
    before = base if segment.search.before is None else segment.search.before
    offsets = np.concatenate([[before], numbers(rows, "offset")])
    size = int(ends[-1])
    segment.search.follow(offsets[-2:].tolist())
    if numbers(rows, "message.attributes.codec").any():
        # After compressed messages that do not decode, the next message is searched for.
        in_order = before >= base and (np.diff(offsets) > 0).all() and offsets[-1] <= base + LARGEST_RELATIVE
        if not (in_order and segment.search.is_message(segment.position + size)):
            window, _, errors = scanned(segment, data)
            if errors.num_rows:
                return None
            if len(window) < len(data):
                segment.search.before = before
                return _stepped(segment, window, base)
    return size


def _in_columns(
    segment: SegmentFile, data: memoryview, requested: Set[str] | None, fields: Sequence[str] | None
) -> tuple[Piece, bool] | None:
    """The messages of a window in columns, and whether the segment continues; None if objects must read it."""
    if segment.after_damage or data[: len(ZEROS)] == ZEROS:  # more damage may follow: objects read it at less cost
        return None
    data, rows, errors = scanned(segment, data, fields)
    consumed = int(rows.schema.metadata[b"wirekit.consumed"])
    left_over = pc.or_kleene(pc.not_equal(rows["@gap"], 0), pc.greater(rows["@left"], 0))
    good = not errors.num_rows and not pc.any(left_over).as_py()
    if not good or not consumed or not pc.any(rows["message.crc.ok"]).as_py():
        return None
    is_outermost = numbers(rows, "@depth") == 0
    is_good = numbers(rows, "message.crc.ok").astype(bool)[is_outermost]
    ends = (numbers(rows, "@offset") + numbers(rows, "@length"))[is_outermost]
    before_bad = ~is_good & ~np.append(is_good[1:], False)
    if not all(segment.search.may_follow(segment.position + int(end)) for end in ends[before_bad]):
        return None
    good_offsets = numbers(rows, "offset")[is_outermost][is_good]
    before = good_offsets[0] if segment.search.before is None else segment.search.before
    passed = np.diff(np.flatnonzero(is_good), prepend=-1)
    if ((passed > 1) & (np.diff(good_offsets, prepend=before) > passed)).any():  # a bad one may cover others
        return None
    end, error = segment.end(len(data), bytes(data[consumed:]))
    segment.search.follow(good_offsets[-2:].tolist())
    fixed = {"protocol": "kafka", "topic": segment.topic, "partition": segment.partition, "schema": SEGMENT}
    batch = _messages(rows, segment.position, requested)
    return segment.piece(end, error, batch=batch, fixed=fixed, fits=True)


def scanned(
    segment: SegmentFile, window: memoryview, fields: Sequence[str] | None = None
) -> tuple[memoryview, pa.RecordBatch, pa.RecordBatch]:
    """The messages of a window with their wrappers, for the part that may be decompressed at once."""
    while True:
        rows, errors = scan(SEGMENT, window, wrappers=True, fields=fields)
        shared = errors.filter(pc.is_in(errors["limit"], pa.array(SHARED)))
        exceeding = np.unique(pc.coalesce(shared["wrapper"], shared["offset"]))
        if not exceeding.any():
            return window, rows, errors
        # If all exceed the limit together, fewer may fit.
        window = segment.shorten(window, int(exceeding[0] or exceeding[exceeding.size // 2]))


def _messages(rows: pa.RecordBatch, position: int | None = None, requested: Set[str] | None = None) -> pa.RecordBatch:
    """The messages of a scan with wrappers; if its position in the file is given, also the columns of places."""
    offsets, has_offset, times, types = resolved(rows)
    magic, codec = numbers(rows, "message.magic"), numbers(rows, "message.attributes.codec")
    dated = magic >= 1
    attributes = (
        codec
        | numbers(rows, "message.attributes.timestamp_type") << 3
        | numbers(rows, "message.attributes.reserved").astype(np.int32) << 4
    )
    parents = numbers(rows, "@parent", -1)
    inherited = (codec == UNCOMPRESSED) & (parents >= 0)
    codec = np.where(inherited, codec[parents], codec)
    columns: dict[str, Callable[[], pa.Array]] = {
        "offset": lambda: pa.array(offsets, mask=~has_offset),
        "timestamp": lambda: pa.array(times, mask=~dated | (times == NO_TIMESTAMP)).view(TIME),
        "timestamp_type": lambda: _dictionary(types, _TYPES, ~dated),
        "key": lambda: rows["message.key"],
        "value": lambda: rows["message.value"],
        "attributes": lambda: pa.array(attributes.astype(np.uint8)),
        "codec": lambda: _dictionary(codec, _CODECS),
        "crc": lambda: rows["message.crc"],
        "check": lambda: _dictionary(verified(rows), _VERDICTS),
    }
    arrays = {
        name: make() for name, make in columns.items() if requested is None or name in requested or name == "offset"
    }
    if position is not None and (requested is None or not requested.isdisjoint(PLACES)):
        arrays |= _places(rows, position)
    batch = pa.RecordBatch.from_pydict(arrays)
    return batch if rows["@left"].null_count == rows.num_rows else batch.filter(rows["@left"].is_null())


def _places(rows: pa.RecordBatch, position: int) -> dict[str, pa.Array]:
    """The place of each message: the position of its entry in the file; in a wrapper, the wrapper's with an index."""
    inside = numbers(rows, "@depth") > 0
    places = np.where(inside, numbers(rows, "@wrapper", 0), numbers(rows, "@offset")) + position
    counted = np.cumsum(inside & np.asarray(rows["@left"].is_null()))
    before = np.maximum.accumulate(np.where(inside, 0, counted))
    return {
        "position": pa.array(places.astype(np.int64)),
        "batch": pa.array(places.astype(np.int64), mask=~inside),
        "batch_index": pa.array((counted - before - 1).astype(np.int32), mask=~inside),
        "wire_bytes": pa.array(numbers(rows, "message_size").astype(np.int64) + ENTRY_HEAD),
    }


def numbers(rows: pa.RecordBatch, name: str, missing: int = 0) -> NDArray[Any]:
    """A column as numbers."""
    return numbers_of(rows[name], missing)


def _dictionary(numbers: NDArray[Any], names: pa.Array, missing: NDArray[Any] | None = None) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int8), mask=missing), names)


def verified(rows: pa.RecordBatch) -> NDArray[Any]:
    """For each row, whether its CRC and the CRCs of its wrappers are good.

    False if a value cannot be decompressed, or if the size exceeds the message, because the CRC covers the whole size.
    """
    good = numbers(rows, "message.crc.ok").astype(bool) & (numbers(rows, "@gap") == 0)
    compressed = np.isin(numbers(rows, "message.attributes.codec"), [codec for _, codec in COMPRESSIONS])
    good &= ~(compressed & np.asarray(rows["@left"].is_null()) & np.asarray(rows["message.value"].is_valid()))
    depths, parents = numbers(rows, "@depth"), numbers(rows, "@parent", -1)
    for depth in range(1, int(depths.max(initial=0)) + 1):
        here = np.flatnonzero(depths == depth)
        good[here] &= good[parents[here]]
    return good


def resolved(rows: pa.RecordBatch) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """For every row, wrappers included: absolute offset, whether it is known, timestamp, and timestamp type."""
    stored = numbers(rows, "offset")
    offsets = stored.copy()
    has_offset = np.ones(rows.num_rows, bool)
    times = numbers(rows, "message.timestamp", NO_TIMESTAMP).copy()
    types = numbers(rows, "message.attributes.timestamp_type").copy()
    magic = numbers(rows, "message.magic")
    is_whole = (numbers(rows, "@left", -1) == 0) & numbers(rows, "message.value.ok").astype(bool)
    depths, parents = numbers(rows, "@depth"), numbers(rows, "@parent", -1)
    last = np.full(rows.num_rows, -1, np.int64)  # the last message in each wrapper
    inside = np.flatnonzero(parents >= 0)
    last[parents[inside]] = inside
    for depth in range(1, int(depths.max(initial=0)) + 1):
        here = np.flatnonzero((depths == depth) & (magic[parents] >= 1))
        wrappers = parents[here]
        above, end = offsets[wrappers], stored[last[wrappers]]
        base = above - end
        fits = ((above ^ end) & (above ^ base)) >= 0  # the difference did not overflow
        base = np.maximum(base, 0)
        offsets[here] = stored[here] + base
        fits &= ~((stored[here] >= 0) & (offsets[here] < 0))
        has_offset[here] = has_offset[wrappers] & is_whole[wrappers] & fits
        within = np.flatnonzero((depths == depth) & (magic[parents] == 0))
        has_offset[within] = True
        types[here] = types[wrappers]
        stamped = here[types[wrappers] == LOG_APPEND_TIME]
        times[stamped] = times[parents[stamped]]
    return offsets, has_offset, times, types
