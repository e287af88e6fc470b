"""``wirekit frames``: the frames of captures, as they are recognised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import click

from wirekit.capture.files import FRAGMENT
from wirekit.capture.links import Choice, Item, Link
from wirekit.capture.rotation import Parts
from wirekit.cli.captures import (
    FollowedCapture,
    Unread,
    allow_cut_option,
    captures_of,
    choice_options,
    expanded,
    inputs_by_columns,
    parse_choice,
    road_option,
    separate_option,
)
from wirekit.cli.common import console, failed, on_terminal, print_line, say, strict_option
from wirekit.cli.complaints import Complaints
from wirekit.cli.exchange import Exchange, exchange_of, show_exchange
from wirekit.cli.filters import Selection, chosen, selection_options
from wirekit.cli.frame_lines import frame_line
from wirekit.cli.numbered import Numbered, numbered
from wirekit.cli.pipes import piped
from wirekit.cli.selected_names import Names
from wirekit.cli.where import WhereFrames, in_order
from wirekit.conversation import Frame
from wirekit.display.frames import FrameTable
from wirekit.errors import plural
from wirekit.pipeline.inputs import Input
from wirekit.pipeline.summary import listed
from wirekit.values import shown, whole_number

PICTURES = ("tree", "hexdump", "raw")
"""Forms of output of one frame."""
NO_CONNECTION = 2
"""The status of a capture without the connection of ``--follow``; of the command, if no capture has it."""


@click.command("frames")
@click.argument("captures", nargs=-1, type=click.Path(readable=False), metavar="CAPTURE...")
@choice_options
@selection_options
@click.option("--follow", metavar="N", help="Show all frames and gaps of connection N.")
@click.option(
    "--frame",
    "places",
    multiple=True,
    metavar="[FILE:]N",
    help="Show the frame of this number, with its request or response.",
)
@click.option(
    "--output",
    type=click.Choice(["table", "json", *PICTURES]),
    help="Default: table on a terminal, else json. With --frame: tree (default on a terminal), hexdump, json, or raw "
    "(the bytes of the frame).",
)
@road_option
@separate_option
@strict_option
@allow_cut_option
def command(
    captures: tuple[str, ...],
    protocol: str,
    ports: tuple[str, ...],
    selection: Selection,
    follow: str | None,
    places: tuple[str, ...],
    output: str | None,
    road: str,
    separate: bool,
    strict: bool,
    allow_cut: bool,
) -> int:
    """List the frames of CAPTURE: sender, API, topic, error and latency.

    CAPTURE is a pcap or pcapng file, a directory or a pattern; - is standard input. wirekit recognises the protocol of
    each connection; --protocol or --port override it. Files of one rotation are read as one capture. Selection
    options may be repeated: a frame must match one value of every option given.

    \b
    wirekit frames --api produce --topic 'orders*' --slower-than 50ms trace.pcap
    wirekit frames --frame trace.pcap:17
    tcpdump -U -i any -w - port 9092 | wirekit frames -
    """
    if len(places) > 1:
        raise click.UsageError("--frame shows one frame; give it once")
    captures, file, number = _placed(captures, places[0] if places else None)
    captures = expanded(captures)
    choice = parse_choice(protocol, ports)
    _check_options(selection, follow, number, output)
    unread = Unread()
    parted = captures_of(captures, unread, separate=separate)
    if number is not None:
        parted = [parts for parts in parted if not file or file in parts]
        return _show_one(parted, choice, number, output or ("tree" if on_terminal() else "json"), road)
    form = output or ("table" if on_terminal() else "json")
    selection = selection if follow is None else replace(selection, links=(follow,))
    options = {"strict": strict, "allow_cut": allow_cut, "one_connection": follow is not None}
    statuses: list[int] = []
    for parts in parted:
        table = FrameTable(console(), parts[0] if len(parted) > 1 else "") if form == "table" else None
        files, listed = inputs_by_columns(parts, road), None
        if files is not None:
            listed = _listed_by_columns(files, choice, selection, table, **options)
        if listed is None:
            listed = _listed(FollowedCapture(parts, choice), selection, table, **options)
        statuses.append(listed)
    return max((status for status in statuses if status != NO_CONNECTION), default=NO_CONNECTION) or unread.status


def _placed(captures: tuple[str, ...], place: str | None) -> tuple[tuple[str, ...], str, int | None]:
    """The captures; and for ``--frame``, the file (if named) and the number."""
    file, _, digits = (place or "").rpartition(":")
    number = whole_number(digits)
    if place is not None and not number:
        raise click.BadParameter(
            f"{shown(place)} is neither N nor FILE:N; the table shows the numbers of frames", param_hint="--frame"
        )
    if file and captures and file not in captures:
        raise click.UsageError(f"{file} is not among the captures; give --frame {file}:{digits} alone")
    captures = captures or ((file,) if file else ())
    if not captures:
        raise click.UsageError("name a capture, or - for standard input")
    return captures, file, number


def _check_options(selection: Selection, follow: str | None, number: int | None, output: str | None) -> None:
    if number is None and output in PICTURES:
        raise click.UsageError(f"--output {output} needs --frame N")
    if number is not None and (output == "table" or follow is not None or selection.active):
        raise click.UsageError(
            "--frame N shows one frame by its number; leave out --output table and selection options"
        )
    if follow is not None and selection.links:
        raise click.UsageError("give --follow or --connection, not both")


def _show_one(parted: list[Parts], choice: Choice, number: int, form: str, road: str) -> int:
    if len(parted) > 1:
        raise click.UsageError("--frame N needs exactly one capture; name one, or give --frame FILE:N")
    path = parted[0][0]
    exchange, status = _exchange(parted[0], choice, number, road)
    show_exchange(exchange, number, form, path)
    with Complaints.of(path, choice) as complaints:
        for each in exchange[1:]:
            if each is not None:
                complaints.take(exchange.link, each)
    return complaints.status | status


def _exchange(parts: Parts, choice: Choice, number: int, road: str) -> tuple[Exchange, int]:
    """A frame with its request and response, and the exit status after reading as far."""
    if (files := inputs_by_columns(parts, road)) is not None:
        from wirekit.cli.exchange_columns import ExchangeWindows

        windows = ExchangeWindows(files, choice, number)
        if windows.read() and windows.exchange is not None:
            return windows.exchange, windows.status
    followed = FollowedCapture(parts, choice)
    return exchange_of(followed, number), followed.status


def _listed(
    followed: FollowedCapture,
    selection: Selection,
    table: FrameTable | None,
    *,
    strict: bool,
    allow_cut: bool,
    one_connection: bool,
) -> int:
    """Prints the frames that match, one per line; with ``one_connection``, also lines for the bytes between them.

    Returns:
        The exit status; ``NO_CONNECTION`` if ``one_connection`` and the capture does not have the connection.
    """
    bad: Counter[str] = Counter()
    shown = 0
    complaints = Complaints.of(followed.path, followed.choice, allow_cut=allow_cut)
    live = any(piped(part) is not None for part in followed.parts)
    names = Names(selection)
    items = chosen(
        names.counted(numbered(followed, describe=table is not None or selection.active)),
        selection,
        None if selection.where is None else WhereFrames(selection.where),
        live=live,
    )

    def complained() -> Iterator[Numbered]:
        for each in items:
            in_table = table is not None and isinstance(each.item, Frame)  # its row has the reason
            complaints.take(each.link, each.item, silent=in_table)
            if each.item is not None:
                yield each

    with complaints:
        for each in complained() if table is None or live else in_order(complained()):
            shown += 1
            if isinstance(each.item, Frame):
                _show(followed.path, each, each.item, table)
                bad.update(check.kind for check in each.item.decoded.checks if check.status == "bad")
            elif one_connection and table is not None and each.item is not None:
                table.undecoded(each.connection, each.link, each.item)
    status = complaints.status | followed.status
    if selection.active and not shown:
        return _none_matches(followed.path, selection, names, status, one_connection=one_connection)
    return status | _summed_up(followed.path, bad, shown, status, followed.skipped, strict=strict)


def _none_matches(path: str, selection: Selection, names: Names, status: int, *, one_connection: bool) -> int:
    """Reports that no frame matches, or with ``one_connection``, no connection; returns the exit status."""
    if one_connection and not names.connected and not status:
        has = plural(names.connections, "connection")
        say(f"{path} has no connection {selection.links[0] or repr('')}; it has {has}")
        return NO_CONNECTION
    say(f"{path}: no frame matches; {names.text()}")
    return status


def _summed_up(path: str, bad: Counter[str], shown: int, status: int, skipped: Counter[str], *, strict: bool) -> int:
    """Reports failed checks, fragments, and that nothing was shown; returns the exit status."""
    if bad:
        say(f"{path}: {failed(bad)}")
    elif not shown and not status:
        say(f"{path}: no connection has frames{'; packets without TCP: ' if skipped else ''}{listed(skipped)}")
    if skipped[FRAGMENT]:
        say(f"{path}: {plural(skipped[FRAGMENT], 'IP fragment')} not read: their datagrams are incomplete or not TCP")
    return int(bool(bad) and strict)


def _listed_by_columns(
    files: tuple[Input, ...],
    choice: Choice,
    selection: Selection,
    table: FrameTable | None,
    *,
    strict: bool,
    allow_cut: bool,
    one_connection: bool,
) -> int | None:
    """Prints the frames that match, as ``_listed`` does; None if objects must read the capture."""
    from wirekit.cli.connection_names import with_names
    from wirekit.cli.filters_columns import selected_by_columns
    from wirekit.cli.frames_columns import FrameWindows
    from wirekit.cli.table_columns import TableWindows

    path = files[0].name
    named, lacking = with_names(selection, files, choice)
    selected = selected_by_columns(named)
    if selected is None:
        return None
    if lacking is not None:
        return _none_matches(path, selection, lacking.names, lacking.report(), one_connection=one_connection)
    with Complaints.of(path, choice, allow_cut=allow_cut) as complaints:

        def take(link: Link, item: Item | None) -> None:
            complaints.take(link, item, silent=table is not None and isinstance(item, Frame))  # its row has the reason

        windows = (
            FrameWindows(files, choice, take, selected if selection.active else None)
            if table is None
            else TableWindows(files, choice, selected, take, table, one_connection=one_connection)
        )
        if not windows.read():
            return None
    status = complaints.status | windows.status
    if selection.active and not windows.shown:
        return _none_matches(path, selection, selected.names, status, one_connection=one_connection)
    skipped = windows.summary.total().skipped
    return status | _summed_up(path, windows.bad, windows.shown, status, skipped, strict=strict)


def _show(path: str, each: Numbered, frame: Frame, table: FrameTable | None) -> None:
    if table is None:
        print_line(frame_line(each.link, frame, path))
    else:
        table.frame(each.frame, each.connection, each.link, frame, each.facts)
