"""The state of one decode of the rows engine: compact verdicts, spans, decompressed data, limits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wirekit.compiler.source import Unusual
from wirekit.errors import WireError
from wirekit.values import Check, Record, Span
from wirekit.wire.compressed import NEED_SIZE, Opened
from wirekit.wire.costs import OPENED, SPAN, VERDICT
from wirekit.wire.references import referred
from wirekit.wire.stream import Allowance, Limits

Unit = Callable[..., tuple[Any, int]]
span = functools.partial(tuple.__new__, Span)


class Cut(Exception):
    """The limit of a list cuts its last element, which then belongs to the next field."""


@dataclass(frozen=True, slots=True)
class Site:
    """The facts that all verdicts of one place in the layout share; its path has ``%d`` for an index.

    Attributes:
        differs: whether the verdict has a stored and a computed number.
        note: the text of the verdict, if these do not explain it.
    """

    path: str
    kind: str
    status: str
    differs: bool = False
    note: str = ""


site_of = functools.lru_cache(1 << 12)(Site)
"""The site with these facts, for all verdicts the same object."""


class State(Allowance):
    """State of one decode: verdicts not yet expanded, spans, decompressed data, limits; its own allowance.

    Attributes:
        checks: (site, path's prefix, number, position, source, indexes in the path...) of each verdict.
        source: the number of the current buffer, 0 for the input.
        part: the last bytes that are a piece of a larger value.
        bad: whether a bad verdict was recorded, even if it was dropped later.
        spans: the spans of the fields; None if they are not recorded.
        origin: absolute offset of the first byte of the current buffer.
        charged: the number of spans whose memory was counted.
        gaps: (start, end, path) of bytes of a frame that no field explains; None if they end the decode.

    Args:
        size: bytes of the input.
    """

    __slots__ = (
        "bad", "charged", "checks", "depth", "frame", "gaps", "nested", "origin", "params", "part", "protocol",
        "source", "sources", "spans",
    )  # fmt: skip

    def __init__(self, protocol: str, params: Mapping[str, Any], limits: Limits, size: int = 0) -> None:
        self.part: bytes | None = None
        self.protocol = protocol
        self.params = params
        Allowance.__init__(self, limits, size)
        self.frame = limits.frame
        self.checks: list[tuple[Any, ...]] = []
        self.sources: list[tuple[bytes, str]] = []
        self.source = 0
        self.bad = False
        self.gaps: list[tuple[int, int, str]] | None = None
        self.depth = 0
        self.nested = 0
        self.spans: list[Span] | None = None
        self.origin = 0
        self.charged = 0

    def trace(self, origin: int) -> None:
        """Makes the state receive spans, from a function that records them; the input begins at an absolute offset."""
        self.spans, self.origin = [], origin

    @property
    def clean(self) -> bool:
        """Whether all verdicts are good and all bytes belong to a field."""
        if self.gaps:
            return False
        return not self.bad or all(site.status != "bad" for site, *_ in self.checks)

    def verdicts(self, origin: int) -> list[Check]:
        """The verdicts in the form of the other engines."""
        checks = []
        for site, prefix, number, position, source, *indexes in self.checks:
            start = 0 if source else origin
            path = joined(prefix, site.path % tuple(indexes))
            stored, computed = number if site.differs else (number, number)
            checks.append(Check(path, site.kind, stored, computed, site.status, start + position, source, site.note))
        return checks

    def charge(self, size: int) -> None:
        """Counts memory of values, in bytes; raises ``Unusual`` if it exceeds the limit."""
        self.room -= size
        if self.room < 0:
            raise Unusual

    def charge_spans(self, path: str, more: int = 0) -> None:
        """Counts the memory of the spans since the last call, at this path, and of those that follow."""
        assert self.spans is not None
        number = len(self.spans) + more
        self.room -= (number - self.charged) * (SPAN + len(path))
        self.charged = number
        if self.room < 0:
            raise Unusual

    def add_numbers(self, path: str, start: int, size: int, count: int) -> None:
        """The spans of the numbers of a list."""
        self.charge_spans(path, count)
        assert self.spans is not None
        source, places = self.source, range(start, start + count * size, size)
        self.spans += [
            span((f"{path}[{index}]", at, at + size, source, None, None, "number")) for index, at in enumerate(places)
        ]

    def left_over(self, path: str, name: str, b: bytes, p: int, e: int) -> bytes:
        """The bytes that the fields inside a frame's length leave over."""
        if path:
            raise Unusual
        self.unexplained(name, p, e)
        return b[p:e]

    def unexplained(self, path: str, p: int, e: int) -> None:
        """Records a field of a frame as a gap."""
        if self.gaps is None or self.source or self.nested or "[" in path:
            raise Unusual
        self.gaps.append((p, e, path))
        self.charge(VERDICT + len(path))

    def differ(self) -> None:
        """Records that a checksum differs from that of the bytes, or that null or a flag is an unusual number."""
        raise Unusual

    def open(
        self, codec: str, data: bytes, size: int | None, sized: bool, unit: Unit, path: str, *above: Any
    ) -> Record:
        """The record of compressed data: the bytes and their content."""
        if self.depth >= self.limits.depth or (sized and size is None and codec in NEED_SIZE):
            raise Unusual
        try:
            plain = self.decompress(codec, data, size)
        except WireError:
            raise Unusual from None
        self.charge(OPENED)
        path = joined(path, "content")
        self.sources.append((plain, path))
        outer, self.source = self.source, len(self.sources)
        origin, self.origin = self.origin, 0
        self.depth += 1
        content, end = unit(self, plain, 0, len(plain), path, *above)
        self.depth -= 1
        self.source, self.origin = outer, origin
        if end != len(plain):
            raise Unusual
        record = Opened()
        record.compressed = data
        record.content = content
        return record

    def refer(self, key: str, unit: Unit, b: bytes, p: int, e: int, q: str) -> tuple[Any, int]:
        """A value of another schema, or of the same one."""
        self.charge(referred(key).cost)
        if self.nested >= self.limits.depth:
            raise Unusual
        self.nested += 1
        result = unit(self, b, p, e, q)
        self.nested -= 1
        return result


NOTHING_FOUND = State("", {}, Limits())
"""The shared state of clean decodes without further verdicts, so that stored frames need no state of their own."""

LEFT_OVER = State("", {}, Limits())
"""The shared state of decodes whose only irregularity is bytes left over."""
LEFT_OVER.gaps = [(0, 0, "")]


def joined(outer: str, inner: str) -> str:
    """The path of a value inside another."""
    return f"{outer}.{inner}" if outer and inner and inner[0] != "[" else outer + inner


class Unverified(State):
    """State of a decode that ignores wrong checksums and decompresses nothing."""

    __slots__ = ()

    def differ(self) -> None:
        self.bad = True

    def open(self, codec: str, data: bytes, *_: Any) -> Any:
        """Compressed data, not decompressed."""
        return data
