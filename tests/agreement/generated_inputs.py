"""Inputs for the engines, the same for the same seed: generated frames of a schema, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from tests.agreement.damage import damaged, damaged_inside, repaired
from tests.strategies.laws import examples, together
from wirekit.strategies import frames, mutations

Input = tuple[dict[str, Any], bytes]
"""What is said about bytes, and the bytes."""

INSIDE = 0.1
"""How many inputs are damaged inside compressed data, where there is any."""
REPAIRED = 0.25
"""How many inputs have their lengths and checksums set right after the damage."""


def inputs(key: str, seed: int, count: int, *, sound: int = 40, named: int = 15) -> Iterator[Input]:
    """So many inputs of a schema: sound frames, named damage, then damage of any kind to both.

    Args:
        sound: how many frames are generated; the rest is made from them.
        named: how many mutations of a kind with a name.
    """
    first: list[Input] = []
    sound, named = min(sound, count), min(named, count)
    examples(together(key, frames), first.append, count=sound, start=seed)
    if named:
        examples(
            together(key, mutations), lambda drawn: first.append((drawn[0], drawn[1].data)), count=named, start=seed
        )
    first = first[:count]
    yield from first
    chance = Random(f"{key} {seed}")
    contexts = [context for context, _ in first]
    frames_ = [data for _, data in first]
    packed = [(context, data) for context, data in first if damaged_inside(Random(0), key, data, context) is not None]
    for _ in range(count - len(first)):
        context = chance.choice(contexts)
        if packed and chance.random() < INSIDE:
            context, data = chance.choice(packed)
            yield context, damaged_inside(chance, key, data, context) or data
            continue
        data = damaged(chance, frames_)
        yield context, repaired(key, data, context) if chance.random() < REPAIRED else data
