"""Reads capture files: packets and TCP segments. Only the schemas ``net.*`` know the layouts.

A file is read in windows of whole records, with one decode per window; a window of a pipe is what has arrived. A
packet without a TCP segment is a ``Skipped`` with its reason, never an error. A damaged block of a pcapng file is
skipped and reported as a ``Damaged``. Reading ends at a truncated record, and at damage after which no record can be
recognised (any damage in pcap, whose records have no mark): the packets before it are returned, and ``Capture.damage``
has the place and the reason.
"""

from __future__ import annotations

from wirekit.capture.files.dissecting import dissect, segments
from wirekit.capture.files.items import FRAGMENT, LINK_TYPE, NO_TIME_US, Interface, Packet, Place, Skipped
from wirekit.capture.files.opening import (
    Capture,
    check_capture,
    content_size,
    is_capture,
    is_packed,
    open_capture,
    piped_capture,
)
from wirekit.capture.files.walking import WINDOW
from wirekit.errors import Damaged

__all__ = [
    "FRAGMENT",
    "LINK_TYPE",
    "NO_TIME_US",
    "WINDOW",
    "Capture",
    "Damaged",
    "Interface",
    "Packet",
    "Place",
    "Skipped",
    "check_capture",
    "content_size",
    "dissect",
    "is_capture",
    "is_packed",
    "open_capture",
    "piped_capture",
    "segments",
]
