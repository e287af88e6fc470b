"""Capture files in, packets and TCP segments out. What the bytes mean is known to the schemas ``net.*`` only.

A file is walked in windows of whole records, one decode a window; of a pipe, the bytes that have come are such a
window. A packet that holds no TCP segment is a ``Skipped`` with its reason, never an error. Damaged blocks of pcapng
are passed over: what could not be read is a ``Damaged``. What is cut, and damage behind which no record can be told
(any in pcap, whose records bear no mark), ends the walk: all packets before it are given, and ``Capture.damage`` says
where and why.
"""

from __future__ import annotations

from wirekit.capture.files.dissecting import dissect, segments
from wirekit.capture.files.items import Interface, Packet, Place, Skipped
from wirekit.capture.files.opening import Capture, check_capture, is_capture, is_packed, open_capture, piped_capture
from wirekit.capture.files.walking import WINDOW
from wirekit.errors import Damaged

__all__ = [
    "WINDOW",
    "Capture",
    "Damaged",
    "Interface",
    "Packet",
    "Place",
    "Skipped",
    "check_capture",
    "dissect",
    "is_capture",
    "is_packed",
    "open_capture",
    "piped_capture",
    "segments",
]
