"""``wirekit messages``: the application messages of captures and of files that brokers store."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import click

from wirekit.capture.files import open_capture
from wirekit.cli.captures import FollowedFile, choice_options, parse_choice
from wirekit.cli.common import console, on_terminal, print_json, say
from wirekit.cli.frames import report
from wirekit.conversation import Frame, Message
from wirekit.engine import Decoded
from wirekit.errors import WireError
from wirekit.registry import registry
from wirekit.values import printable, readable


@click.command("messages")
@click.argument("files", nargs=-1, required=True, metavar="CAPTURE|SEGMENT...")
@choice_options
@click.option("--output", type=click.Choice(["table", "json"]), help="By default a table on a terminal, else JSON.")
def command(files: tuple[str, ...], protocol: str, ports: tuple[str, ...], output: str | None) -> int:
    """Show every application message in captures and log segments; compressed sets and batches are opened.

    Offsets are absolute; for Pulsar they are ledger:entry:batch_index. A failed checksum is marked, not left out.
    """
    choice = parse_choice(protocol, ports)
    show: Callable[[str, Message], None] = _Table() if (output or (on_terminal() and "table")) == "table" else _json
    status = 0
    for path in files:
        if not _is_capture(path):
            status |= _stored(path, protocol, show)
            continue
        followed = FollowedFile(path, choice)
        for link, item in followed:
            status |= report(path, link, item)
            for message in item.messages if isinstance(item, Frame) else ():
                show(path, message)
        status |= followed.status
    return status


def _json(path: str, message: Message) -> None:
    print_json({"file": path, **message.to_json()})


class _Table:
    """Lines of fixed columns, printed as they come."""

    WIDTHS = (28, 4, 20, 23, 7, 3)

    def __init__(self) -> None:
        self._console = console()
        self._line(("topic", "part", "offset", "time", "codec", ""), "key → value", "bold")

    def __call__(self, path: str, message: Message) -> None:
        mark = {"ok": "✓", "bad": "✗"}.get(message.check, "–")
        cells = (
            _end_of(printable(message.topic or "?"), self.WIDTHS[0]),
            "" if message.partition is None else str(message.partition),
            "" if message.offset is None else str(message.offset),
            _moment(message.timestamp),
            message.codec,
            mark,
        )
        text = f"{_shown(message.key, 24)} → {_shown(message.value, 60)}"
        self._line(cells, text, "yellow" if message.check == "bad" else "")

    def _line(self, cells: tuple[str, ...], text: str, style: str) -> None:
        parts = [cell[:width].ljust(width) for cell, width in zip(cells, self.WIDTHS, strict=True)]
        self._console.print(" ".join([*parts, text]), style=style or None, markup=False, soft_wrap=True)


def _end_of(text: str, width: int) -> str:
    """The end of a long name, which is what tells topics of one namespace apart."""
    return text if len(text) <= width else f"…{text[1 - width :]}"


def _moment(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"


def _shown(data: bytes | None, most: int) -> str:
    if data is None:
        return "null"
    text = readable(data)
    shown = data.hex() if text is None else repr(text)
    return shown if len(shown) <= most else f"{shown[:most]}… ({len(data)} bytes)"


def _stored(path: str, protocol: str, show: Callable[[str, Message], None]) -> int:
    """The messages of a file that a broker stores."""
    names = [protocol] if protocol else registry.protocols()
    for read in _readers(names):
        status, known = 0, False
        for decoded, messages, cut in read(path):
            known = known or _fits(decoded)
            if not known:
                break
            for message in messages:
                show(path, message)
            status |= _complain(path, decoded, cut)
        if known:
            return status
    say(f"{path}: neither a capture nor a file of messages of {', '.join(names)}")
    return 1


def _readers(
    names: list[str],
) -> Iterator[Callable[[str], Iterator[tuple[Decoded, Iterator[Message], WireError | None]]]]:
    for name in names:
        for place in registry.protocol(name).stored.values():
            module, function = place.split(":")
            yield getattr(importlib.import_module(module), function)


def _fits(decoded: Decoded) -> bool:
    """Whether a file begins as one of this kind does: with a record whose checksum is good, or with zeros only."""
    if any(check.status == "ok" for check in decoded.checks):
        return True
    return decoded.error is None and not decoded.data.strip(b"\0")


def _complain(path: str, decoded: Decoded, cut: WireError | None) -> int:
    problems: list[Any] = [each for each in (decoded.error, cut) if each is not None]
    problems += [f"{gap.length} unexplained bytes at byte {gap.offset}" for gap in decoded.gaps]
    for problem in problems:
        say(f"{path}: {problem}")
    return 1 if problems else 0


def _is_capture(path: str) -> bool:
    try:
        open_capture(path).close()
    except WireError:
        return False
    return True
