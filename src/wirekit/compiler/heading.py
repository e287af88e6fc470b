"""A byte pattern for the beginning of a layout's frames, which lets a search skip impossible positions.

The pattern tests the first numbers of the IR, including varints, that can be wrong by themselves: a length that is too
small for the fields that it covers or larger than the limit, a constant, a number that must have a symbol. The pattern
is a regular expression and runs over megabytes at once. It may match where no frame begins; it always matches where a
frame begins that decodes cleanly.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wirekit.compiler import ir
from wirekit.compiler.expressions import Literal
from wirekit.compiler.generated import by_key
from wirekit.compiler.ir import bare, fixed
from wirekit.errors import Limit, Misuse, WireError, Wrong
from wirekit.varints import BY_FIRST_BYTE
from wirekit.wire.references import referred

Ranges = list[tuple[int, int]]
ANY = (0x00, 0xFF)
MOST_NAMES = 64


@dataclass(frozen=True, slots=True)
class Heading:
    """How frames begin.

    Attributes:
        pattern: matches (no bytes) where a frame may begin.
        size: the number of bytes from there on that the search needs.
        least: the size of the smallest frame that readers accept.
        length: the offset of the frame's own length.
        after: the number of bytes of the frame that the length does not count.
        number: the form of the length; None if its offset varies.
        low, most: the smallest and largest length.
        path: the path of the length.
        framed: whether ``most`` is the limit of frames.
        parts: the lengths at fixed offsets that count the bytes after them: offset, form, and the number of bytes of
            the frame before the counted ones.
    """

    pattern: re.Pattern[bytes]
    size: int
    least: int
    length: int
    after: int
    number: struct.Struct | None
    low: int = 0
    path: str = ""
    framed: bool = False
    parts: tuple[tuple[int, struct.Struct, int], ...] = ()
    most: int = 0

    def refuses(self, data: bytes) -> bool:
        """Whether a length at a fixed offset at the start of some bytes is outside its range."""
        return len(data) >= self.size and self.announced_size(data, 0) == 0

    def overruns(self, frame: bytes) -> bool:
        """Whether a length at the start of a frame exceeds the frame, so that the frame cannot be clean."""
        size = len(frame)
        for place, number, before in self.parts:
            if size >= place + number.size and before + number.unpack_from(frame, place)[0] > size:
                return True
        return False

    def fits(self, frame: bytes) -> bool:
        """Whether a whole frame may be clean, by its heading."""
        return self.pattern.match(frame) is not None and not self.overruns(frame)

    def refusal(self, data: bytes | bytearray) -> WireError | None:
        """The error for a length outside its range, as ``frame_size`` of the engine raises it."""
        if self.number is None or len(data) < self.length + self.number.size:
            return None
        (number,) = self.number.unpack_from(data, self.length)
        if number < self.low:
            return Wrong(f"a length of at least {self.low}", number, path=self.path)
        if self.framed and number > self.most:
            return Limit("frame", self.most, number, path=self.path)
        return None

    def announced_size(self, data: bytes | bytearray, start: int) -> int | None:
        """The size of the frame at ``start``; None if the heading does not have it, 0 if its length is out of range.

        ``refusal``, or the engine's ``frame_size``, gives the error.
        """
        number = self.number
        if number is None or len(data) < start + self.length + number.size:
            return None
        length: int = number.unpack_from(data, start + self.length)[0]
        return length + self.after if self.low <= length <= self.most else 0

    def frame_size(self, buffer: bytes | bytearray, start: int) -> int | None:
        """The size of the frame at a match of the pattern; None if it depends on bytes after the heading."""
        if self.number is None:
            return None
        (number,) = self.number.unpack_from(buffer, start + self.length)
        return int(number) + self.after


def heading(key: str, most: int) -> Heading:
    """The heading of a schema's frames, whose own length is at most ``most``.

    >>> import wirekit
    >>> token = wirekit.encode("kafka.sasl_token", {"token": b"abc"})
    >>> [match.start() for match in heading("kafka.sasl_token", 255).pattern.finditer(b"..." + token)]
    [3]
    """
    heading_by_size = _headings(key)
    if most not in heading_by_size:
        layout = referred(key).layout
        numbers = list(_numbers(layout, most))
        size = sum(number.groups or number.size for number, _ in numbers)
        pattern = re.compile(b"(?=" + b"".join(_expression(*each) for each in numbers) + b")", re.DOTALL)
        parts = tuple((at, each, at + each.size - measure.add) for at, each, measure in _lengths(layout))
        heading_by_size[most] = Heading(pattern, size, _least(layout), *_length(layout), parts, most)
    return heading_by_size[most]


def _least(layout: ir.Node) -> int:
    """The size of the smallest frame, with the required fields of its messages."""
    members = layout.members if isinstance(layout, ir.Structure) else ()
    messages = [member.node.message for member in members if isinstance(member.node, ir.Protobuf)]
    if not messages:
        return ir.minimum(layout)
    from wirekit.wire.protobuf import Message

    return ir.minimum(layout) + sum(Message.by_full_name[name].least for name in messages)


_headings: Callable[[str], dict[int, Heading]] = by_key(lambda key: {})
"""The headings of a schema's frames by the largest length."""


@by_key
def fixed_numbers(key: str) -> tuple[struct.Struct, tuple[str, ...]]:
    """The reader of a schema whose fields are big-endian numbers at fixed offsets, and the names of the fields.

    Raises:
        Misuse: the schema has other fields.

    >>> reader, names = fixed_numbers("kafka.request_header")
    >>> reader.unpack(bytes.fromhex("0000000a0010000000000007")), names
    ((10, 16, 0, 7), ('size', 'api_key', 'api_version', 'correlation_id'))
    """
    layout = referred(key).layout
    members = layout.members if isinstance(layout, ir.Structure) else ()
    nodes = [member.node for member in members]
    plain = (fixed(node) for node in nodes if isinstance(node, (ir.Number, ir.Named)))
    numbers = [number for number in plain if number is not None and not number.little and number.is_packed]
    if not nodes or len(numbers) != len(nodes):
        raise Misuse(f"{key} has fields other than numbers of fixed size")
    return struct.Struct(">" + "".join(number.code for number in numbers)), tuple(member.name for member in members)


def _length(layout: ir.Node) -> tuple[int, int, struct.Struct | None, int, str, bool]:
    """The heading's ``length``, ``after``, ``number``, ``low``, ``path`` and ``framed``."""
    members = layout.members if isinstance(layout, ir.Structure) else ()
    for offset, number, measure in _lengths(layout):
        if measure.last == len(members) - 1:
            after = offset + number.size - measure.add
            return offset, after, number, max(measure.least, 0), members[measure.at].name, measure.frame
    return 0, 0, None, 0, "", False


def _lengths(layout: ir.Node) -> Iterator[tuple[int, struct.Struct, ir.Measure]]:
    """(offset, form, length) of the lengths among the first numbers that count the bytes after them."""
    if not isinstance(layout, ir.Structure):
        return
    offset = 0
    for at, member in enumerate(layout.members):
        if not isinstance(member.node, ir.Number) or not member.node.is_packed:
            return
        number = struct.Struct(("<" if member.node.little else ">") + member.node.code)
        for measure in ir.opening(layout, at + 1):
            if measure.at == at and not measure.zero_is_rest and not measure.clip:
                yield offset, number, measure
        offset += member.node.size


def _numbers(node: ir.Node, most: int) -> Iterator[tuple[ir.Number, Ranges | None]]:
    """The numbers at the start of every value of a node, and their allowed ranges (None for any value)."""
    if not isinstance(node, ir.Structure):
        if (number := fixed(node)) is not None:
            yield number, _allowed(node, number)
        return
    for at, member in enumerate(node.members):
        measured = _measured(node, at, most)
        if isinstance(member.node, ir.Structure):
            yield from _numbers(member.node, most)
            if any(fixed(each.node) is None for each in member.node.members):
                return
            continue
        number = member.node if isinstance(member.node, ir.Number) else fixed(member.node)
        if number is None:
            return
        yield number, measured if measured is not None else _allowed(member.node, number)


def _measured(node: ir.Structure, at: int, most: int) -> Ranges | None:
    """The bounds of a length: the covered fields need their least size."""
    for measure in node.measures:
        if measure.at == at and measure.is_limit and not measure.zero_is_rest:
            number = bare(node.members[at].node)
            high = number.high if isinstance(number, ir.Number) else most
            return [(max(node.least_of(measure), measure.least), min(high, most) if measure.frame else high)]
    return None


def _allowed(node: ir.Node, number: ir.Number) -> Ranges | None:
    mask = (1 << 8 * number.size) - 1
    match node:
        case ir.Constant(fatal=True, value=Literal(value=int(value))):
            return [(value & mask, value & mask)]
        case ir.Named(closed=True, table=table) if len(table) <= MOST_NAMES:
            return [(value & mask, value & mask) for value in map(int, table)]
        case ir.Qualified(node=inner):
            return _allowed(inner, number)
    return None


def _expression(number: ir.Number, allowed: Ranges | None) -> bytes:
    """A regular expression for the bytes of a number in one of some ranges, given without sign.

    Of an unsigned varint, only the form of one byte is compared: a longer form may represent any number.
    """
    if number.form is not None:
        low, high = allowed[0] if allowed is not None and not number.signed else ANY
        (_, most, _), *longer = BY_FIRST_BYTE.get(number.form.kind, ((0, 0x7F, 1),))
        one = _class(max(low, 0), min(high, most)) if low <= min(high, most) else b"(?!)"
        others = [_class(least, last) + b".{%d}" % (size - 1) for least, last, size in longer]
        others = others or [b"[\\x80-\\xff]{1,%d}[\\x00-\\x7f]" % max(number.groups - 1, 1)]
        return b"(?:" + b"|".join([one, *others]) + b")"
    if allowed is None:
        return b".{%d}" % number.size
    choices = []
    for low, high in allowed:
        for classes in _classes(low, high, number.size):
            ordered = reversed(classes) if number.little else classes
            choices.append(b"".join(_class(*each) for each in ordered))
    return b"(?:" + (b"|".join(choices) or b"(?!)") + b")"


def _classes(low: int, high: int, size: int) -> Iterator[list[tuple[int, int]]]:
    """The numbers from low to high as sequences of byte ranges, most significant first.

    >>> [sequence for sequence in _classes(3, 0x203, 2)]
    [[(0, 0), (3, 255)], [(1, 1), (0, 255)], [(2, 2), (0, 3)]]
    """
    if low > high:
        return
    if not size:
        yield []
        return
    mask = (1 << 8 * (size - 1)) - 1
    first, last = low >> 8 * (size - 1), high >> 8 * (size - 1)
    if first == last:
        yield from ([(first, first), *tail] for tail in _classes(low & mask, high & mask, size - 1))
        return
    if low & mask:
        yield from ([(first, first), *tail] for tail in _classes(low & mask, mask, size - 1))
        first += 1
    until = last if (high & mask) != mask else last + 1
    if first < until:
        yield [(first, until - 1), *[ANY] * (size - 1)]
    if until == last:
        yield from ([(last, last), *tail] for tail in _classes(0, high & mask, size - 1))


def _class(low: int, high: int) -> bytes:
    """A regular expression for one byte in a range."""
    if (low, high) == ANY:
        return b"."
    return b"\\x%02x" % low if low == high else b"[\\x%02x-\\x%02x]" % (low, high)
