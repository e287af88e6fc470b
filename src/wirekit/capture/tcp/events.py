"""The input (segments) and output (events) of TCP reassembly, and its time limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from wirekit.errors import Misuse

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
CLOCK_STEP_US = 128_000
"""If a segment is older by more than this than the one before it, the clock was set back between them; if it is
older by less, it was written late. NTP sets a clock from 128 ms on, and slews it below."""

Side = Literal["client", "server"]
ClosedReason = Literal["fin", "rst", "end of capture", "new connection", "idle"]
GapReason = Literal[
    "acknowledged, never captured",
    "snap length",
    "never acknowledged, never captured",
    "held bytes over the limit",
    "pending at fin",
    "pending at rst",
    "pending at end of capture",
    "pending at new connection",
    "pending at idle",
]
IgnoredReason = Literal["before the start", "after the end", "after its gap", "out of the window", "in a reset"]


# Named tuples, not frozen dataclasses: millions are made, at a quarter of the cost.
class Segment(NamedTuple):
    """One TCP segment as captured.

    Attributes:
        time_us: capture time, microseconds since the epoch; any time that a capture file can hold (below 2**128).
        source: sender, for example ``127.0.0.1:29101`` or ``[::1]:6650``.
        target: receiver, written the same way.
        sequence: raw 32-bit sequence number.
        acknowledgment: raw 32-bit acknowledgment number; read only when the ACK flag is set.
        flags: TCP flag bits (FIN 1, SYN 2, RST 4, PSH 8, ACK 16).
        payload: the captured bytes.
        offset: absolute offset of the payload in the capture file, bytes.
        file: ordinal of the capture file; unique among all files whose state is passed on.
        length: bytes of payload on the wire; more than ``len(payload)`` if the snap length truncated it.
    """

    time_us: int
    source: str
    target: str
    sequence: int
    acknowledgment: int
    flags: int
    payload: bytes
    offset: int
    file: int
    length: int


class Opened(NamedTuple):
    """A connection appeared; always the first event of the connection.

    Attributes:
        connection: number of the connection.
        client: address that sent the SYN; without a SYN, the address that is not the server by the known server
            ports, else by the lower port, else the first sender.
        server: the other address.
        time_us: capture time of its first segment, microseconds since the epoch.
        known_start: whether a SYN was captured, so that stream offset 0 is the first byte ever sent.
    """

    connection: int
    client: str
    server: str
    time_us: int
    known_start: bool


class Data(NamedTuple):
    """Bytes of one direction, in order, each exactly once.

    Attributes:
        direction: who sent them.
        data: the bytes, never empty.
        stream_offset: their place in the direction's stream, bytes.
        time_us: capture time of the segment that brought them.
        offset: absolute offset of the first byte in the capture file.
        file: ordinal of the capture file.
    """

    direction: Side
    data: bytes
    stream_offset: int
    time_us: int
    offset: int
    file: int


class Gap(NamedTuple):
    """Bytes that were sent but not captured.

    Attributes:
        direction: who sent them.
        stream_offset: their place in the direction's stream, bytes.
        length: number of bytes, at least 1.
        time_us: capture time when the loss became visible: of the segment after the gap or of the truncated one; of the
            connection's last segment if no segment follows.
        reason: the cause of the loss.
    """

    direction: Side
    stream_offset: int
    length: int
    time_us: int
    reason: GapReason


class Duplicate(NamedTuple):
    """Captured bytes that were captured before; they are dropped.

    Attributes:
        direction: who sent them again.
        length: bytes dropped.
        time_us: capture time of the copy.
    """

    direction: Side
    length: int
    time_us: int


class Ignored(NamedTuple):
    """Captured bytes that belong to no open place of the stream.

    Attributes:
        direction: who sent them.
        data: the bytes.
        time_us: capture time of their segment.
        offset: absolute offset of the first byte in the capture file.
        file: ordinal of the capture file.
        reason: why they have no place; ``after its gap`` says that the hold time was too short for this capture.
    """

    direction: Side
    data: bytes
    time_us: int
    offset: int
    file: int
    reason: IgnoredReason


class Closed(NamedTuple):
    """A direction, or the rest of the connection, has ended; no Data or Gap of it follows.

    Attributes:
        direction: the side that has ended.
        reason: the cause of the end.
        time_us: capture time of the FIN or RST, else of the connection's last segment.
    """

    direction: Literal["client", "server", "both"]
    reason: ClosedReason
    time_us: int


Event = Opened | Data | Gap | Duplicate | Ignored | Closed


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits of waiting time and held bytes. Microseconds are capture time.

    Attributes:
        hold_us: how late a packet may be captured: the wait after the acknowledgment of a hole, at a start without
            a handshake, and after a reset.
        patience_us: how long an unacknowledged hole stays open; also how long after its end a connection still
            takes segments as late ones, not as a new connection without a handshake.
        idle_us: a connection without any segment for longer than this is closed.
        held_limit: bytes held out of order per direction; each piece counts 256 bytes besides its payload.
        server_ports: known ports of servers, used if no handshake shows the server.
    """

    hold_us: int = 5_000
    patience_us: int = 10_000_000
    idle_us: int = 600_000_000
    held_limit: int = 64 << 20
    server_ports: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for name in ("hold_us", "patience_us", "idle_us", "held_limit"):
            if getattr(self, name) < 0:
                raise Misuse(f"{name} is {getattr(self, name)}; pass 0 or more")


DEFAULT = Settings()
