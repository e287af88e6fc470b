"""Capture files in, packets and TCP segments out. What the bytes mean is known to the schemas ``net.*`` only.

A file is mapped, never read as a whole, and walked in windows of whole records, one decode a window. What is cut or
damaged ends the walk: all packets before it are given, and ``Capture.damage`` says where and why. A packet that holds
no TCP segment is a ``Skipped`` with its reason, never an error.
"""

from __future__ import annotations

from wirekit.capture.files.dissecting import dissect, segments
from wirekit.capture.files.items import Interface, Packet, Place, Skipped
from wirekit.capture.files.opening import WINDOW, Capture, is_capture, open_capture

__all__ = [
    "WINDOW",
    "Capture",
    "Interface",
    "Packet",
    "Place",
    "Skipped",
    "dissect",
    "is_capture",
    "open_capture",
    "segments",
]
