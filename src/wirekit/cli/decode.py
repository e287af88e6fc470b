"""``wirekit decode``: bytes, or a textual dump of bytes, to fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from wirekit.cli.arguments import KeyType, schema_and_file
from wirekit.cli.common import (
    console,
    on_terminal,
    plural,
    print_json,
    read_bytes,
    say,
    strict_option,
)
from wirekit.cli.context import check_context, context_option, parse_context
from wirekit.cli.input import Input, read_input
from wirekit.engine import Decoded, decode, foreign, frames
from wirekit.errors import Misuse
from wirekit.registry import registry, variants
from wirekit.values import Check

if TYPE_CHECKING:
    from wirekit.cli.packets import Payload, Piece
    from wirekit.conversation import Event, Recognised

MOST_OTHERS = 3
"""Contexts that fit as well as the one taken, which are named."""
MOST_ANSWERS = 500
PACKET = range(40, 1 << 18)  # bytes: the headers of IPv4 and TCP, and more than IP can have


@click.command("decode")
@click.argument("schema", required=False, type=KeyType(files=True))
@click.argument("file", required=False, type=click.Path())
@click.option("--hex", "hex_text", metavar="TEXT", help="Decode this text instead of a file.")
@click.option(
    "--input",
    "form",
    type=click.Choice(["auto", "raw", "hex", "base64"]),
    default="auto",
    help="Form of the input. auto recognises raw bytes, base64, hex, lists of numbers in the syntax of many languages, "
    "and dumps of xxd, hexdump, od, Wireshark, tcpdump -X, gdb, WinDbg and Netty.",
)
@click.option(
    "--output",
    type=click.Choice(["rich", "tree", "hexdump", "json"]),
    help="tree or rich: fields beside their bytes (default on a terminal); json: one line per frame (default on a "
    "pipe).",
)
@click.option("--all", "complete", is_flag=True, help="Show long lists, values and bytes in full.")
@click.option("--indent-json", is_flag=True, help="Show JSON payloads indented.")
@click.option("--spans", is_flag=True, help="Include the byte range of every field in JSON.")
@strict_option
@context_option
def command(
    schema: str | None,
    file: str | None,
    hex_text: str | None,
    form: str,
    output: str | None,
    complete: bool,
    indent_json: bool,
    spans: bool,
    strict: bool,
    context_pairs: tuple[str, ...],
) -> int:
    """Decode FILE, or standard input.

    SCHEMA is a schema key or the name of a protocol. Without SCHEMA, wirekit recognises the protocol. The input may
    hold several dumps or packets; headers of Ethernet, IP and TCP are removed. Responses are paired with the requests
    in Wireshark's "Follow TCP stream", in Netty's logs, and in dumps of both directions in turns.

    \b
    wirekit decode pulsar frame.bin
    xxd request.bin | wirekit decode kafka.request
    wirekit decode kafka.response --context api=fetch --context version=2 response.bin
    wirekit decode --hex 00000017cafebebe040200000001070000016c3d0e8b28
    """
    context = parse_context(context_pairs)
    schema, file = schema_and_file(schema, file)
    if hex_text is not None and file is not None:
        raise click.UsageError("give --hex or a file, not both")
    try:
        given = read_input(hex_text.encode() if hex_text is not None else read_bytes(file), _form(form, hex_text))
    except Misuse as error:
        say(str(error))
        return 1
    if given.note:
        say(f"{given.note}")
    if not given.data:
        if not given.note:
            say("the input is empty")
        return 1
    if schema is not None:
        check_context(schema, context)
    form = output or ("tree" if on_terminal() else "json")
    if form == "json":
        return _decode(given, schema, context, lambda each: print_json(each.to_json(spans=spans)), strict)
    from wirekit.display.render import show

    screen = console()
    draw = partial(show, console=screen, form=form, complete=complete, indent_json=indent_json)
    return _decode(given, schema, context, draw, strict)


Show = Callable[[Decoded], None]
Answer = tuple[Decoded, list[dict[str, Any]]]
"""A frame of a server, and the contexts under which it decodes cleanly; the last of them was used."""


def _decode(given: Input, schema: str | None, context: dict[str, Any], show: Show, strict: bool) -> int:
    """Shows the frames of a dump, of packets, of a conversation, or of several dumps one after the other."""
    if not given.dumps:
        return _decode_one(given, schema, context, show, strict)
    protocol = schema is None or "." not in schema
    if given.sides and protocol:
        return _decode_turns(given.dumps, given.sides, schema, context, show, strict)
    payloads = [_payload(dump, number, schema, context) for number, dump in enumerate(given.dumps, 1)]
    if any(payloads):
        return _decode_packets(payloads, schema, context, show, strict)
    if protocol and _alternate(given.dumps, schema or ""):
        say("the dumps are decoded as the two sides of a connection in turns, because every frame fits")
        sides = tuple(number % 2 for number in range(len(given.dumps)))
        return _decode_turns(given.dumps, sides, schema, context, show, strict)
    status = 0
    for number, dump in enumerate(given.dumps, 1):
        say(f"dump {number} of {len(given.dumps)}: {plural(len(dump), 'byte')}")
        status |= _decode_one(Input(dump, given.form), schema, context, show, strict)
    return status


def _decode_turns(
    turns: tuple[bytes, ...],
    sides: tuple[int, ...],
    schema: str | None,
    context: dict[str, Any],
    show: Show,
    strict: bool,
) -> int:
    """Shows the frames of a conversation, each behind the turn with its last byte.

    Args:
        sides: for each turn 0 or 1, its sender.
        schema: the protocol; None to recognise it.
    """
    from wirekit.conversation import SIDES, Conversation

    found = _recognised(turns, sides, schema or "")
    if not found.protocol:
        say(f"{found.reason}; each side is decoded by itself")
        status = 0
        for side in sorted(set(sides)):
            say(f"side {side + 1}:")
            status |= _decode_one(Input(_of_side(turns, sides, side), "raw"), schema, context, show, strict)
        return status
    say(f"decoded as {found.protocol}: {found.reason}")
    conversation, status = Conversation(found.protocol), 0
    for number, (side, data) in enumerate(zip(sides, turns, strict=True), 1):
        sender = SIDES[side ^ found.swapped]
        say(f"dump {number} of {len(turns)}: {plural(len(data), 'byte')} from the {sender}")
        status |= _show_events(conversation.receive(sender, data), show, strict)
    return status | _show_events(conversation.close(), show, strict)


def _of_side(turns: tuple[bytes, ...], sides: tuple[int, ...], side: int) -> bytes:
    return b"".join(data for data, each in zip(turns, sides, strict=True) if each == side)


def _recognised(turns: tuple[bytes, ...], sides: tuple[int, ...], protocol: str) -> Recognised:
    from wirekit.conversation import recognise

    names = (protocol,) if protocol else ()
    return recognise(_of_side(turns, sides, 0), _of_side(turns, sides, 1), names=names)


def _show_events(events: list[Event], show: Show, strict: bool) -> int:
    from wirekit.conversation import Frame, Quarantined

    status = 0
    for event in events:
        if isinstance(event, Frame):
            if event.wrong:
                say(event.wrong)
            show(event.decoded)
            status |= _complain(event.decoded, strict) | bool(event.wrong)
        elif isinstance(event, Quarantined):
            say(f"{plural(len(event.data), 'byte')} from the {event.side} not decoded: {event.reason}")
            status = 1
    return status


def _alternate(dumps: tuple[bytes, ...], protocol: str) -> bool:
    """Whether dumps are requests and responses in turns: all of them decode cleanly so, and a response has its request.

    Where both sides send frames of one layout a dump says all there is to say by itself.
    """
    from wirekit.conversation import SIDES, Conversation, Frame

    sides = tuple(number % 2 for number in range(len(dumps)))
    found = _recognised(dumps, sides, protocol)
    if not found.protocol or registry.protocol(found.protocol).client == registry.protocol(found.protocol).server:
        return False
    conversation = Conversation(found.protocol)
    events: list[Event] = []
    for side, data in zip(sides, dumps, strict=True):
        events += conversation.receive(SIDES[side ^ found.swapped], data)
    events += conversation.close()
    sound = all(isinstance(each, Frame) and each.decoded.clean and not each.wrong for each in events)
    return sound and any(isinstance(each, Frame) and each.request is not None for each in events)


def _decode_packets(
    payloads: list[Payload | None], schema: str | None, context: dict[str, Any], show: Show, strict: bool
) -> int:
    """Shows the frames in packets, each behind the packet with its last byte."""
    from wirekit.cli.packets import followed, joined

    segments = [payload.segment for payload in payloads if payload is not None]
    follows = schema is None or "." not in schema
    pieces = followed(segments, schema or "") if follows else joined(segments, str(schema), context)
    status = 0
    for number, payload in enumerate(payloads, 1):
        say(f"packet {number}{' is not a TCP packet and was skipped' if payload is None else f', {payload.text}'}")
        for piece in pieces:
            if piece.number == number:
                status |= _show_piece(piece, show, strict)
    return status


def _show_piece(piece: Piece, show: Show, strict: bool) -> int:
    status = 1 if piece.text else 0
    if piece.text:
        say(piece.text)
    if piece.decoded is not None:
        show(piece.decoded)
        status |= _complain(piece.decoded, strict)
    return status


def _decode_one(given: Input, schema: str | None, context: dict[str, Any], show: Show, strict: bool) -> int:
    """Shows the frames of one dump, of its payload if it is a packet."""
    data = given.data
    payload = _payload(data, 1, schema, context)
    if payload is not None:
        say(f"the input is a packet {payload.text}")
        data = payload.segment.payload
    if not data:
        return 1
    if schema is None:
        schema, answers = _guess(data, text=given.form == "raw" and given.note is not None)
        if answers:
            return _print(_said(answers), show, strict)
        if schema is None:
            return 1
        check_context(schema, context)
    return _print(frames(schema, data, context=context), show, strict)


def _form(form: str, hex_text: str | None) -> str:
    return form if form != "auto" or hex_text is None else "hex"


def _is_frame(data: bytes, schema: str | None, context: dict[str, Any]) -> bool:
    """Whether the bytes begin with a frame of the schema, or of any protocol: then they are no whole packet."""
    if schema is None:
        from wirekit.conversation import recognise

        return bool(recognise(data, b"").protocol)
    return schema.startswith("net.") or next(frames(schema, data, context=context)).error is None


def _payload(data: bytes, number: int, schema: str | None, context: dict[str, Any]) -> Payload | None:
    """The payload of a whole packet; None for other bytes."""
    if len(data) not in PACKET or _is_frame(data, schema, context):
        return None
    from wirekit.cli.packets import payload_of

    return payload_of(data, number)


def _guess(data: bytes, *, text: bool) -> tuple[str | None, list[Answer]]:
    """The protocol or record that the bytes fit, said on standard error; or the frames of a server that they are.

    Args:
        text: whether the bytes are text that could not be read as a dump, as was said already.
    """
    from wirekit.conversation import best_fit, recognise

    found = recognise(data, b"")
    if found.protocol:
        say(f"decoded as {found.protocol}: {found.reason}")
        return found.protocol, []
    if _is_capture(data):
        say("this is a capture file; `wirekit frames FILE` shows the frames in it")
        return None, []
    known = foreign(data)
    if known:
        say(f"no schema was given, and {known}")
        return None, []
    best = best_fit(data)
    clean = bool(best) and all(each.clean for each in frames(best, data))
    if not clean:
        for protocol in registry.with_stream():
            if protocol.client != protocol.server and (answers := _answers(data, protocol.stream("server"))):
                return None, answers
    if best:
        how = "" if clean else ", though not cleanly"
        say(f"decoded as {best}, the best match{how}; name a schema if this is wrong")
    elif not text:
        say("no schema was given and no known protocol fits the first bytes; `wirekit schemas` lists all protocols")
    return best or None, []


def _answers(data: bytes, key: str) -> list[Answer]:
    """The frames of a server and the contexts under which each decodes cleanly; none where one of them does not.

    None either where there are more than ``MOST_ANSWERS``: each is tried under every context that its layout knows.
    """
    from wirekit.conversation import clean_contexts

    found: list[Answer] = []
    for frame in frames(key, data):
        if len(found) == MOST_ANSWERS:
            return []
        contexts = clean_contexts(frame.data[: frame.consumed], key) if frame.error is None else []
        if not contexts:
            return []
        found.append((decode(frame.data, key, context=contexts[-1], offset=frame.offset), contexts))
    return found


def _said(answers: list[Answer]) -> Iterator[Decoded]:
    """The frames, each behind a message that names its context and the others that fit."""
    for decoded, contexts in answers:
        others = "".join(f"; {_pairs(each)} fits as well" for each in contexts[-2 : -MOST_OTHERS - 2 : -1])
        more = len(contexts) - MOST_OTHERS - 1
        counted = f"; {more} more {'fit' if more > 1 else 'fits'}" if more > 0 else ""
        say(f"decoded as {decoded.schema} with {_pairs(contexts[-1])}{others}{counted}")
        yield decoded


def _pairs(context: Mapping[str, Any]) -> str:
    return " ".join(f"--context {name}={value}" for name, value in context.items())


def _is_capture(data: bytes) -> bool:
    from wirekit.capture.files import is_capture

    return is_capture(data)


def _print(values: Iterator[Decoded], show: Show, strict: bool) -> int:
    status = 0
    for decoded in values:
        show(decoded)
        status |= _complain(decoded, strict)
    return status


def _complain(decoded: Decoded, strict: bool) -> int:
    """Reports errors, gaps and failed checks on standard error; 1 if any bytes were not decoded."""
    status = 0
    if decoded.error is not None:
        say(f"{decoded.error}")
        status = 1
    if decoded.error is not None or decoded.gaps:
        from wirekit.conversation import reading

        said = reading(decoded)
        if said:
            say(f"{decoded.schema} decodes cleanly with {_pairs(said)}")
        for key in variants(decoded.schema):
            if decode(decoded.data, key, context=decoded.context).clean:
                say(f"the bytes decode cleanly as {key}")
    if decoded.gaps and not registry.protocol(decoded.schema).readings:
        from wirekit.compiler.contexts import contexts_of
        from wirekit.conversation import clean_contexts

        asked = sorted(contexts_of(registry[decoded.schema].layout) - set(decoded.context))
        fitting = clean_contexts(decoded.data[: decoded.consumed], decoded.schema, decoded.context) if asked else []
        if fitting:
            say(
                f"{decoded.schema} decodes cleanly with {' or '.join(map(_pairs, fitting[-1 : -MOST_OTHERS - 2 : -1]))}"
            )
        elif asked:
            say(f"{decoded.schema} decodes more with {' '.join(f'--context {name}=…' for name in asked)}")
    for gap in decoded.gaps:
        where = f"byte {gap.offset}" if not gap.source else f"byte {gap.offset} of decompressed data #{gap.source}"
        say(f"{decoded.schema}: {gap.path}: {gap.length} unexplained bytes at {where}")
        status = 1
    for check in decoded.checks:
        if check.status == "bad":
            numbers = check.note if check.computed is None else _numbers(decoded.schema, check)
            where = f"byte {check.offset}" if not check.source else f"byte {check.offset} of data #{check.source}"
            say(f"{decoded.schema}: {check.path}: {check.kind} check failed at {where}: {numbers}")
            status |= strict
    return status


def _numbers(schema: str, check: Check) -> str:
    """The stored and the computed number, in hexadecimal where the field is shown so."""
    from wirekit.display.fields import number_text
    from wirekit.wire.hints import Hints

    digits = Hints(registry[schema].node).at(check.path).digits
    return f"stored {number_text(check.stored, digits)}, computed {number_text(check.computed, digits)}"
