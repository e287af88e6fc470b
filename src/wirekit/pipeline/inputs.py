"""The captures and stored files that a run reads: their order and their identification."""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import re
import stat
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from wirekit.capture.files import Place, is_capture
from wirekit.capture.files.unpacking import LONGEST_MAGIC, packing_of
from wirekit.capture.links import Choice
from wirekit.capture.rotation import CAPTURE_NAME, rotations
from wirekit.errors import Misuse, WireError
from wirekit.registry import load_object, registry
from wirekit.storage import Status, in_parallel, is_remote, local, objects, open_binary, status
from wirekit.times import moment

if TYPE_CHECKING:
    from wirekit.pipeline.carried import Continuation

CAPTURE = "capture"
KINDS = (".pcap", ".pcapng", ".cap")
HEAD = 64
"""The number of bytes that identify a capture."""
FRAMES_AND_DUMPS = "`wirekit decode` reads single frames and hex dumps"
_PIECE = 4 << 20
MOST_NAMES = 5
"""The maximum number of names in a warning."""


class NothingToReadError(Misuse):
    """There are no captures and no stored files, in a place where some may appear later."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file of a run: a capture, or a file that a broker stores.

    Attributes:
        number: its ordinal in the run, from 0.
        name: its name as given by the caller, for messages.
        path: an absolute path, or a URI.
        size: size in bytes when the run began.
        mtime_ns: its modification time then, nanoseconds since the epoch.
        kind: ``CAPTURE``, or the key of a stored file's layout.
        first: the number of the first file of its capture; None if it is the first.
    """

    number: int
    name: str
    path: str
    size: int
    mtime_ns: int
    kind: str = CAPTURE
    first: int | None = None

    @property
    def capture(self) -> int:
        """The number of the first file of its capture."""
        return self.number if self.first is None else self.first


class Split(NamedTuple):
    """A part of a capture file: the place of its first record, and the offset after its last one."""

    start: Place
    end: int


class FlowShare(NamedTuple):
    """One of several shares of the flows of a capture: its number from 0, and the number of shares."""

    number: int
    shares: int


@dataclass(frozen=True, slots=True)
class Job:
    """The inputs and options of a run, as plain values that can be sent to workers.

    Attributes:
        inputs: the files, captures first; ``inputs[n].number == n``.
        protocol: the protocol of every connection, "" to recognise it from the bytes.
        ports: {server port: protocol}.
        raw: whether ``quarantine`` contains the bytes themselves.
        values: whether ``frames`` contains the values of frames.
        road: how the serial driver reads captures: ``objects``, ``columns`` for plain connections by columns, or
            ``auto``; the tables are the same.
        continuations: captures with files in other bundles, by the number of their first file in this one.
    """

    inputs: tuple[Input, ...]
    protocol: str = ""
    ports: Mapping[int, str] = field(default_factory=dict)
    raw: bool = True
    values: bool = False
    road: str = "auto"
    continuations: Mapping[int, Continuation] = field(default_factory=dict)

    @property
    def choice(self) -> Choice:
        """The caller's choice of protocols."""
        return Choice(self.protocol, self.ports)

    @property
    def captures(self) -> tuple[Input, ...]:
        """The captures among the inputs."""
        return tuple(each for each in self.inputs if each.kind == CAPTURE)

    @property
    def stored(self) -> tuple[Input, ...]:
        """The inputs that a broker stores."""
        return tuple(each for each in self.inputs if each.kind != CAPTURE)

    @property
    def size(self) -> int:
        """Size of all files in bytes."""
        return sum(each.size for each in self.inputs)

    def capture_name(self, number: int) -> str:
        """The name of a file's capture, which is the name of its first file."""
        first = self.inputs[number].capture
        continuation = self.continuations.get(first)
        return self.inputs[first].name if continuation is None else continuation.name

    def is_alone(self, number: int) -> bool:
        """Whether the capture of this file has no other file."""
        neighbours = self.inputs[max(number - 1, 0) : number + 2]
        first = self.inputs[number].capture
        alone = sum(each.capture == first for each in neighbours) == 1
        return alone and self.capture_name(number) == self.inputs[number].name

    def configuration(self) -> dict[str, Any]:
        """The options that the tables depend on, in addition to the inputs, as the manifest stores them."""
        ports = {str(port): name for port, name in sorted(self.ports.items())}
        return {"protocol": self.protocol, "ports": ports, "raw": self.raw, "values": self.values}


def _warn_of_unread(error: OSError) -> None:
    warnings.warn(f"{error.filename}: {error.strerror}", RuntimeWarning, stacklevel=3)


def find_inputs(
    paths: Iterable[str | os.PathLike[str]],
    *,
    separate: bool = False,
    unread: Callable[[OSError], None] = _warn_of_unread,
) -> tuple[Input, ...]:
    """The captures in files and directories, followed by the files that brokers store.

    A file that is named directly may have any name; its content is examined if its name is not that of a protocol's
    stored files. In a directory or a prefix, and those in it, two kinds of files are read, in the order of their names:
    ``*.pcap``, ``*.pcapng`` and ``*.cap``, also with a number, ``.gz``, ``.zst`` or the like after it, and files with
    the names of a protocol's stored files. A file that is named twice is read once. The files of one rotation follow
    each other, in the order of their times. Pipes, sockets, dangling links and links to directories in a directory are
    skipped with a RuntimeWarning.

    Args:
        paths: files and directories, URIs of objects and prefixes, and patterns of both (``s3://bucket/2026/*.pcap``).
        separate: whether each file is a separate capture, even if it is a part of a rotation.
        unread: called with the error for each file or directory in a directory that the system refuses to read; the
            others are read. By default a RuntimeWarning.

    Raises:
        Misuse: a path is not a regular file (a pipe can be read only once).
        NothingToReadError: there is nothing to read.
        OSError: a path does not exist, or is a directory that cannot be read.
    """
    statuses: dict[str, Status] = {}
    names = {text if is_remote(text) else local(text): None for text in map(_text, paths)}
    for name in names:
        for each in _captures(name, unread):
            statuses.setdefault(each.name if is_remote(each.name) else os.path.realpath(each.name), each)
    if not statuses:
        where = f" in {', '.join(names)}" if names else ""
        raise NothingToReadError(f"nothing to read{where}; {_advice(names)}")
    kinds_of = {each.name: stored_kind(each.name) for each in statuses.values()}
    unknown = [name for name, kind in kinds_of.items() if kind == CAPTURE and (name in names or not is_input(name))]
    kinds_of.update(zip(unknown, in_parallel(kind_of, unknown), strict=True))
    files = [name for name, kind in kinds_of.items() if kind == CAPTURE]
    parted = [(name,) for name in files] if separate else rotations(files)
    parted += [(name,) for name, kind in kinds_of.items() if kind != CAPTURE]
    return _inputs(parted, {each.name: each for each in statuses.values()}, kinds_of)


def _advice(names: Iterable[str]) -> str:
    """Advice for directories without readable files."""
    kinds = f"captures ({', '.join(f'*{kind}' for kind in KINDS)}) or log segments (<20 digits>.log)"
    return next(filter(None, map(tables_around, names)), f"pass files, or directories that hold {kinds}")


def tables_around(name: str) -> str:
    """Advice for a directory with tables of the pipeline, and for a directory or a file in it; "" for others."""
    if is_remote(name):
        return ""
    with suppress(ModuleNotFoundError):  # without pyarrow there are no tables
        from wirekit.pipeline.output import is_lake

        for lake in (name, *(os.path.normpath(os.path.join(name, *up)) for up in ([".."], ["..", ".."]))):
            if is_lake(lake):
                return f"{lake} has tables of `wirekit pipeline`; `wirekit sql QUERY {lake}` queries them"
    return ""


def advised(error: WireError, path: str) -> WireError:
    """The error of a file that is not a capture, with the command or the step that helps, if it has no hint yet."""
    if not (error.protocol or error.hint):
        error.hint = use_of(path)
    return error


def use_of(path: str) -> str:
    """The command that can read a file which is not a capture and has no messages, or what to do before."""
    layout = stored_kind(path, messages=False)
    if layout != CAPTURE:
        return f"`wirekit decode` shows a file of {layout}, `wirekit inspect` checks its directory"
    if is_remote(path) or os.path.isfile(path):
        with suppress(OSError), open_binary(path) as file:
            if packing_of(file.peek(LONGEST_MAGIC)[:LONGEST_MAGIC]) is not None:
                layout = stored_kind(os.path.splitext(path)[0], messages=False)
                if layout != CAPTURE:
                    return f"of compressed files, only captures are read; decompress this file of {layout}"
                return "of compressed files, only captures are read"
    return FRAMES_AND_DUMPS


def _text(path: object) -> str:
    """A path as text."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(name := os.fspath(path), str):
        hint = "; convert it with os.fsdecode" if isinstance(path, bytes) else ""
        raise Misuse(f"a path must be text or a pathlib.Path, not {type(path).__name__}{hint}")
    return name


def joined_inputs(captures: Iterable[Sequence[str]]) -> tuple[Input, ...]:
    """The captures in a list of known file names, in order."""
    parted = [[local(name) for name in names] for names in captures]
    names = [name for names in parted for name in names]
    return _inputs(parted, dict(zip(names, in_parallel(status, names), strict=True)), {})


def _inputs(
    parted: Iterable[Sequence[str]], statuses: Mapping[str, Status], kinds: Mapping[str, str]
) -> tuple[Input, ...]:
    inputs: list[Input] = []
    for names in parted:
        first = len(inputs)
        for name in names:
            file_status = statuses[name]
            beginning = first if len(inputs) > first else None
            path = name if is_remote(name) else os.path.abspath(name)
            kind = kinds.get(name, CAPTURE)
            inputs.append(Input(len(inputs), name, path, file_status.size, file_status.mtime_ns, kind, beginning))
    return tuple(inputs)


def captures(inputs: Iterable[Input]) -> list[tuple[Input, ...]]:
    """The files of each capture, and each stored file."""
    return [tuple(parts) for _, parts in groupby(inputs, key=attrgetter("capture"))]


def renumbered(captures: Iterable[Sequence[Input]]) -> tuple[Input, ...]:
    """The files of some captures, renumbered from 0."""
    inputs: list[Input] = []
    for files in captures:
        first = len(inputs)
        for each in files:
            inputs.append(replace(each, number=len(inputs), first=first if len(inputs) > first else None))
    return tuple(inputs)


def stored_kind(name: str, *, messages: bool = True) -> str:
    """The key of the layout of a stored file with this name; ``CAPTURE`` if no protocol stores such a file.

    Args:
        messages: whether to return only layouts of files of messages.
    """
    base = os.path.basename(name)
    for protocol in map(registry.protocol, registry.protocols()):
        for layout, names in protocol.stored_names.items():
            if re.fullmatch(names, base) and (layout in protocol.stored or not messages):
                return protocol.key(layout)
    return CAPTURE


def lacks_topic(path: str, kind: str) -> bool:
    """Whether messages of a stored file have no topic, because its path should have it and does not."""
    protocol, _, layout = kind.partition(".")
    place = registry.protocol(protocol).stored_topics.get(layout) if kind != CAPTURE else None
    return place is not None and load_object(place)(path) is None


def kind_of(name: str) -> str:
    """The kind of a file by its name, or by its content; ``CAPTURE`` if neither decides."""
    kind = stored_kind(name)
    if kind != CAPTURE:
        return kind
    try:
        with open_binary(name) as source:
            head = source.peek(HEAD)[:HEAD]
        if not head or packing_of(head) is not None or is_capture(head):
            return CAPTURE
        for protocol in map(registry.protocol, registry.protocols()):
            for layout in protocol.stored:
                first = next(protocol.reader(layout)(name), None)
                if first is not None and first.fits:
                    return protocol.key(layout)
    except OSError:
        pass  # reported where the file is read
    return CAPTURE


def _captures(name: str, unread: Callable[[OSError], None]) -> Iterator[Status]:
    if is_remote(name):
        yield from objects_of(name)
        return
    for path in matching(name):
        yield from _in_path(path, unread)


def matching(name: str) -> list[str]:
    """The local path of this name if it exists, otherwise the paths that it matches as a pattern, in order.

    Raises:
        NothingToReadError: no path matches the pattern.
        OSError: the path does not exist.
    """
    if os.path.exists(name):
        return [name]
    if not glob.has_magic(name):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    paths = sorted(glob.glob(name, recursive=True))
    if not paths:
        raise NothingToReadError(f"nothing matches {name}")
    return paths


def _in_path(name: str, unread: Callable[[OSError], None]) -> Iterator[Status]:
    if os.path.isfile(name):
        yield status(name)
        return
    if not os.path.isdir(name):
        raise Misuse(f"{name} is neither a file nor a directory; save it to a file first")
    irregular: list[str] = []
    links: list[str] = []

    def without(error: OSError) -> None:
        if error.filename == name:
            raise error
        unread(error)

    for folder, folders, files in os.walk(name, onerror=without):
        folders.sort()
        links += filter(os.path.islink, (os.path.join(folder, each) for each in folders))
        for file in filter(is_input, sorted(files)):
            path = os.path.join(folder, file)
            try:
                file_status = os.stat(path)
            except OSError as error:
                if os.path.islink(path):
                    irregular.append(path)
                else:
                    unread(error)
                continue
            if stat.S_ISREG(file_status.st_mode):
                yield Status(path, file_status.st_size, file_status.st_mtime_ns)
            else:
                irregular.append(path)
    _warn_of_skipped("not a regular file", irregular)
    _warn_of_skipped("a link to a directory", links)


def _warn_of_skipped(reason: str, skipped: Sequence[str]) -> None:
    if skipped:
        more = f" and {len(skipped) - MOST_NAMES:,} more" if len(skipped) > MOST_NAMES else ""
        warnings.warn(f"skipped, {reason}: {', '.join(skipped[:MOST_NAMES])}{more}", RuntimeWarning, stacklevel=3)


def objects_of(uri: str) -> list[Status]:
    """The object of a URI, or the objects that match its pattern; of a prefix, those that a directory scan reads.

    Objects with ``//`` in their names, which pyarrow cannot open, are skipped with a RuntimeWarning.
    """
    matching = objects(uri)
    is_explicit = glob.has_magic(uri) or [each.name for each in matching] == [uri]
    readable, unreadable = list[Status](), list[str]()
    for each in (each for each in matching if is_explicit or is_input(each.name)):
        if "//" in each.name.partition("://")[2]:
            unreadable.append(each.name)
        else:
            readable.append(each)
    _warn_of_skipped("// in the name", unreadable)
    return readable


def is_input(name: str) -> bool:
    """Whether a scan of its directory reads a file."""
    base = os.path.basename(name)
    return CAPTURE_NAME.fullmatch(base) is not None or stored_kind(base) != CAPTURE


SAME, CHANGED, GONE = "same", "changed", "gone"
UNREAD = -1
"""The modification time in a commit of a file that the system refused to read."""


class Identification:
    """Hashes the captures during the run, and finds those that changed in the meantime."""

    def __init__(self, job: Job) -> None:
        self._job, self._inputs = job, job.inputs
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="wirekit-hash")
        self._digests = [self._pool.submit(_digest, each.path, self._stop) for each in job.inputs]

    def __enter__(self) -> Identification:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def rows(self, unopened: Collection[str] = ()) -> list[dict[str, Any]]:
        """The entries of the commit, one per file: file, path, capture, size in bytes, mtime, mtime_ns, sha256.

        ``mtime`` is null outside the years 1 to 9999; ``sha256`` is null for an unreadable file, and for an object of
        an object store, which would be read twice.

        Args:
            unopened: the names of files that the system refused to read. Their ``mtime_ns`` is ``UNREAD``, so that the
                next run reads them as changed files.
        """
        return [
            {
                "file": each.name,
                "path": each.path,
                "capture": self._job.capture_name(each.number),
                "size": each.size,
                "mtime": _iso(each.mtime_ns),
                "mtime_ns": UNREAD if each.name in unopened else each.mtime_ns,
                "sha256": digest.result(),
            }
            for each, digest in zip(self._inputs, self._digests, strict=True)
        ]

    def changed(self) -> dict[str, bool]:
        """The captures that changed since the run began: their names, and whether they no longer exist."""
        return changed(self._inputs)


def grouped(groups: Sequence[tuple[Input, ...]], size: int) -> list[tuple[Input, ...]]:
    """Joins the files of consecutive captures, up to a size in bytes, if a capture is not larger."""
    joined: list[list[Input]] = []
    total = 0
    for files in groups:
        of_files = sum(each.size for each in files)
        if joined and total + of_files <= size:
            joined[-1] += files
            total += of_files
        else:
            joined.append([*files])
            total = of_files
    return [tuple(each) for each in joined]


def changed(inputs: Iterable[Input]) -> dict[str, bool]:
    """The files that another program has changed since they were listed: their names, and whether they are gone."""
    paths = {each.path: each for each in inputs}
    fates = in_parallel(lambda path: _fate(paths[path]), paths)
    return {each.name: fate == GONE for each, fate in zip(paths.values(), fates, strict=True) if fate != SAME}


def _iso(mtime_ns: int) -> str | None:
    """A time in ISO 8601; None outside the years 1 to 9999."""
    time = moment(mtime_ns // 1000)
    return None if time is None else time.isoformat()


def _digest(path: str, stop: threading.Event) -> str | None:
    digest = hashlib.sha256()
    if is_remote(path):
        return None
    try:
        with open(path, "rb") as file:
            while not stop.is_set() and (piece := file.read(_PIECE)):
                digest.update(piece)
    except OSError:
        return None
    return digest.hexdigest()


def _fate(each: Input) -> str:
    try:
        now = status(each.path)
    except FileNotFoundError:
        return GONE
    except OSError:
        return CHANGED
    return SAME if (now.size, now.mtime_ns) == (each.size, each.mtime_ns) else CHANGED
