"""The tasks of a run in parallel, on Spark or in processes; ``parallel`` decides what each task does.

A task takes a job, the folder of attempts, and its number. It writes its files into a directory of its attempt, and
returns a text, such as the manifest of these files.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from wirekit import stored
from wirekit.capture.files.fragments import Fragments
from wirekit.pipeline.crossing import Crossing, flows_of, write_numbers
from wirekit.pipeline.deferred import Unit
from wirekit.pipeline.flows import flow_batches
from wirekit.pipeline.folders import folder
from wirekit.pipeline.inputs import Input, Job, Split
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.roads import is_compressed
from wirekit.pipeline.run import READING
from wirekit.pipeline.serial import in_order, write
from wirekit.pipeline.shuffle import LocalRows, PacketWindow, Share, ShuffleFile, local_windows, windows, write_files
from wirekit.pipeline.sink import Manifest, Sink
from wirekit.pipeline.summary import Summary
from wirekit.pipeline.task_progress import report
from wirekit.registry import registry
from wirekit.storage import is_remote
from wirekit.tables.columns import PACKETS
from wirekit.values import json_text

if TYPE_CHECKING:
    import pyarrow as pa

    from wirekit.road.splits import Range

PARTITION_BYTES = 64 << 20
SHUFFLING, FOLLOWING = "reading packets", "following connections"
DECODING = "decoding long connections"
"""Stages of captures that are shuffled. The first counts as half of their bytes, the others as the other half."""
SURVEYED = 4 << 20
"""Bytes of packets whose flows are compared to determine whether flows are long."""

Item = TypeVar("Item", Unit, PacketWindow)

Group = tuple[Input, ...]
"""The files of a capture, or a stored file."""

Part = tuple[Group, Split | None]
"""The files, or the part of a file, whose packets a task reads."""

Assignment = tuple[Sequence[Group], stored.Part | None]
"""The captures and stored files that a task reads, or a stored file and the part of it."""

Run = tuple[int, list[Unit]]
"""A flow, and the units of it that one task decodes."""


def read_whole(tasks: Sequence[Assignment], job: Job, attempts: str, number: int) -> str:
    """Reads captures and stored files; returns their manifest.

    Args:
        tasks: the captures and stored files of all tasks.
        job: the job of the bundle.
        attempts: the folder of attempts.
        number: the number of the task.
    """
    with Sink(attempts, number, _attempt("whole", number)) as sink:
        groups, part = tasks[number]
        return sink.finish(write(groups, job, sink, report(attempts, READING, number), part)).dumps()


def walk_stretches(file: Input, job: Job, attempts: str, number: int) -> str:
    """Walks over a stretch of a large stored file.

    Args:
        file: the file.
        job, attempts: ignored.
        number: the number of the stretch.
    """
    protocol, _, layout = file.kind.partition(".")
    walk = registry.protocol(protocol).walk(layout)
    return json.dumps(None if walk is None else walk(file.path, number, None))


def walk_ranges(file: Input, ranges: Sequence[Range], job: Job, attempts: str, number: int) -> str:
    """Walks over a range of a large file.

    Args:
        file: the file.
        ranges: all of its ranges.
        job, attempts: ignored.
        number: the number of the range.
    """
    from wirekit.road.splits import walk

    walked = walk(file.path, file.size, ranges[number])
    return json.dumps(None if walked is None else walked.dumps())


def survey_parts(parts: Sequence[Part], job: Job, attempts: str, number: int) -> str:
    """Finds the flows of a part; returns the name of a file of them.

    The name is empty if all packets should be exchanged: most flows of the part are long, or it is too large to hold
    the packets of the others in memory.

    Args:
        parts: the parts of all tasks.
        job: a job of the shuffled captures alone.
        attempts: the folder of attempts.
        number: the number of the part.
    """
    files, split = parts[number]
    if split is None and (size_of(files) > 2 * PARTITION_BYTES or any(map(is_compressed, files))):
        return ""
    batches = packet_batches(files, road=job.road, table=PACKETS.only(["flow"]), split=split, size=SURVEYED)
    flows = flows_of(batches)
    if flows is None:
        return ""
    name = f"{_attempt('flows', number)}/flows"
    folder(attempts).make(os.path.dirname(name))
    write_numbers(folder(attempts), name, flows)
    return name


def read_parts(
    parts: Sequence[Part],
    places: int,
    size: int,
    crossing: str | None,
    job: Job,
    attempts: str,
    number: int,
) -> str:
    """Reads the packets of a part; writes those of crossing flows, and follows the other flows.

    Args:
        parts: the parts of all tasks.
        places, size: see ``write_files``.
        crossing: the file of the flows that several parts have; None if all packets are written.
        job: a job of the shuffled captures alone.
        attempts: the folder of attempts.
        number: the number of the part.

    Returns:
        Its files of packets, and the manifest of the tables of the other flows, if there are any.
    """
    flows = None if crossing is None else Crossing.read(folder(attempts), crossing)
    files, split = parts[number]
    attempt, local = _attempt("packets", number), None if flows is None else LocalRows()
    report_size, written, read = report(attempts, SHUFFLING, number), list[ShuffleFile](), 0
    for file in files:
        fragments = Fragments()
        batches = packet_batches(
            (file,), road=job.road, split=split, size=2 * size if local is None else size, fragments=fragments
        )
        again = split is not None and not is_remote(file.path)
        for each in write_files(
            file,
            batches,
            attempts,
            attempt,
            places,
            size,
            again=again,
            fragments=fragments,
            crossing=flows,
            local=local,
        ):
            written.append(each)
            read += each.size + (local[each.name].nbytes if local else 0)
            report_size(read)
    manifest = None
    if local and any(rows.num_rows for rows in local.values()):
        from wirekit.road.flows import flow_batches as followed

        summary = Summary()
        tables = followed(local_windows(written, local, size), job, summary)
        manifest = _written(tables, attempts, number, _attempt("objects", number), summary).dumps()
    return json_text([written, manifest])


def size_of(group: Group) -> int:
    """The bytes of the files of a group."""
    return sum(each.size for each in group)


def _attempt(stage: str, number: int) -> str:
    """A unique name for an attempt."""
    return f"{stage}-{number:05}-{uuid.uuid4().hex}"


def follow_share(
    files: Sequence[ShuffleFile],
    places: int,
    columns: bool,
    window: int,
    before: int | None,
    of_tasks: Sequence[Share],
    job: Job,
    attempts: str,
    number: int,
) -> str:
    """Follows the flows of a share; returns their manifest, or the outstanding units of a long flow.

    Args:
        files: the files of packets.
        places: see ``write_files``.
        columns: whether columns follow the flows.
        window: bytes of a window.
        before: bytes of a long flow that are decoded here; None for all.
        of_tasks: the shares of all tasks.
        job: a job of the shuffled captures alone.
        attempts: the folder of attempts.
        number: the number of the share.
    """
    share = of_tasks[number]
    packets = _reporting(windows(files, share, attempts, places, window), report(attempts, FOLLOWING, number))
    attempt, summary = _attempt("task", number), Summary()
    if not columns:
        tables = flow_batches(in_order([each for part in packets for each in part.rows.to_batches()]), job, summary)
    else:
        from wirekit.road import deferred, flows

        if share.flow is not None and before is not None:
            with deferred.LongFlow(attempts, number, attempt, share.flow, before) as long:
                for table, rows in flows.flow_batches(packets, job, long.summary, long=long):
                    long.sink.write(table, rows)
                return long.dumps()
        tables = flows.flow_batches(packets, job, summary)
    return _written(tables, attempts, number, attempt, summary).dumps()


def _written(
    tables: Iterable[tuple[str, pa.RecordBatch]], attempts: str, number: int, attempt: str, summary: Summary
) -> Manifest:
    """Writes rows of tables in an attempt; the summary is complete after the last rows."""
    with Sink(attempts, number, attempt) as sink:
        for table, rows in tables:
            sink.write(table, rows)
        return sink.finish(summary)


def decode_units(runs: Sequence[Run], job: Job, attempts: str, number: int) -> str:
    """Decodes the units of a run.

    Args:
        runs: the units of all tasks.
        job: a job of the shuffled captures alone.
        attempts: the folder of attempts.
        number: the number of the run.
    """
    from wirekit.road import deferred

    flow, units = runs[number]
    each_unit = _reporting(units, report(attempts, DECODING, number))
    return deferred.decode_units(attempts, number, _attempt("units", number), flow, each_unit, job).dumps()


def _reporting(each_of: Iterable[Item], report_size: Callable[[int], None]) -> Iterator[Item]:
    """Passes items on; reports the size of the items so far when the next one is requested."""
    total = 0
    for each in each_of:
        yield each
        total += each.size
        report_size(total)
