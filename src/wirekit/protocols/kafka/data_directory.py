"""Checks a broker's data directory: each partition as ``partition`` does, and the checkpoints against the logs.

Every partition that a checkpoint names must exist, and its log must extend to the offset. Source: Kafka 0.10.2
``OffsetCheckpoint.scala``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from wirekit.decoding import decode
from wirekit.errors import plural
from wirekit.protocols.kafka.partition import check_partition, read_whole, unreadable
from wirekit.protocols.kafka.searching import base_offset
from wirekit.protocols.kafka.segment_file import named_partition
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
        data = read_whole(path)
    except OSError as error:
        report.problems.append(unreadable(path, error))
        return
    if not data and name != PROPERTIES:  # OffsetCheckpoint makes the file empty, and reads it as one without entries
        report.facts["checkpoints"][name] = 0
        return
    text = data.replace(b"\r\n", b"\n")  # lines of a broker on Windows
    decoded = decode(text, key)
    value, end = decoded.value, len(text)
    if decoded.error is not None:
        end = decoded.error.offset or 0
        report.problems.append(_problem(path, f"{decoded.error.path}: {decoded.error.reason}", data, text, end))
    if name == PROPERTIES:
        lines = [line for line in value.get("lines") or () if line.get("value") is not None]
        report.facts["meta"] = {line.name: line.value for line in lines}
        return
    entries = [entry for entry in value.get("entries") or () if "offset" in entry]
    report.facts["checkpoints"][name] = len(entries)
    if decoded.error is None and value.tail:
        place = end - len(value.tail)
        report.problems.append(
            _problem(path, f"{plural(len(value.tail), 'byte')} after the last line", data, text, place)
        )
    if value.get("version", 0) != 0:
        report.problems.append(Problem(str(path), f"version {value.version}: Kafka reads only version 0", 0, 0))
    for number, entry in enumerate(entries):
        wrong = _wrong(entry, CHECKPOINTS[name], ends)
        if wrong is not None:
            report.problems.append(Problem(str(path), wrong, None, number + IN_FRONT))


def _problem(path: Path, reason: str, data: bytes, text: bytes, place: int) -> Problem:
    """A problem at a place in the text of a file, whose lines may have one byte more in the file."""
    return Problem(str(path), reason, place + (text.count(b"\n", 0, place) if len(data) > len(text) else 0))


def _wrong(entry: Any, checkpoint: str, ends: dict[tuple[str, int], int | None]) -> str | None:
    """The contradiction between an entry of a checkpoint and the log."""
    subject = f"the {checkpoint} of {entry.topic} {entry.partition}, {entry.offset},"
    if (entry.topic, entry.partition) not in ends:
        return f"{subject} is for a partition without a directory here"
    end = ends[entry.topic, entry.partition]
    if end is not None and entry.offset > end:
        return f"{subject} is beyond the end of the log, {end}"
    return f"{subject} is negative" if entry.offset < 0 else None
