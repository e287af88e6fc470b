"""The state of a protocol on one connection: pairing, names, messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wirekit import plain
from wirekit.conversation.events import Description, Frame, Message
from wirekit.conversation.requests import Requests
from wirekit.decoding import decode
from wirekit.engine import Decoded
from wirekit.errors import Misuse
from wirekit.fitting import begins, begins_unverified, clean_value
from wirekit.registry import Protocol
from wirekit.values import shown

CALL = 32
FEW = 32
PARTS = 3
"""The number of results of ``Dialogue.schema``: key, context, reason."""
LARGEST_SEARCHED = 1024 * 1024
"""The maximum number of bytes that a search keeps."""
LARGEST_WAITED = LARGEST_SEARCHED // 2
"""The largest frame that a search waits for, to decode all of it."""
LARGEST_HEAD = 64
"""Bytes up to the end of a frame's own length."""
LARGEST_PROBE = 512
"""The maximum number of bytes of an incomplete frame that a search examines."""
LEAST_BEGUN = 24
"""The least number of bytes by which an incomplete frame, or the protocol that it belongs to, is recognised."""
BYTE = 2
THOROUGH = 10
MOST_THOROUGH = 256
"""The largest frame with invalid text that a search decodes: a larger one could use up its budget for a long time."""
_OF_A_RUN = frozenset({"protocol", "requests", "effort", "whole"})
"""Attributes that are not state of the connection, or that the conversation stores."""


Names = dict[str, dict[Any, dict[str, Any]]]
"""The meanings of declared names: columns, by name and key (see ``wirekit.tables.Names``)."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Facts about frames of a connection that were processed elsewhere, as the protocol's pairing declares them.

    Attributes:
        sides: the sides that sent frames.
        clients: the names of the clients in them.
        calls: API and version of the requests; all of them have a response.
        names: the meanings of declared names after these frames.
        most: the number of bytes stated by the last ``Kind.most`` among them; 0 if none states one.
    """

    sides: list[str]
    clients: set[str | None] = field(default_factory=set)
    calls: list[tuple[str, int]] = field(default_factory=list)
    names: Names = field(default_factory=dict)
    most: int = 0


class Dialogue:
    """The state of a protocol on one connection; subclasses are in ``protocols/<protocol>/dialogue.py``.

    Attributes:
        protocol: the protocol.
        effort: cost of the search so far: ``CALL`` for an attempt on at most ``FEW`` bytes, plus ``BYTE`` for each
            further byte; ``THOROUGH`` times that for the reference engine.
        whole: the last whole frame, decoded, if it fitted; otherwise None.
        names: the meanings of declared names (see ``wirekit.tables.Names``), if messages are declared.
        requests: requests that wait for their response, by the number that pairs them. The conversation maintains it.
        opening: the frames that a client sends first, each after the response to the previous one: (layout, value).
        resumable: whether ``skipped`` gives enough information about whole frames, including the first one.
        frame_limit: the largest frame in bytes that the two sides have agreed on. A larger frame within the
            protocol's own limit is still framed, with a Limit error.
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
        """Returns the key and the context to decode a frame, and the reason if its body cannot be decoded.

        ``data`` are the frame, or its first bytes. The reason is ``Undeclared`` if only the layout of the body is
        missing: the header identifies the frame.
        """
        return self.protocol.stream(side), {}, None

    def layout(self, side: str, data: bytes) -> tuple[str, Mapping[str, Any], str | None]:
        """The result of ``schema``.

        Raises:
            Misuse: if the result does not have this form.
        """
        returned: Any = self.schema(side, data)
        key, context, reason = returned if type(returned) is tuple and len(returned) == PARTS else (None, None, None)
        usual = type(key) is str and type(context) is dict and reason is None  # asking an abstract class takes longer
        if not usual and not (isinstance(key, str) and isinstance(context, Mapping) and isinstance(reason, str | None)):
            raise self._misuse("schema", returned, "(key, context, reason or None)")
        return key, context, reason

    def application_messages(self, frame: Frame) -> list[Message]:
        """The result of ``messages``.

        Raises:
            Misuse: if the result does not have this form.
        """
        returned: Any = self.messages(frame)
        try:
            messages = list(returned)
        except TypeError:
            if isinstance(returned, Iterable):
                raise
            messages = [None]
        for each in messages:
            if not isinstance(each, Message):
                raise self._misuse("messages", returned, "Message objects")
        return messages

    def _misuse(self, method: str, returned: Any, form: str) -> Misuse:
        name = f"{type(self).__module__}.{type(self).__qualname__}.{method}"
        return Misuse(f"{name} returned {shown(returned)}; it must return {form}")

    def frame_key(self, side: str) -> str:
        """The key of the layout whose length gives the end of a side's next frame."""
        return self.protocol.stream(side)

    def describe(self, side: str, decoded: Decoded) -> Description:
        """Describes a frame. It is called for every frame, even one with an error and a partial value (or None)."""
        return Description()

    def sender(self, decoded: Decoded) -> str:
        """Returns the only side that sends such frames; "" if both do or a partial value (or None) does not show it.

        It distinguishes client and server if a capture begins in the middle of a connection.
        """
        return ""

    def plausible(self, side: str, data: bytes, size: int) -> bool:
        """Whether bytes may be a frame, for a search: by default, if they decode cleanly and the body is known.

        Args:
            side: the sender.
            data: the frame, or its first bytes; if the result for the first bytes is False, it is not a frame.
            size: bytes of the whole frame.
        """
        key, context, reason = self.layout(side, data)
        return reason is None and self.fits(data, key, size, context)

    def proven(self, side: str, data: bytes) -> bool:
        """Whether the first bytes of a plausible frame suffice, for a search: by default, if ``sender`` allows it."""
        return self.sender(decode(data, self.frame_key(side))) in ("", side)

    def fits(self, data: bytes, key: str, size: int, context: Mapping[str, Any] | None = None) -> bool:
        """``wirekit.fitting.begins``; counts its cost, and stores a whole frame that fits in ``whole``."""
        self._spend(data)
        if len(data) < size:
            return begins(data, key, size, context=context)
        self.whole = clean_value(data, key, context=context)
        return self.whole is not None

    def fits_unverified(self, data: bytes, key: str, size: int) -> bool:
        """Like ``fits``, but ignores failed checks and does not decompress data."""
        self._spend(data)
        fitting = begins_unverified(data, key, size)
        if fitting is False or len(data) < size:
            return bool(fitting)
        if fitting:
            self.whole = clean_value(data, key)
            return True
        if size > MOST_THOROUGH:
            return False
        self._spend(data, THOROUGH)
        decoded = decode(data, key)
        return decoded.error is None and not decoded.gaps and decoded.consumed == size

    def _spend(self, data: bytes, times: int = 1) -> None:
        """Counts the cost of examining some bytes."""
        size = len(data)
        self.effort += times * (CALL if size <= FEW else CALL + BYTE * (size - FEW))

    def headed(self, side: str, data: bytes, *, side_known: bool) -> bool:
        """Whether the header alone identifies a frame of the protocol that does not decode cleanly.

        Args:
            side: the sender.
            data: the frame, or its first bytes.
            side_known: False if ``side`` is a guess, which the header must confirm as well.
        """
        return False

    def observe(self, frame: Frame) -> None:
        """Updates the state after a frame; called once for each frame, in order of arrival."""

    def lost(self) -> None:
        """Resets the state after missing or undecodable bytes, or without the start of the connection."""

    def messages(self, frame: Frame) -> Iterator[Message]:
        """The application messages in a frame, by default those of the declaration; called after ``observe``."""
        if not self.protocol.declared.messages:
            return iter(())
        from wirekit.tables.records import Frames, records

        request = None if frame.request is None else frame.request.value
        frames = Frames(frame.value, request, self.names)
        return records(self.protocol.name).declared_messages(frame, frames)

    @property
    def usual(self) -> bool:
        """Whether ``skipped`` alone may report the next frames; if not, ``observe`` must get each of them.

        Only ``requests`` whose responses are overdue may wait at that time; their responses are observed.
        """
        return False

    def skipped(self, frames: Skipped) -> None:
        """Updates the state after frames that were processed elsewhere."""

    def summary(self) -> dict[str, Any]:
        """A summary of the connection as plain JSON data: strings, numbers, and lists of objects with these."""
        return {}

    def state(self) -> dict[str, Any]:
        """The state that ``restore`` needs to continue the connection in another process: by default all attributes.

        Values are those that ``wirekit.plain`` can store, and ``Description``.
        """
        return {name: value for name, value in vars(self).items() if name not in _OF_A_RUN}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues from a state that ``state`` returned.

        Raises:
            TypeError, ValueError: the state has an unknown attribute, or one of another type.
        """
        for name, value in state.items():
            if name in _OF_A_RUN or not hasattr(self, name) or callable(getattr(type(self), name, None)):
                raise ValueError(f"a dialogue of {self.protocol.name} has no attribute {name!r}")
            setattr(self, name, plain.like(getattr(self, name), value))
