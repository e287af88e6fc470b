"""``wirekit decode``: bytes, or a textual dump of bytes, to fields."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from wirekit.cli.arguments import KeyType, schema_and_file
from wirekit.cli.common import (
    console,
    on_terminal,
    print_json,
    read_bytes,
    say,
    strict_option,
)
from wirekit.cli.context import check_context, context_option, parse_context
from wirekit.cli.guesses import (
    A_CAPTURE,
    guess,
    is_capture,
    missing_size,
    other_protocol,
    pasted_answers,
    with_contexts,
)
from wirekit.cli.input import DEFAULT_LIMIT, Input, read_input
from wirekit.cli.turns import alternate, decode_turns
from wirekit.cli.verdicts import Show, WithBytes, complain, show_all
from wirekit.decoding import frames
from wirekit.errors import Misuse, plural

if TYPE_CHECKING:
    from wirekit.cli.packets import Payload, Piece

PACKET = range(40, 1 << 18)  # bytes: the headers of IPv4 and TCP, and more than IP can have


@click.command("decode")
@click.argument("schema", required=False, type=KeyType(files=True))
@click.argument("file", required=False, type=click.Path(readable=False))
@click.option("--hex", "hex_text", metavar="TEXT", help="Decode this text instead of a file.")
@click.option(
    "--input",
    "input_form",
    type=click.Choice(["auto", "raw", "hex", "base64"]),
    default="auto",
    help="Format of the input. auto recognises raw bytes, base64, hex, URL encoding, lists of numbers and strings in "
    "the syntax of many languages, and dumps of xxd, hexdump, hexyl, od, Wireshark, tcpdump -X, gdb, lldb, WinDbg, "
    "Netty and javax.net.debug.",
)
@click.option(
    "--output",
    type=click.Choice(["rich", "tree", "hexdump", "json"]),
    help="tree or rich: fields beside their bytes (default on a terminal); hexdump: the bytes; json: one line per "
    "frame (default on a pipe).",
)
@click.option("--all", "complete", is_flag=True, help="Show long lists, values and bytes in full.")
@click.option("--indent-json", is_flag=True, help="Show JSON payloads indented.")
@click.option("--spans", is_flag=True, help="Write JSON with the byte range of every field.")
@strict_option
@context_option
def command(
    schema: str | None,
    file: str | None,
    hex_text: str | None,
    input_form: str,
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
    in Wireshark's "Follow TCP stream", in Netty's logs, and in alternating dumps of both directions.

    \b
    wirekit decode pulsar frame.bin
    xxd request.bin | wirekit decode kafka.request
    wirekit decode kafka.response --context api=fetch --context version=2 response.bin
    wirekit decode --hex 00000017cafebebe040200000001070000016c3d0e8b28
    """
    context = parse_context(context_pairs)
    schema, file = schema_and_file("decode", schema, file)
    if hex_text is not None and file is not None:
        raise click.UsageError("give --hex or a file, not both")
    if spans and output not in (None, "json"):
        raise click.UsageError(f"--spans applies to --output json; --output {output} always shows the bytes of fields")
    key_of_name = _stored_key(file) if schema is None and file is not None else None
    try:
        data = (
            hex_text.encode("utf-8", "surrogateescape") if hex_text is not None else read_bytes(file, DEFAULT_LIMIT + 1)
        )
        if input_form == "auto" and (key_of_name or hex_text is not None):
            input_form = "raw" if key_of_name else "hex"
        source = read_input(data, input_form)
    except Misuse as error:
        say(str(error))
        return 1
    if source.note:
        say(source.note)
    if not source.data:
        if not source.note:
            say("the input is empty")
        return 1
    if key_of_name and source.form == "raw" and not is_capture(source.data):
        say(f"decoded as {key_of_name} because of the file's name; name a schema if this is wrong")
        schema = key_of_name
    if schema is not None:
        check_context(schema, context)
    form = output or ("tree" if on_terminal() and not spans else "json")
    if form == "json" and not spans:
        return _decode(source, schema, context, lambda each: print_json(each.to_json()), strict)
    if spans:
        draw = WithBytes(lambda each: print_json(each.to_json(spans=True)))
    else:
        from wirekit.display.render import show

        draw = WithBytes(partial(show, console=console(), form=form, complete=complete, indent_json=indent_json))
    return _decode(source, schema, context, draw, strict) | draw.status


def _decode(source: Input, schema: str | None, context: dict[str, Any], show: Show, strict: bool) -> int:
    """Shows the frames of a dump, of packets, of a conversation, or of several dumps one after the other."""
    if not source.dumps:
        return _decode_one(source, schema, context, show, strict)

    def alone(data: bytes) -> int:
        return _decode_one(Input(data, "raw"), schema, context, show, strict)

    protocol = schema is None or "." not in schema
    if source.sides and protocol:
        return decode_turns(source.dumps, source.sides, schema or "", show, strict, alone)
    payloads = [_payload(dump, number, schema, context) for number, dump in enumerate(source.dumps, 1)]
    if any(payloads):
        return _decode_packets(payloads, schema, context, show, strict)
    if protocol and alternate(source.dumps, schema or ""):
        say("the dumps are decoded as alternating sides of a connection, because every frame fits")
        sides = tuple(number % 2 for number in range(len(source.dumps)))
        return decode_turns(source.dumps, sides, schema or "", show, strict, alone)
    status = 0
    for number, dump in enumerate(source.dumps, 1):
        say(f"dump {number} of {len(source.dumps)}: {plural(len(dump), 'byte')}")
        status |= _decode_one(Input(dump, source.form), schema, context, show, strict)
    return status


def _decode_packets(
    payloads: list[Payload | None], schema: str | None, context: dict[str, Any], show: Show, strict: bool
) -> int:
    """Shows the frames in packets, each after the packet with its last byte."""
    from wirekit.cli.packets import followed, joined

    segments = [payload.segment for payload in payloads if payload is not None]
    follows = schema is None or "." not in schema
    ended: defaultdict[int, list[Piece]] = defaultdict(list)
    for piece in followed(segments, schema or "") if follows else joined(segments, str(schema), context):
        ended[piece.number].append(piece)
    status = 0
    for number, payload in enumerate(payloads, 1):
        say(f"packet {number}{' is not a TCP packet and was skipped' if payload is None else f', {payload.text}'}")
        for piece in ended[number]:
            status |= _show_piece(piece, show, strict)
    if schema and segments and all(piece.decoded is None for pieces in ended.values() for piece in pieces):
        _name_other(schema, b"".join(each.payload for each in segments if each.source == segments[0].source))
    return status


def _show_piece(piece: Piece, show: Show, strict: bool) -> int:
    status = 1 if piece.text else 0
    if piece.text:
        say(piece.text)
    if piece.decoded is not None:
        show(piece.decoded)
        status |= complain(piece.decoded, strict)
    return status


def _decode_one(source: Input, schema: str | None, context: dict[str, Any], show: Show, strict: bool) -> int:
    """Shows the frames of one dump, of its payload if it is a packet."""
    data = source.data
    payload = _payload(data, 1, schema, context)
    if payload is not None:
        say(f"the input is a packet {payload.text}")
        data = payload.segment.payload
    if not data:
        return 1
    if schema is None:
        schema, answers = guess(data, text=source.form == "raw" and source.note is not None)
        if answers:
            return show_all(with_contexts(answers), show, strict)
        if schema is None:
            return 1
        check_context(schema, context)
    elif not context and (answers := pasted_answers(schema, data)):
        return show_all(with_contexts(answers), show, strict)
    values = frames(schema, data, context=context)
    first = next(values)
    status = show_all(chain([first], values), show, strict)
    if status and not schema.startswith("net.") and is_capture(data):
        say(A_CAPTURE)
    elif status and not first.clean:
        _name_other(schema, data)
    return status


def _name_other(schema: str, data: bytes) -> None:
    """Names another protocol by which the bytes decode, or a size to put before them, if the user's schema fails."""
    if other := other_protocol(schema, data):
        say(f"the first frame decodes cleanly as {other}; pass {other} instead of {schema}")
    elif hint := missing_size(data):
        say(hint)


def _stored_key(file: str) -> str | None:
    """The layout of a stored file with this name; None for another name."""
    from wirekit.pipeline.inputs import CAPTURE, stored_kind

    kind = stored_kind(file, messages=False)
    return None if kind == CAPTURE else kind


def _is_frame(data: bytes, schema: str | None, context: dict[str, Any]) -> bool:
    """Whether the bytes begin with a frame of the schema, or of any protocol: then they are not a whole packet."""
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
