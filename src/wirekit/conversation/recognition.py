"""Recognises the protocol of a connection from its first bytes."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from wirekit.compiler.generated import by_key
from wirekit.conversation.dialogue import CALL
from wirekit.conversation.events import SIDES
from wirekit.decoding import LARGEST_HEADER, decode, frame_size, frames, header
from wirekit.engine import TIMES_BEFORE_COMPILING, Decoded, foreign
from wirekit.errors import Short, WireError
from wirekit.fitting import begins, begins_unverified, overruns
from wirekit.registry import Protocol, registry
from wirekit.values import json_text, to_json

if TYPE_CHECKING:
    from wirekit.compiler.heading import Heading

FRAMES_TO_RECOGNISE = 8
LEAST_EVIDENCE = 12
"""Bytes that must decode before damaged data counts as a protocol's."""
LARGEST_HEAD = 64
"""Bytes up to the end of a frame's own length."""
LARGEST_PROBE = 512
"""Bytes of a cut frame that are looked at to tell whether more of it may be worth waiting for."""
SEARCHED_INSIDE = 4096
LEAST_INSIDE = 9
FEW_TIMES = 4 * TIMES_BEFORE_COMPILING
"""Questions for a heading before it is made; one recognition asks a few times."""
MOST_SHORT = 4096
"""Short frames of which it is remembered whether they fit a protocol."""
CREDIT_INSIDE = 2
FIRST_CREDIT_INSIDE = 1024


@dataclass(frozen=True, slots=True)
class Recognised:
    """The protocol that the first bytes of a connection are recognised as.

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


class Fit(NamedTuple):
    """The numbers of first frames that fit a protocol: cleanly; in part, for failed checks or by their header alone."""

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
    """Finds the protocol of a connection from the first bytes of its directions.

    Each protocol's own layouts are tried on the first frames; the one with most clean frames wins. Of those with as
    many, it is the one with most frames that fit in part: all but their checks, or by their header. Of equals it is the
    one that was registered first.

    Args:
        client, server: bytes of the two directions, as many as there are.
        names: the protocols to try; by default all that have a byte stream.
        sides_known: whether a handshake has said who the client is; otherwise the bytes may.
        rivals: whether the reason says how the bytes fit other protocols, too.
        settled: whether to find out if more bytes could still show a protocol where these show none; without it,
            ``certain`` is False there.
    """
    client, server = _behind_header(client), _behind_header(server)
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
        return Recognised("", False, False, "no known protocol fits")
    if best is None:
        hopeful = {side for side, data in zip(SIDES, (client, server), strict=True) if not data}
        for side, tail in tails:
            if side not in hopeful and tail():
                hopeful.add(side)
        heard = [(side, foreign(data)) for side, data in (("client", client), ("server", server))]
        reasons = [f"; from the {side}, {reason}" for side, reason in heard if reason]
        return Recognised("", False, len(hopeful) < len(SIDES), "".join(["no known protocol fits", *reasons]))
    fit, name, swapped = best
    if not sides_known:
        swapped = _swapped(registry.protocol(name), client, server, swapped)
    number = fit.clean or fit.partial
    counted = "1 frame decodes" if number == 1 else f"{number} frames decode"
    others = [_as_rival(other, client or server) for other in protocols if rivals and other.name != name]
    how = "cleanly" if fit.clean else "in part"
    return Recognised(name, swapped, True, "; ".join([f"{counted} {how} as {name}", *filter(None, others)]))


def _server_proves(protocol: Protocol) -> bool:
    """Whether the frames of a server, too, prove that a stream is of a protocol."""
    return protocol.client == protocol.server or protocol.server in protocol.recognised_by


def _behind_header(data: bytes) -> bytes:
    """The bytes behind a header that a proxy put in front; none while that is cut."""
    proxy = header(data[:LARGEST_HEADER])
    return data if proxy is None else b"" if proxy[1] is None else data[proxy[1] :]


def _as_rival(protocol: Protocol, data: bytes) -> str:
    """A text on how bytes recognised as another protocol fit this one; "" if not even their beginning does."""
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
    """Whether the protocol has a layout for the body of a frame, as far as its header tells."""
    return protocol.follow().layout(side, frame)[2] is None


def _why_not(decoded: Decoded) -> str:
    """The reason why a frame is not clean, in words; "" if not even its beginning fits."""
    if decoded.error is not None:
        return f"{decoded.error.path}: {decoded.error.reason}" if (decoded.error.offset or 0) >= LEAST_EVIDENCE else ""
    if decoded.gaps:
        return f"{decoded.gaps[0].path}: bytes that no field explains"
    bad = next(check for check in decoded.checks if check.status == "bad")
    return f"{bad.path}: {bad.kind} " + (
        bad.note if bad.computed is None else f"{bad.stored} instead of {bad.computed}"
    )


def best_fit(data: bytes) -> str:
    """The protocol whose first frame fits damaged or cut bytes best, or the key of a record that does; "" if none does.

    A frame that only fails a check, or that is cut, counts for more than one with wrong bytes; else it counts how far
    decoding came. One with a wrong constant has wrong bytes. A record counts like a frame if a constant in it is right.
    """
    data = _behind_header(data)
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
    """Context that the protocol suggests and under which bytes decode cleanly that did not, or None."""
    for said in registry.protocol(decoded.schema).readings:
        if not said.keys() & decoded.context.keys():
            context = {**decoded.context, **said}
            if decode(decoded.data, decoded.schema, context=context, limits=decoded.limits).clean:
                return said
    return None


def _is_cut(data: bytes, key: str) -> bool:
    """Whether the end of the data is all that is wrong with them, as far as their first bytes tell."""
    return isinstance(decode(data[:LARGEST_PROBE], key).error, Short)


def _swapped(protocol: Protocol, client: bytes, server: bytes, guess: bool) -> bool:
    """Whether what was taken for the client is the server, where both sides send frames of one layout."""
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
    """The heading of a layout, once it has been asked for a few times: making it loads the compiler."""
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
    """The first frames of a side, as the layout of a protocol cuts them.

    Attributes:
        heading: of the layout, None before it is made.
        frames: those that are whole, without those that their own lengths exclude.
        tail: of what follows them.
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
            size = None if begin is None else begin.told_size(data, position)
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
        if not overruns(frame, key) if begin is None else begin.pattern.match(frame) and not begin.overruns(frame):
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
    """Whether what follows the first frames may become another one of the protocol's."""
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
    """Whether a whole frame proves cleanly that its stream is of a protocol, and whether it does in part."""
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
    """Whether a layout that proves a protocol decodes a whole frame cleanly, and whether it does but for checks.

    Args:
        protocol, frame: both.
        light: whether to load no compiler where it would answer the same: of what is in order, or no value at all.
    """
    proofs = [protocol.key(name) for name in protocol.recognised_by]
    if light:
        answers = [_told(decode(frame, proof)) for proof in proofs]
        if True in answers or None not in answers:
            return True in answers, True in answers
    if any(begins(frame, proof, len(frame)) for proof in proofs):
        return True, True
    for data in (frame[: min(LARGEST_HEAD, len(frame) - 1)], frame):
        proofs = [proof for proof in proofs if begins_unverified(data, proof, len(frame)) is not False]
    decoded = [decode(frame, proof) for proof in proofs]
    return any(each.clean for each in decoded), any(each.error is None and not each.gaps for each in decoded)


def _told(decoded: Decoded) -> bool | None:
    """Whether a frame fits; None where generated code has to tell: of checks that fail, and what is oddly written."""
    failed = {check.kind for check in decoded.checks if check.status == "bad"}
    if decoded.error is not None or decoded.gaps or "constant" in failed:
        return False
    usual = decoded.clean and decoded.consumed == len(decoded.data) and "$" not in json_text(to_json(decoded.value))
    return True if usual else None


def recognise_inside(client: bytes, server: bytes) -> Recognised | None:
    """The protocol of a connection that was joined in the middle of a frame; None if no frame is found in the bytes.

    A protocol's frames are sought among the first ``SEARCHED_INSIDE`` bytes of each direction, and may cost
    ``CREDIT_INSIDE`` for each of these.
    """
    from wirekit.compiler.heading import heading

    for protocol in registry.with_stream():
        begin = heading(protocol.stream("client"), protocol.limits.frame)
        for side, data in zip(SIDES, (client, server), strict=True):
            head = data[:SEARCHED_INSIDE]
            credit = FIRST_CREDIT_INSIDE + CREDIT_INSIDE * len(head)
            for match in begin.pattern.finditer(head, 1):
                if credit < 0:
                    break
                start = match.start()
                size = begin.frame_size(head, start) or _size(head[start : start + LARGEST_HEAD], protocol)
                credit -= CALL
                if not LEAST_INSIDE <= size <= len(head) - start:
                    continue
                credit -= CALL + size
                if any(_frame_fits(protocol, "client", head[start : start + size], False)):
                    behind = data[start:]
                    return recognise(*((behind, b"") if side == "client" else (b"", behind)), names=(protocol.name,))
    return None


def recognise_joined(client: bytes, server: bytes, *, settled: bool) -> Recognised:
    """``recognise`` for a connection that was joined in the middle, also of a frame."""
    recognised = recognise(client, server, rivals=False, settled=settled)
    return recognised if recognised.protocol else recognise_inside(client, server) or recognised


class Prospects:
    """Whether a connection that was joined in the middle may be recognised, from bytes that come piece by piece.

    Recognition goes by whole frames. So each place where a frame may begin is noted; when that frame is whole, it is
    looked at once. It must be at the begin of a side's bytes, or fit a protocol. Where ``recognise_inside`` would not
    look at all places, because they are too many, all attempts are worth their time.
    """

    __slots__ = ("_always", "_searched")

    def __init__(self) -> None:
        self._searched: dict[str, _Searched] = {}
        self._always = False

    def grown(self, heads: Mapping[str, bytearray]) -> bool:
        """Whether to try to recognise the first bytes of both sides, of which more may be there than last time."""
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
        """Searches further in the bytes of a side."""
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
        self._always = max(costs) > FIRST_CREDIT_INSIDE + CREDIT_INSIDE * min(size, SEARCHED_INSIDE)
        return worth


class _Searched:
    """The progress of the search in the bytes of a side.

    Attributes:
        sought: the frames that are sought.
        places, costs: of each of them, where to go on, and the cost so far.
        begun: (end, size, number in ``sought``) of frames that may have begun, a heap.
        size: how many bytes there were.
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
    """The frames of a protocol's layout, by which it is recognised; ``short`` knows of short ones whether they fit."""

    protocol: Protocol
    heading: Heading
    short: dict[bytes, bool]

    def fits(self, frame: bytes) -> bool:
        """Whether a frame may prove that the stream is of the protocol, whoever sent it.

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
    """The short frames of a layout that may prove its protocol, as far as that is known."""
    return {}


def sought_frames() -> list[Sought]:
    """The frames by which protocols are recognised.

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
    """Bytes of a frame by its own length; 0 if it makes no sense."""
    try:
        return frame_size(head, protocol.stream("client"), limits=protocol.limits) or 0
    except WireError:
        return 0
