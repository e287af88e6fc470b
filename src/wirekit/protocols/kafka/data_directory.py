"""Checks a broker's data directory: each partition as ``partition`` does, and the checkpoints against the logs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from wirekit.decoding import decode
from wirekit.protocols.kafka.partition import check_partition, unreadable, whole
from wirekit.protocols.kafka.reading import named_partition
from wirekit.protocols.kafka.searching import base_offset
from wirekit.stored import Problem, Report

CHECKPOINTS = {
    "recovery-point-offset-checkpoint": "recovery point",
    "replication-offset-checkpoint": "high watermark",
    "cleaner-offset-checkpoint": "cleaner's offset",
}
PROPERTIES = "meta.properties"
IN_FRONT = 2  # lines of a checkpoint before its entries


def check(folder: str | os.PathLike[str]) -> Report | None:
    """A report on a partition's or broker's directory, with its contradictions; None if it is neither.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check(folder) is None
    True
    """
    path = Path(folder)
    names = sorted(os.listdir(path))
    if any(base_offset(name) is not None for name in names):
        return check_partition(path)
    partitions = [name for name in names if named_partition(name) and (path / name).is_dir()]
    texts = [name for name in names if name in CHECKPOINTS or name == PROPERTIES]
    if not partitions and not texts:
        return check_partition(path) if named_partition(path.absolute().name) else None
    report = Report(str(path), parts=[check_partition(path / name) for name in partitions])
    ends: dict[tuple[str, int], int | None] = {}
    for part in report.parts:  # a deleted one comes after a recreated one
        ends.setdefault((part.facts["topic"], part.facts["partition"]), _end(part))
    report.facts = {"partitions": len(partitions), "meta": None, "checkpoints": {}}
    for name in texts:
        _read(path / name, report, ends)
    return report


def _end(part: Report) -> int | None:
    """The offset after the last message of a partition, or None if it is unknown."""
    segments = part.facts["segments"]
    if not segments:
        return None
    last = segments[-1]["last_offset"]
    if segments[-1]["bytes"] is None:
        return None  # the file cannot be read
    return int(segments[-1]["file"].partition(".")[0]) if last is None else last + 1


def _read(path: Path, report: Report, ends: dict[tuple[str, int], int | None]) -> None:
    """Reads a text file, and reports its contradictions to the logs."""
    name = path.name
    key = "kafka.meta_properties" if name == PROPERTIES else "kafka.offset_checkpoint"
    try:
        data = whole(path)
    except OSError as error:
        report.problems.append(unreadable(path, error))
        return
    if not data and name != PROPERTIES:  # OffsetCheckpoint makes the file empty, and reads it as one without entries
        report.facts["checkpoints"][name] = 0
        return
    decoded = decode(data, key)
    if decoded.error is not None:
        report.problems.append(Problem(str(path), str(decoded.error), decoded.error.offset))
        return
    if name != PROPERTIES and decoded.value.tail:
        place = len(decoded.data) - len(decoded.value.tail)
        report.problems.append(Problem(str(path), f"{len(decoded.value.tail)} bytes after the last line", place))
    if name == PROPERTIES:
        report.facts["meta"] = {line.name: line.value for line in decoded.value.lines if line.comment is None}
        return
    report.facts["checkpoints"][name] = len(decoded.value.entries)
    if decoded.value.version != 0:
        report.problems.append(Problem(str(path), f"version {decoded.value.version}: Kafka reads only version 0", 0, 0))
    for number, entry in enumerate(decoded.value.entries):
        wrong = _wrong(entry, CHECKPOINTS[name], ends)
        if wrong is not None:
            report.problems.append(Problem(str(path), wrong, None, number + IN_FRONT))


def _wrong(entry: Any, checkpoint: str, ends: dict[tuple[str, int], int | None]) -> str | None:
    """The contradiction between an entry of a checkpoint and the log."""
    named = f"the {checkpoint} of {entry.topic} {entry.partition}, {entry.offset},"
    if (entry.topic, entry.partition) not in ends:
        return f"{named} is for a partition without a directory here"
    end = ends[entry.topic, entry.partition]
    if end is not None and entry.offset > end:
        return f"{named} is beyond the end of the log, {end}"
    return f"{named} is negative" if entry.offset < 0 else None
