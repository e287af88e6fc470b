"""``wirekit frames``: the frames of captures, as they are recognised."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from wirekit.capture.follow import Link, Missing, frame_line
from wirekit.cli.captures import FollowedCapture, captures_of, choice_options, parse_choice, separate_option
from wirekit.cli.common import console, failed, on_terminal, once, print_json, say, strict_option
from wirekit.cli.numbered import Numbered, numbered
from wirekit.conversation import Frame, Quarantined
from wirekit.display.frames import FrameTable


@click.command("frames")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@choice_options
@click.option("--output", type=click.Choice(["table", "json"]), help="By default a table on a terminal, else JSON.")
@separate_option
@strict_option
def command(
    captures: tuple[str, ...], protocol: str, ports: tuple[str, ...], output: str | None, separate: bool, strict: bool
) -> int:
    """Show every frame of CAPTURE (pcap or pcapng; - is standard input): who sent it, what it is about, the error that
    it gives, how long its answer took.

    The protocol of each connection is found from its bytes; --protocol or --port say it instead. Files of one rotation
    are one capture.
    """
    once(captures)
    choice = parse_choice(protocol, ports)
    form = output or ("table" if on_terminal() else "json")
    status = 0
    parted = captures_of(captures, separate=separate)
    for parts in parted:
        path = parts[0]
        table = FrameTable(console(), path if len(parted) > 1 else "") if form == "table" else None
        followed = FollowedCapture(parts, choice)
        bad: Counter[str] = Counter()
        for each in numbered(followed, describe=table is not None):
            if isinstance(each.item, Frame):
                _show(path, each, each.item, table)
                bad.update(check.kind for check in each.item.decoded.checks if check.status == "bad")
            status |= report(path, each.link, each.item)
        status |= followed.status
        if bad:
            say(f"{path}: {failed(bad)}")
            status |= strict
    return status


def _show(path: str, each: Numbered, frame: Frame, table: FrameTable | None) -> None:
    if table is None:
        print_json(frame_line(each.link, frame, path))
    else:
        table.frame(each.frame, each.connection, each.link, frame, each.facts)


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
