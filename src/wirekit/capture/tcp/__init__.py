"""TCP reassembly: segments in, ordered bytes with explicit gaps out. Knows no packets, protocols, Arrow or Spark.

``Connection`` follows one address pair, ``Connections`` a whole capture. Strategy, for each direction:

- Bytes are placed by sequence number, unwrapped to a 64-bit stream offset (0 = the direction's first byte). Bytes in
  order are released at once, early bytes are held, and duplicates are dropped and counted: the first copy wins.
- A hole becomes a ``Gap`` only when it can no longer be filled: its peer has acknowledged all of it *and* the hold
  time has passed (packets can be captured late), or nobody acknowledged it within the patience time (only one
  direction was captured), or too many bytes are held after it, or the connection ends. Bytes that the snap length cut
  off are a gap at once. A loss at the end of the bytes is reported when the next byte comes or the connection ends.
- A direction without any captured segment has a gap when the connection ends: the bytes that its peer acknowledged.
- Without a handshake, the first bytes are held for the hold time, because a lower sequence number may still come.
- A reset takes effect after the hold time; a handshake with another initial sequence begins a new connection.
- After the clock was set back, waiting times count from that step: open holes get the full time again, a reset takes
  effect at once, uncertain first bytes become certain, and an ended connection takes no more late segments.

Rules: Data and Gap of a direction tile its stream offsets, ascending, without overlap. Every captured payload byte ends
in exactly one of Data, Duplicate, Ignored. Time is capture time, taken from the segments, never from a clock. Events
depend only on the segments of their address pair, so one pair at a time and a whole capture give the same.

Limitations: an acknowledgment one beyond the last byte counts as that of a FIN that was not captured, not as a gap
of one byte; a loss of more than 1 GiB in one direction gives a new connection, or a gap that is too short.
"""

from __future__ import annotations

from wirekit.capture.tcp.connection import Connection
from wirekit.capture.tcp.connections import Connections
from wirekit.capture.tcp.events import (
    ACK,
    CLOCK_STEP_US,
    FIN,
    PSH,
    RST,
    SYN,
    Closed,
    ClosedReason,
    Data,
    Duplicate,
    Event,
    Gap,
    Ignored,
    Opened,
    Segment,
    Settings,
    Side,
)

__all__ = [
    "ACK",
    "CLOCK_STEP_US",
    "FIN",
    "PSH",
    "RST",
    "SYN",
    "Closed",
    "ClosedReason",
    "Connection",
    "Connections",
    "Data",
    "Duplicate",
    "Event",
    "Gap",
    "Ignored",
    "Opened",
    "Segment",
    "Settings",
    "Side",
]
