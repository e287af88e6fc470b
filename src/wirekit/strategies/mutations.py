"""The strategy of named defects: a value that can have the defect, and its bytes with that one defect."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from wirekit import encoding
from wirekit.compiler import ir
from wirekit.compiler.contexts import contexts_of
from wirekit.compiler.settling import settled
from wirekit.encoding import built_key
from wirekit.errors import Misuse, WirekitError
from wirekit.registry import registry
from wirekit.strategies.choices import Draw, Rejected, SeededChoices, StackEnds, upto
from wirekit.strategies.damage import Recipe, recipes_of
from wirekit.strategies.drawing import Wish
from wirekit.strategies.layout import Layout, closed_in, layout_of
from wirekit.strategies.maker import Maker
from wirekit.strategies.nodes import KINDS, kinds_of
from wirekit.strategies.values import drawn

DIVES = 20
"""Attempts to generate a value that is nested too deeply."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """Bytes with one defect.

    Attributes:
        name: the defect, one of ``KINDS``.
        path: the field.
        data: the damaged bytes.
        original: the bytes before the damage; for ``too deep`` a valid value of less depth.
    """

    name: str
    path: str
    data: bytes
    original: bytes


def mutations(
    key: str,
    *,
    context: Mapping[str, Any] | None = None,
    kinds: Iterable[str] | None = None,
    depth: int = 2,
) -> st.SearchStrategy[Mutation]:
    """Frames with one defect; the kinds that a frame offers are equally likely.

    The encoder writes a wrong length, checksum, constant, symbol or reserved bit, so lengths and checksums around it
    are correct. If the format does not allow that, bytes are replaced.

    Args:
        key: as for ``values``.
        context: as for ``values``.
        kinds: names from ``KINDS``, by default all. A schema that offers none of them in this context gives no frame.
        depth: as for ``values``.

    Raises:
        Misuse: for a key or a kind that does not exist.

    >>> from hypothesis import find
    >>> import wirekit
    >>> wrong = find(mutations("kafka.message", kinds=["checksum"]), lambda mutation: True)
    >>> wrong.name, wrong.path, [check.status for check in wirekit.decode(wrong.data, "kafka.message").checks]
    ('checksum', 'crc', ['bad'])
    """
    layout = layout_of(built_key(key))
    offered = _offered(layout, context or {})
    names = KINDS if kinds is None else [*kinds]
    for kind in names:
        if kind not in KINDS:
            raise Misuse(f"no kind of damage {kind!r}; choose from {', '.join(KINDS)}")
    requested = tuple(kind for kind in offered if kind in names)
    return _mutations(layout, dict(context or {}), requested, depth) if requested else st.nothing()


@st.composite
def _mutations(draw: Draw, layout: Layout, context: dict[str, Any], requested: tuple[str, ...], depth: int) -> Mutation:
    """Draws the kind first, and then a value that allows it; a value that allows only other kinds gets one of these."""
    kind = requested[draw(upto(len(requested) - 1))]
    if kind == "too deep":
        return _too_deep(draw, layout, context)
    key = layout.key
    wish = Wish(depth, leading=layout.offering(kind))
    original = encoding.encode(key, draw(drawn(layout, context, wish)), context=context)
    by_kind: dict[str, list[Recipe]] = {}
    for recipe in recipes_of(key, original, context):
        by_kind.setdefault(recipe[0], []).append(recipe)
    possible = [name for name in requested if name in by_kind]
    if not possible:
        reject()
    recipes = by_kind[kind if kind in by_kind else possible[draw(upto(len(possible) - 1))]]
    first = draw(upto(len(recipes) - 1))
    for name, path, change in (*recipes[first:], *recipes[:first]):
        data = change()
        if data is not None and data != original:
            return Mutation(name, path, data, original)
    return reject()


def _too_deep(draw: Draw, layout: Layout, context: dict[str, Any]) -> Mutation:
    """A value nested more deeply than the limits allow, and one that is not."""
    original = encoding.encode(layout.key, draw(drawn(layout, context, Wish(0))), context=context)
    deep = draw(drawn(layout, context, dive(layout)))
    try:
        return Mutation("too deep", "", encoding.encode(layout.key, deep, context=context), original)
    except WirekitError:
        return reject()


def kinds(key: str, *, context: Mapping[str, Any] | None = None) -> list[str]:
    """The names of the mutations that some value of a schema offers, in the order of ``KINDS``.

    Args:
        key: as for ``values``.
        context: as for ``values``; by default, and where a choice has no case for it, any that the schema takes.

    Raises:
        Misuse: for a key that does not exist.

    >>> kinds("kafka.sasl_token")
    ['length too small', 'length too large', 'length negative', 'length huge', 'truncated', 'trailing bytes']
    >>> "unknown symbol" in kinds("kafka.response"), "unknown symbol" in kinds("kafka.response", context={})
    (True, False)
    """
    return list(_offered(layout_of(built_key(key)), context))


def _offered(layout: Layout, context: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The kinds that values allow in a context; None for any context."""
    if context is None or not contexts_of(layout.root):
        return _of_nodes(layout)
    try:
        root = settled(layout.key, layout.root, context)
    except Misuse:  # a choice has no case for the context; not every value contains the choice
        return _of_nodes(layout)
    nodes = [node for _, node in ir.walk(root)]
    closed = closed_in(nodes)
    referred = [layout_of(node.key) for node in nodes if isinstance(node, ir.Reference)]
    inside = {kind for each in referred for kind in _of_nodes(each)} - {"truncated"}
    offered = {kind for node in nodes if id(node) not in closed for kind in kinds_of(node)} | inside
    return _in_order(offered, root)


@functools.cache
def _of_nodes(layout: Layout) -> tuple[str, ...]:
    offered = {kind for node in layout.nodes if id(node) not in layout.closed for kind in kinds_of(node)}
    if sinks(layout):
        offered.add("too deep")
    return _in_order(offered, layout.root)


def dive(layout: Layout) -> Wish:
    """A value that is nested more deeply than the limits allow."""
    return Wish(0, dive=registry[layout.key].limits.depth + 1)


@functools.cache
def sinks(layout: Layout) -> bool:
    """Whether values can be nested more deeply than the limits allow, on Python's stack."""
    choices = SeededChoices(Random(layout.key))
    for _ in range(DIVES if layout.recursive else 0):
        try:
            Maker(layout, choices, {}, dive(layout)).draw()
        except StackEnds:
            return False
        except Rejected:
            continue
        break
    return layout.recursive


def _in_order(offered: set[str], root: ir.Node) -> tuple[str, ...]:
    """Kinds of nodes with those that any value has, in the order of ``KINDS``."""
    offered = offered | {"trailing bytes"}
    if root != ir.Structure("Empty", (), (), ()):
        offered.add("truncated")
    return tuple(kind for kind in KINDS if kind in offered)


def damage(key: str, data: bytes, *, context: Mapping[str, Any] | None = None) -> Iterator[Mutation]:
    """All mutations of given bytes, one after the other; bytes that decode with an error have none.

    >>> import wirekit
    >>> data = wirekit.encode("kafka.sasl_token", {"token": b"ab"})
    >>> [(wrong.name, wrong.data.hex()) for wrong in damage("kafka.sasl_token", data)][:3]
    [('length too small', '000000016162'), ('length too large', '000000036162'), ('length negative', 'ffffffff6162')]
    """
    for name, path, change in recipes_of(built_key(key), data, dict(context or {})):
        changed = change()
        if changed is not None and changed != data:
            yield Mutation(name, path, changed, data)
