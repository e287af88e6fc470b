"""The law of accounting: every captured payload byte is in exactly one place, whatever is wrong with the capture.

Of each direction, captured = frames + quarantined + duplicate + ignored; frames, quarantine and gaps follow one another
without hole or overlap; and what was captured, in number and content, is what a second parser of the file finds.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from tests.capture.damage import DAMAGES, SINGLE
from tests.capture.second_parser import Packet, Stream, packets, payloads, tcp, write
from tests.conftest import FIXTURES
from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.links import Item, Link, Missing
from wirekit.capture.tcp import Segment

CAPTURES = sorted((FIXTURES / "pcap").glob("*.pcap*"))
SIDES = ("client", "server")
SPENT = ("frames", "quarantined", "duplicate", "ignored")
SAME_BYTES = SINGLE.keys() - {"misnumbered", "one_address_pair"}
"""Damages that leave each byte the place that its sender gave it."""

COPIES = 300 if os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive" else 1
SHORT = 300  # packets; of captures that have fewer there are three times as many copies


def followed(path: Path) -> list[tuple[Link, list[Item]]]:
    """The connections of a capture, each with its items in order."""
    items: dict[int, tuple[Link, list[Item]]] = {}
    with open_capture(path) as capture:
        for link, item in follow(each for each in segments(capture) if isinstance(each, Segment)):
            of_link = items.setdefault(id(link), (link, []))[1]
            if item is not None:
                of_link.append(item)
        assert not capture.skipped
        assert capture.damage is None
    return list(items.values())


def assert_accounted(accounts: list[tuple[Link, list[Item]]], captured: Iterable[Packet], *, content: bool) -> None:
    """The law, of all connections of a capture."""
    captured = list(captured)
    sizes: Counter[tuple[str, str]] = Counter()
    pieces = defaultdict(list)
    for link, items in accounts:
        for side in SIDES:
            pair = link.addresses(side)
            counts = {fate: link.bytes[side, fate] for fate in ("captured", *SPENT, "missing")}
            assert counts["captured"] == sum(counts[fate] for fate in SPENT), (link, side, counts)
            sizes[pair] += counts["captured"]
            position = missing = 0
            for item in (each for each in items if each.side == side):
                assert item.offset == position, (link, item)
                size = item.length if isinstance(item, Missing) else len(item.data)
                missing += size if isinstance(item, Missing) else 0
                position += size
                if not isinstance(item, Missing):
                    pieces[pair].append((item.offset, item.data))
            assert missing == counts["missing"]
            assert position == counts["frames"] + counts["quarantined"] + missing
    assert +payloads(captured) == +sizes
    if content:
        segments_of = defaultdict(list)
        for segment in map(tcp, captured):
            segments_of[segment.source, segment.target].append(segment)
        for pair, data in pieces.items():
            assert Stream(segments_of[pair]).holds(data), pair


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_the_captures_themselves_are_accounted_for(path: Path) -> None:
    assert_accounted(followed(path), packets(path), content=True)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_damaged_copies_are_accounted_for(path: Path, damage: str, tmp_path: Path) -> None:
    whole = packets(path)
    for seed in range(3 * COPIES if len(whole) < SHORT else COPIES):
        copy = DAMAGES[damage](whole, Random(zlib.crc32(f"{path.stem} {damage} {seed}".encode())))
        accounts = followed(write(tmp_path / "copy.pcap", copy))
        alone = len({frozenset((link.client, link.server)) for link, _ in accounts}) == len(accounts)
        assert_accounted(accounts, copy, content=alone and damage in SAME_BYTES)
