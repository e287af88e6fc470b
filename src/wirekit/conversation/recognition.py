"""Recognises the protocol of a connection from its first bytes."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from wirekit.compiler.generated import by_key
from wirekit.conversation.dialogue import CALL, LARGEST_HEAD, LARGEST_PROBE, LARGEST_SEARCHED, LEAST_BEGUN
from wirekit.conversation.events import SIDES
from wirekit.decoding import LARGEST_HEADER, decode, frame_size, frames, header
from wirekit.engine import TIMES_BEFORE_COMPILING, Decoded
from wirekit.errors import Short, WireError
from wirekit.fitting import begins, begins_unverified, overruns
from wirekit.registry import Protocol, registry
from wirekit.values import json_text, to_json

if TYPE_CHECKING:
    from wirekit.compiler.heading import Heading

UNRECOGNISED = "no known protocol fits"
FRAMES_TO_RECOGNISE = 8
LEAST_EVIDENCE = 12
"""Bytes that must decode before damaged data counts as a protocol's."""
RECOGNISE_WITHIN = 64 * 1024
"""Bytes of a connection by which its protocol is recognised; of each side, they are searched for frames."""
LEAST_INSIDE = 9
FEW_TIMES = 4 * TIMES_BEFORE_COMPILING
"""The number of requests for a heading before it is generated; one recognition makes a few."""
MOST_SHORT = 4096
"""The number of short frames whose fit to a protocol is cached."""
CREDIT_INSIDE = 2
FIRST_CREDIT_INSIDE = 1024


@dataclass(frozen=True, slots=True)
class Recognised:
    """The protocol that the first bytes of a connection are recognised as.

    Attributes:
        protocol: its name, or "" if none fits.
        swapped: whether client and server are exchanged: the caller's server is the client.
        certain: False if more bytes could change the result.
        reason: an explanation for the user.
    """

    protocol: str
    swapped: bool
    certain: bool
    reason: str


class Fit(NamedTuple):
    """The numbers of first frames that fit a protocol: cleanly; in part (except for checks, or by their header)."""

    clean: int
    partial: int


NO_FIT = Fit(0, 0)


def recognise(
    client: bytes,
    server: bytes,
    *,
    names: tuple[str, ...] = (),
    sides_known: bool = False,
    rivals: bool = True,
    settled: bool = True,
) -> Recognised:
    """Recognises the protocol of a connection from the first bytes of its directions.

    The layouts of each protocol are tried on the first frames. The protocol with the most clean frames wins. If several
    have as many, the one with the most frames that fit in part wins: except for checks, or by their header. Then the
    protocol that was registered first wins.

    Args:
        client, server: the bytes received so far from each side.
        names: the protocols to try; by default all that have a byte stream.
        sides_known: whether a handshake identified the client; otherwise the bytes may identify it.
        rivals: whether the reason also describes how the bytes fit other protocols.
        settled: whether to determine, if no protocol fits, if more bytes could still show one; otherwise
            ``certain`` is False in that case.
    """
    client, server = _after_header(client), _after_header(server)
    best: tuple[Fit, str, bool] | None = None
    tails: list[tuple[str, _Tail]] = []
    decodes: _Decodes = {}
    protocols = tuple(map(registry.protocol, names)) if names else registry.with_stream()
    for protocol in protocols:
        if not protocol.recognised_by:
            continue
        for swapped in (False,) if sides_known else (False, True):
            asking, answering = (server, client) if swapped else (client, server)
            asks = _first_frames(protocol, asking, "client") if asking else _NOTHING
            answers = (
                _first_frames(protocol, answering, "server") if answering and _server_proves(protocol) else _NOTHING
            )
            if settled:
                tail = answers.tail
                if answering and answers is _NOTHING:
                    tail = partial(_may_go_on, protocol, answering, "server")
                tails += [("server" if swapped else "client", asks.tail), ("client" if swapped else "server", tail)]
            if best is not None and Fit(len(asks.frames) + len(answers.frames), 0) <= best[0]:
                continue  # however well they fit
            fit = _fit(protocol, asks, "client", sides_known, decodes)
            answered = _fit(protocol, answers, "server", sides_known, decodes)
            fit = Fit(fit.clean + answered.clean, fit.partial + answered.partial)
            if fit != NO_FIT and (best is None or fit > best[0]):
                best = (fit, protocol.name, swapped)
    if best is None and not settled:
        return Recognised("", False, False, UNRECOGNISED)
    if best is None:
        hopeful = {side for side, data in zip(SIDES, (client, server), strict=True) if not data}
        for side, tail in tails:
            if side not in hopeful and tail():
                hopeful.add(side)
        heard = [(side, registry.beginning(data)) for side, data in zip(SIDES, (client, server), strict=True)]
        reasons = [f"; the {side} sends {beginning.described}" for side, beginning in heard if beginning is not None]
        return Recognised("", False, len(hopeful) < len(SIDES), "".join([UNRECOGNISED, *reasons]))
    fit, name, swapped = best
    if not sides_known:
        swapped = _swapped(registry.protocol(name), client, server, swapped)
    number = fit.clean or fit.partial
    counted = "1 frame decodes" if number == 1 else f"{number} frames decode"
    others = [_as_rival(other, client or server) for other in protocols if rivals and other.name != name]
    how = "cleanly" if fit.clean else "in part"
    return Recognised(name, swapped, True, "; ".join([f"{counted} {how} as {name}", *filter(None, others)]))


def _server_proves(protocol: Protocol) -> bool:
    """Whether frames of the server, too, identify the protocol of a stream."""
    return protocol.client == protocol.server or protocol.server in protocol.recognised_by


def _after_header(data: bytes) -> bytes:
    """The bytes after a header that a proxy added; empty while the header is incomplete."""
    proxy = header(data[:LARGEST_HEADER])
    return data if proxy is None else b"" if proxy[1] is None else data[proxy[1] :]


def _as_rival(protocol: Protocol, data: bytes) -> str:
    """Describes how bytes recognised as another protocol fit this one; "" if not even their beginning fits."""
    key = protocol.stream("client")
    begin = _heading(key, protocol.limits.frame)
    if not protocol.recognised_by or (begin is not None and begin.refuses(data)) or overruns(data, key):
        return ""
    decoded = next(frames(key, data))
    why = "" if decoded.clean else _why_not(decoded)
    if not (decoded.clean or why) or not _knows_body(protocol, "client", decoded.data):
        return ""
    if decoded.clean:
        return f"{protocol.name} fits the first frame equally well"
    return f"{protocol.name} does not fit ({why})"


def _knows_body(protocol: Protocol, side: str, frame: bytes) -> bool:
    """Whether the protocol has a layout for the body of a frame, judging by its header."""
    return protocol.follow().layout(side, frame)[2] is None


def _why_not(decoded: Decoded) -> str:
    """The reason why a frame is not clean, as text; "" if not even its beginning fits."""
    if decoded.error is not None:
        return f"{decoded.error.path}: {decoded.error.reason}" if (decoded.error.offset or 0) >= LEAST_EVIDENCE else ""
    if decoded.gaps:
        return f"{decoded.gaps[0].path}: bytes that no field explains"
    bad = next(check for check in decoded.checks if check.status == "bad")
    return f"{bad.path}: {bad.kind} " + (
        bad.note if bad.computed is None else f"{bad.stored} instead of {bad.computed}"
    )


def best_fit(data: bytes) -> str:
    """The protocol, or the record key, that fits damaged or truncated bytes best; "" if none fits.

    A frame that only fails a check ranks first, then a truncated one, then one with wrong bytes; among equals, the one
    with the most decoded bytes. A wrong constant is wrong bytes. A record ranks like a frame if its constants match.
    """
    data = _after_header(data)
    best = (0, 0, "")
    for protocol in registry.with_stream():
        streams = [(protocol.name, next(frames(protocol.stream("client"), data)))]
        streams = [each for each in streams if _knows_body(protocol, "client", each[1].data)]
        records = [(key, next(frames(key, data))) for key in map(protocol.key, protocol.records)]
        for name, decoded in streams + [each for each in records if _has_constant(each[1], "ok")]:
            reached = decoded.consumed if decoded.error is None else (decoded.error.offset or 0)
            grade = 3 if decoded.error is None and not decoded.gaps else 2 if isinstance(decoded.error, Short) else 1
            grade = 1 if _has_constant(decoded, "bad") else grade
            if reached >= LEAST_EVIDENCE and (grade, reached) > best[:2]:
                best = (grade, reached, name)
    return best[2]


def _has_constant(decoded: Decoded, status: str) -> bool:
    return any(check.kind == "constant" and check.status == status for check in decoded.checks)


def reading(decoded: Decoded) -> Mapping[str, Any] | None:
    """The context that the protocol suggests and with which bytes decode cleanly; None if there is none."""
    for suggested in registry.protocol(decoded.schema).readings:
        if not suggested.keys() & decoded.context.keys():
            context = {**decoded.context, **suggested}
            if decode(decoded.data, decoded.schema, context=context, limits=decoded.limits).clean:
                return suggested
    return None


def _is_cut(data: bytes, key: str) -> bool:
    """Whether bytes are truncated but otherwise valid, judging by their first bytes."""
    return isinstance(decode(data[:LARGEST_PROBE], key).error, Short)


def _swapped(protocol: Protocol, client: bytes, server: bytes, guess: bool) -> bool:
    """Whether the assumed client is the server, if both sides send frames of one layout."""
    if protocol.client != protocol.server:
        return guess
    dialogue = protocol.follow()
    votes = 0
    for side, data in (("client", client), ("server", server)):
        for decoded in islice(frames(protocol.stream("client"), data), FRAMES_TO_RECOGNISE):
            sender = dialogue.sender(decoded) if decoded.clean else ""
            votes += 0 if not sender else 1 if sender != side else -1
    return votes > 0 if votes else guess


def _heading(key: str, limit: int) -> Heading | None:
    """The heading of a layout, from the third or so request on: generating it loads the compiler."""
    if _asked_times[key] <= FEW_TIMES:
        _asked_times[key] += 1
        if _asked_times[key] <= FEW_TIMES:
            return None
    return _heading_of()(key, limit)


@cache
def _heading_of() -> Callable[[str, int], Heading]:
    from wirekit.compiler.heading import heading

    return heading


_asked_times: Counter[str] = Counter()
_Tail = Callable[[], bool]
"""Whether a frame has begun that may be one of the protocol's."""


def _yes() -> bool:
    return True


def _no() -> bool:
    return False


_Decodes = dict[tuple[str, bytes], tuple[bool, bool]]
"""The results of ``_decodes`` by protocol and frame: a frame is tried for each side that may have sent it."""


class _First(NamedTuple):
    """The first frames of a side, cut by the layout of a protocol.

    Attributes:
        heading: the heading of the layout; None before it was generated.
        frames: the whole frames, without those whose own length excludes them.
        tail: the bytes after them.
    """

    heading: Heading | None
    frames: list[bytes]
    tail: _Tail


_NOTHING = _First(None, [], _yes)


def _first_frames(protocol: Protocol, data: bytes, side: str) -> _First:
    frames: list[bytes] = []
    position = 0
    key = protocol.stream(side)
    begin = _heading(key, protocol.limits.frame)
    for _ in range(FRAMES_TO_RECOGNISE):
        if position >= len(data):
            return _First(begin, frames, _yes)
        try:
            size = None if begin is None else begin.announced_size(data, position)
            if size is None:
                size = frame_size(data[position : position + LARGEST_HEAD], key, limits=protocol.limits)
        except WireError:
            break
        if size is None:
            return _First(begin, frames, _yes)
        if size <= 0:
            break
        frame = data[position : position + size]
        if len(frame) < size:
            return _First(begin, frames, partial(_is_cut, frame, key))
        if not overruns(frame, key) if begin is None else begin.fits(frame):
            frames.append(frame)
        position += size
    return _First(begin, frames, _no)


def _fit(protocol: Protocol, first: _First, side: str, side_known: bool, decodes: _Decodes | None = None) -> Fit:
    """Counts the first frames of a side that fit a protocol."""
    fit, begin, key = NO_FIT, first.heading, protocol.stream(side)
    for frame in first.frames:
        clean, in_part = _frame_fits(protocol, side, frame, side_known, decodes, light=begin is None)
        if in_part and begin is None:
            in_part = bool(_heading_of()(key, protocol.limits.frame).pattern.match(frame))
        fit = Fit(fit.clean + clean, fit.partial + in_part)
    return fit


def _may_go_on(protocol: Protocol, data: bytes, side: str) -> bool:
    """Whether the bytes after the first frames may become another frame of the protocol."""
    return _first_frames(protocol, data, side).tail()


def _frame_fits(
    protocol: Protocol,
    side: str,
    frame: bytes,
    side_known: bool,
    decodes: _Decodes | None = None,
    *,
    light: bool = False,
) -> tuple[bool, bool]:
    """Whether a whole frame identifies its protocol cleanly, and whether it does in part."""
    decodes = {} if decodes is None else decodes
    known = decodes.get((protocol.name, frame))
    if known is None:
        known = decodes[protocol.name, frame] = _decodes(protocol, frame, light=light)
    clean, whole = known
    dialogue = protocol.follow()
    key, _, reason = dialogue.layout(side, frame) if whole or protocol.variants else ("", {}, None)
    if whole and reason is None:
        return clean, not clean and len(frame) >= LEAST_EVIDENCE
    if len(frame) >= LEAST_EVIDENCE and any(begins(frame, each, len(frame)) for each in protocol.variants.get(key, ())):
        return False, True
    return False, dialogue.headed(side, frame, side_known=side_known)


def _decodes(protocol: Protocol, frame: bytes, *, light: bool = False) -> tuple[bool, bool]:
    """Whether a layout that identifies a protocol decodes a whole frame cleanly, and whether it does except for checks.

    Args:
        protocol, frame: the protocol and the frame.
        light: whether to avoid loading the compiler if the result is the same without it.
    """
    proofs = [protocol.key(name) for name in protocol.recognised_by]
    if light:
        fits = [_fits_alone(decode(frame, proof)) for proof in proofs]
        if True in fits or None not in fits:
            return True in fits, True in fits
    if any(begins(frame, proof, len(frame)) for proof in proofs):
        return True, True
    for data in (frame[: min(LARGEST_HEAD, len(frame) - 1)], frame):
        proofs = [proof for proof in proofs if begins_unverified(data, proof, len(frame)) is not False]
    decoded = [decode(frame, proof) for proof in proofs]
    return any(each.clean for each in decoded), any(each.error is None and not each.gaps for each in decoded)


def _fits_alone(decoded: Decoded) -> bool | None:
    """Whether a frame fits; None if only generated code can decide: failed checks, and unusual encodings."""
    failed = {check.kind for check in decoded.checks if check.status == "bad"}
    if decoded.error is not None or decoded.gaps or "constant" in failed:
        return False
    usual = decoded.clean and decoded.consumed == len(decoded.data) and "$" not in json_text(to_json(decoded.value))
    return True if usual else None


def recognise_inside(
    client: bytes, server: bytes, *, settled: bool = False, names: tuple[str, ...] = ()
) -> Recognised | None:
    """The protocol of a connection that was joined in the middle of a frame; None if no frame is found in the bytes.

    The first ``RECOGNISE_WITHIN`` bytes of each direction are searched for frames of each protocol; the search may cost
    ``CREDIT_INSIDE`` for each of these bytes. If no whole frame is found and the bytes are ``settled``, a frame that
    begins in them suffices.
    """
    from wirekit.compiler.heading import heading

    begun = None
    for protocol in registry.with_stream():
        if names and protocol.name not in names:
            continue
        begin, dialogue = heading(protocol.stream("client"), protocol.limits.frame), protocol.follow()
        for side, data in zip(SIDES, (client, server), strict=True):
            head = data[:RECOGNISE_WITHIN]
            credit = FIRST_CREDIT_INSIDE + CREDIT_INSIDE * len(head)
            for match in begin.pattern.finditer(head, 0 if settled else 1):
                if credit < 0:
                    break
                start = match.start()
                credit -= CALL
                size = begin.frame_size(head, start) or _size(head[start : start + LARGEST_HEAD], protocol)
                cut = size > len(head) - start
                if size > LARGEST_SEARCHED or size < LEAST_INSIDE or (cut and not (settled and begun is None)):
                    continue
                credit -= CALL
                if not dialogue.plausible("client", head[start : start + min(size, LARGEST_HEAD)], size):
                    continue
                if cut:
                    credit -= LARGEST_PROBE
                    sender = _sender(protocol, side, head[start : start + LARGEST_PROBE], size)
                    begun = _begun(protocol, swapped=sender != side) if sender else None
                    continue
                credit -= size
                if any(_frame_fits(protocol, "client", head[start : start + size], False)):
                    behind = data[start:]
                    return recognise(*((behind, b"") if side == "client" else (b"", behind)), names=(protocol.name,))
    return begun


def recognise_begun(client: bytes, server: bytes) -> Recognised | None:
    """The protocol of a connection with a handshake by a first frame that is not whole; None if no protocol fits."""
    for side, data in zip(SIDES, map(_after_header, (client, server)), strict=True):
        for sought in sought_frames() if len(data) >= LEAST_BEGUN else ():
            protocol, size = sought.protocol, sought.begun(data)
            if size > len(data) and _sender(protocol, side, data[:LARGEST_PROBE], size, side) == side:
                return _begun(protocol, swapped=False)
    return None


def recognise_piece(side: str, data: bytes) -> Recognised | None:
    """The protocol of a connection by a frame at the start of a piece of its bytes; None if none fits.

    It is for connections whose first bytes are not whole or fit no protocol, such as those of a proxy. The frame must
    be one that only one side sends.
    """
    for sought in sought_frames():
        protocol, size = sought.protocol, sought.begun(data)
        if LEAST_EVIDENCE <= size <= len(data) or LEAST_BEGUN <= len(data) < size:
            frame = data[: size if size <= len(data) else LARGEST_PROBE]
            sender = _sender(protocol, side, frame, size)
            if sender:
                return _begun(protocol, swapped=sender != side)
    return None


def _begun(protocol: Protocol, *, swapped: bool) -> Recognised:
    return Recognised(protocol.name, swapped, True, f"1 frame begins as {protocol.name}")


def _sender(protocol: Protocol, side: str, frame: bytes, size: int, unknown: str = "") -> str:
    """Which side sends a frame of ``size`` bytes, judging by its first bytes; "" if it is none of the protocol.

    Args:
        protocol, frame, size: the protocol, and the frame or its first bytes.
        side: the direction of the bytes.
        unknown: the result for a frame with a known body that either side may send.
    """
    for proof in map(protocol.key, protocol.recognised_by):
        if begins(frame, proof, size):
            sender = protocol.follow().sender(decode(frame, proof))
            return sender or (unknown if _knows_body(protocol, side, frame) else "")
    return ""


def recognise_joined(client: bytes, server: bytes, *, settled: bool, names: tuple[str, ...] = ()) -> Recognised:
    """``recognise`` for a connection that was joined in the middle, possibly of a frame.

    A response may read like a request. Unless ``settled``, bytes of one side alone do not show that client and server
    are exchanged, nor that they begin inside a frame.
    """
    recognised = recognise(client, server, names=names, rivals=False, settled=settled)
    heard = settled or (client and server)
    if recognised.protocol:
        return recognised if heard or not recognised.swapped else replace(recognised, protocol="", certain=False)
    return (recognise_inside(client, server, settled=settled, names=names) if heard else None) or recognised


class Prospects:
    """Decides when to try to recognise a connection that was joined in the middle, as its bytes arrive piece by piece.

    Recognition needs whole frames. Each place where a frame may begin is stored; the frame is examined once, when it is
    whole. It must be at the start of a side's bytes, or fit a protocol. If there are more places than
    ``recognise_inside`` would examine, every attempt is made.
    """

    __slots__ = ("_always", "_searched")

    def __init__(self) -> None:
        self._searched: dict[str, _Searched] = {}
        self._always = False

    def grown(self, heads: Mapping[str, bytearray]) -> bool:
        """Whether to try recognition on the first bytes of both sides, which may have grown since the last call."""
        worth = False
        for side, data in heads.items():
            if not data or self._always:
                continue
            searched = self._searched.get(side)
            if searched is None:
                searched = self._searched[side] = _Searched(sought_frames())
            if len(data) > searched.size:
                worth |= self._search(searched, data)
        return worth or self._always

    def _search(self, searched: _Searched, data: bytearray) -> bool:
        """Continues the search in the bytes of a side."""
        sought, begun, places, costs = searched.sought, searched.begun, searched.places, searched.costs
        searched.size = size = len(data)
        for number, each in enumerate(sought):
            begin = each.heading
            for match in begin.pattern.finditer(data, places[number]):
                start = match.start()
                length = begin.frame_size(data, start)
                if length is None:
                    self._always = True
                    return True
                costs[number] += CALL
                heapq.heappush(begun, (start + length, length, number))
            if size >= begin.size + places[number]:
                places[number] = size - begin.size + 1
        worth = False
        while begun and begun[0][0] <= size:
            end, length, number = heapq.heappop(begun)
            costs[number] += CALL + length
            worth = worth or end == length or sought[number].fits(bytes(data[end - length : end]))
        self._always = max(costs) > FIRST_CREDIT_INSIDE + CREDIT_INSIDE * min(size, RECOGNISE_WITHIN)
        return worth


class _Searched:
    """The progress of the search in the bytes of a side.

    Attributes:
        sought: the kinds of frames to search for.
        places, costs: for each of them, where the search continues, and its cost so far.
        begun: a heap of (end, size, number in ``sought``) for frames that may have begun.
        size: number of bytes at the last call.
    """

    __slots__ = ("begun", "costs", "places", "size", "sought")

    def __init__(self, sought: list[Sought]) -> None:
        self.sought = sought
        self.places = [0] * len(sought)
        self.costs = [0] * len(sought)
        self.begun: list[tuple[int, int, int]] = []
        self.size = 0


@dataclass(frozen=True, slots=True)
class Sought:
    """Searches for frames of a layout by which a protocol is recognised; ``short`` caches whether short frames fit."""

    protocol: Protocol
    heading: Heading
    short: dict[bytes, bool]

    def begun(self, data: bytes) -> int:
        """The size of the frame that may begin with the first byte of some bytes; 0 if none does."""
        begin = self.heading
        if not begin.pattern.match(data):
            return 0
        return begin.frame_size(data, 0) or _size(data[:LARGEST_HEAD], self.protocol)

    def fits(self, frame: bytes) -> bool:
        """Whether a frame may identify the protocol of a stream, for either sender.

        Short ones are often the same in many connections, such as zeros.
        """
        if len(frame) > LARGEST_HEAD:
            return self._fits(frame)
        known = self.short.get(frame)
        if known is None:
            if len(self.short) >= MOST_SHORT:
                self.short.clear()
            known = self.short[frame] = self._fits(frame)
        return known

    def _fits(self, frame: bytes) -> bool:
        whole = not self.heading.overruns(frame) and _decodes(self.protocol, frame)[1]
        dialogue = self.protocol.follow()
        return any(
            (whole and dialogue.schema(side, frame)[2] is None) or dialogue.headed(side, frame, side_known=False)
            for side in (SIDES if _server_proves(self.protocol) else SIDES[:1])
        )


@by_key
def _short_frames(key: str) -> dict[bytes, bool]:
    """The cache of short frames of a layout: whether each identifies its protocol."""
    return {}


def sought_frames() -> list[Sought]:
    """The kinds of frames by which protocols are recognised.

    A capture may have 100,000 connections, so the list is kept while the registry has the same protocols.
    """
    from wirekit.compiler.heading import heading

    protocols = registry.with_stream()
    if _sought_of.get("protocols") is not protocols:
        _sought_of["protocols"] = protocols
        _sought_of["frames"] = [
            Sought(protocol, heading(key, protocol.limits.frame), _short_frames(key))
            for protocol in protocols
            for key in dict.fromkeys(map(protocol.stream, SIDES if _server_proves(protocol) else SIDES[:1]))
        ]
    frames: list[Sought] = _sought_of["frames"]
    return frames


_sought_of: dict[str, Any] = {}


def _size(head: bytes, protocol: Protocol) -> int:
    """Size of a frame according to its own length; 0 if the length is invalid."""
    try:
        return frame_size(head, protocol.stream("client"), limits=protocol.limits) or 0
    except WireError:
        return 0
