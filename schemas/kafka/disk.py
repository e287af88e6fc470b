"""Files of a partition's directory: ``<base offset, 20 digits>.log``, ``.index`` (0.8.0) and ``.timeindex`` (0.10.1).

None has a header. While a segment is open, its indexes are preallocated and filled with zeros (10 MiB by default), and
so is the log with ``log.preallocate``; a crash leaves the zeros. A length that makes no sense ends the log in brokers
until 0.10.1; here it is an error, with the messages before it as the partial value.

Files of a broker's data directory are text: the checkpoints ``recovery-point-``, ``replication-`` and (0.8.1)
``cleaner-offset-checkpoint``, and (0.8.2) ``meta.properties``.

Source: Kafka 0.10.2 ``FileMessageSet.scala``, ``OffsetIndex.scala``, ``TimeIndex.scala``, ``OffsetCheckpoint.scala``,
``BrokerMetadataCheckpoint.scala``.
"""

from __future__ import annotations

from wirekit.schemas.kafka.messages import ENTRY
from wirekit.wire import (
    Default,
    Delimited,
    If,
    IfNext,
    RecordsToEnd,
    Repeat,
    Struct,
    Timestamp,
    int32,
    int64,
    len_,
    rest,
    this,
    unexplained,
)

LOG_SEGMENT = Struct(
    "preallocated" / IfNext(bytes(12), rest()) * "the zeros of a segment without messages, else null",
    "messages" / RecordsToEnd(ENTRY, short_tail="stop", until=bytes(12)) * "with their final offsets",
    "tail" / rest() * "zeros, or a last message that a crash cut",
    name="LogSegment",
    doc="a .log file: a message set, maybe followed by zeros",
)

OFFSET_INDEX = Struct(
    "entries"
    / RecordsToEnd(
        Struct(
            "relative_offset" / int32 * "to the base offset in the file's name",
            "position" / int32 * "of the entry's message in the .log file",
            name="OffsetIndexEntry",
        ),
        short_tail="stop",
        until=bytes(8),
        except_first=True,
    )
    * (
        "ascending and sparse; a leader writes the first offset of an appended batch, a follower that of the wrapper, "
        "so only this holds: previous offset < entry <= offset at position"
    ),
    "tail" / rest() * "zeros of an index that was not closed",
    name="OffsetIndex",
    doc="a .index file: the positions in the log of the messages of some offsets",
)

TIME_INDEX = Struct(
    "entries"
    / RecordsToEnd(
        Struct(
            "timestamp" / Timestamp(int64) * "the largest so far",
            "relative_offset" / int32 * "to the base offset in the file's name",
            name="TimeIndexEntry",
        ),
        short_tail="stop",
        until=bytes(12),
        except_first=True,
    )
    * "both columns ascend",
    "tail" / rest() * "zeros of an index that was not closed",
    name="TimeIndex",
    doc="a .timeindex file: offsets by timestamp",
)

OFFSET_CHECKPOINT = Struct(
    "version" / Default(Delimited("\n", number=True), 0) * "always 0",
    "count" / Default(Delimited("\n", number=True), len_(this.entries)) * "of the entries",
    "entries"
    / Repeat(
        this.count,
        Struct(
            "topic" / Delimited(" "),
            "partition" / Delimited(" ", number=True),
            "offset" / Delimited("\n", number=True) * "all messages before it are flushed, replicated or cleaned",
            name="OffsetCheckpointEntry",
        ),
    ),
    "tail" / unexplained(),
    name="OffsetCheckpoint",
    doc="a checkpoint file: an offset of each partition",
)

PROPERTIES = Struct(
    "lines"
    / RecordsToEnd(
        Struct(
            "comment" / IfNext(b"#", Delimited("\n")) * "with its number sign",
            "name" / If(this.comment == None, Delimited("=")),  # noqa: E711  # an expression, not a comparison
            "value" / If(this.comment == None, Delimited("\n")) * "escaped as Java writes it",  # noqa: E711
            name="Property",
        )
    ),
    name="Properties",
    doc="a file of properties as Java writes it",
)
