"""The state of a capture between two bundles: for each pair of addresses, the state of its latest connection.

A bundle that ends before its capture stores the state with its commit, and the bundle with the next files of the
capture begins with it. Both roads use the same form of the state. It is read as untrusted data: its version, types and
names are checked, and its file must have the size and digest of the commit.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from wirekit import plain
from wirekit.capture.follow import Flow, Follower
from wirekit.capture.links import Choice, Link
from wirekit.capture.tcp import Connection, Settings
from wirekit.conversation import Description
from wirekit.errors import Misuse, WireError
from wirekit.pipeline.calls import Calls
from wirekit.pipeline.folders import folder

VERSION = 3
STATE = "state"
"""The folder of such files in a lake."""
SCHEMA = pa.schema(
    [
        ("capture", pa.string()),
        ("one", pa.string()),
        ("other", pa.string()),
        ("connections", pa.int64()),
        ("due", pa.int64()),
        ("state", pa.large_string()),
    ]
)
"""A row for each pair of addresses, the lower one first.

``connections`` is the number of connections so far, ``due`` the time of an action that needs no further segment, in
microseconds since the epoch, and ``state`` the latest connection, null if it is complete. The row without addresses has
the time of the capture in ``due``.
"""
MOST_BYTES = 4 << 30
"""The maximum size of a file's rows in bytes."""
MOST_OF_CONNECTION = 256 << 20
"""The maximum number of characters in the state of a connection; a connection with more ends with the bundle."""
IDLE_US = Settings().idle_us
"""A connection that was silent for longer than this when a bundle ended is over."""
_NAMED = {"description": Description}
_LATEST = (1 << 63) - 1

Pair = tuple[str, str]


class Stored(NamedTuple):
    """The row of a pair: the number of connections, the time when an action is due, and the latest connection."""

    connections: int
    due_us: int | None
    state: str | None


class StateFile(NamedTuple):
    """A file with the state of captures: its path or URI, bytes, and SHA-256."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Continuation:
    """The continuation of a capture that has files in several bundles, in plain values.

    Attributes:
        name: the name of the capture.
        files: the state files, if earlier bundles have files of the capture.
        goes_on: whether later bundles may have files of it.
        idle_us: a connection that was silent for longer than this at the end of the bundle is over.
        remedy: advice for the user if the state is damaged.
    """

    name: str
    files: tuple[StateFile, ...] = ()
    goes_on: bool = False
    idle_us: int = IDLE_US
    remedy: str = "pass --replace to read all captures again"


class Carried:
    """The state of a capture during a bundle.

    Args:
        continuation: the capture, and the place of its state.
        choice: the choice of protocols.

    Attributes:
        clock_us: the latest packet time of the capture so far.
        goes_on: whether to store state for the next bundle.
        idle_us: see ``Continuation``.
    """

    def __init__(self, continuation: Continuation, choice: Choice) -> None:
        self.name, self.goes_on, self.idle_us = continuation.name, continuation.goes_on, continuation.idle_us
        self._remedy = continuation.remedy
        self._choice, self._settings = choice, Settings(server_ports=choice.server_ports)
        self._earlier: dict[Pair, Stored] = {}
        self.clock_us = 0
        for one, other, stored in _read(continuation):
            if one:
                self._earlier[one, other] = stored
            else:
                self.clock_us = max(self.clock_us, stored.due_us or 0)
        self._rows: list[tuple[Any, ...]] = []

    def take(self, pair: Pair) -> tuple[Flow, Calls | None]:
        """The flow between two addresses as earlier bundles stored it, and the calls of its connection; returned once.

        Raises:
            Misuse: the stored state is damaged.
        """
        flow = Flow(self._choice, self._settings)
        stored = self._earlier.pop(pair, None)
        if stored is None:
            return flow, None
        flow.count = stored.connections
        if stored.state is None:
            return flow, None
        try:
            return flow, self._restored(flow, pair, json.loads(stored.state))
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
            RecursionError,
            WireError,
        ) as error:
            between = " and ".join(pair)
            raise Misuse(f"the state of {self.name} between {between} is damaged ({error}); {self._remedy}") from error

    def _restored(self, flow: Flow, pair: Pair, state: Any) -> Calls | None:
        if state["version"] != VERSION:
            raise ValueError(f"version {state['version']}, not {VERSION}")
        flow.connection = Connection.from_state(state["tcp"], self._settings)
        if pair_of(*flow.connection.addresses) != pair:
            raise ValueError(f"it is between {' and '.join(flow.connection.addresses)}")
        if state["carries"] is None:
            return None
        link, follower, called = plain.restored(state["carries"], _NAMED)
        flow.link = Link.from_state(link)
        if pair_of(flow.link.client, flow.link.server) != pair or flow.link.ordinal != flow.count - 1:
            raise ValueError(f"it is of {flow.link.name}")
        if follower is not None:
            flow.follower = Follower.from_state(flow.link, follower)
        calls = Calls(self.name, flow.link)
        if called is not None:
            calls.restore(called)
        return calls

    def __contains__(self, pair: Pair) -> bool:
        """Whether earlier bundles stored a flow between two addresses that ``take`` has not returned."""
        return pair in self._earlier

    def unseen(self) -> Iterator[Pair]:
        """The pairs that ``take`` has not returned and whose action is due; stores the others for the next bundle."""
        for pair, stored in list(self._earlier.items()):
            if self.goes_on and (stored.due_us is None or self.clock_us <= stored.due_us):
                self._rows.append((self.name, *pair, *stored))
            elif stored.state is not None:
                yield pair
        self._earlier.clear()

    def keep(self, pair: Pair, flow: Flow, calls: Calls | None) -> bool:
        """Stores a flow for the next bundle; False if its state is too large."""
        state = None
        if flow.connection is not None:
            parts = (flow.link, flow.follower, calls)
            carries = None if flow.link is None else [None if part is None else part.state() for part in parts]
            fields = {"version": VERSION, "tcp": flow.connection.state(), "carries": plain.stored(carries, _NAMED)}
            state = json.dumps(fields, separators=(",", ":"))
        if state is not None and len(state) > MOST_OF_CONNECTION:
            return False
        due_us = flow.due_us(self.idle_us)
        self._rows.append((self.name, *pair, flow.count, None if due_us is None else min(due_us, _LATEST), state))
        return True

    def batch(self) -> pa.RecordBatch:
        """The stored states as rows of a file."""
        rows = [(self.name, "", "", 0, self.clock_us, None), *self._rows]
        columns = zip(*rows, strict=True)
        return pa.record_batch(
            [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
        )


def pair_of(one: str, other: str) -> Pair:
    """Two addresses, the lower one first."""
    return (one, other) if one < other else (other, one)


def _read(continuation: Continuation) -> Iterator[tuple[str, str, Stored]]:
    """Reads the rows of a capture."""
    for file in continuation.files:
        above, _, name = file.name.rpartition("/")
        content = folder(above).read(name)
        if len(content) != file.bytes or hashlib.sha256(content).hexdigest() != file.sha256:
            raise Misuse(f"{file.name} was changed after it was written; {continuation.remedy}")
        yield from _rows(content, continuation, file.name)


def _rows(content: bytes, continuation: Continuation, name: str) -> Iterator[tuple[str, str, Stored]]:
    try:
        with pq.ParquetFile(io.BytesIO(content)) as file:
            if not file.schema_arrow.equals(SCHEMA):
                raise ValueError("other columns")
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            if sum(group.total_byte_size for group in groups) > MOST_BYTES:
                raise ValueError(f"more than {MOST_BYTES:,} bytes")
            for batch in file.iter_batches():
                columns = [batch.column(number).to_pylist() for number in range(len(SCHEMA))]
                for capture, one, other, *stored in zip(*columns, strict=True):
                    if capture == continuation.name:
                        yield one, other, Stored(*stored)
    except (pa.ArrowException, ValueError) as error:
        raise Misuse(f"{name} is damaged ({error}); {continuation.remedy}") from error
