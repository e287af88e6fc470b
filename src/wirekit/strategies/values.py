"""The strategies of values, of their bytes, and of contexts for a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from wirekit import decoding, encoding
from wirekit.compiler import ir
from wirekit.compiler.expressions import Context, Literal, Operation, operands_of
from wirekit.compiler.values import Names, expressions_of
from wirekit.encoding import built_key
from wirekit.errors import Misuse, WirekitError
from wirekit.strategies.branches import branches
from wirekit.strategies.choices import Draw, DrawnChoices, Rejected, SeededChoices
from wirekit.strategies.drawing import Wish
from wirekit.strategies.layout import Layout, layout_of
from wirekit.strategies.maker import Maker
from wirekit.values import Record, Symbol, field_of, pairs

MOST_REFUSED = 1000
"""The number of attempts after which the caller's constants fit no value."""


def values(
    key: str,
    *,
    context: Mapping[str, Any] | None = None,
    depth: int = 2,
    clean: bool = False,
    aim: Iterable[str] = (),
    fields: Mapping[str, Any] | None = None,
    reached: set[str] | None = None,
) -> st.SearchStrategy[Any]:
    """Values that ``encode(key, value, context=context)`` accepts and ``decode`` returns again (``agrees``).

    They reach every branch of the layout that the context allows: null, empty and present fields, the ends of integer
    ranges, numbers without a symbol, unusual text, compressed data with every codec, unknown protobuf fields.

    Args:
        key: a schema key, or a protocol's name for a frame of its client stream.
        context: as for ``encode``; see ``contexts`` for the ones that matter to a layout.
        depth: the maximum depth to which a schema may contain itself, and compressed data may contain compressed data.
        clean: leave out values that decode with a gap or a bad check.
        aim: names of branches (see ``branches``) to reach, if the rest of the value allows it.
        fields: {end of a path: strategy or constant} for fields with given values: ``topic`` means every field of that
            name, ``body.topic`` those inside ``body``. Paths have no list indexes; ``encode`` must accept the values,
            and a symbol may be given by its name. Bit fields are fields, too.
        reached: a set that receives the names of the reached branches (see ``branches``).

    Raises:
        Misuse: for a key, a branch or a field that does not exist, for a field that is computed, and for constants that
            no value of the layout has.

    >>> from hypothesis import find
    >>> import wirekit
    >>> value = find(values("kafka.offset_index"), lambda value: bool(value["entries"]))
    >>> len(value["entries"]), len(wirekit.encode("kafka.offset_index", value))
    (1, 8)
    >>> find(values("kafka.sasl_token", fields={"token": st.just(b"t")}), lambda value: True)
    {'token': b't'}
    """
    layout = layout_of(built_key(key))
    if isinstance(aim, str):
        raise Misuse(f"aim must be a list of branches, not {aim!r}")
    aimed = frozenset(aim)
    unknown = aimed - set(branches(layout.key))
    if unknown:
        raise Misuse(f"{layout.key} has no branch {', '.join(sorted(unknown))}; wirekit.strategies.branches lists them")
    wish = Wish(depth, clean, aimed, layout.leading(aimed), fields=ends_of(layout, fields))
    check_constants(layout, dict(context or {}), wish, lambda source: not isinstance(source, st.SearchStrategy))
    return drawn(layout, dict(context or {}), wish, reached)


def ends_of(layout: Layout, fields: Mapping[str, Any] | None) -> dict[Names, Any]:
    """The given fields, by the ends of their paths.

    Raises:
        Misuse: for a name that no field has, or only one that is computed.
    """
    if not fields:
        return {}
    names = layout.field_names
    for name in fields:
        unknown = [part for part in name.split(".") if part not in names]
        if unknown:
            raise Misuse(
                f"{layout.key} has no field {unknown[0]!r}, or encode computes it; "
                f"`wirekit schemas {layout.key}` lists the fields"
            )
    return {tuple(name.split(".")): source for name, source in fields.items()}


def check_constants(layout: Layout, context: dict[str, Any], wish: Wish, is_constant: Callable[[Any], bool]) -> None:
    """Refuses constants that fit no value; hypothesis would only say that it found none.

    Raises:
        Misuse: with the reason why the last value was refused.
    """
    constants = {end: source for end, source in wish.fields.items() if is_constant(source)}
    if not constants:
        return
    constant_wish, reason = replace(wish, fields=constants), "its values do not have these fields"
    choices = SeededChoices(Random(layout.key))
    for _ in range(MOST_REFUSED):
        try:
            refusal = _refusal(layout.key, Maker(layout, choices, context, constant_wish).draw(), context)
        except Rejected:
            continue
        except WirekitError as error:
            refusal = str(error)
        if not refusal:
            return
        reason = refusal
    names = ", ".join(".".join(end) for end in constants)
    raise Misuse(f"no value of {layout.key} was found with the given constants for {names}: {reason}")


@st.composite
def drawn(
    draw: Draw,
    layout: Layout,
    context: dict[str, Any],
    wish: Wish,
    reached: set[str] | None = None,
) -> Any:
    maker = Maker(layout, DrawnChoices(draw), context, wish)
    try:
        value = maker.draw()
    except Rejected:
        reject()
    if not wish.dive and _refusal(layout.key, value, context):
        reject()
    if reached is not None:
        reached |= maker.taken_branches
    return value


def _refusal(key: str, value: Any, context: Mapping[str, Any]) -> str:
    """Why a value cannot be encoded, or decoding does not return it; "" if it does."""
    try:
        data = encoding.encode(key, value, context=context)
    except WirekitError as error:
        return str(error)
    decoded = decoding.decode(data, key, context=context)
    if decoded.error is not None:
        return str(decoded.error)
    same = decoded.consumed == len(data) and agrees(value, decoded.value)
    return "" if same else "decoding the bytes gives another value"


def agrees(expected: Any, decoded: Any) -> bool:
    """Whether a decoded value agrees with the value that was encoded.

    Fields that were left out may have any value; ``b""`` also stands for padding, a name for its symbol.

    >>> import wirekit
    >>> expected = {"correlation_id": 7, "body": {"error_code": 0}}
    >>> data = wirekit.encode("kafka.heartbeat.response.v0", expected)
    >>> agrees(expected, wirekit.decode(data, "kafka.heartbeat.response.v0").value)
    True
    """
    if isinstance(expected, Mapping | Record):
        if not isinstance(decoded, Mapping | Record):
            return False
        extra = decoded._beside() if isinstance(decoded, Record) else {}
        return all(
            agrees(item, extra.get(name[1:]) if name.startswith("$") else field_of(decoded, name))
            for name, item in pairs(expected)
        )
    if isinstance(expected, list):
        if not expected and decoded is None:
            return True
        return isinstance(decoded, list) and len(expected) == len(decoded) and all(map(agrees, expected, decoded))
    if isinstance(decoded, Symbol) and isinstance(expected, str):
        return decoded.symbol == expected
    if expected == b"":
        return decoded is None or (isinstance(decoded, bytes) and not any(decoded))
    return bool(expected == decoded) or (expected != expected and decoded != decoded)


def frames(
    key: str,
    *,
    context: Mapping[str, Any] | None = None,
    depth: int = 2,
    clean: bool = False,
    fields: Mapping[str, Any] | None = None,
) -> st.SearchStrategy[bytes]:
    """The bytes of ``values``; the arguments are the same."""
    full, fixed = built_key(key), dict(context or {})
    return values(full, context=fixed, depth=depth, clean=clean, fields=fields).map(
        lambda value: encoding.encode(full, value, context=fixed)
    )


def contexts(key: str) -> st.SearchStrategy[dict[str, Any]]:
    """Contexts for bytes of a schema: each case that its layout distinguishes, values between them, and no context.

    >>> from hypothesis import find
    >>> find(contexts("kafka.response"), lambda context: context.get("api") == "fetch" and context["version"] > 1)
    {'api': 'fetch', 'version': 2}
    """
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for node in layout_of(built_key(key)).nodes:
        for tree in expressions_of(node):
            for part in operands_of(tree):
                if isinstance(part, Operation):
                    for name in [operand.name for operand in part.operands if isinstance(operand, Context)]:
                        near = [item.value for item in part.operands if isinstance(item, Literal)]
                        cases = groups.setdefault((name,), [{}])
                        cases += [{name: value} for item in near if isinstance(item, int) for value in (item, item - 1)]
                elif isinstance(part, Context) and part is tree and not isinstance(node, ir.Choice):
                    groups.setdefault((part.name,), [{}]).append({part.name: 1})
        if isinstance(node, ir.Choice) and any(isinstance(tree, Context) for tree in node.on):
            places = {tree.name: index for index, tree in enumerate(node.on) if isinstance(tree, Context)}
            cases = groups.setdefault(tuple(places), [{}])
            cases += [{name: values[index] for name, index in places.items()} for values, _ in node.cases]
            cases.append({name: _other(values[index] for values, _ in node.cases) for name, index in places.items()})
    distinct = [[case for index, case in enumerate(cases) if case not in cases[:index]] for cases in groups.values()]
    together = st.tuples(*(st.sampled_from(cases) for cases in distinct))
    return together.map(lambda cases: {name: value for case in cases for name, value in case.items()})


def _other(values_: Iterable[Any]) -> Any:
    case_values = list(values_)
    return max(case_values) + 1 if all(isinstance(value, int) for value in case_values) else "?"
