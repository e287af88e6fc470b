"""Fields of a protobuf message that are derived from members after the message: sizes and counts.

A varint has no fixed place to patch, so such a field gets its number before the message is written. The struct that
holds the message and the derived member computes it; this module holds the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wirekit.errors import Misuse
from wirekit.values import Record, field_of, plain_mapping
from wirekit.wire.node import Node
from wirekit.wire.stream import Reader, Scope, Writer


class DerivedFrom:
    """A field of a protobuf message that is derived from a member after the message.

    Building computes it. A wrong number that was parsed, or a field that the message's ``$keep`` names, is written
    unchanged.

    Args:
        of: the member of the struct that holds the message.
    """

    quantity = ""

    def __init__(self, of: str) -> None:
        self.of = of


class SizeOf(DerivedFrom):
    """The size of a member in bytes; of a compressed member, its size after decompression.

    An absent optional field stays absent unless the member is compressed. Cipher text and pieces of a larger object
    (``rest(part=True)``) leave the field unchanged.
    """

    quantity = "size"


class CountOf(DerivedFrom):
    """The number of elements of a list, compressed or not; the field is absent for any other value.

    Pass ``count=`` to the list itself to verify the number.
    """

    quantity = "count"


@dataclass(frozen=True, slots=True)
class Derived:
    """The field ``field`` of member ``at``, a message, holds ``quantity`` (size or count) of member ``of``; by index.

    ``required``: the message cannot be without the field.
    """

    at: int
    field: str
    quantity: str
    of: int
    required: bool


def check_derived(names: list[str], cores: list[Node]) -> None:
    """Refuses fields of messages that are derived from members which do not exist, or come before the message."""
    for at, core in enumerate(cores):
        for name, each in getattr(core, "derived", {}).items():
            if each.of not in names[at + 1 :]:
                raise Misuse(f"{names[at]}.{name} is derived from {each.of!r}, which is not a later field")


def derived_fields(names: list[str], cores: list[Node]) -> Iterator[Derived]:
    """Lists the fields of messages among the members of a struct that are derived from other members.

    Raises:
        Misuse: if a message has no such field.
    """
    for at, core in enumerate(cores):
        for name, each in getattr(core, "derived", {}).items():
            message: Any = getattr(core, "message", None)
            if name not in message.by_name:
                raise Misuse(f"{names[at]}: {message.name} has no field {name!r}")
            yield Derived(at, name, each.quantity, names.index(each.of), bool(message.by_name[name].required))


def elements(value: Any) -> int | None:
    """The number of elements of a list, compressed or not; None for anything else."""
    if isinstance(value, (Record, Mapping)):
        value = value.get("content")
    return len(value) if isinstance(value, (list, tuple)) else None


def _has_content(value: Any) -> bool:
    """Whether the value is compressed data with decoded content."""
    return "content" in (value._fields if isinstance(value, Record) else value if isinstance(value, Mapping) else ())


def verify(
    derived: Derived, message: Any, value: Any, extent: int | None, stream: Reader, position: int, end: int | None
) -> None:
    """Verifies a parsed number; ``$keep`` lists it if building would change it.

    Args:
        message: the record that holds the number, None if it is absent.
        value: the member that it is derived from.
        extent: the size of the member in bytes, None if the number does not count them.
        position: the start of the message.
        end: the end of the member, None if no byte of it is missing.
    """
    if message is None:
        return
    stored = field_of(message, derived.field)
    if derived.quantity == "count":
        number = elements(value)
        right = number is None or number == stored
    elif _has_content(value):
        right = stored is not None
    else:
        right = stored is None or extent is None or stored == extent
        if not right:
            stream.session.path.append(derived.field)
            stream.check("length", stored, extent, False, position, end=end)
            stream.session.path.pop()
    if not right:
        message._beside().setdefault("keep", []).append(derived.field)


def derive(derived: Derived, message: Any, value: Any, node: Node, stream: Writer, scope: Scope) -> Any:
    """The message with the number computed from the value; the same message if nothing changes."""
    if not isinstance(message, (Record, Mapping)):
        return message
    unchanged = (message._extra or {}).get("keep", ()) if isinstance(message, Record) else message.get("$keep", ())
    if derived.field in unchanged:
        return message
    stored = field_of(message, derived.field)
    if derived.quantity == "count":
        number = elements(value)
    elif stored is None and not derived.required and not _has_content(value):
        number = None
    else:
        number = node.settled(scope).plain_size(value, stream, scope)
    return message if number is None or number == stored else changed(message, derived.field, number)


def counted(field: str, message: Any, value: Any) -> Any:
    """The message with its omitted number of elements, because the layout of the elements may depend on it."""
    number = elements(value)
    if number is None or not isinstance(message, Record) or message._get(field) is not None:
        return message
    return message if field in (message._extra or {}).get("keep", ()) else changed(message, field, number)


def changed(message: Any, field: str, number: int) -> Any:
    """A copy of a message with another number in a field."""
    if plain_mapping(message):
        return {**message, field: number}
    copy = type(message)(**dict(message._pairs()))
    copy._extra = message._extra
    copy[field] = number
    return copy
