"""Long connections of shuffled captures: one task finds and pairs their frames, others decode them.

Finding frames is cheap but needs their order; decoding is expensive and does not. So each window of a long connection
is stored as a unit, if columns can read its frames: its bytes in order, or their places in the capture, and the state
at its beginning. A unit is plain if columns read all of its frames, and the connection continues after it as expected.
The tables are correct only if all units are plain, and if nothing after the first unit depends on their content;
otherwise one task follows the flow again, without units.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.lib.format import read_array, write_array
from numpy.typing import NDArray

from wirekit.capture.links import Item, Link
from wirekit.conversation import ENDED_INSIDE, Frame, Quarantined
from wirekit.pipeline.deferred import Decoded, DecodedUnits, Outstanding, Unit
from wirekit.pipeline.folders import Folder, folder
from wirekit.pipeline.ids import connection_id
from wirekit.pipeline.inputs import Job
from wirekit.pipeline.rows import Batch
from wirekit.pipeline.sink import Sink
from wirekit.pipeline.summary import Summary, failure
from wirekit.plain import restored, stored
from wirekit.road.assembly import Assembly
from wirekit.road.begun import CARRIED, CONVERSATION, Begun, Followed, conversations
from wirekit.road.compiled import loop
from wirekit.road.contents import outline, read_contents
from wirekit.road.events import SIDES
from wirekit.road.index import Index, index_frames
from wirekit.road.packets import Endpoints
from wirekit.road.streams import Streams, with_room
from wirekit.storage import FileRange

_OF_CONVERSATION = ("protocol", "most", "names", "one_sided")
"""The fields of a conversation on which the frames of a unit depend."""


class LongFlow:
    """A flow with several windows: its rows, counts and units, in an attempt of its own.

    To be used as a context manager, which removes the written files if the block raises.

    Attributes:
        flow: its number in the table ``packets``.
        sink, summary: its rows and counts.
        units: the units that other tasks decode.
        plain: False if anything after the first unit may depend on the contents of units.

    Args:
        attempts: the folder of all attempts, a path or a URI.
        task: number of the task.
        attempt: a unique name of the attempt.
        flow: its number in the table ``packets``.
        before: bytes of the flow that are decoded at once, before the first unit.
    """

    def __init__(self, attempts: str | os.PathLike[str], task: int, attempt: str, flow: int, before: int) -> None:
        self.flow = flow
        self.sink, self.summary = Sink(attempts, task, attempt), Summary()
        self.units: list[Unit] = []
        self.plain = True
        self._folder, self._attempt, self._remaining = folder(attempts), attempt, before

    def __enter__(self) -> LongFlow:
        self.sink.__enter__()
        return self

    def __exit__(self, error: object, *more: object) -> None:
        self.sink.__exit__(error, *more)

    def take(
        self, file: str, streams: Streams, origin: FileRange | None, index: Index, begun: Begun, address: Any
    ) -> Followed | None:
        """Stores the frames of a window as a unit; None if they must be decoded at once.

        Args:
            file: the name of the capture in the run.
            streams, index, begun, address: the window, as for ``Assembly``.
            origin: see ``Packets``.
        """
        self._remaining -= streams.stream.size
        if self._remaining >= 0 or streams.odd.size != 1 or not begun.flows.size or index.odd[0]:
            return None
        contents = outline(streams.stream, index, begun)
        if contents is None:
            return None
        followed = Assembly(file, streams, index, contents, address, begun, {}).undecoded()
        conversation = dict(zip(CONVERSATION.names or (), begun.conversations[0].tolist(), strict=True))
        ends = [address(int(number[0])) for number in (streams.client, streams.server)]
        header = {
            "file": file,
            "ends": ends,
            "begun": {name: conversation[name] for name in _OF_CONVERSATION},
            "ordinal": int(begun.ordinals[0]),
            "begins": begun.places.tolist(),
            "final": bool(begun.final[0]),
            "unheard": begun.unheard.tolist(),
            "alone": bool(begun.alone[0]),
            "carried": begun.carried.tolist(),
            "places": followed.places.tolist(),
            "waiting": followed.waiting["position"].tolist(),
            "origin": None if origin is None else list(origin),
        }
        size = int(streams.stops.max())
        data = json.dumps(stored(header)).encode()
        name = f"{self._attempt}/unit-{len(self.units):05}"
        with self._folder.create(name) as target:
            for array in (np.frombuffer(data, np.uint8), *(getattr(streams, name) for name in _ARRAYS)):
                write_array(target, array, allow_pickle=False)
            for side in range(len(SIDES)):  # without the frames that are carried
                begin = int(streams.starts[0, side])
                length = streams.stops[0, side] - begin if origin is None else streams.before[0, side]
                target.write(streams.stream[begin : begin + int(length)])
        identity = connection_id(file, ends[0], ends[1], int(begun.ordinals[0]))
        self.units.append(Unit(name, size, identity, tuple(conversation["facts"] or ())))
        return followed

    def watched(self, items: Iterable[tuple[Link, Item | None]]) -> Iterator[tuple[Link, Item | None]]:
        """Passes on the items of objects; bytes that are missing or wrong make the flow depend on earlier frames."""
        for link, item in items:
            usual = item is None or (isinstance(item, Frame) and failure(item) is None)
            ending = isinstance(item, Frame | Quarantined) and item.reason == ENDED_INSIDE
            self.plain &= not self.units or usual or ending
            yield link, item

    def dumps(self) -> str:
        """The result of the task: ``Outstanding.dumps``, or ``Manifest.dumps`` if there are no units."""
        manifest = self.sink.finish(self.summary)
        outstanding = Outstanding(self.flow, self.plain, manifest, tuple(self.units))
        return outstanding.dumps() if self.units else manifest.dumps()


def decode_units(attempts: str, task: int, attempt: str, flow: int, units: Iterable[Unit], job: Job) -> DecodedUnits:
    """Decodes units of a flow into files of an attempt.

    Args:
        attempts, task, attempt, flow: as for ``LongFlow``.
        units: the units.
        job: the choice of protocols.
    """
    summary, decoded = Summary(), list[Decoded]()
    with Sink(attempts, task, attempt) as sink:
        for unit in units:
            with _decode(folder(attempts), unit, job, summary) as (result, batches):
                decoded.append(result)
                for table, batch in batches:
                    sink.write(table, batch)
        return DecodedUnits(flow, sink.finish(summary), tuple(decoded))


@contextmanager
def _decode(store: Folder, unit: Unit, job: Job, summary: Summary) -> Iterator[tuple[Decoded, Iterator[Batch]]]:
    with store.open(unit.name) as source:
        header = restored(json.loads(read_array(source, allow_pickle=False).tobytes()))
        arrays = {name: read_array(source, allow_pickle=False) for name in _ARRAYS}
        carried = np.array(list(map(tuple, header["carried"])), CARRIED)
        stream = with_room(unit.size, sum(map(len, carried["data"].tolist())))
        stored_bytes = np.frombuffer(source.read_buffer(), np.uint8)
    none, expected = np.zeros(0, np.int64), (header["places"], header["waiting"])
    streams = Streams(order=none, begins=none, stream=stream, packets=None, **arrays)
    if header["origin"] is None:
        stream[:] = stored_bytes
    else:
        _read_again(streams, FileRange(*header["origin"]), stored_bytes)
    endpoints = Endpoints()
    streams.client, streams.server = (np.array([endpoints.number(text)]) for text in header["ends"])
    conversation = conversations([0])
    for name, value in header["begun"].items():
        conversation[name][0] = value
    begun = Begun(
        conversation,
        np.array([header["ordinal"]]),
        np.array(header["begins"]),
        np.array([header["final"]]),
        np.zeros(1, bool),
        np.array(header["unheard"]),
        np.array([header["alone"]]),
        carried,
        overdue=carried[:0],  # the task that stored the frames has found that they concern none
    )
    index = index_frames(streams, job.choice, endpoints.text, begun)
    with read_contents(streams.stream, index, begun) as contents:
        assembly = Assembly(header["file"], streams, index, contents, endpoints.text, begun)
        frames = None if contents.odd[0] else assembly.followed()
        if frames is None or (frames.places.tolist(), frames.waiting["position"].tolist()) != expected:
            yield Decoded(unit.name, plain=False), iter(())
            return
        assembly.count(summary.file(header["file"]))
        counts = int(frames.calls[0]), int(frames.errors[0])
        yield Decoded(unit.name, True, *counts, frames.facts[0] or {}), assembly.batches()


def _read_again(streams: Streams, origin: FileRange, before: NDArray[Any]) -> None:
    """Fills the stream of a flow: for each side, the bytes of earlier windows, then its pieces from the capture."""
    data = np.frombuffer(origin.read(), np.uint8)
    for side, pieces in enumerate(np.split(np.arange(streams.ends.size), [int(streams.pieces[0, 1])])):
        start, stop = streams.starts[0, side], streams.stops[0, side]
        own = start + streams.before[0, side]
        streams.stream[start:own], before = np.split(before, [own - start])
        sizes = np.diff(streams.ends[pieces], prepend=own)
        loop("copy_ranges")(data, streams.sources[pieces], sizes, streams.stream[own:stop])


_OF_WINDOW = ("order", "begins", "stream", "packets", "arranged", "rows", "recognised")
_ARRAYS: Sequence[str] = tuple(each.name for each in fields(Streams) if each.name not in _OF_WINDOW)
"""The arrays of ``Streams`` that a unit stores before its bytes."""
