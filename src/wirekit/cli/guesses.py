"""Recognises the protocol or schema of bytes if the user named none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wirekit.cli.common import say
from wirekit.cli.verdicts import MOST_OTHERS, pairs
from wirekit.decoding import clean_contexts, decode, frames
from wirekit.engine import Decoded, foreign
from wirekit.registry import registry
from wirekit.wire import Struct

MOST_ANSWERS = 500
A_CAPTURE = "this is a capture file; `wirekit frames FILE` shows the frames in it"

Answer = tuple[Decoded, list[dict[str, Any]]]
"""A frame of a server, and the contexts under which it decodes cleanly; the last of them was used."""


def guess(data: bytes, *, text: bool) -> tuple[str | None, list[Answer]]:
    """The protocol or record that the bytes fit, reported on standard error; or the server's frames in the bytes.

    Args:
        text: whether the bytes are text that could not be read as a dump, which was already reported.
    """
    from wirekit.conversation import best_fit, recognise

    recognised = recognise(data, b"")
    if recognised.protocol:
        say(f"decoded as {recognised.protocol}: {recognised.reason}")
        return recognised.protocol, []
    if is_capture(data):
        say(A_CAPTURE)
        return None, []
    format_name = foreign(data)
    if format_name:
        say(f"no schema was given, and {format_name}")
        return None, []
    best = best_fit(data)
    clean = bool(best) and all(each.clean for each in frames(best, data))
    if not clean:
        for protocol in registry.with_stream():
            if protocol.client != protocol.server and (answers := _answers(data, protocol.stream("server"))):
                return None, answers
    if not clean and (hint := missing_size(data)):
        say(hint)
    if best:
        how = "" if clean else ", though not cleanly"
        say(f"decoded as {best}, the best match{how}; name a schema if this is wrong")
    elif not text:
        names = ", ".join(protocol.name for protocol in registry.with_stream())
        say(
            "no known protocol fits the first bytes; for an incomplete or damaged frame, pass its protocol as SCHEMA "
            f"({names}); for other bytes, pass their key (`wirekit schemas` lists all keys)"
        )
    return best or None, []


def other_protocol(schema: str, data: bytes) -> str:
    """The protocol, if it is not the schema, as which the first frame of the bytes decodes cleanly; "" for none."""
    from wirekit.conversation import recognise

    name = recognise(data, b"", rivals=False, settled=False).protocol
    return name if name and name != schema and next(frames(name, data)).clean else ""


def missing_size(data: bytes) -> str:
    """A hint about bytes that are a frame without the size at its beginning; "" for other bytes.

    A protocol whose client's frames do not prove it is left out: any bytes may fit them.
    """
    from wirekit.conversation.recognition import LEAST_EVIDENCE

    protocols = [each for each in registry.with_stream() if each.client in each.recognised_by]
    keys = [key for each in protocols for key in (each.stream("client"), each.stream("server"))]
    fits: dict[str, list[str]] = {}
    for key in dict.fromkeys(keys) if len(data) >= LEAST_EVIDENCE else ():
        size = _size_of(key, data)
        frame = size + data
        first = decode(frame, key)
        if not size or first.error is not None or first.consumed != len(frame):
            continue
        if first.clean:
            fits.setdefault(size.hex(), []).append(key)
        elif contexts := clean_contexts(frame, key):
            fits.setdefault(size.hex(), []).append(f"{key} with {pairs(contexts[-1])}")
    size_of_fit, names = next(iter(fits.items()), ("", []))
    return f"with the size {size_of_fit} before them, the bytes decode cleanly as {' or '.join(names)}" if fits else ""


def _size_of(key: str, data: bytes) -> bytes:
    """The stored length of a frame that consists of it and the bytes; empty if frames do not begin with one."""
    node = registry[key].node
    if not isinstance(node, Struct) or 0 not in node.sized_by:
        return b""
    length = node.lengths[0][0]
    number = len(data) - node.sized_by[0] + length.add
    return bytes(length.inner.pack(number)) if length.least <= number <= length.inner.high else b""


def pasted_answers(name: str, data: bytes) -> list[Answer]:
    """The server's frames in bytes of a protocol; none for a key, or if the bytes may be the client's."""
    if "." in name:
        return []
    from wirekit.conversation import recognise

    protocol = registry.protocol(name)
    if not protocol.server or protocol.client == protocol.server or recognise(data, b"", names=(name,)).protocol:
        return []
    return _answers(data, protocol.stream("server"))


def _answers(data: bytes, key: str) -> list[Answer]:
    """The server's frames and the contexts under which each decodes cleanly; none if one of them does not.

    There are none either if there are more than ``MOST_ANSWERS``, because each is tried under every known context.
    """
    answers: list[Answer] = []
    for frame in frames(key, data):
        if len(answers) == MOST_ANSWERS:
            return []
        contexts = clean_contexts(frame.data[: frame.consumed], key) if frame.error is None else []
        if not contexts:
            return []
        answers.append((decode(frame.data, key, context=contexts[-1], offset=frame.offset), contexts))
    return answers


def with_contexts(answers: list[Answer]) -> Iterator[Decoded]:
    """The frames, each after a message that names its context and the others that fit."""
    for decoded, contexts in answers:
        others = ", ".join(map(pairs, contexts[-2 : -MOST_OTHERS - 2 : -1]))
        more = len(contexts) - MOST_OTHERS - 1
        counted = f" and {more} more" if more > 0 else ""
        also = f"; also possible: {others}{counted}" if others else ""
        say(f"decoded as {decoded.schema} with {pairs(contexts[-1])}{also}")
        yield decoded


def is_capture(data: bytes) -> bool:
    from wirekit.capture.files import is_capture

    return is_capture(data)
