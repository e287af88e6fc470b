"""Which captures and stored files a run reads, in which order, and what identifies them afterwards. None is opened."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from wirekit.capture.follow import Choice
from wirekit.errors import Misuse
from wirekit.registry import registry

CAPTURE = "capture"
KINDS = (".pcap", ".pcapng", ".cap")
SUFFIXES = (*KINDS, *(f"{kind}.gz" for kind in KINDS))
_PIECE = 4 << 20


@dataclass(frozen=True, slots=True)
class Input:
    """A file of a run: a capture, or one that a broker stores.

    Attributes:
        number: its ordinal in the run, from 0.
        name: as it was named, for readers.
        path: absolute.
        size: bytes when the run began.
        mtime_ns: time of its last change then, nanoseconds since the epoch.
        kind: ``CAPTURE``, or the key of a stored file's layout.
    """

    number: int
    name: str
    path: str
    size: int
    mtime_ns: int
    kind: str = CAPTURE


@dataclass(frozen=True, slots=True)
class Job:
    """What a run does. Plain values only: it travels to workers.

    Attributes:
        inputs: the files, captures first; ``inputs[n].number == n``.
        protocol: the protocol of every connection, "" to find it from the bytes.
        ports: {server port: protocol}.
        raw: whether ``quarantine`` keeps the bytes themselves.
    """

    inputs: tuple[Input, ...]
    protocol: str = ""
    ports: Mapping[int, str] = field(default_factory=dict)
    raw: bool = True

    @property
    def choice(self) -> Choice:
        """How protocols are chosen."""
        return Choice(self.protocol, self.ports)

    @property
    def captures(self) -> tuple[Input, ...]:
        """The captures among the inputs."""
        return tuple(each for each in self.inputs if each.kind == CAPTURE)

    @property
    def stored(self) -> tuple[Input, ...]:
        """The inputs that brokers store."""
        return tuple(each for each in self.inputs if each.kind != CAPTURE)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(each.size for each in self.inputs)

    def configuration(self) -> dict[str, Any]:
        """What the tables depend on besides the captures, as the manifest says it."""
        ports = {str(port): name for port, name in sorted(self.ports.items())}
        return {"protocol": self.protocol, "ports": ports, "raw": self.raw}


def find_inputs(paths: Iterable[str | os.PathLike[str]]) -> tuple[Input, ...]:
    """The captures of files and directories, and then the files that brokers store.

    Files are taken whatever they are called; of a directory, and those in it, all ``*.pcap``, ``*.pcapng`` and
    ``*.cap``, also with ``.gz``, in the order of their names, and those whose names are of a protocol's stored files. A
    file that is reached twice is taken once.

    Raises:
        Misuse: a path is no file (a pipe can be read only once), or there is nothing to read at all.
        OSError: a path does not exist, or a directory cannot be read.
    """
    found: dict[str, str] = {}
    named = [os.fspath(path) for path in paths]
    for name in named:
        for each in _captures(name):
            found.setdefault(os.path.realpath(each), each)
    if not found:
        kinds = f"captures ({', '.join(f'*{kind}' for kind in KINDS)}) or log segments"
        raise Misuse(
            f"nothing to read in {', '.join(named) or 'nothing'}; pass files, or directories that hold {kinds}"
        )
    inputs = []
    kinds_of = {real: stored_kind(name) for real, name in found.items()}
    for number, real in enumerate(sorted(found, key=lambda real: kinds_of[real] != CAPTURE)):
        status, name = os.stat(real), found[real]
        inputs.append(Input(number, name, os.path.abspath(name), status.st_size, status.st_mtime_ns, kinds_of[real]))
    return tuple(inputs)


def stored_kind(name: str) -> str:
    """The key of the layout that a file of this name has, ``CAPTURE`` if it is no stored file's name."""
    base = os.path.basename(name)
    for protocol in map(registry.protocol, registry.protocols()):
        for layout, names in protocol.stored_names.items():
            if re.fullmatch(names, base):
                return protocol.key(layout)
    return CAPTURE


def _captures(name: str) -> Iterator[str]:
    if not os.path.exists(name):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if os.path.isfile(name):
        yield name
        return
    if not os.path.isdir(name):
        raise Misuse(f"{name} is neither a file nor a directory; save it to a file first")
    for folder, folders, files in os.walk(name, onerror=_raise):
        folders.sort()
        for file in sorted(files):
            path = os.path.join(folder, file)
            if (file.lower().endswith(SUFFIXES) or stored_kind(file) != CAPTURE) and os.path.isfile(path):
                yield path


def _raise(error: OSError) -> None:
    raise error


class Identification:
    """Hashes the captures while the run goes on, and finds those that changed meanwhile."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self._inputs = inputs
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="wirekit-hash")
        self._digests = [self._pool.submit(_digest, each.path, self._stop) for each in inputs]

    def __enter__(self) -> Identification:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def rows(self) -> list[dict[str, Any]]:
        """For the manifest, a capture each: file, size in bytes, mtime, sha256 (null when it cannot be read)."""
        return [
            {
                "file": each.name,
                "size": each.size,
                "mtime": datetime.fromtimestamp(each.mtime_ns / 1e9, UTC).isoformat(),
                "sha256": digest.result(),
            }
            for each, digest in zip(self._inputs, self._digests, strict=True)
        ]

    def changed(self) -> list[str]:
        """The names of the captures that are not what they were when the run began."""
        return [each.name for each in self._inputs if not _unchanged(each)]


def _digest(path: str, stop: threading.Event) -> str | None:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while not stop.is_set() and (piece := file.read(_PIECE)):
                digest.update(piece)
    except OSError:
        return None
    return digest.hexdigest()


def _unchanged(each: Input) -> bool:
    try:
        status = os.stat(each.path)
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (each.size, each.mtime_ns)
