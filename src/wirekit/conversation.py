"""Bytes of both directions of a connection in, frames and calls out; no sockets, no captures.

``Conversation.receive`` has three outcomes and nothing else: frames, bytes that nobody can decode (``Quarantined``,
with the reason), and ``NEED_DATA`` when a frame is not all there yet. What a protocol knows beyond layouts (which
response belongs to which request, what its application messages are) is in its ``Dialogue``, in the protocol's
folder.

Where the bytes stop making sense, framing resumes at the next offset whose frame is all there and decodes cleanly.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any, ClassVar

from wirekit.engine import LARGEST_HEADER, Decoded, decode, foreign, frame_size, frames, header, overruns
from wirekit.errors import Misuse, Short, WireError
from wirekit.registry import Protocol, registry
from wirekit.values import to_json
from wirekit.wire.stream import Decrypt, Limits

SIDES = ("client", "server")
LARGEST_SEARCH = 1024 * 1024
LARGEST_HEAD = 64
"""Bytes up to the end of a frame's own length."""
FRAMES_TO_RECOGNISE = 8
LEAST_EVIDENCE = 12
"""Bytes that must decode before damaged data counts as a protocol's."""


class _NeedData:
    """The outcome "a frame has begun and is not all there"."""

    def __repr__(self) -> str:
        return "NEED_DATA"


NEED_DATA = _NeedData()


@dataclass(frozen=True, slots=True)
class Description:
    """What a frame is in its conversation.

    Attributes:
        api: name of the API or command, as the protocol's keys or enumeration write it.
        version: version of the API or header, None if the protocol has none.
        correlation_id: the protocol's request id, None if the frame has none.
        role: ``request``, ``response``, or ``event`` for what neither asks nor answers.
        answered: whether a request gets a response.
        pair: what links request and response; by default the correlation id.
    """

    api: str | None = None
    version: int | None = None
    correlation_id: int | None = None
    role: str = "event"
    answered: bool = True
    pair: Hashable = None


@dataclass(frozen=True, slots=True)
class Message:
    """One application message out of a frame or a log segment; compressed sets and batches are opened.

    Attributes:
        offset: absolute log offset or index; ``ledger:entry:batch_index`` for Pulsar; None where nobody knows it yet.
        timestamp: milliseconds since the epoch, or None.
        timestamp_type: ``CreateTime`` or ``LogAppendTime``, or None.
        key, value: bytes, or None for null.
        attributes: the protocol's attribute bits as one integer, or None.
        codec: ``none``, ``gzip``, ``snappy``, ``lz4``, ``zlib``, ``zip``, ``zstd``.
        crc: the checksum as stored, or None.
        check: ``ok``, ``bad`` or ``absent``: the verdict on it.
        schema: the key of the frame or record it came in.
        details: what else its protocol says of it, by name (docs/json.md), as plain JSON data.
    """

    topic: str | None
    partition: int | None
    offset: int | str | None
    timestamp: int | None
    timestamp_type: str | None
    key: bytes | None
    value: bytes | None
    attributes: int | None
    codec: str
    crc: int | None
    check: str
    schema: str
    protocol: str
    details: Mapping[str, Any] = field(default_factory=dict)

    NAMES: ClassVar[tuple[str, ...]] = (
        "protocol",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestamp_type",
        "key",
        "value",
        "attributes",
        "codec",
        "crc",
        "check",
        "schema",
    )

    def to_json(self) -> dict[str, Any]:
        """The line that ``wirekit messages --output json`` prints, without ``file``: ``NAMES``, then the details."""
        return {**{name: to_json(getattr(self, name)) for name in self.NAMES}, **self.details}


@dataclass(slots=True)
class Frame:
    """A frame of a conversation.

    Attributes:
        side: who sent it, ``client`` or ``server``.
        offset: bytes of that direction before it.
        data: its bytes.
        time_us: when its last byte arrived, microseconds since the epoch, or None.
        decoded: value, checks, gaps, error; offsets in it are offsets of the direction.
        request: for a response, the request it answers.
        reason: why the body could not be decoded although the frame is whole, or None.
        messages: the application messages in it.
    """

    protocol: str
    side: str
    offset: int
    data: bytes
    time_us: int | None
    decoded: Decoded
    description: Description
    request: Frame | None = None
    reason: str | None = None
    messages: list[Message] = field(default_factory=list)

    @property
    def schema(self) -> str:
        """The key it was decoded by."""
        return self.decoded.schema

    @property
    def value(self) -> Any:
        """Its value, as far as it was decoded."""
        return self.decoded.value

    @property
    def latency_us(self) -> int | None:
        """Microseconds between the request and this response, or None."""
        if self.request is None or self.time_us is None or self.request.time_us is None:
            return None
        return self.time_us - self.request.time_us

    def __repr__(self) -> str:
        what = self.description
        return f"<Frame {self.side} {what.api} v{what.version} #{what.correlation_id} {self.schema} at {self.offset}>"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Bytes of a direction that nobody could decode.

    Attributes:
        reason: in words.
        path, error_offset: the field and the offset in the direction where decoding failed, if it got that far.
    """

    side: str
    offset: int
    data: bytes
    time_us: int | None
    reason: str
    path: str = ""
    error_offset: int | None = None


Event = Frame | Quarantined | _NeedData


class Dialogue:
    """What a protocol knows of one connection; subclasses live in ``schemas/<protocol>/dialogue.py``.

    Attributes:
        protocol: the protocol.
        requests: requests that wait for their response, by what pairs them. The conversation keeps it.
        frame_limit: bytes that a frame may announce, once the two sides have agreed on it. A frame above it that the
            protocol's own limit allows is framed all the same, and has a Limit error.
    """

    frame_limit: int | None = None

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.requests: dict[Hashable, Frame] = {}

    def schema(self, side: str, data: bytes) -> tuple[str, Mapping[str, Any], str | None]:
        """How to decode a whole frame: key, context, and the reason if its body cannot be decoded."""
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

    def plausible(self, side: str, data: bytes) -> bool:
        """Whether a whole frame found while searching is one: it decodes cleanly and its body is known."""
        key, context, reason = self.schema(side, data)
        if reason is not None:
            return False
        decoded = decode(data, key, context=context)
        return decoded.clean and decoded.consumed == len(data)

    def observe(self, frame: Frame) -> None:
        """Takes note of what a frame says about the connection; called once for each, in order of arrival."""

    def lost(self) -> None:
        """Takes note that bytes are missing, or that nobody could decode some."""

    def messages(self, frame: Frame) -> Iterator[Message]:
        """The application messages in a frame; called after ``observe``."""
        return iter(())

    def summary(self) -> dict[str, Any]:
        """What the connection carries, as plain JSON data: texts, numbers, and lists of objects with these."""
        return {}


class _Direction:
    """Bytes of one direction that are not decoded yet.

    Attributes:
        lost: why the bytes make no sense, "" while they do.
        searched: how far they were looked through for a frame since.
        waiting: (end, start) of what may be a frame and is not all there, a heap.
    """

    __slots__ = ("buffer", "lost", "offset", "searched", "time_us", "waiting")

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.offset = 0
        self.lost = ""
        self.searched = 0
        self.waiting: list[tuple[int, int]] = []
        self.time_us: int | None = None


class Conversation:
    """Follows one connection of a known protocol.

    Args:
        protocol: its name.
        limits: what frames may ask for; by default the protocol's.
        started: False when the connection was joined in the middle: the first bytes need not begin a frame.
        decrypt: opens cipher text, as for ``wirekit.decode``.

    >>> import wirekit
    >>> conversation = wirekit.Conversation("kafka")
    >>> request = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": 7, "client_id": "me", "body": {}})
    >>> conversation.receive("client", request[:5])
    [NEED_DATA]
    >>> [frame.description.api for frame in conversation.receive("client", request[5:])]
    ['list_groups']
    """

    def __init__(
        self,
        protocol: str,
        *,
        limits: Limits | None = None,
        started: bool = True,
        decrypt: Decrypt | None = None,
    ) -> None:
        self.decrypt = decrypt
        self.protocol = registry.protocol(protocol)
        self.limits = limits or self.protocol.limits
        self._limits_given = limits is not None
        self.dialogue = self.protocol.dialogue()(self.protocol)
        self._directions = {side: _Direction() for side in SIDES}
        if not started:
            for direction in self._directions.values():
                direction.lost = "before the first whole frame of the capture"

    @property
    def requests(self) -> list[Frame]:
        """The requests that wait for their response."""
        return list(self.dialogue.requests.values())

    def receive(self, side: str, data: bytes, *, time_us: int | None = None) -> list[Event]:
        """Takes the next bytes of a direction; gives what they complete.

        Args:
            side: who sent them, ``client`` or ``server``.
            data: bytes of any length.
            time_us: when they arrived, microseconds since the epoch.

        Returns:
            Frames and quarantined bytes in order; NEED_DATA last when the bytes end inside a frame.
        """
        direction = self._direction(side)
        direction.buffer += data
        direction.time_us = time_us
        events = list(self._drain(side, direction))
        if direction.buffer:
            events.append(NEED_DATA)
        return events

    def gap(self, side: str, length: int, reason: str = "missing from the capture") -> list[Event]:
        """Says that the next ``length`` bytes of a direction are missing.

        The frame that they cut is quarantined, and framing resumes at the next frame that decodes cleanly.
        """
        direction = self._direction(side)
        events = self._give_up(side, direction, len(direction.buffer), f"cut by {length} bytes {reason}")
        self.dialogue.lost()
        direction.offset += length
        direction.lost = f"after {length} bytes {reason}"
        return events

    def close(self, side: str | None = None) -> list[Event]:
        """Says that no more bytes will come, on one side or both; what is left over is quarantined."""
        events: list[Event] = []
        for name in SIDES if side is None else (side,):
            direction = self._direction(name)
            reason = direction.lost or "the connection ended inside a frame"
            events += self._give_up(name, direction, len(direction.buffer), reason)
        return events

    def _direction(self, side: str) -> _Direction:
        try:
            return self._directions[side]
        except KeyError:
            raise Misuse(f"side is 'client' or 'server', not {side!r}") from None

    def _drain(self, side: str, direction: _Direction) -> Iterator[Event]:
        if not direction.offset and direction.buffer:
            front = header(bytes(direction.buffer[:LARGEST_HEADER]))
            if front is not None:
                if front[1] is not None:
                    yield self._header(side, direction, front[0], front[1])
                elif len(direction.buffer) < LARGEST_HEADER:
                    return
        while direction.buffer:
            if direction.lost:
                found = self._search(side, direction)
                if found is None:
                    if len(direction.buffer) > LARGEST_SEARCH:
                        yield from self._give_up(side, direction, LARGEST_SEARCH // 2, direction.lost)
                        continue
                    return
                yield from self._give_up(side, direction, found, direction.lost)
                direction.lost = ""
            try:
                head = bytes(direction.buffer[:LARGEST_HEAD])
                size = frame_size(head, self.dialogue.frame_key(side), limits=self._framing())
            except WireError as error:
                hint = foreign(head)
                direction.lost = f"no frame begins here: {error.path} {error.reason}{'; ' if hint else ''}{hint}"
                direction.searched = 1
                continue
            if size is None or len(direction.buffer) < size:
                return
            if size <= 0:
                direction.lost = f"no frame begins here: its length is {size}"
                direction.searched = 1
                continue
            data = bytes(direction.buffer[:size])
            frame = self._frame(side, direction, data)
            self._drop(direction, size)
            yield frame

    def _header(self, side: str, direction: _Direction, key: str, size: int) -> Frame:
        """What a proxy put in front of the stream."""
        data = bytes(direction.buffer[:size])
        self._drop(direction, size)
        what = Description(key.rpartition(".")[2])
        return Frame(self.protocol.name, side, 0, data, direction.time_us, decode(data, key), what)

    def _frame(self, side: str, direction: _Direction, data: bytes) -> Frame:
        key, context, reason = self.dialogue.schema(side, data)
        said: dict[str, Any] = {"context": context, "limits": self._agreed(), "decrypt": self.decrypt}
        decoded = decode(data, key, offset=direction.offset, **said)
        if decoded.error is None and decoded.consumed < len(data):
            decoded.consumed = len(data)
        what = self.dialogue.describe(side, decoded)
        frame = Frame(self.protocol.name, side, direction.offset, data, direction.time_us, decoded, what, reason=reason)
        pair = what.correlation_id if what.pair is None else what.pair
        if what.role == "response":
            frame.request = self.dialogue.requests.pop(pair, None)
        elif what.role == "request" and what.answered and pair is not None:
            self.dialogue.requests[pair] = frame
        self.dialogue.observe(frame)
        frame.messages = list(self.dialogue.messages(frame))
        return frame

    def _agreed(self) -> Limits:
        """The limits with what the two sides agreed on; what the caller gave is never exceeded."""
        agreed = self.dialogue.frame_limit
        if agreed is None or (self._limits_given and agreed > self.limits.frame):
            return self.limits
        return replace(self.limits, frame=agreed)

    def _framing(self) -> Limits:
        """The limits for finding where a frame ends: an agreement does not lower them."""
        agreed = self._agreed()
        return agreed if agreed.frame > self.limits.frame else self.limits

    def _search(self, side: str, direction: _Direction) -> int | None:
        """The first offset at which a whole frame stands that decodes cleanly."""
        from wirekit.compiler.heading import heading

        buffer, waiting = bytes(direction.buffer), direction.waiting
        whole = []
        while waiting and waiting[0][0] <= len(buffer):
            whole.append(heapq.heappop(waiting)[1])
        begin = heading(self.dialogue.frame_key(side), self._framing().frame)
        found = begin.pattern.finditer(buffer, direction.searched)
        for start in chain(sorted(whole), (match.start() for match in found)):
            size = begin.frame_size(buffer, start)
            end = start + size if size is not None else self._end(side, buffer, start)
            if end > len(buffer):
                heapq.heappush(waiting, (end, start))
            elif end > start and self.dialogue.plausible(side, buffer[start:end]):
                return start
        direction.searched = max(direction.searched, len(buffer) - begin.size + 1)
        return None

    def _end(self, side: str, buffer: bytes, start: int) -> int:
        """Where a frame at ``start`` ends by its own length: not behind ``start`` if it makes no sense."""
        try:
            head = buffer[start : start + LARGEST_HEAD]
            size = frame_size(head, self.dialogue.frame_key(side), limits=self._framing())
        except WireError:
            return start
        if size is None:
            return start + LARGEST_HEAD if len(head) < LARGEST_HEAD else start
        return start + size

    def _give_up(self, side: str, direction: _Direction, size: int, reason: str) -> list[Event]:
        if not size:
            return []
        self.dialogue.lost()
        data = bytes(direction.buffer[:size])
        quarantined = Quarantined(side, direction.offset, data, direction.time_us, reason)
        self._drop(direction, size)
        return [quarantined]

    def _drop(self, direction: _Direction, size: int) -> None:
        del direction.buffer[:size]
        direction.offset += size
        direction.searched, direction.waiting = 0, []


@dataclass(frozen=True, slots=True)
class Recognised:
    """What the first bytes of a connection are.

    Attributes:
        protocol: name, or "" when none fits.
        swapped: whether the side that was taken for the server is the client.
        certain: False while more bytes could change the answer.
        reason: in words, for a reader.
    """

    protocol: str
    swapped: bool
    certain: bool
    reason: str


def recognise(client: bytes, server: bytes, *, names: tuple[str, ...] = ()) -> Recognised:
    """Finds the protocol of a connection from the first bytes of its directions.

    Each protocol's own layouts are tried on the first frames; the one with most clean frames wins, and of equals the
    one that was registered first.

    Args:
        client, server: bytes of the two directions, as many as there are.
        names: the protocols to try; by default all that have a byte stream.
    """
    client, server = _behind_header(client), _behind_header(server)
    best: tuple[int, str, bool] | None = None
    tails: list[tuple[str, _Tail]] = []
    protocols = [registry.protocol(name) for name in names] if names else registry.with_stream()
    for protocol in protocols:
        if not protocol.recognised_by:
            continue
        for swapped, asking, answering in ((False, client, server), (True, server, client)):
            clean, asks = _clean_frames(protocol, asking, "client")
            answered, answers = _clean_frames(protocol, answering, "server")
            tails += [("server" if swapped else "client", asks), ("client" if swapped else "server", answers)]
            if protocol.client == protocol.server or protocol.server in protocol.recognised_by:
                clean += answered
            if clean and (best is None or clean > best[0]):
                best = (clean, protocol.name, swapped)
    if best is None:
        hopeful = {side for side, data in zip(SIDES, (client, server), strict=True) if not data}
        hopeful |= {side for side, tail in tails if tail()}
        heard = [(side, foreign(data)) for side, data in (("client", client), ("server", server))]
        told = [f"; from the {side}, {what}" for side, what in heard if what]
        return Recognised("", False, len(hopeful) < len(SIDES), "".join(["no known protocol fits", *told]))
    clean, name, swapped = best
    swapped = _swapped(registry.protocol(name), client, server, swapped)
    found = "1 frame decodes" if clean == 1 else f"{clean} frames decode"
    rivals = [_as_rival(other, client or server) for other in protocols if other.name != name]
    return Recognised(name, swapped, True, "; ".join([f"{found} cleanly as {name}", *filter(None, rivals)]))


def _behind_header(data: bytes) -> bytes:
    """The bytes behind a header that a proxy put in front; none while that is cut."""
    found = header(data[:LARGEST_HEADER])
    return data if found is None else b"" if found[1] is None else data[found[1] :]


def _as_rival(protocol: Protocol, data: bytes) -> str:
    """How bytes that were taken for another protocol fit this one, in words; "" if not even their beginning does."""
    key = protocol.stream("client")
    if not protocol.recognised_by or overruns(data, key):
        return ""
    decoded = next(frames(key, data))
    if protocol.dialogue()(protocol).schema("client", decoded.data)[2] is not None:
        return ""
    if decoded.clean:
        return f"{protocol.name} fits the first as well and comes second"
    if decoded.error is not None:
        why = f"{decoded.error.path}: {decoded.error.reason}" if (decoded.error.offset or 0) >= LEAST_EVIDENCE else ""
    elif decoded.gaps:
        why = f"{decoded.gaps[0].path}: bytes that nothing explains"
    else:
        bad = next(check for check in decoded.checks if check.status == "bad")
        why = f"{bad.path}: {bad.kind} {bad.stored} instead of {bad.computed}"
    return f"{protocol.name} does not fit ({why})" if why else ""


def best_fit(data: bytes) -> str:
    """The protocol whose first frame fits damaged or cut bytes best, or "" if none fits more than a few of them.

    A frame that only fails a check, or that is cut, counts for more than one with wrong bytes; else it counts how far
    decoding came.
    """
    data = _behind_header(data)
    best = (0, 0, "")
    for protocol in registry.with_stream():
        key = protocol.stream("client")
        decoded = next(frames(key, data))
        if protocol.dialogue()(protocol).schema("client", decoded.data)[2] is not None:
            continue
        reached = decoded.consumed if decoded.error is None else (decoded.error.offset or 0)
        grade = 3 if decoded.error is None and not decoded.gaps else 2 if isinstance(decoded.error, Short) else 1
        if reached >= LEAST_EVIDENCE and (grade, reached) > best[:2]:
            best = (grade, reached, protocol.name)
    return best[2]


def _is_cut(data: bytes, key: str) -> bool:
    """Whether the end of the data is all that is wrong with them."""
    return isinstance(decode(data, key).error, Short)


def _swapped(protocol: Protocol, client: bytes, server: bytes, guess: bool) -> bool:
    """Whether what was taken for the client is the server, where both sides send frames of one layout."""
    if protocol.client != protocol.server:
        return guess
    dialogue = protocol.dialogue()(protocol)
    votes = 0
    for side, data in (("client", client), ("server", server)):
        for decoded in islice(frames(protocol.stream("client"), data), FRAMES_TO_RECOGNISE):
            sender = dialogue.sender(decoded) if decoded.clean else ""
            votes += 0 if not sender else 1 if sender != side else -1
    return votes > 0 if votes else guess


_Tail = Callable[[], bool]
"""Whether a frame has begun that may be one of the protocol's."""


def _clean_frames(protocol: Protocol, data: bytes, side: str) -> tuple[int, _Tail]:
    """How many of the first frames decode cleanly, and whether what follows them may become one."""
    clean = position = 0
    key = protocol.stream(side)
    proofs = [protocol.key(name) for name in protocol.recognised_by]
    for _ in range(FRAMES_TO_RECOGNISE):
        if position >= len(data):
            return clean, lambda: True
        try:
            size = frame_size(data[position : position + 64], key, limits=protocol.limits)
        except WireError:
            return clean, lambda: False
        if size is None:
            return clean, lambda: True
        if size <= 0:
            return clean, lambda: False
        frame = data[position : position + size]
        if len(frame) < size:
            return clean, partial(_is_cut, frame, key)
        if not overruns(frame, key):
            known = protocol.dialogue()(protocol).schema(side, frame)[2] is None
            if known and any(decode(frame, proof).clean for proof in proofs):
                clean += 1
        position += size
    return clean, lambda: False
