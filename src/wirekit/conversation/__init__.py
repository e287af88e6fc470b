"""Turns the bytes of both directions of a connection into frames and calls; knows no sockets and no captures.

``Conversation.receive`` has three outcomes: frames, bytes that do not decode (``Quarantined``, with the reason), and
``NEED_DATA`` while a frame is incomplete. A ``Dialogue``, in the protocol's folder, holds the knowledge beyond layouts:
which response answers which request, and which application messages a frame contains.

After damaged bytes, framing resumes at the next offset with a complete frame that decodes cleanly.
"""

from __future__ import annotations

from wirekit.conversation.dialogue import CALL, THOROUGH, Dialogue, Names, Skipped
from wirekit.conversation.events import (
    NEED_DATA,
    OTHER_SIDES,
    SIDES,
    Description,
    Event,
    Frame,
    Message,
    Quarantined,
    Undeclared,
)
from wirekit.conversation.following import BEFORE_FIRST, ENDED_INSIDE, Conversation
from wirekit.conversation.recognition import Recognised, best_fit, reading, recognise

__all__ = [
    "CALL",
    "BEFORE_FIRST",
    "ENDED_INSIDE",
    "NEED_DATA",
    "OTHER_SIDES",
    "SIDES",
    "THOROUGH",
    "Conversation",
    "Description",
    "Dialogue",
    "Event",
    "Frame",
    "Message",
    "Names",
    "Quarantined",
    "Recognised",
    "Skipped",
    "Undeclared",
    "best_fit",
    "reading",
    "recognise",
]
