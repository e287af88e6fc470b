"""Follows one connection of a known protocol: framing and pairing."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wirekit.conversation.dialogue import (
    LARGEST_HEAD,
    LARGEST_PROBE,
    LARGEST_SEARCHED,
    LARGEST_WAITED,
    LEAST_BEGUN,
    Dialogue,
)
from wirekit.conversation.events import NEED_DATA, OTHER_SIDES, ROLES, SIDES, Description, Event, Frame, Quarantined
from wirekit.conversation.search import Direction, next_frame
from wirekit.decoding import LARGEST_HEADER, MOST_SHORT, decode, frame_size, header, shortness
from wirekit.engine import Decoded, decode_bytes, foreign
from wirekit.errors import Misuse, WireError
from wirekit.fitting import fits_unverified
from wirekit.registry import registry, variants
from wirekit.values import quoted
from wirekit.wire.arguments import checked
from wirekit.wire.stream import Decrypt, Limits

if TYPE_CHECKING:
    from wirekit.compiler.heading import Heading

ENDED_INSIDE = "the connection or the capture ended inside a frame"
BEFORE_FIRST = "before the first recognised frame of the capture"
LEAST_OVERDUE_US = 100_000
LEAST_OVERDUE_BYTES = 1 << 14
"""The least age, or the least distance in bytes to an answered request, of a request whose response is overdue."""
MOST_OVERDUE = 4096
MOST_OVERDUE_BYTES = 1 << 20
"""Limits on the requests with overdue responses: their number, and their bytes."""


class Conversation:
    """Follows one connection of a known protocol.

    Args:
        protocol: its name.
        limits: limits on frames; by default the protocol's.
        started: False if the connection was joined in the middle, so that the first bytes may be inside a frame.
        decrypt: a function that decrypts cipher text, as for ``wirekit.decode``.
        in_time: True if the bytes of both sides come in the order of their times. A side that has sent nothing then
            counts as not captured once more than 256 requests, or 8 MiB of them, wait for it, the oldest for more than
            100 ms. Until it sends bytes, no request waits for a response.

    >>> import wirekit
    >>> conversation = wirekit.Conversation("kafka")
    >>> request = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": 7, "client_id": "me", "body": {}})
    >>> conversation.receive("client", request[:5])
    [NEED_DATA]
    >>> [frame.description.api for frame in conversation.receive("client", request[5:])]
    ['list_groups']
    """

    @checked
    def __init__(
        self,
        protocol: str,
        *,
        limits: Limits | None = None,
        started: bool = True,
        decrypt: Decrypt | None = None,
        in_time: bool = False,
    ) -> None:
        self.decrypt = decrypt
        self.protocol = registry.protocol(protocol)
        self.limits = limits or self.protocol.limits
        self._limits_given = limits is not None
        self._in_time = in_time
        self._agreement = self.limits
        self.dialogue = self.protocol.follow()
        self._directions = {side: Direction() for side in SIDES}
        self._answered = dict.fromkeys(SIDES, -1)  # the offset of the latest request of a side that is answered
        self._overdue_us, self._overdue_bytes = LEAST_OVERDUE_US, LEAST_OVERDUE_BYTES
        if not started:
            for direction in self._directions.values():
                direction.lost = BEFORE_FIRST
            self.dialogue.lost()

    def state(self) -> dict[str, Any]:
        """The state that ``restore`` needs to continue the connection, in values that ``wirekit.plain`` can store.

        Limits and ``decrypt`` are not part of it. It contains the bytes of waiting requests; ``restore`` decodes them
        again.
        """
        return {
            "directions": {side: each.state() for side, each in self._directions.items()},
            "requests": [[pair, _stored(frame)] for pair, frame in self.dialogue.requests.items()],
            "one_sided": self.dialogue.requests.one_sided,
            "dialogue": self.dialogue.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the state that ``state`` returned.

        Raises:
            KeyError, TypeError, ValueError: ``state`` did not return this.
        """
        for side, each in self._directions.items():
            each.restore(state["directions"][side])
        for pair, (side, offset, data, time_us, key, context, most, description, announced) in state["requests"]:
            limits = replace(self.limits, frame=most)
            decoded = self._decoded(data, key, context, offset, limits)
            frame = self.dialogue.requests[pair] = Frame(
                self.protocol.name, side, offset, data, time_us, decoded, Description(*description), announced=announced
            )
            frame.release()
        self.dialogue.requests.one_sided = state.get("one_sided") is True
        self.dialogue.restore(state["dialogue"])

    @property
    def requests(self) -> list[Frame]:
        """The requests that wait for their response."""
        return list(self.dialogue.requests.values())

    @property
    def quiet(self) -> bool:
        """Whether another follower may take over the next frames.

        True if each side is at the start of a frame, or ``unheard``, and no request waits but those whose responses are
        ``overdue``.
        """
        pending = any(
            each.buffer or (each.offset and (each.lost or not each.headed)) for each in self._directions.values()
        )
        return not pending and self.overdue and self.dialogue.usual

    @property
    def overdue(self) -> bool:
        """Whether the responses of all waiting requests are probably lost.

        True if no request waits. Otherwise a request after the newest waiting one must be answered, and the newest
        waiting one must be more than ``LEAST_OVERDUE_US`` old, or more than ``LEAST_OVERDUE_BYTES`` before the answered
        one. If responses came out of order before, these bounds are twice the largest age and distance of the requests
        that they answered, if that is more. False if more than ``MOST_OVERDUE`` requests, or ``MOST_OVERDUE_BYTES`` of
        them, wait.
        """
        requests = self.dialogue.requests
        newest = requests.newest
        if newest is None:
            return True
        if len(requests) > MOST_OVERDUE or requests.size > MOST_OVERDUE_BYTES:
            return False
        distance = self._answered[newest.side] - newest.offset
        if distance > self._overdue_bytes:
            return True
        now = max(each.time_us or 0 for each in self._directions.values())
        return distance > 0 and newest.time_us is not None and now - newest.time_us > self._overdue_us

    @property
    def unheard(self) -> list[str]:
        """The sides from which no bytes were received so far."""
        return [side for side, each in self._directions.items() if not each.offset and not each.buffer]

    def begins_whole(self, side: str, data: bytes) -> bool:
        """Whether a whole frame may begin with the first bytes of a side, without a header before it.

        If that frame decodes cleanly, it is the first frame of the side.
        """
        from wirekit.compiler.heading import heading

        begin = heading(self.dialogue.frame_key(side), self._framing().frame)
        if begin.number is None or not begin.pattern.match(data) or header(data[:LARGEST_HEADER]) is not None:
            return False
        size = begin.frame_size(data, 0)
        return size is not None and 0 < size <= min(len(data), LARGEST_WAITED)

    def skip(self, side: str, size: int) -> None:
        """Skips ``size`` bytes of a direction: whole clean frames that another follower has read."""
        direction = self._direction(side)
        if size:
            direction.lost = ""
            direction.offset += size
            direction.earn(size)
            direction.short = 0
            direction.headed = True

    def reach(self, side: str, offset: int) -> None:
        """Sets the offset of the next bytes of a direction, if it has not received any."""
        direction = self._directions[side]
        if not direction.offset and not direction.buffer:
            direction.offset = offset

    def recall(self, side: str, data: bytes, *, offset: int, time_us: int | None = None) -> list[Event]:
        """Returns the events of a whole frame that was skipped earlier; no later frame may have been received since."""
        direction = self._direction(side)
        reached, direction.offset = direction.offset, offset
        events = self.receive(side, data, time_us=time_us)
        direction.offset = reached
        return events

    def receive(self, side: str, data: bytes, *, time_us: int | None = None) -> list[Event]:
        """Receives the next bytes of a direction, and returns the frames that they complete.

        Args:
            side: the sender, ``client`` or ``server``.
            data: bytes of any length.
            time_us: the time of their arrival, microseconds since the epoch.

        Returns:
            Frames and quarantined bytes in order; NEED_DATA last when the bytes end inside a frame.

        Raises:
            Misuse: for another side, and for data that are not bytes.
        """
        direction = self._direction(side)
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise Misuse(f"receive: data must be bytes, not {type(data).__name__}")
        data = bytes(data)  # a view may have gaps, or elements of other sizes
        piece = direction.offset + len(direction.buffer)
        direction.buffer += data
        direction.earn(len(data))
        direction.time_us = time_us
        events = list(self._drain(side, direction, piece))
        if direction.buffer:
            events.append(NEED_DATA)
        return events

    def gap(self, side: str, length: int, reason: str = "not captured") -> list[Event]:
        """Reports that the next ``length`` bytes of a direction are missing.

        A frame that begins before them is decoded as far as possible (``Frame.announced``). Framing resumes at its end
        if the gap ends before; otherwise at the next frame that decodes cleanly.

        Raises:
            Misuse: for another side, and for a length that is not a number of at least 0.
        """
        direction = self._direction(side)
        number: Any = length
        if not hasattr(number, "__index__") or number < 0:
            raise Misuse(f"gap: length must be a number of at least 0, not {quoted(number)}")
        why = f"cut by missing bytes ({reason})"
        events = self._cut(side, direction, why)
        events += self._give_up(side, direction, len(direction.buffer), why)
        self.dialogue.lost()
        direction.offset += length
        direction.headed = True
        within = 0 < length <= direction.rest
        direction.rest = direction.rest - length if within else 0
        direction.lose("" if within and not direction.rest else f"after missing bytes ({reason})")
        return events

    def close(self, side: str | None = None) -> list[Event]:
        """Reports that no more bytes will come, on one side or both.

        A frame that has begun is decoded as far as possible (``Frame.announced``); other leftover bytes are
        quarantined.

        Raises:
            Misuse: for another side.
        """
        events: list[Event] = []
        for name in SIDES if side is None else (side,):
            direction = self._direction(name)
            if direction.buffer:
                events += self._cut(name, direction, ENDED_INSIDE)
                events += self._give_up(name, direction, len(direction.buffer), direction.lost or ENDED_INSIDE)
                direction.rest = 0
        return events

    def _direction(self, side: str) -> Direction:
        try:
            return self._directions[side]
        except (KeyError, TypeError):
            raise Misuse(f"side must be 'client' or 'server', not {quoted(side)}") from None

    def _drain(self, side: str, direction: Direction, piece: int) -> Iterator[Event]:
        if not direction.headed and direction.buffer:
            preamble = header(bytes(direction.buffer[:LARGEST_HEADER]))
            if preamble is not None:
                if preamble[1] is not None:
                    yield self._header(side, direction, preamble[0], preamble[1])
                elif len(direction.buffer) < LARGEST_HEADER:
                    return
            direction.headed = True
        from wirekit.compiler.heading import heading

        buffer, begin, heading_key = direction.buffer, None, None
        while buffer:
            key, limits = self.dialogue.frame_key(side), self._framing()
            if begin is None or heading_key != (key, limits.frame):
                begin, heading_key = heading(key, limits.frame), (key, limits.frame)
            if direction.rest:
                part = min(direction.rest, len(buffer))
                if part < direction.rest and part < LARGEST_SEARCHED:
                    return
                yield from self._give_up(side, direction, part, direction.lost)
                direction.rest -= part
                if not direction.rest:
                    direction.lost = ""
                continue
            if direction.lost:
                start = next_frame(self.dialogue, side, direction, begin, limits, piece)
                if start is None:
                    if len(buffer) > LARGEST_SEARCHED:  # a frame that begins in the second half may be incomplete
                        yield from self._give_up(side, direction, LARGEST_SEARCHED // 2, direction.lost)
                        continue
                    return
                yield from self._give_up(side, direction, start, direction.lost)
                direction.lose("")
            try:
                size = _announced(begin, buffer, key, limits)
            except WireError as refusal:
                hint = foreign(bytes(buffer[:LARGEST_HEAD]))
                self._lose(direction, f"{refusal.path} {refusal.reason}{'; ' if hint else ''}{hint}")
                continue
            if size is None or len(buffer) < size:
                return
            if size <= 0:
                self._lose(direction, f"its length is {size}")
                continue
            direction.short = shortness(direction.short, size, begin.least)
            if direction.short > MOST_SHORT and size < begin.least:
                self._lose(direction, f"its length is {size}, and too many before it were too small for a frame")
                continue
            frame = self._linked(self._described(side, direction, bytes(buffer[:size])))
            del buffer[:size]
            direction.offset += size
            yield frame

    @staticmethod
    def _lose(direction: Direction, why: str) -> None:
        direction.lose(f"no frame begins here: {why}")
        direction.searched = direction.offset + 1

    def _cut(self, side: str, direction: Direction, why: str) -> list[Event]:
        """The events of waiting bytes that begin a frame whose other bytes are missing; else none."""
        buffer = direction.buffer
        if direction.rest:
            direction.rest -= len(buffer)
            return self._give_up(side, direction, len(buffer), direction.lost)
        starts = [each - direction.offset for each in direction.begun] if direction.lost else [0]
        for start in starts if direction.headed else ():
            head = bytes(buffer[start : start + LARGEST_PROBE]) if start >= 0 else b""
            size = self._cut_size(side, head)
            if size <= len(buffer) - start or not self._is_begun(side, direction, head, size):
                continue
            frame = self._described(side, direction, bytes(buffer[start:]), start, engine="reference")
            if frame.description.api is None:
                continue
            events = self._give_up(side, direction, start, direction.lost)
            direction.rest = size - len(buffer)
            self._drop(direction, len(buffer))
            frame.reason, frame.announced = why, size
            if frame.decoded.error is not None:
                frame.decoded.error.hint = f"{why}, {len(frame.data)} of {size} bytes were captured"
            events.append(self._linked(frame))
            self.dialogue.lost()
            return events
        return []

    def _is_begun(self, side: str, direction: Direction, head: bytes, size: int) -> bool:
        """Whether a frame of ``size`` bytes begins with some bytes; in sync, it needs less evidence."""
        plausible, proven = self.dialogue.plausible, self.dialogue.proven
        if not direction.lost:
            return plausible(side, head, size) or proven(side, head)
        return len(head) >= LEAST_BEGUN and plausible(side, head, size) and proven(side, head)

    def _cut_size(self, side: str, head: bytes) -> int:
        """The size of the frame that begins with some bytes; 0 if they do not contain its length, or it is invalid."""
        from wirekit.compiler.heading import heading

        key, limits = self.dialogue.frame_key(side), self._framing()
        try:
            return _announced(heading(key, limits.frame), head, key, limits) or 0
        except WireError:
            return 0

    def _header(self, side: str, direction: Direction, key: str, size: int) -> Frame:
        """The proxy header before the stream."""
        data = bytes(direction.buffer[:size])
        self._drop(direction, size)
        description = Description(key.rpartition(".")[2])
        return Frame(self.protocol.name, side, 0, data, direction.time_us, decode(data, key), description)

    def preview(self, side: str, data: bytes) -> Frame:
        """Describes a whole frame as if a side sent it now; does not change the state of the conversation."""
        frame = self._described(side, self._direction(side), data)
        if frame.description.role == "response":
            frame.request = self.dialogue.requests.get(_pair(frame.description))
            _complete(frame)
        return frame

    def _described(
        self, side: str, direction: Direction, data: bytes, start: int = 0, engine: str | None = None
    ) -> Frame:
        """Describes the frame ``start`` bytes after the offset of its direction.

        Args:
            side, direction, data, start: the frame.
            engine: ``reference`` for a cut frame, which generated code would read in vain.
        """
        offset = direction.offset + start
        key, context, reason = self.dialogue.layout(side, data)
        decoded = self._decoded(data, key, context, offset, engine=engine)
        if decoded.error is not None or decoded.gaps:
            decoded = self._as_variant(decoded)
        description = self.dialogue.describe(side, decoded)
        _check_description(description, self.dialogue)
        return Frame(self.protocol.name, side, offset, data, direction.time_us, decoded, description, reason=reason)

    def _linked(self, frame: Frame) -> Frame:
        """The frame, linked with its request, after the dialogue has observed it."""
        description, pair = frame.description, _pair(frame.description)
        if description.role == "response":
            frame.request = self.dialogue.requests.pop(pair, None)
            if frame.request is not None:
                self._note_answer(frame.request, frame.latency_us)
                _complete(frame)
        elif description.role == "request" and description.answered and pair is not None:
            heard = not self._in_time or OTHER_SIDES[frame.side] not in self.unheard
            self.dialogue.requests.add(pair, frame, heard=heard)
        self.dialogue.observe(frame)
        frame.messages = self.dialogue.application_messages(frame)
        return frame

    def _note_answer(self, request: Frame, latency_us: int | None) -> None:
        """Notes the distance and latency of an answer, for ``overdue``."""
        distance = self._answered[request.side] - request.offset
        if distance < 0:
            self._answered[request.side] = request.offset
            return
        self._overdue_bytes = max(self._overdue_bytes, 2 * distance)
        if latency_us is not None:
            self._overdue_us = max(self._overdue_us, 2 * latency_us)

    def _decoded(
        self,
        data: bytes,
        key: str,
        context: Mapping[str, Any],
        offset: int,
        limits: Limits | None = None,
        engine: str | None = None,
    ) -> Decoded:
        limits = limits or self._agreed()
        decoded_frame, self.dialogue.whole = self.dialogue.whole, None
        if decoded_frame is not None and self._equal(decoded_frame, data, key, context, limits):
            decoded_frame.offset, decoded_frame.limits = offset, limits
            return decoded_frame
        decoded = decode_bytes(registry[key], data, dict(context), limits, offset, engine, self.decrypt)
        if decoded.error is None and decoded.consumed < len(data):
            decoded.consumed = len(data)
        return decoded

    def _equal(self, decoded_frame: Decoded, data: bytes, key: str, context: Mapping[str, Any], limits: Limits) -> bool:
        """Whether a frame that the search decoded equals the result of decoding these bytes."""
        if (
            self.decrypt is not None
            or decoded_frame.schema != key
            or decoded_frame.context != context
            or decoded_frame.data != data
        ):
            return False
        return decoded_frame.limits is limits or (not self._limits_given and len(data) <= limits.frame)

    def _as_variant(self, decoded: Decoded) -> Decoded:
        """Decodes a frame that does not fit its layout as the variant that it fits, if there is one."""
        data, limits = decoded.data, decoded.limits
        keys = variants(decoded.schema)
        if not keys or fits_unverified(data, decoded.schema, limits):  # only compressed data does not fit
            return decoded
        for key in keys:
            if fits_unverified(data, key, limits) is False:
                continue
            other = self._decoded(data, key, decoded.context, decoded.offset)
            if other.error is None and not other.gaps:
                return other
        return decoded

    def _agreed(self) -> Limits:
        """The limits, with the frame size that the two sides agreed on; limits of the caller are never exceeded."""
        agreed = self.dialogue.frame_limit
        if agreed is None or (self._limits_given and agreed > self.limits.frame):
            return self.limits
        if agreed != self._agreement.frame:
            self._agreement = replace(self.limits, frame=agreed)
        return self._agreement

    def _framing(self) -> Limits:
        """The limits for finding the end of a frame: an agreed size never lowers them."""
        if self.dialogue.frame_limit is None:
            return self.limits
        agreed = self._agreed()
        return agreed if agreed.frame > self.limits.frame else self.limits

    def _give_up(self, side: str, direction: Direction, size: int, reason: str) -> list[Event]:
        if not size:
            return []
        self.dialogue.lost()
        data = bytes(direction.buffer[:size])
        quarantined = Quarantined(side, direction.offset, data, direction.time_us, reason)
        self._drop(direction, size)
        return [quarantined]

    def _drop(self, direction: Direction, size: int) -> None:
        del direction.buffer[:size]
        direction.offset += size


def _announced(begin: Heading, data: bytes | bytearray, key: str, limits: Limits) -> int | None:
    """The size of the frame that some bytes begin with, by its own length; None if its length is incomplete.

    Raises:
        WireError: the length is invalid.
    """
    size = begin.announced_size(data, 0)
    if size:
        return size
    head = bytes(data[:LARGEST_HEAD])
    refusal = begin.refusal(head)
    if refusal is not None:
        raise refusal
    return frame_size(head, key, limits=limits)


def _stored(frame: Frame) -> list[Any]:
    """The plain values from which a request is restored."""
    key, context, limits = frame.reading
    return [
        frame.side,
        frame.offset,
        frame.data,
        frame.time_us,
        key,
        context,
        limits.frame,
        list(frame.description),
        frame.announced,
    ]


def _check_description(description: Any, dialogue: Dialogue) -> None:
    """Refuses wrong results of ``describe``: tables would fail on them, or lack their calls."""
    where = f"{type(dialogue).__name__}.describe must return a Description"
    if not isinstance(description, Description):
        raise Misuse(f"{where}, not {description!r}")
    if description.role not in ROLES:
        raise Misuse(f"{where} whose role is one of {', '.join(ROLES)}, not {description.role!r}")
    if description.api is not None and not isinstance(description.api, str):
        raise Misuse(f"{where} whose api is text or None, not {description.api!r}")
    numbers: tuple[tuple[str, Any], ...] = (
        ("version", description.version),
        ("correlation_id", description.correlation_id),
    )
    for name, number in numbers:
        if number is None or type(number) is int:  # the usual types take no call
            continue
        if isinstance(number, bool) or not isinstance(number, int):
            raise Misuse(f"{where} whose {name} is a number or None, not {number!r}")
    pair = description.pair
    if pair is None or type(pair) is int:
        return
    try:
        hash(pair)
    except TypeError as error:
        raise Misuse(f"{where} whose pair can be a key of a dict, not {description.pair!r}") from error


def _complete(frame: Frame) -> None:
    """Gives a response without an API the API and version of its request."""
    if frame.request is not None and frame.description.api is None:
        asked = frame.request.description
        frame.description = frame.description._replace(api=asked.api, version=asked.version)


def _pair(description: Description) -> Hashable:
    """The key that links request and response."""
    return description.correlation_id if description.pair is None else description.pair
