"""Captures made of real ones, and tables as sorted rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wirekit.capture.files import open_capture
from wirekit.capture.tcp import ACK, SYN, Segment
from wirekit.pipeline.flows import flow_batches
from wirekit.pipeline.inputs import Input, Job
from wirekit.pipeline.packet_rows import segment_row
from wirekit.pipeline.summary import Summary
from wirekit.tables.columns import FROM_INPUTS, OUTPUTS, PACKETS

RECORD_HEADER = 16  # bytes
CLIENT, SERVER = "10.0.0.1:40000", "10.0.0.2:6650"


def pcap_records(path: Path) -> tuple[bytes, list[bytes]]:
    """The header and the packet records of a pcap file, as bytes."""
    data = path.read_bytes()
    with open_capture(path) as capture:
        packets = list(capture.packets())
    header = packets[0].offset - RECORD_HEADER
    return data[:header], [data[packet.offset - RECORD_HEADER : packet.offset + len(packet.data)] for packet in packets]


def keep_packets(path: Path, target: Path, keep: Iterable[int]) -> Path:
    """A copy of a pcap file with these of its packets, counted from 0."""
    header, records = pcap_records(path)
    target.write_bytes(header + b"".join(records[number] for number in keep))
    return target


def rows(output: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table of a run, in an order that depends on their content only; but for engine and time."""
    content = pq.read_table(output / table, schema=OUTPUTS[table].schema).to_pylist()
    differing = ("engine", "finished") if table == "runs" else ()
    return sorted(({name: row[name] for name in row if name not in differing} for row in content), key=repr)


def tables(output: Path) -> dict[str, list[dict[str, Any]]]:
    """All tables of a run."""
    return {name: rows(output, name) for name in OUTPUTS}


def job_of(count: int = 1, **options: Any) -> Job:
    """A job over captures that need not exist."""
    return Job(tuple(Input(number, f"{number}.pcap", "", 0, 0) for number in range(count)), **options)


def stream(
    client: bytes = b"", server: bytes = b"", *, size: int = 1000, at_us: int = 1_000_000, file: int = 0
) -> list[Segment]:
    """A connection with its handshake that carries these bytes in segments of ``size``."""
    segments = [
        Segment(at_us, CLIENT, SERVER, 99, 0, SYN, b"", 0, file, 0),
        Segment(at_us, SERVER, CLIENT, 499, 100, SYN | ACK, b"", 1, file, 0),
    ]
    for source, target, data, first in ((CLIENT, SERVER, client, 100), (SERVER, CLIENT, server, 500)):
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            offset = len(segments)
            segments.append(
                Segment(at_us + offset, source, target, first + start, 0, 0, piece, offset, file, len(piece))
            )
    return segments


def batches(segments: Iterable[Segment], size: int = 7) -> list[pa.RecordBatch]:
    """The segments as sorted rows of ``packets``, in batches of a few."""
    table = pa.Table.from_batches(
        [
            pa.record_batch(
                list(zip(*(segment_row(each, each.file) for each in segments), strict=True)), schema=PACKETS.schema
            )
        ]
    )
    return table.sort_by([(key, "ascending") for key in PACKETS.sort]).to_batches(max_chunksize=size)


def follow_rows(segments: Iterable[Segment], **options: Any) -> tuple[dict[str, list[dict[str, Any]]], Summary]:
    """The rows of every table, and the summary, of segments of one capture."""
    summary = Summary()
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in FROM_INPUTS}
    for name, batch in flow_batches(batches(segments), job_of(**options), summary):
        tables[name] += batch.to_pylist()
    return tables, summary
