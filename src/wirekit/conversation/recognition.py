"""Recognises the protocol of a connection from its first bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from wirekit.conversation.dialogue import LARGEST_HEAD, LARGEST_PROBE
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
FEW_TIMES = 4 * TIMES_BEFORE_COMPILING
"""The number of requests for a heading before it is generated; one recognition makes a few."""


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
    """The first frames that fit a protocol.

    Attributes:
        clean, partial: the numbers of those that fit cleanly, and in part: except for checks, or by their header.
        size: the bytes of all of them.
    """

    clean: int
    partial: int
    size: int


NO_FIT = Fit(0, 0, 0)


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
    one whose fitting frames have the most bytes wins, then the one that was registered first.

    Args:
        client, server: the bytes received so far from each side.
        names: the protocols to try; by default all that have a byte stream.
        sides_known: whether a handshake identified the client; otherwise the bytes may identify it.
        rivals: whether the reason also describes how the bytes fit other protocols.
        settled: whether to find out, if no protocol fits, if one could still fit with more bytes; otherwise
            ``certain`` is False in that case.
    """
    client, server = after_header(client), after_header(server)
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
                _first_frames(protocol, answering, "server") if answering and server_proves(protocol) else _NOTHING
            )
            if settled:
                tail = answers.tail
                if answering and answers is _NOTHING:
                    tail = partial(_may_go_on, protocol, answering, "server")
                tails += [("server" if swapped else "client", asks.tail), ("client" if swapped else "server", tail)]
            cut = [*asks.frames, *answers.frames]
            if best is not None and Fit(len(cut), 0, sum(map(len, cut))) <= best[0]:
                continue  # however well they fit
            asked = _fit(protocol, asks, "client", sides_known, decodes)
            answered = _fit(protocol, answers, "server", sides_known, decodes)
            fit = Fit(*map(sum, zip(asked, answered, strict=True)))
            if best is not None and best[1] == protocol.name:
                # The size does not tell the sides: a response may read as a request.
                fit = fit._replace(size=best[0].size)
            if fit > (NO_FIT if best is None else best[0]):
                best = (fit, protocol.name, swapped)
    if best is None and not settled:
        return Recognised("", False, False, UNRECOGNISED)
    if best is None:
        open_sides = {side for side, data in zip(SIDES, (client, server), strict=True) if not data}
        for side, tail in tails:
            if side not in open_sides and tail():
                open_sides.add(side)
        heard = [(side, registry.beginning(data)) for side, data in zip(SIDES, (client, server), strict=True)]
        reasons = [f"; the {side} sends {beginning.described}" for side, beginning in heard if beginning is not None]
        return Recognised("", False, len(open_sides) < len(SIDES), "".join([UNRECOGNISED, *reasons]))
    fit, name, swapped = best
    if not sides_known:
        swapped = _swapped(registry.protocol(name), client, server, swapped)
    number = fit.clean or fit.partial
    counted = "1 frame decodes" if number == 1 else f"{number} frames decode"
    others = [_as_rival(other, client or server) for other in protocols if rivals and other.name != name]
    how = "cleanly" if fit.clean else "in part"
    return Recognised(name, swapped, True, "; ".join([f"{counted} {how} as {name}", *filter(None, others)]))


def server_proves(protocol: Protocol) -> bool:
    """Whether frames of the server, too, identify the protocol of a stream."""
    return protocol.client == protocol.server or protocol.server in protocol.recognised_by


def after_header(data: bytes) -> bytes:
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
    if not (decoded.clean or why) or not knows_body(protocol, "client", decoded.data):
        return ""
    if decoded.clean:
        return f"{protocol.name} fits the first frame equally well"
    return f"{protocol.name} does not fit ({why})"


def knows_body(protocol: Protocol, side: str, frame: bytes) -> bool:
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
    data = after_header(data)
    best = (0, 0, "")
    for protocol in registry.with_stream():
        streams = [(protocol.name, next(frames(protocol.stream("client"), data)))]
        streams = [each for each in streams if knows_body(protocol, "client", each[1].data)]
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
    """The heading of a layout; None for the first ``FEW_TIMES`` requests, because generating it loads the compiler."""
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
"""Determines whether bytes may begin a frame of the protocol, or whether more bytes are needed to tell."""


def _yes() -> bool:
    return True


def _no() -> bool:
    return False


_Decodes = dict[tuple[str, bytes], tuple[bool, bool]]
"""The results of ``layouts_fit`` by protocol and frame: a frame is tried for each side that may have sent it."""


class _First(NamedTuple):
    """The first frames of a side, cut by the layout of a protocol.

    Attributes:
        heading: the heading of the layout; None before it was generated.
        frames: the whole frames, without those whose own length excludes them.
        tail: determines whether the bytes after them may begin another frame.
    """

    heading: Heading | None
    frames: list[bytes]
    tail: _Tail


_NOTHING = _First(None, [], _yes)


def _first_frames(protocol: Protocol, data: bytes, side: str) -> _First:
    """The first frames in the bytes of a side, at most ``FRAMES_TO_RECOGNISE``."""
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
        clean, in_part = frame_fits(protocol, side, frame, side_known, decodes, light=begin is None)
        if in_part and begin is None:
            in_part = bool(_heading_of()(key, protocol.limits.frame).pattern.match(frame))
        fit = Fit(fit.clean + clean, fit.partial + in_part, fit.size + (len(frame) if clean or in_part else 0))
    return fit


def _may_go_on(protocol: Protocol, data: bytes, side: str) -> bool:
    """Whether the bytes after the first frames may become another frame of the protocol."""
    return _first_frames(protocol, data, side).tail()


def frame_fits(
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
        known = decodes[protocol.name, frame] = layouts_fit(protocol, frame, light=light)
    clean, fits = known
    dialogue = protocol.follow()
    key, _, reason = dialogue.layout(side, frame) if fits or protocol.variants else ("", {}, None)
    if fits and reason is None:
        return clean, not clean and len(frame) >= LEAST_EVIDENCE
    if len(frame) >= LEAST_EVIDENCE and any(begins(frame, each, len(frame)) for each in protocol.variants.get(key, ())):
        return False, True
    return False, dialogue.headed(side, frame, side_known=side_known)


def layouts_fit(protocol: Protocol, frame: bytes, *, light: bool = False) -> tuple[bool, bool]:
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
