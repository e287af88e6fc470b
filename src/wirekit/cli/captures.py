"""Reads captures for the commands: options that choose the protocol, and reports on unreadable parts."""

from __future__ import annotations

import heapq
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from wirekit.capture.files import Capture, Damaged, Skipped, open_capture, piped_capture, segments
from wirekit.capture.files.fragments import Fragments
from wirekit.capture.follow import follow
from wirekit.capture.links import Choice, Item, Link
from wirekit.capture.rotation import Parts, rotations
from wirekit.capture.tcp import CLOCK_STEP_US, Segment
from wirekit.cli.arguments import KeyType
from wirekit.cli.common import COLUMNS, STANDARD_INPUT, STANDARD_INPUT_FILE, need, once, say
from wirekit.cli.pipes import piped, reopenable
from wirekit.conversation import BEFORE_FIRST, ENDED_INSIDE, Frame, Quarantined
from wirekit.errors import Misuse, WireError, plural
from wirekit.pipeline.inputs import (
    CAPTURE,
    Input,
    advised,
    captures,
    find_inputs,
    joined_inputs,
    kind_of,
    lacks_topic,
    matching,
    objects_of,
)
from wirekit.pipeline.roads import by_columns, captures_by_columns
from wirekit.pipeline.summary import UNASKED, kind_of_reason, of_other_links, unasked
from wirekit.registry import BUILT_IN, OF_YOUR_OWN, WITHOUT_STREAM, registry
from wirekit.storage import is_remote, local
from wirekit.values import shown, whole_number

LARGEST_PORT = 1 << 16
PROTOCOL_HELP = "Protocol of all connections. joyqueue is JMQ4 as peers speak it; jmq4 follows its document literally."


class _PortType(click.ParamType):
    """``PORT=PROTOCOL``; a shell completes the protocol."""

    name = "port"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        port, equals, begun = incomplete.partition("=")
        names = registry.protocols() if equals else ()
        return [CompletionItem(f"{port}={name}") for name in names if name.startswith(begun)]


def choice_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --protocol and --port."""
    port = click.option(
        "--port", "ports", multiple=True, type=_PortType(), metavar="PORT=P", help="Protocol on a server port."
    )
    protocol = click.option("--protocol", default="", type=KeyType(protocols=True), metavar="P", help=PROTOCOL_HELP)
    return protocol(port(command))


def parse_choice(protocol: str, ports: tuple[str, ...]) -> Choice:
    """The choice that the options make.

    Raises:
        UsageError: an option is invalid, or two choose the protocol of one connection.
    """
    if protocol and ports:
        raise click.UsageError("--protocol applies to all connections; leave out --protocol or --port")
    chosen: dict[int, str] = {}
    for pair in ports:
        digits, equals, name = pair.partition("=")
        port = whole_number(digits) or 0
        if not equals or not 0 < port < LARGEST_PORT:
            raise click.BadParameter(
                f"{shown(pair)} is not PORT=PROTOCOL, as in --port 9092=kafka", param_hint="--port"
            )
        if chosen.setdefault(port, _of_connections(name, "--port")) != name:
            text = f"the port {port} is given twice, for {chosen[port]} and for {name}; give it once"
            raise click.BadParameter(text, param_hint="--port")
    return Choice(protocol and _of_connections(protocol, "--protocol"), chosen)


def _of_connections(name: str, option: str) -> str:
    """The name of a protocol, if it has connections."""
    if name not in BUILT_IN or name in WITHOUT_STREAM:
        protocols = [each for each in registry.protocols() if registry.protocol(each).client]
        if name not in protocols:
            text = f"{shown(name)} is not a protocol of connections; choose from {', '.join(protocols)}; {OF_YOUR_OWN}"
            raise click.BadParameter(text, param_hint=option)
    return name


def no_capture(path: str, error: WireError | OSError) -> str:
    """Why a file cannot be read as a capture, and the command that can read it."""
    if isinstance(error, OSError):
        place = "" if error.filename in (None, path) else f"{error.filename}: "  # such as that of temporary files
        return f"{place}{error.strerror or error}"
    if (is_remote(path) or os.path.isfile(path)) and kind_of(path) != CAPTURE:
        error.hint = "`wirekit messages` shows the messages of a log segment, `wirekit inspect` checks its directory"
    return str(advised(error, path))


separate_option = click.option(
    "--separate", is_flag=True, help="Read each file as a separate capture, even if files are parts of a rotation."
)


allow_cut_option = click.option(
    "--allow-cut",
    is_flag=True,
    help="Exit with status 0 even if the capture begins or ends in the middle of connections.",
)


CUT = {UNASKED, *map(kind_of_reason, (BEFORE_FIRST, ENDED_INSIDE))}
"""Reasons for undecoded bytes at the start or end of a capture in the middle of a connection, see ``is_cut``."""


def is_cut(link: Link, item: Item | None) -> bool:
    """Whether bytes are not decoded only because their connection begins or ends there in the capture.

    These are a response whose request was before the capture, and a part of a frame at either end.
    """
    if isinstance(item, Frame | Quarantined) and item.reason in (BEFORE_FIRST, ENDED_INSIDE):
        return True
    return isinstance(item, Frame) and unasked(link, item)


road_option = click.option(
    "--road",
    type=click.Choice(["auto", "columns", "objects"]),
    default="auto",
    help="How to read captures; the decoded content is the same. columns: many frames at once, in arrays; "
    "objects: frame by frame; auto: columns for large captures (default).",
)


def inputs_by_columns(parts: Parts, road: str) -> tuple[Input, ...] | None:
    """The files of a capture that columns may read window by window; None where objects must, packet by packet."""
    if road == "objects" or any(piped(name) for name in parts):
        return None
    with reopenable_files(parts) as files:  # there is no copy
        if not captures_by_columns(files, road):
            return None
    need("--road columns", *COLUMNS)
    return files


def expanded(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The names of inputs with each local pattern replaced by the paths that match it.

    Raises:
        UsageError: standard input is named twice.
        Misuse: no path matches a pattern.
        OSError: a path does not exist.
    """
    once(paths)
    return tuple(
        each
        for path in paths
        for each in ([path] if path == STANDARD_INPUT or is_remote(path) else matching(local(path)))
    )


class Unread:
    """Reports files and directories in directories that the system refuses to read, each once.

    Attributes:
        status: 1 after such a report.
    """

    def __init__(self) -> None:
        self.status = 0
        self._lines: set[str] = set()

    def __call__(self, error: OSError) -> None:
        line = f"{error.filename}: {error.strerror}"
        if line not in self._lines:
            say(line)
        self._lines.add(line)
        self.status = 1


def captures_of(paths: Sequence[str], unread: Unread, *, separate: bool, stored: bool = False) -> list[Parts]:
    """The captures that files are parts of; reports on standard error which files are read as one.

    A URI may be a pattern, or the prefix of many objects; a directory is searched for captures, with ``stored`` for the
    files of brokers as well.
    """
    names = [each for path in paths for each in _files_at(path, unread, stored=stored)]
    parted: list[Parts] = [(path,) for path in names] if separate else rotations(names)
    for parts in parted:
        if len(parts) > 1:
            say_joined(parts)
    return parted


def _files_at(path: str, unread: Unread, *, stored: bool) -> list[str]:
    if not is_remote(path):
        if not os.path.isdir(path):
            return [path]
        inputs = find_inputs([path], separate=True, unread=unread)
        names = [each.name for each in inputs if stored or each.kind == CAPTURE]
        if not names:
            raise Misuse(
                f"nothing to read in {path}; it has log segments, which have no frames; `wirekit messages` lists their "
                "messages, and `wirekit sql` queries them"
            )
        return names
    objects = [each.name for each in objects_of(path)]
    if not objects:
        raise Misuse(f"nothing to read in {path}; pass an object, or a prefix of captures")
    return objects


def say_joined(parts: Parts) -> None:
    """Reports that files are read as one capture."""
    more = plural(len(parts) - 1, "file")
    say(f"{parts[0]}: read as one capture with {more} up to {parts[-1]}; --separate reads each by itself")


def say_without_topic(names: Sequence[str]) -> None:
    """Reports stored files whose messages have no topic."""
    if names:
        more = f" and {plural(len(names) - 1, 'more file')}" if len(names) > 1 else ""
        say(f"{names[0]}{more}: topic unknown; a broker stores it only in the name of the directory, such as orders-0")


@contextmanager
def inputs_of(names: Sequence[str], unread: Unread, *, separate: bool) -> Iterator[tuple[Input, ...]]:
    """The captures and stored files of files and directories, within the block: standard input is copied to a file."""
    for name in names:
        if not is_remote(name) and Path(local(name)).is_fifo():
            raise Misuse(f"{name} is a pipe; save it to a file first, or pass it as standard input: - < {name}")
    with reopenable(STANDARD_INPUT) if STANDARD_INPUT in names else nullcontext(STANDARD_INPUT) as copy:
        paths = (copy if name == STANDARD_INPUT else name for name in names)
        inputs = find_inputs(paths, separate=separate, unread=unread)
        for parts in captures(inputs):
            if len(parts) > 1:
                say_joined(tuple(each.name for each in parts))
        inputs = tuple(replace(each, name=STANDARD_INPUT) if each.name == copy else each for each in inputs)
        say_without_topic([each.name for each in inputs if each.size and lacks_topic(each.path, each.kind)])
        yield inputs


@contextmanager
def reopenable_files(parts: Parts) -> Iterator[tuple[Input, ...]]:
    """The files of a capture, within the block: a pipe is copied to a file.

    Raises:
        OSError: a file does not exist, a pipe cannot be opened, or its copy does not fit on the disk.
    """
    with ExitStack() as copies:
        paths = [copies.enter_context(reopenable(name)) for name in parts]
        yield tuple(replace(each, name=name) for each, name in zip(joined_inputs([paths]), parts, strict=True))


def open_named(name: str) -> Capture:
    """Opens a capture; a pipe is read as bytes arrive, and output is flushed before each wait.

    Raises:
        WireError, OSError: as for ``open_capture``.
    """
    source = piped(name)
    if source is not None:
        return piped_capture(source, name, waiting=sys.stdout.flush, stopped=lambda: source.stopped)
    return open_capture(STANDARD_INPUT_FILE if name == STANDARD_INPUT else name, name=name)


def read_segments(capture: Capture, number: int, fragments: Fragments) -> Iterator[Segment | Skipped | Damaged]:
    """The TCP segments and other contents of a file of a capture, in its order; by columns where that is faster."""
    if not capture.piped and by_columns(capture.size, compiles=False):
        need("reading packets by columns", *COLUMNS)
        from wirekit.road import packets

        return packets.segments(capture, number, fragments=fragments)
    return segments(capture, number, fragments=fragments)


def by_time(segments: Iterator[Segment]) -> Iterator[Segment]:
    """The segments of the files of a capture in the order of time.

    A segment is held until no older one can follow. Where the clock was set back, the order is that of the file.
    """
    heap: list[tuple[int, int, Segment]] = []
    before = latest = -sys.maxsize
    for number, each in enumerate(segments):
        if before - each.time_us > CLOCK_STEP_US:
            yield from (segment for _, _, segment in sorted(heap))
            heap.clear()
            latest = each.time_us
        before, latest = each.time_us, max(latest, each.time_us)
        heapq.heappush(heap, (each.time_us, number, each))
        while heap[0][0] < latest - CLOCK_STEP_US:
            yield heapq.heappop(heap)[2]
    yield from (segment for _, _, segment in sorted(heap))


class FollowedCapture:
    """The items of one capture, connection by connection.

    A file that cannot be read, or not to its end, or whose damage was skipped, is reported on standard error, with the
    byte.

    Args:
        parts: the names of its files, in order; ``-`` is standard input.
        choice: how protocols are chosen.

    Attributes:
        path: the name of the capture: its first file.
        status: 1 after such a report, or if no packet has a supported link type; final when all items are taken.
        skipped: the number of packets without a TCP segment, by reason; final when all items are taken.
    """

    def __init__(self, parts: Parts, choice: Choice) -> None:
        self.parts = parts
        self.path = parts[0]
        self.choice = choice
        self.status = 0
        self.skipped: Counter[str] = Counter()

    def __iter__(self) -> Iterator[tuple[Link, Item | None]]:
        segments = self._segments()
        live = any(piped(name) for name in self.parts)
        return follow(segments if live else by_time(segments), self.choice)

    def _segments(self) -> Iterator[Segment]:
        fragments = Fragments()
        any_segment = False
        for number, name in enumerate(self.parts):
            try:
                capture = open_named(name)
            except (WireError, OSError) as error:
                say(f"{name}: {no_capture(name, error)}")
                self.status = 1
                continue
            with capture:
                for each in self._of_file(capture, number, fragments):
                    any_segment = True
                    yield each
        self.skipped.update(each.reason for each in fragments.end())
        reason = "" if any_segment else of_other_links(self.skipped)
        if reason:
            say(f"{self.path}: {reason}")
            self.status = 1

    def _of_file(self, capture: Capture, number: int, fragments: Fragments) -> Iterator[Segment]:
        for each in read_segments(capture, number, fragments):
            if isinstance(each, Segment):
                yield each
            elif isinstance(each, Damaged):
                say(f"{capture.path}: {each}")
                self.status = 1
        self.skipped += capture.skipped
        if capture.damage is not None:
            say(f"{capture.path}: {capture.damage}")
            self.status = 1
