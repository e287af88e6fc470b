"""``wirekit messages``: the application messages of captures and of files that brokers store."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

import click

from wirekit.capture.files import check_capture, is_capture
from wirekit.capture.files.unpacking import packing_of
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
    say_without_topic,
    separate_option,
)
from wirekit.cli.common import (
    COLUMNS,
    STANDARD_INPUT,
    STANDARD_INPUT_FILE,
    cells,
    console,
    have_columns,
    need,
    on_terminal,
    padded,
    print_wrapped,
    say,
    strict_option,
)
from wirekit.cli.complaints import Complaints
from wirekit.cli.filters import Selection, selection_options
from wirekit.cli.numbered import numbered
from wirekit.cli.pipes import piped, reopenable
from wirekit.cli.selected_names import Names
from wirekit.cli.stored_selection import StoredMessages
from wirekit.cli.where import AT_ONCE, MessageRows, WaitingMessages, WhereMessages
from wirekit.conversation import Frame, Message
from wirekit.conversation.events import SHOWN
from wirekit.errors import Misuse, WireError, plural
from wirekit.pipeline.inputs import CAPTURE, lacks_topic, stored_kind, use_of
from wirekit.pipeline.messages import unplaced
from wirekit.registry import registry
from wirekit.stored import Piece
from wirekit.tables.columns import DECLARED, MILLIS
from wirekit.tables.records import records
from wirekit.times import moment
from wirekit.values import json_text, printable, readable

if TYPE_CHECKING:
    import pyarrow as pa


_HEAD = 64  # bytes; enough to tell a capture
MOST_OF_ROWS = 200
"""The least number of characters that a table shows of the rows in a message."""
PLAIN = re.compile(r"[\w./:@-]+")
"""Text that needs no quotation marks."""
MUCH = 2 << 20  # bytes from which columns are faster, including the time to load them


@click.command("messages")
@click.argument("files", nargs=-1, required=True, type=click.Path(readable=False), metavar="CAPTURE|SEGMENT...")
@choice_options
@selection_options
@click.option("--output", type=click.Choice(["table", "json"]), help="Default: table on a terminal, else json.")
@click.option(
    "--engine",
    type=click.Choice(["rows", "columns"]),
    help="Engine for log segments; both print the same. Default: columns for large ones, unless all messages are "
    "listed as a table, else rows.",
)
@road_option
@separate_option
@strict_option
@allow_cut_option
def command(
    files: tuple[str, ...],
    protocol: str,
    ports: tuple[str, ...],
    selection: Selection,
    output: str | None,
    engine: str | None,
    road: str,
    separate: bool,
    strict: bool,
    allow_cut: bool,
) -> int:
    """List the application messages in captures and log segments, including those in compressed sets and batches.

    CAPTURE and SEGMENT may be directories or patterns; - is standard input. Offsets are absolute; for Pulsar they are
    ledger:entry:batch_index. Messages with a wrong checksum are marked. In captures, selection options apply to the
    frame of a message, as in `wirekit frames`; Kafka frames with messages do not name a group, so select by --client
    instead. In segments, --topic, --since, --until, --errors and --where select by the message itself. A message is
    listed once for each frame that carries it: when it is produced, and when consumers or other brokers fetch it. For
    messages of __consumer_offsets, the table shows the groups and positions in them. `wirekit sql` writes messages as
    Parquet or CSV.

    \b
    wirekit messages --topic orders --where "direction = 'produced'" trace.pcap
    wirekit messages --since 09:30 --where "decode(value) LIKE '%refund%'" orders-0/
    wirekit sql "FROM messages WHERE topic = 'orders'" trace.pcap --to orders.parquet
    """
    choice = parse_choice(protocol, ports)
    output = output or ("table" if on_terminal() else "json")
    if engine == "columns":
        need("--engine columns", *COLUMNS)
    files = expanded(files)
    much = _size(files)
    show: Show = _Table() if output == "table" else _Json()
    unread = Unread()
    parted = captures_of(files, unread, separate=separate, stored=not selection.of_frames)
    status = unread.status
    for path in (parts[0] for parts in parted if selection.of_frames and len(parts) == 1):
        if not _is_capture(path):
            raise Misuse(
                f"{path} is not a capture, so {' and '.join(selection.of_frames)} cannot select its messages; "
                "use --topic, --since, --until, --errors or --where"
            )
    where = None if selection.where is None else WhereMessages(selection.where)
    without_topic: list[str] = []
    for parts in parted:
        path = parts[0]
        before, unplaced = show.bad, show.unplaced
        if len(parts) > 1 or _is_capture(path):
            status |= _captured(parts, choice, selection, where, show, road, allow_cut=allow_cut)
        else:
            with reopenable(path) as copy:
                at_once = output == "json" or selection.active
                chosen = engine or _engine(max(much, _size((copy,))), at_once=at_once)
                matching = StoredMessages(path, selection, where) if selection.active else None
                status |= _stored(path, copy, protocol, chosen, show, matching, without_topic)
        if show.bad > before:
            say(f"{path}: {plural(show.bad - before, 'message')} with a failed check")
            status |= strict
        if show.unplaced > unplaced:
            number = plural(show.unplaced - unplaced, "message")
            reason = "compressed data ends inside a message or is damaged, or offsets exceed 64 bits"
            say(f"{path}: {number} without an offset, because {reason}")
    say_without_topic(without_topic)
    if isinstance(show, _Table) and show.empty and not selection.active:
        say("no messages")
    return status


def _captured(
    parts: Parts,
    choice: Choice,
    selection: Selection,
    where: WhereMessages | None,
    show: Show,
    road: str,
    *,
    allow_cut: bool,
) -> int:
    """The messages of a capture."""
    complaints = Complaints.of(parts[0], choice, allow_cut=allow_cut)

    def take(link: Link, item: Item | None) -> list[Message]:
        complaints.take(link, item)
        messages = item.messages if isinstance(item, Frame) else []
        messages = [message for message in messages if selection.wants_topic(message.topic)]
        show.unplaced += unplaced(item, messages)
        return messages

    files = inputs_by_columns(parts, road)
    if files is not None:
        from wirekit.cli.connection_names import with_names

        named, lacking = with_names(selection, files, choice)
        if lacking is not None:
            status = lacking.report()
            say(f"{parts[0]}: no message matches; {lacking.names.text()}")
            return status
    if files is not None and named.by_columns:
        from wirekit.cli.filters_columns import Selected
        from wirekit.cli.messages_columns import MessageWindows

        selected = Selected(named) if selection.active else None
        windows = MessageWindows(files, choice, take, show, selected, where)
        with complaints:
            if windows.read():
                if selected is not None and not windows.shown:
                    say(f"{parts[0]}: no message matches; {selected.names.text()}")
                return complaints.status | windows.status
    followed = FollowedCapture(parts, choice)
    rows_of = MessageRows(followed.path)
    names, shown = Names(selection), 0

    def show_message(frame: Frame, message: Message) -> None:
        nonlocal shown
        show(followed.path, message)
        show.unplaced += unplaced(frame, [message])
        shown += 1

    live = any(piped(part) is not None for part in parts)
    waiting = None if where is None else WaitingMessages(where, show_message, at_once=1 if live else AT_ONCE)
    items = numbered(followed, describe=selection.active)
    with complaints:
        for each in names.counted(items) if selection.active else items:
            link, item = each.link, each.item
            rows = [] if waiting is None else rows_of.of(link, item)
            if item is not None and not selection.wants(each):
                continue
            if waiting is None:
                for message in take(link, item):
                    show(followed.path, message)
                    shown += 1
            elif isinstance(item, Frame):
                waiting.add(item, item.messages, rows, selection.wants_topic)
        if waiting is not None:
            waiting.settle()
    if selection.active and not shown:
        say(f"{followed.path}: no message matches; {names.text()}")
    return complaints.status | followed.status


class Show(Protocol):
    """Prints messages.

    Attributes:
        bad: the number of those with a failed check.
        unplaced: the number of those whose offset is unknown, because the rest of their batch is missing, or it exceeds
            64 bits.
    """

    bad: int
    unplaced: int

    def __call__(self, path: str, message: Message) -> None:
        """Prints a message."""

    def piece(self, path: str, piece: Piece) -> None:
        """Prints the messages of a piece of a stored file."""

    def batch(self, path: str, batch: pa.RecordBatch, others: Iterable[tuple[int, Message]]) -> None:
        """Prints the messages of a batch, and others, each before a row of the batch (its number)."""


class _Json:
    """Prints one line of JSON per message."""

    def __init__(self) -> None:
        self.bad = self.unplaced = 0

    def __call__(self, path: str, message: Message) -> None:
        sys.stdout.buffer.write(self._line(path, message))

    def piece(self, path: str, piece: Piece) -> None:
        for message in piece.messages:
            self.unplaced += message.offset is None
            self(path, message)
        if piece.batch is not None:
            self.unplaced += piece.batch["offset"].null_count
            self._write(self._pieces(piece.batch, {"file": path, **piece.fixed}))

    def batch(self, path: str, batch: pa.RecordBatch, others: Iterable[tuple[int, Message]]) -> None:
        from wirekit.compiler.columns.json_lines import with_others

        lines = ((row, self._line(path, message)) for row, message in others)
        self._write(with_others(self._pieces(batch, {"file": path}), lines))

    def _line(self, path: str, message: Message) -> bytes:
        self.bad += message.check == "bad"
        return json_text({"file": path, **message.to_json()}).encode() + b"\n"

    def _pieces(self, batch: pa.RecordBatch, fixed: dict[str, Any]) -> Iterator[memoryview]:
        """The lines of a batch, about a MiB at a time."""
        import pyarrow.compute as pc

        from wirekit.compiler.columns.json_lines import lines

        self.bad += pc.sum(pc.equal(batch["check"], "bad")).as_py() or 0
        return lines(batch, ["file", *SHOWN], fixed)

    def _write(self, pieces: Iterable[bytes | memoryview]) -> None:
        for text in pieces:
            sys.stdout.buffer.write(text)


class _Table:
    """Prints lines of fixed columns as messages arrive; on a narrow terminal, two lines per message without columns."""

    TOPIC = 28
    """Characters of a topic in a pipe or a narrow terminal; a wide one adds half of its columns beyond ``NARROW``."""
    NARROW = 110
    BESIDE, LEAST = 40, 24
    """On a narrow terminal: columns that key and value leave to other text, and the fewest that they get."""

    def __init__(self) -> None:
        self.bad = self.unplaced = 0
        self._console = console()
        beyond = self._console.width - self.NARROW if self._console.is_terminal else 0
        self._widths = (self.TOPIC + max(0, beyond) // 2, 4, 20, 23, 7, 3)
        self._narrow = self._console.is_terminal and beyond < 0
        self.empty = True

    def __call__(self, path: str, message: Message) -> None:
        if self.empty and not self._narrow:
            self._line(("topic", "part", "offset", "time", "codec", ""), "key → value", "bold")
        self.empty = False
        self.bad += message.check == "bad"
        mark = {"ok": "✓", "bad": "✗"}.get(message.check, "–")
        style = "yellow" if message.check == "bad" else ""
        topic = printable(message.topic or "?")
        partition = "" if message.partition is None else str(message.partition)
        offset = "" if message.offset is None else str(message.offset)
        if self._narrow:
            place = "  ".join(filter(None, (f"{topic}[{partition}]" if partition else topic, offset)))
            head = f"{mark} {place}  {_time(message.timestamp)}  {message.codec}"
            most = max(self._console.width - self.BESIDE, self.LEAST)
            for line in (head, f"    {_texts(message, most // 3, 2 * most // 3)}"):
                print_wrapped(self._console, line, style, indent=4)
            return
        columns = (_end_of(topic, self._widths[0]), partition, offset, _time(message.timestamp), message.codec, mark)
        self._line(columns, _texts(message, 24, 60), style)

    def piece(self, path: str, piece: Piece) -> None:
        for message in piece.all_messages():
            self.unplaced += message.offset is None
            self(path, message)

    def batch(self, path: str, batch: pa.RecordBatch, others: Iterable[tuple[int, Message]]) -> None:
        rows = enumerate(Piece(0, 0, batch=batch).all_messages())
        for _, message in merge(others, rows, key=itemgetter(0)):
            self(path, message)

    def _line(self, columns: tuple[str, ...], text: str, style: str) -> None:
        parts = [padded(cell[:width], width) for cell, width in zip(columns, self._widths, strict=True)]
        self._console.print(" ".join([*parts, text]), style=style or None, markup=False, soft_wrap=True)


def _end_of(text: str, width: int) -> str:
    """The end of a long name, which distinguishes the topics of a namespace."""
    if cells(text) <= width:
        return text
    text = text[1 - width :]
    while cells(text) >= width:
        text = text[1:]
    return f"…{text}"


def _time(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    time = moment(milliseconds * 1000)
    return f"{milliseconds} ms" if time is None else time.replace(tzinfo=None).isoformat(" ", "milliseconds")


def _texts(message: Message, of_key: int, of_value: int) -> str:
    """Key and value, up to these lengths; of a topic in which a broker stores rows of other tables, these rows."""
    rows = "; ".join(_rows(message))
    if rows:
        most = max(of_key + of_value, MOST_OF_ROWS)
        shown = rows if len(rows) <= most else f"{rows[:most]}… ({len(rows)} characters)"
        return f"{shown} → null" if message.value is None else shown
    sealed = " (encrypted)" if message.details.get("encrypted") else ""
    return f"{_shown(message.key, of_key)} → {_shown(message.value, of_value)}{sealed}"


def _rows(message: Message) -> Iterator[str]:
    evaluator = records(message.protocol)
    if not evaluator.holds_rows(message.topic):
        return
    for each in evaluator.embedded(message.topic, message.key, message.value):
        types = DECLARED[each.table].types
        for row in each.rows:
            yield " ".join(f"{name}={_field(value, types[name])}" for name, value in row.items() if value != "")


def _field(value: Any, kind: str) -> str:
    text = _time(value) if kind == MILLIS else value
    return text if isinstance(text, str) and PLAIN.fullmatch(text) else json_text(text)


def _shown(data: bytes | None, most: int) -> str:
    if data is None:
        return "null"
    text = readable(data)
    shown = data.hex() if text is None else repr(text)
    return shown if len(shown) <= most else f"{shown[:most]}… ({len(data)} bytes)"


def _stored(
    path: str,
    copy: str,
    protocol: str,
    engine: str,
    show: Show,
    matching: StoredMessages | None,
    without_topic: list[str],
) -> int:
    """Prints the messages of a file that a broker stores, which its name or its content shows.

    A new segment may be empty, no other file. ``without_topic`` receives the path if the messages have no topic.
    """
    kind = stored_kind(path)
    if os.path.isfile(copy) and not os.path.getsize(copy) and kind == CAPTURE:
        say(f"{path}: the file is empty")
        return 1
    names = [protocol] if protocol else [name for name in registry.protocols() if registry.protocol(name).stored]
    for key, read in _readers(names, engine):
        status, size, fits_kind = 0, 0, key == kind
        for piece in _ahead(read(copy)) if engine == "columns" else read(copy):
            fits_kind = fits_kind or piece.fits
            if not fits_kind:
                break
            size += piece.length
            show.piece(path, piece if matching is None else matching.among(piece))
            for problem in piece.problems:
                say(f"{path}: {problem}")
                status = 1
        if fits_kind:
            without_topic += [path] if size and lacks_topic(copy, key) else []
            if matching is not None and not matching.shown:
                say(f"{path}: {matching.text()}")
            return status
    say(f"{path}: {_not_known(path, copy, names)}")
    return 1


def _not_known(path: str, copy: str, names: list[str]) -> str:
    """Why a file is neither a capture nor a file that a broker stores."""
    try:
        check_capture(copy)
    except WireError as error:
        begins_as_known = error.protocol or error.hint
        if begins_as_known and stored_kind(path) == CAPTURE:
            return str(error)
    protocols = map(registry.protocol, names)
    layouts = [f"a file of {each.key(layout)}" for each in protocols for layout in each.stored]
    return f"expected {' or '.join(['a pcap or pcapng file', *layouts])}; {use_of(copy)}"


def _ahead(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Yields the same pieces, and reads the next piece in another thread while one is printed."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, pieces, None)
        while (piece := following.result()) is not None:
            following = pool.submit(next, pieces, None)
            yield piece


def _readers(names: list[str], engine: str) -> Iterator[tuple[str, Callable[[str], Iterator[Piece]]]]:
    """The key of each layout of stored files, and its reader."""
    for name in names:
        protocol = registry.protocol(name)
        for layout in protocol.stored:
            yield protocol.key(layout), protocol.reader(layout, columns=engine == "columns")


def _engine(size: int, *, at_once: bool) -> str:
    """The engine for stored files: columns for large ones whose messages are handled many at once, if installed."""
    return "columns" if at_once and size >= MUCH and have_columns() else "rows"


def _size(files: tuple[str, ...]) -> int:
    """The total size of all files, as far as known."""
    return sum(os.path.getsize(path) for path in files if os.path.isfile(path))


def _is_capture(path: str) -> bool:
    """Whether a file is a capture; of a pipe, only the first bytes are examined, and they stay in it.

    A file that the system refuses to read counts as one: reading it reports the error.
    """
    source = piped(path)
    if source is not None:
        head = source.peek(_HEAD)[:_HEAD]
        return packing_of(head) is not None or is_capture(head)  # nothing else is read compressed
    try:
        check_capture(STANDARD_INPUT_FILE if path == STANDARD_INPUT else path)
    except OSError:
        return True
    except WireError:
        return False
    return True
