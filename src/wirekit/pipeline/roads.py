"""Decides which captures are read by columns."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from wirekit.capture.files import content_size, is_packed, open_capture
from wirekit.errors import WireError
from wirekit.pipeline.inputs import Input
from wirekit.storage import is_remote

LEAST_FOR_COLUMNS = 16 << 20
"""The size in bytes from which ``auto`` chooses columns for a capture."""

LEAST_COMPILED = 4 << 20
"""As ``LEAST_FOR_COLUMNS``, on a machine that has compiled the interpreter of layouts already."""

PACKETS_COMPILED = 6000
"""The number of packets that counts as ``LEAST_COMPILED`` bytes: the time of objects depends on both."""

LEAST_AMONG_OTHERS = 256 << 10
"""The size in bytes from which ``auto`` chooses columns for one of several captures whose total size suffices.

The captures share the time to load the kernels.
"""

SAMPLE = 64 << 10
"""The bytes at the beginning of a capture from which the number of its packets is estimated."""


def is_compressed(file: Input) -> bool:
    """Whether a file is compressed; False if the system refuses to read it, which later readers report."""
    try:
        return is_packed(file.path)
    except OSError:
        return False


def unpacked_size(files: Iterable[Input]) -> int:
    """The bytes of captures, as far as they matter for ``by_columns``.

    Local compressed captures count with their bytes after decompression, those of many small packets with at least
    ``LEAST_COMPILED`` bytes.
    """
    return sum(map(_unpacked, files))


def _unpacked(file: Input) -> int:
    if file.size >= LEAST_FOR_COLUMNS or is_remote(file.path):
        return file.size
    size = file.size
    try:
        size = max(size, content_size(file.path, LEAST_FOR_COLUMNS))
        if LEAST_AMONG_OTHERS <= size < LEAST_COMPILED and _packets(file, size) >= PACKETS_COMPILED:
            return LEAST_COMPILED
    except (OSError, WireError):  # later readers report it
        pass
    return size


def _packets(file: Input, size: int) -> int:
    """An estimate of the number of packets in a capture of this size in bytes."""
    with open_capture(file.path) as capture:
        return sum(1 for _ in capture.packets(end=SAMPLE)) * size // SAMPLE


def by_columns(size: int, road: str = "auto", *, compiles: bool = True) -> bool:
    """Whether columns read a capture of this size; for a small capture, loading the kernels costs more than it saves.

    Args:
        size: size of the capture in bytes, as ``unpacked_size`` counts them.
        road: as in ``Job``.
        compiles: whether a large capture may wait for the compilation of the interpreter.
    """
    if road != "auto":
        return road == "columns"
    if size < LEAST_COMPILED or find_spec("numba") is None:
        return False
    from wirekit.compiler.cache import interpreter_is_compiled

    return (compiles and size >= LEAST_FOR_COLUMNS) or interpreter_is_compiled()


def captures_by_columns(files: Iterable[Input], road: str = "auto") -> bool:
    """Whether columns read a capture of these files, as for ``by_columns``; counts bytes only where it matters."""
    return by_columns(unpacked_size(files) if road == "auto" else 0, road)


def road_among(size: int, files: Iterable[Input], road: str) -> str:
    """The road for one of the captures that a process reads.

    Args:
        size: the size in bytes of all captures together.
        files: the files of this capture.
        road: as in ``Job``.
    """
    is_large = road == "auto" and by_columns(size) and unpacked_size(files) >= LEAST_AMONG_OTHERS
    return "columns" if is_large else road
