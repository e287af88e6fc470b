"""What it means that spans tile the bytes (docs/spans.md), as assertions."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

import wirekit
from wirekit.values import Span


def check_tiling(decoded: wirekit.Decoded) -> None:
    """Leaves tile every source, bit fields their number, containers hold what is inside, gaps are leaves."""
    leaves: dict[int, list[Span]] = defaultdict(list)
    bits: dict[tuple[str, int], list[Span]] = defaultdict(list)
    for span in decoded.spans:
        assert span.start <= span.end
        assert span.kind
        if span.kind == "bit":
            bits[span.path.rpartition(".")[0], span.start].append(span)
        elif span.leaf or span.kind == "bits":
            leaves[span.source].append(span)
        if span.kind == "bits":
            check_bits(span, bits.pop((span.path, span.start)))
    assert not bits, "every bit field lies in a number"
    check_sources(decoded, leaves)
    check_gaps(decoded, leaves)
    check_containers(decoded.spans)


def check_sources(decoded: wirekit.Decoded, leaves: dict[int, list[Span]]) -> None:
    sizes = {0: decoded.consumed, **{at: len(data) for at, (data, _) in enumerate(decoded.sources, 1)}}
    assert set(leaves) <= set(sizes)
    for source, size in sizes.items():
        origin = position = 0 if source else decoded.offset
        for span in leaves[source]:
            assert span.start == position, f"{span} begins at {position}"
            position = span.end
        whole = decoded.error is None or not source
        assert position - origin == size if whole else position - origin <= size, f"source {source} ends at {position}"


def check_bits(number: Span, fields: list[Span]) -> None:
    assert {(field.start, field.end, field.source) for field in fields} == {(number.start, number.end, number.source)}
    position = 0
    for first, width in sorted((field.bit_start or 0, field.bit_length or 0) for field in fields):
        assert first == position
        position += width
    assert position == 8 * (number.end - number.start)


def check_gaps(decoded: wirekit.Decoded, leaves: dict[int, list[Span]]) -> None:
    shown = {(span.start, span.end, source) for source in leaves for span in leaves[source] if span.kind == "gap"}
    gaps = {(gap.offset, gap.offset + gap.length, gap.source) for gap in decoded.gaps}
    assert {gap for gap in shown if gap[0] < gap[1]} == {gap for gap in gaps if gap[0] < gap[1]}


def check_containers(spans: list[Span]) -> None:
    """What stands in a container by its path lies in its bytes and comes before it; what is in front, before them."""
    containers = {(span.path, span.source) for span in spans if not span.leaf}
    inside: dict[tuple[str, int], list[Span]] = defaultdict(list)
    for span in spans:
        for inner in () if span.leaf else inside.pop((span.path, span.source), ()):
            ahead = inner.path.removeprefix(span.path).removeprefix(".") in ("$length", "$count", "$tag")
            assert inner.end <= span.start if ahead else span.start <= inner.start <= inner.end <= span.end, inner
        for path in paths_above(span.path):
            if (path, span.source) in containers:
                inside[path, span.source].append(span)


@lru_cache(1 << 12)
def paths_above(path: str) -> tuple[str, ...]:
    """The paths of what a path lies in, the innermost first."""
    above = path.rpartition("[" if path.endswith("]") else ".")[0]
    return (above, *paths_above(above)) if path else ()
