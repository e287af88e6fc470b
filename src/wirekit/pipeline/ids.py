"""The ids that join the tables; equal in every run over the same files, with either engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

ID_BYTES = 10
"""Bytes of a connection's hash: the probability that two of 10¹⁰ connections have the same hash is 1 in 24,000."""


def connection_id(file: str, one: str, other: str, ordinal: int) -> str:
    """The id of a connection.

    Args:
        file: the name of the capture, as given to the run.
        one, other: address and port of both ends, in any order, because the client may be identified late.
        ordinal: number of the connection among those between these ends, from 0.

    >>> connection_id("a.pcap", "10.0.0.1:4000", "10.0.0.2:9092", 0)
    '1efd196d0df970f8c39e'
    """
    first, second = sorted((one, other))
    text = f"{file}\0{first}\0{second}\0{ordinal}".encode("utf-8", "surrogateescape")
    return blake2b(text, digest_size=ID_BYTES).hexdigest()


def frame_id(connection: str, side: str, position: int) -> str:
    """The id of a frame: its connection, ``c`` or ``s`` for the sender, and the number of bytes before it.

    >>> frame_id("f00d", "client", 17)
    'f00d-c-17'
    """
    return f"{connection}-{side[0]}-{position}"


def run_id(configuration: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]]) -> str:
    """The id of a run: equal for the same files (by name and hash) and configuration.

    Args:
        configuration: the result of ``Job.configuration``.
        inputs: ``file`` and ``sha256`` of each input; if that is null, ``size`` and ``mtime`` identify the file.
    """
    files = [[each["file"], each["sha256"] or [each["size"], each["mtime"]]] for each in inputs]
    text = json.dumps([configuration, files], sort_keys=True, ensure_ascii=True)
    return blake2b(text.encode("ascii"), digest_size=ID_BYTES).hexdigest()
