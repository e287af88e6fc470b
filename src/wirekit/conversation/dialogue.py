"""What a protocol knows of a connection beyond its layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wirekit.conversation.events import Description, Frame, Message
from wirekit.conversation.requests import Requests
from wirekit.engine import Decoded, begins, begins_unverified, clean_value, decode
from wirekit.registry import Protocol

CALL = 32
FEW = 32
BYTE = 2
THOROUGH = 10


Names = dict[str, dict[Any, dict[str, Any]]]
"""What declared names stand for: columns, by name and key (see ``wirekit.tables.Names``)."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """What frames of a connection say that were followed elsewhere, as the protocol's pairing declares them.

    Attributes:
        sides: those that sent any.
        clients: what the client called itself in them.
        calls: API and version of the requests, all of which were answered.
        names: what declared names stand for behind them.
        most: the number of bytes that the last ``Kind.most`` of them says; 0 where none does.
    """

    sides: list[str]
    clients: list[str | None] = field(default_factory=list)
    calls: list[tuple[str, int]] = field(default_factory=list)
    names: Names = field(default_factory=dict)
    most: int = 0


class Dialogue:
    """What a protocol knows of one connection; subclasses live in ``protocols/<protocol>/dialogue.py``.

    Attributes:
        protocol: the protocol.
        effort: what searching has cost so far; a look at ``FEW`` bytes or less costs ``CALL``, each byte beyond
            ``BYTE``; one by the reference engine ``THOROUGH`` times that.
        whole: the last whole frame that was found to fit, decoded; None when the last one did not, or it was taken.
        names: what declared names stand for (see ``wirekit.tables.Names``), where messages are declared.
        requests: requests that wait for their response, by what pairs them. The conversation keeps it.
        opening: what a client sends first, each frame after the answer to the one before: (layout, value).
        resumable: whether ``skipped`` says all that matters of whole frames, from the first one on.
        frame_limit: bytes that a frame may announce, once the two sides have agreed on it. A frame above it that the
            protocol's own limit allows is framed all the same, and has a Limit error.
    """

    resumable: bool = False
    frame_limit: int | None = None
    opening: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.requests = Requests()
        self.names: Names = {}
        self.effort = 0
        self.whole: Decoded | None = None

    def schema(self, side: str, data: bytes) -> tuple[str, Mapping[str, Any], str | None]:
        """How to decode a whole frame: key, context, and the reason if its body cannot be decoded.

        The reason is ``Undeclared`` where the frame is in its place and its header says what it is.
        """
        return self.protocol.stream(side), {}, None

    def frame_key(self, side: str) -> str:
        """The key that tells where the frame at the head of a direction ends."""
        return self.protocol.stream(side)

    def describe(self, side: str, decoded: Decoded) -> Description:
        """What the frame is; called for every frame, also one with an error and a partial value (or None)."""
        return Description()

    def sender(self, decoded: Decoded) -> str:
        """The side that alone sends such a frame, or "" where both do; tells client from server in the middle."""
        return ""

    def plausible(self, side: str, data: bytes, size: int) -> bool:
        """Whether what may be a frame is one, while searching: it decodes cleanly and its body is known.

        Args:
            side: who sent it.
            data: the frame, or its first bytes: False then says that it is none.
            size: bytes of the whole frame.
        """
        key, context, reason = self.schema(side, data)
        return reason is None and self.fits(data, key, size, context)

    def fits(self, data: bytes, key: str, size: int, context: Mapping[str, Any] | None = None) -> bool:
        """``wirekit.engine.begins``, with what it costs counted; a whole frame that fits is kept as ``whole``."""
        self._spend(data)
        if len(data) < size:
            return begins(data, key, size, context=context)
        self.whole = clean_value(data, key, context=context)
        return self.whole is not None

    def fits_unverified(self, data: bytes, key: str, size: int) -> bool:
        """``fits``, or that it would if no check failed; what is compressed is not opened for that."""
        self._spend(data)
        fitting = begins_unverified(data, key, size)
        if fitting is False or len(data) < size:
            return bool(fitting)
        if fitting:
            self.whole = clean_value(data, key)
            return True
        self._spend(data, THOROUGH)
        decoded = decode(data, key)
        return decoded.error is None and not decoded.gaps and decoded.consumed == size

    def _spend(self, data: bytes, times: int = 1) -> None:
        """Counts what a look at some bytes costs."""
        size = len(data)
        self.effort += times * (CALL if size <= FEW else CALL + BYTE * (size - FEW))

    def headed(self, side: str, data: bytes, *, side_known: bool) -> bool:
        """Whether a frame that does not decode cleanly is the protocol's all the same, as its header alone shows.

        Args:
            side: who sent it.
            data: the whole frame.
            side_known: False while ``side`` is a guess that the header has to prove, too.
        """
        return False

    def observe(self, frame: Frame) -> None:
        """Takes note of what a frame says about the connection; called once for each, in order of arrival."""

    def lost(self) -> None:
        """Takes note that bytes are missing, or that nobody could decode some."""

    def messages(self, frame: Frame) -> Iterator[Message]:
        """The application messages in a frame, by default those that are declared; called after ``observe``."""
        if not self.protocol.declared.messages:
            return iter(())
        from wirekit.tables.records import Frames, records

        request = None if frame.request is None else frame.request.value
        frames = Frames(frame.value, request, self.names)
        return records(self.protocol.name).declared_messages(frame, frames)

    @property
    def usual(self) -> bool:
        """Whether frames may come next of which ``skipped`` says all that matters; if not, each is to be observed."""
        return False

    def skipped(self, frames: Skipped) -> None:
        """Takes note of frames that were followed elsewhere."""

    def summary(self) -> dict[str, Any]:
        """What the connection carries, as plain JSON data: texts, numbers, and lists of objects with these."""
        return {}
