"""Fast generation of many values, frames and damaged frames, by a seeded generator without hypothesis or shrinking.

Values are those of ``wirekit.strategies.values``, drawn by the same code. Each is encoded and decoded once, and left
out if it does not decode; the decoded value is not compared with the drawn one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any

from wirekit import decoding, encoding
from wirekit.encoding import built_key
from wirekit.errors import Misuse, WirekitError
from wirekit.strategies.choices import Rejected, SeededChoices, StackEnds
from wirekit.strategies.damage import Recipe, recipes_of
from wirekit.strategies.drawing import Wish
from wirekit.strategies.layout import Layout, layout_of
from wirekit.strategies.maker import Maker
from wirekit.strategies.mutations import Mutation, dive, sinks
from wirekit.strategies.nodes import KINDS
from wirekit.strategies.values import check_constants, ends_of

MOST_REJECTED = 10_000
"""The number of consecutive failed attempts after which a layout has no value."""
MOST_BARREN = 100
"""The number of consecutive pools of frames without a requested mutation, after which generation stops."""
POOL = 32
"""The number of frames that are damaged before others are generated."""
OF_A_KIND = 3
EDITED = "edited"
"""The name of mutations by ``edited``, which may have several defects."""
LARGEST_INSERT = 64
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF)


def bulk_values(
    key: str,
    *,
    seed: int | str = 0,
    context: Mapping[str, Any] | None = None,
    depth: int = 2,
    clean: bool = False,
    fields: Mapping[str, Any] | None = None,
) -> Iterator[Any]:
    """An endless generator of values that ``encode`` accepts; the same seed gives the same values.

    Args:
        key: a schema key, or a protocol's name for a frame of its client stream.
        seed: any number or text.
        context, depth, clean: as for ``values``.
        fields: as for ``values``, but with constants, or functions of a ``random.Random``.

    Raises:
        Misuse: at once for a key or a field that does not exist, and for constants that no value of the layout has;
            while iterating, for a layout without values.

    >>> from itertools import islice
    >>> drawn = bulk_values("kafka.heartbeat.request.v0", seed=1, fields={"group_id": "g"})
    >>> {value["body"]["group_id"] for value in islice(drawn, 100)}
    {'g'}
    """
    return (value for value, _ in _drawn(key, seed, context, depth, clean, fields))


def bulk_frames(
    key: str,
    *,
    seed: int | str = 0,
    context: Mapping[str, Any] | None = None,
    depth: int = 2,
    clean: bool = False,
    fields: Mapping[str, Any] | None = None,
) -> Iterator[bytes]:
    """The bytes of ``bulk_values``; the arguments are the same.

    >>> from itertools import islice
    >>> import wirekit
    >>> frames = list(islice(bulk_frames("kafka.metadata.request.v0", seed=1), 100))
    >>> sum(wirekit.decode(frame, "kafka.metadata.request.v0").error is None for frame in frames)
    100
    """
    return (data for _, data in _drawn(key, seed, context, depth, clean, fields))


def bulk_mutations(
    key: str,
    *,
    seed: int | str = 0,
    context: Mapping[str, Any] | None = None,
    kinds: Iterable[str] | None = None,
    originals: Sequence[bytes] = (),
) -> Iterator[Mutation]:
    """An endless generator of damaged frames, the same for the same seed: half with one named defect, half ``edited``.

    Each original is decoded once; its fields give all its mutations.

    Args:
        key, seed, context: as for ``bulk_values``.
        kinds: names of mutations, ``EDITED`` among them; by default all that the layout offers.
        originals: further frames to damage; one that does not decode gives only ``EDITED``.

    Raises:
        Misuse: for a key or a kind that does not exist, at once; while iterating, for a layout without values, or
            without a field that these kinds can damage.

    >>> from itertools import islice
    >>> [wrong.name for wrong in islice(bulk_mutations("kafka.sasl_token", kinds=["truncated"]), 2)]
    ['truncated', 'truncated']
    """
    full, fixed = built_key(key), dict(context or {})
    requested = None if kinds is None else frozenset(kinds)
    if requested is not None and not requested <= {*KINDS, EDITED}:
        raise Misuse(
            f"no kind of damage {min(requested - {*KINDS, EDITED})!r}; choose from {', '.join((*KINDS, EDITED))}"
        )
    return _mutations(full, seed, fixed, requested, originals)


def _mutations(
    key: str, seed: int | str, context: dict[str, Any], requested: frozenset[str] | None, originals: Sequence[bytes]
) -> Iterator[Mutation]:
    random = Random(f"mutations of {key} {seed}")
    fresh = bulk_frames(key, seed=seed, context=context)
    layout, deep = layout_of(key), None
    if (requested is None or "too deep" in requested) and sinks(layout):
        deep = (data for _, data in _attempts(layout, SeededChoices(random), context, dive(layout)))
    barren = 0
    while barren < MOST_BARREN:
        pool = list(islice(fresh, POOL)) + random.sample(originals, min(len(originals), POOL))
        barren += 1
        for data in pool:
            for mutation in _of_one(key, data, context, requested, random, pool):
                barren = 0
                yield mutation
        if deep is not None:
            original, data = pool[0], next(deep)
            barren = 0
            yield Mutation("too deep", "", data, original)
    raise Misuse(f"{key} has no field for the damage {', '.join(sorted(requested or ()))}")


def _of_one(
    key: str,
    data: bytes,
    context: dict[str, Any],
    requested: frozenset[str] | None,
    random: Random,
    pool: Sequence[bytes],
) -> Iterator[Mutation]:
    """Mutations of one frame: a few of each kind, and the same number of edited frames."""
    by_kind: dict[str, list[Recipe]] = {}
    decoded = decoding.decode(data, key, context=context, engine="trace")
    for recipe in recipes_of(key, data, context, decoded):
        if requested is None or recipe[0] in requested:
            by_kind.setdefault(recipe[0], []).append(recipe)
    spans = [(span.start, span.end) for span in decoded.spans if span.leaf and not span.source]
    for recipes in by_kind.values():
        for name, path, change in random.sample(recipes, min(len(recipes), OF_A_KIND)):
            changed = change()
            if changed is not None and changed != data:
                yield Mutation(name, path, changed, data)
    if requested is None or EDITED in requested:
        for _ in range(OF_A_KIND * max(len(by_kind), 1)):
            changed = edited(data, random, pool, spans)
            if changed != data:
                yield Mutation(EDITED, "", changed, data)


def _drawn(
    key: str,
    seed: int | str,
    context: Mapping[str, Any] | None,
    depth: int,
    clean: bool,
    fields: Mapping[str, Any] | None,
) -> Iterator[tuple[Any, bytes]]:
    layout, fixed = layout_of(built_key(key)), dict(context or {})
    wish = Wish(depth, clean, fields=ends_of(layout, fields))
    check_constants(layout, fixed, wish, lambda source: not callable(source))
    return _attempts(layout, SeededChoices(Random(f"{layout.key} {seed}")), fixed, wish)


def _attempts(
    layout: Layout, choices: SeededChoices, context: dict[str, Any], wish: Wish
) -> Iterator[tuple[Any, bytes]]:
    rejected, reason = 0, ""
    while rejected < MOST_REJECTED:
        try:
            value = Maker(layout, choices, context, wish).draw()
            data = encoding.encode(layout.key, value, context=context)
        except StackEnds:
            raise Misuse(f"values of {layout.key} of this depth exceed Python's stack") from None
        except (Rejected, WirekitError) as error:
            rejected += 1
            reason = str(error) or reason
            continue
        if not wish.dive:
            decoded = decoding.decode(data, layout.key, context=context)
            if decoded.error is not None or decoded.consumed != len(data):
                rejected += 1
                reason = str(decoded.error or reason)
                continue
        rejected = 0
        yield value, data
    why = f" ({reason})" if reason else ""
    raise Misuse(f"{layout.key} gave no value in {MOST_REJECTED:,} attempts{why}; context= or fields= may allow none")


def edited(data: bytes, random: Random, others: Sequence[bytes] = (), spans: Sequence[tuple[int, int]] = ()) -> bytes:
    """A copy of bytes with one to four changes: bits, numbers, cuts, parts removed, repeated or from ``others``.

    It takes microseconds; the bytes are not decoded.

    Args:
        data: the bytes.
        random: the generator.
        others: bytes whose parts may be inserted.
        spans: (start, end) of fields, which changes prefer; see ``Decoded.spans``.

    >>> edited(b"\\x00\\x01\\x02\\x03", Random(3)) == edited(b"\\x00\\x01\\x02\\x03", Random(3))
    True
    """
    changed = bytearray(data)
    for _ in range(1 + random.randrange(4)):
        start, end = _part(changed, random, spans)
        _edit(_EDITS[random.randrange(len(_EDITS))], changed, start, end, random, others)
    return bytes(changed)


def _part(data: bytearray, random: Random, spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    if spans and random.random() < 0.8:
        start, end = random.choice(spans)
        if end <= len(data):
            return start, end
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.choice((1, 2, 4, 8)))


_EDITS = ("bit", "number", "number", "step", "step", "drop", "cut", "insert", "repeat", "splice")
"""Kinds of edits; a kind that occurs twice is twice as likely."""


def _edit(kind: str, data: bytearray, start: int, end: int, random: Random, others: Sequence[bytes]) -> None:
    size = end - start
    match kind:
        case "number" if 0 < size <= 8:
            bits = random.choice(NUMBERS) & (1 << 8 * size) - 1
            data[start:end] = bits.to_bytes(size, random.choice(("big", "little")))
        case "step" if 0 < size <= 8:
            number = int.from_bytes(data[start:end], "big") + random.choice((-1, 1, 2, -2, 16))
            data[start:end] = (number % (1 << 8 * size)).to_bytes(size, "big")
        case "bit" | "number" | "step" if size > 0:
            data[random.randrange(start, end)] ^= 1 << random.randrange(8)
        case "drop":
            del data[start:end]
        case "cut":
            del data[start:]
        case "insert":
            data[start:start] = random.randbytes(random.randrange(LARGEST_INSERT))
        case "repeat" if size <= LARGEST_INSERT:
            data[start:start] = data[start:end] * random.choice((1, 2, 16))
        case "splice" if others:
            other = random.choice(others)
            at = random.randrange(len(other) + 1)
            data[start:end] = other[at : at + LARGEST_INSERT]
