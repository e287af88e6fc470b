"""Any bytes give a value or one of wirekit's errors, and what decodes without error comes back byte for byte."""

from __future__ import annotations

import math
import random

import pytest

import wirekit
from tests import engines
from tests.jmq4.vectors import FRAMES, JUDGED, RELEASE_FRAMES

BY_ALL = 5
"""Of a frame's 20 damaged forms, how many every engine decodes; the others are for the one that is used."""

VECTORS = [bytes.fromhex(vector["hex"]) for vector in [*FRAMES, *RELEASE_FRAMES, *JUDGED]]


@pytest.mark.parametrize("key", ["joyqueue.frame", "joyqueue.frame_unsigned", "jmq4.frame"])
@pytest.mark.parametrize("version", [None, 1, 2])
def test_damaged_frames(key: str, version: int | None) -> None:
    context = {"layout_version": version} if version else {}
    chance = random.Random(f"{key} {version}")
    read = 0
    for data in VECTORS:
        for number in range(20):
            damaged = bytearray(data)
            for _ in range(chance.choice((1, 1, 2, 8))):
                place = chance.randrange(4, len(damaged))
                damaged[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            decode, encode = (wirekit.decode, wirekit.encode) if number < BY_ALL else (engines.decode, engines.encode)
            decoded = decode(bytes(damaged), key, context=context)
            if decoded.error is None:
                read += 1
                assert encode(key, decoded.value, context=context) == damaged
                # JSON has one NaN, IEEE 754 has many.
                if not math.isnan(getattr(decoded.value.payload, "point", 0.0)):
                    assert encode(key, wirekit.to_json(decoded.value), context=context) == damaged
    assert read > 100
