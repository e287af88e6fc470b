"""``wirekit frames``: the frames of captures, connection by connection in order of time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from wirekit.capture.follow import Link, Missing, frame_line
from wirekit.cli.captures import FollowedCapture, captures_of, choice_options, parse_choice, separate_option
from wirekit.cli.common import console, failed, on_terminal, once, print_json, say, strict_option, time_of_day
from wirekit.conversation import Frame, Quarantined


@click.command("frames")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@choice_options
@click.option("--output", type=click.Choice(["table", "json"]), help="By default a table on a terminal, else JSON.")
@separate_option
@strict_option
def command(
    captures: tuple[str, ...], protocol: str, ports: tuple[str, ...], output: str | None, separate: bool, strict: bool
) -> int:
    """Show every frame of CAPTURE (pcap or pcapng; - is standard input): who sent it, what it is, how long its answer
    took.

    The protocol of each connection is found from its bytes; --protocol or --port say it instead. Files of one rotation
    are one capture.
    """
    once(captures)
    choice = parse_choice(protocol, ports)
    form = output or ("table" if on_terminal() else "json")
    printer = _Table() if form == "table" else None
    status = 0
    for parts in captures_of(captures, separate=separate):
        path = parts[0]
        followed = FollowedCapture(parts, choice)
        bad: Counter[str] = Counter()
        for link, item in followed:
            status |= _show(path, link, item, printer)
            if isinstance(item, Frame):
                bad.update(check.kind for check in item.decoded.checks if check.status == "bad")
        status |= followed.status
        if bad:
            say(f"{path}: {failed(bad)}")
            status |= strict
    return status


def _show(path: str, link: Link, item: Any, printer: _Table | None) -> int:
    if isinstance(item, Frame):
        if printer is None:
            print_json(frame_line(link, item, path))
        else:
            printer.frame(link, item)
    return report(path, link, item)


def report(path: str, link: Link, item: Any) -> int:
    """Says on standard error what did not decode, and where; 1 if anything did not."""
    text = complaint(link, item)
    if text:
        say(f"{path}: {text}")
    return int(bool(text))


def complaint(link: Link, item: Any) -> str:
    """What did not decode, and where; "" for an item that did."""
    if isinstance(item, Frame):
        error = item.decoded.error
        if error is None and item.reason is None:
            return ""
        text = str(error or item.reason)
    elif isinstance(item, Quarantined):
        text = f"{len(item.data)} bytes not decoded: {item.reason}"
    elif isinstance(item, Missing):
        text = f"{item.length} bytes missing: {item.reason}"
    else:
        return ""
    sender, receiver = link.addresses(item.side)
    return f"{sender} > {receiver} at byte {item.offset} of the stream: {text}"


class _Table:
    """Lines of fixed columns, printed as they come: a capture may be longer than memory."""

    def __init__(self) -> None:
        self._console = console()
        self._headed = False

    def _heading(self) -> None:
        self._headed = True
        self._line("time", "from", "to", "api", "v", "id", "bytes", "ms", "", "bold")

    def _line(self, *columns: str) -> None:
        *cells, style = columns
        widths = (15, 22, 22, 28, 3, 11, 9, 9)
        right = (4, 5, 6, 7)
        parts = [
            cell.rjust(width) if index in right else cell[:width].ljust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=False))
        ]
        self._console.print(" ".join([*parts, cells[-1]]), style=style or None, markup=False, soft_wrap=True)

    def frame(self, link: Link, frame: Frame) -> None:
        """Prints the line of a frame; red when it did not decode, yellow when a check failed."""
        if not self._headed:
            self._heading()
        sender, receiver = link.addresses(frame.side)
        what = frame.description
        arrow = {"request": "→ ", "response": "← "}.get(what.role, "· ")
        latency = frame.latency_us
        self._line(
            time_of_day(frame.time_us),
            sender,
            receiver,
            arrow + (what.api or "?"),
            _text(what.version),
            _text(what.correlation_id),
            str(len(frame.data)),
            "" if latency is None else f"{latency / 1000:.3f}",
            *_remark(frame),
        )


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _remark(frame: Frame) -> tuple[str, str]:
    """(what is noteworthy, style)."""
    if frame.decoded.error is not None:
        error = frame.decoded.error
        return "; ".join(filter(None, [f"✗ {error.path} {error.reason}", error.hint])), "red"
    if frame.reason is not None:
        return f"✗ {frame.reason}", "red"
    bad = [check for check in frame.decoded.checks if check.status == "bad"]
    if bad:
        return f"✗ {bad[0].kind} {bad[0].path}", "yellow"
    good = sum(check.status == "ok" for check in frame.decoded.checks)
    messages = len(frame.messages)
    told = [f"{messages} message{'' if messages == 1 else 's'}"] if messages else []
    told += [f"✓ {good}"] if good else []
    unexplained = sum(gap.length for gap in frame.decoded.gaps)
    told += [f"{unexplained} unexplained bytes"] if unexplained else []
    sealed = any(check.kind == "decryption" and check.status == "absent" for check in frame.decoded.checks)
    told += ["encrypted"] if sealed else []
    return " ".join(told), ""
