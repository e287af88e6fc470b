"""``wirekit inspect``: what captures hold, counted."""

from __future__ import annotations

from collections.abc import Iterator

import click

from wirekit.capture.files import Capture, Skipped, open_capture, segments
from wirekit.capture.follow import Choice, follow
from wirekit.capture.tcp import Segment
from wirekit.cli.captures import choice_options, parse_choice
from wirekit.cli.common import console, on_terminal, print_json
from wirekit.errors import WireError
from wirekit.pipeline.summary import FileSummary, Summary, show


@click.command("inspect")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@choice_options
@click.option("--output", type=click.Choice(["text", "json"]), help="By default text on a terminal, else JSON.")
def command(captures: tuple[str, ...], protocol: str, ports: tuple[str, ...], output: str | None) -> int:
    """Say what CAPTURE holds: connections, calls by API, messages, failed checks, bytes that nobody could decode."""
    choice = parse_choice(protocol, ports)
    summary = Summary()
    for path in captures:
        _count(path, choice, summary.file(path))
    if (output or ("text" if on_terminal() else "json")) == "json":
        print_json(summary.to_json())
    else:
        show(summary, console())
    return 1 if summary.quarantined or summary.unreadable or summary.incomplete else 0


def _count(path: str, choice: Choice, count: FileSummary) -> None:
    try:
        capture = open_capture(path)
    except WireError as error:
        count.unreadable = str(error)
        return
    with capture:
        for link, item in follow(_segments(capture, count), choice):
            count.count(link, item)
        if capture.damage is not None:
            count.damaged = str(capture.damage)


def _segments(capture: Capture, count: FileSummary) -> Iterator[Segment]:
    for each in segments(capture):
        if isinstance(each, Skipped):
            count.skipped[each.reason] += 1
        else:
            count.seen(each.time_us)
            yield each
