"""Walks over the blocks of a pcapng file, and continues after damaged blocks.

A block has its length at both ends. If the two lengths agree, a block that does not decode is skipped. If they do not,
the walk continues at the next bytes that may be a block: a known type, two lengths that agree, and then another
possible block or the end of the file. The lengths are compared before a block is decoded, so the cost of damage does
not depend on the length that a damaged block announces.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from wirekit.capture.files.items import Interface, Packet
from wirekit.capture.files.walking import WINDOW, Walk, of_record
from wirekit.compiler.heading import Heading, heading
from wirekit.decoding import decode
from wirekit.engine import Decoded
from wirekit.errors import Damaged, Short, WireError, Wrong
from wirekit.schemas.net import pcapng
from wirekit.values import Record
from wirekit.wire import Length, Struct, Switch

LEAST_WINDOW = 512
"""Bytes that are decoded or searched at once right after damage; twice as many each time, up to ``WINDOW``."""

_HEAD = 64  # bytes; enough for all that a block begins with
_UNKNOWN = -1  # the link type of an interface whose description is damaged


class PcapngWalk(Walk):
    """Walks over the sections, interfaces and packets of a pcapng file."""

    window = WINDOW

    def _items(self) -> Iterator[Packet | Damaged]:
        while self.more:
            try:
                yield from self._blocks()
            except WireError as error:
                lost = self._lost(error)
                if lost is None:
                    raise
                yield lost
                self.offset += lost.length
                self.window = LEAST_WINDOW

    def _blocks(self) -> Iterator[Packet]:
        """The packets of blocks in order, up to a damaged block."""
        while self.more:
            self._section()
            size = self._size(self.offset)
            if size is None:
                raise self._disagreement()
            data = self.capture.available(self.offset, size, max(self.window, size))
            decoded = decode(data, self._key("blocks"), offset=self.offset, limits=self.capture.limits)
            blocks = decoded.value or []
            for block in blocks if decoded.error is None else blocks[:-1]:  # the last one is damaged
                if self.offset >= self.end:
                    return
                if block.block_total_length != block.block_total_length_again:
                    raise self._disagreement()
                yield from self._block(block)
                self.offset += block.block_total_length
            if decoded.error is not None and self.offset < self.end:
                if self._size(self.offset) is None:
                    raise self._disagreement()
                raise of_record(decoded.error, self._key("block"))
            self.window = min(2 * self.window, WINDOW)

    def _key(self, name: str) -> str:
        return f"net.pcapng.{name}.{self.order}"

    def _section(self) -> None:
        """Reads the byte order if a section begins here."""
        start = decode(self.capture.read(self.offset, _HEAD), "net.pcapng.start", offset=self.offset)
        if start.error is not None:
            raise start.error
        if start.value.byte_order is not None:
            self.order = "be" if start.value.byte_order == pcapng.BIG_ENDIAN else "le"
            self.interfaces = []

    def _block(self, block: Record) -> Iterator[Packet]:
        kind = block.block_type
        if kind in (pcapng.ENHANCED_PACKET, pcapng.PACKET):
            yield self._full(block.body, DATA_LEADS[kind])
        elif kind == pcapng.SIMPLE_PACKET:
            yield self._simple(block.body, DATA_LEADS[kind])
        elif kind == pcapng.INTERFACE_DESCRIPTION:
            self.interfaces.append(described(block.body))

    def _described(self, number: int) -> Interface:
        if number < len(self.interfaces):
            return self.interfaces[number]
        where = {"protocol": "net.pcapng", "path": "interface_id", "offset": self.offset}
        raise Wrong(f"one of {len(self.interfaces)} interfaces described earlier", number, **where)

    def _full(self, body: Record, lead: int) -> Packet:
        interface = self._described(body.interface_id)
        time_ns = interface.nanoseconds(body.timestamp_high << 32 | body.timestamp_low)
        return self._packet(time_ns, interface, body.data, self.offset + lead, body.original_length)

    def _simple(self, body: Record, lead: int) -> Packet:
        interface = self._described(0)
        length = body.original_length
        data = body.data[: interface.snap_length] if interface.snap_length else body.data
        return self._packet(self.time_ns, interface, data, self.offset + lead, length)

    def _number(self, at: int) -> int | None:
        """The length at an offset; None at the end of the file."""
        number = _LENGTHS[self.order].inner
        data = self.capture.read(at, number.length)
        return int(number.unpack(data)) if len(data) == number.length else None

    def _size(self, at: int) -> int | None:
        """The length of the block at an offset, if it is valid and its copies at both ends agree."""
        length = _LENGTHS[self.order]
        size = self._number(at + _LENGTH_LEAD)
        if size is None or not length.least <= size <= self.capture.limits.frame:
            return None
        return size if self._number(at + size - length.inner.length) == size else None

    def _disagreement(self) -> WireError:
        """The error in the lengths of the block at this position."""
        head = self._decode(_HEAD)
        size = self._number(self.offset + _LENGTH_LEAD)
        if head.error is not None and (size is None or not isinstance(head.error, Short)):
            return head.error
        assert size is not None
        where: dict[str, Any] = {"protocol": self._key("block")}
        available = self.capture.size - self.offset
        if size > available:
            return Short(size, available, path="block_total_length", offset=self.offset, **where)
        at = self.offset + size - _LENGTHS[self.order].inner.length
        return Wrong(size, self._number(at), path="block_total_length_again", offset=at, **where)

    def _lost(self, error: WireError) -> Damaged | None:
        """The damaged bytes from this position on; None if no block follows them."""
        size = self._size(self.offset)
        if size is None:
            size = self._search()
            return None if size is None else Damaged(self.offset, size, error)
        alone = self._decode(size)
        if alone.value.block_type == pcapng.SECTION_HEADER:
            self.interfaces = []
        elif alone.value.block_type == pcapng.INTERFACE_DESCRIPTION:
            self.interfaces.append(described(alone.value.body))
        return Damaged(self.offset, size, alone.error or error)

    def _decode(self, size: int) -> Decoded:
        """Decodes the block at this position from a number of its bytes."""
        data = self.capture.read(self.offset, size)
        return decode(data, self._key("block"), offset=self.offset, limits=self.capture.limits)

    def _search(self) -> int | None:
        """The number of bytes before the next possible block."""
        begin = heading(self._key("envelope"), self.capture.limits.frame)
        at, chunk = self.offset + 1, LEAST_WINDOW
        while len(data := self.capture.read(at, chunk)) >= begin.size:
            for match in begin.pattern.finditer(data):
                start = at + match.start()
                size = self._size(start)
                if size is not None and self._may_begin(start + size, begin):
                    return start - self.offset
            at += len(data) - begin.size + 1
            chunk = min(2 * chunk, WINDOW)
        return None

    def _may_begin(self, at: int, begin: Heading) -> bool:
        """Whether a block may begin here, or the file ends too early to tell."""
        data = self.capture.read(at, _HEAD)
        if len(data) < begin.size or begin.pattern.match(data):
            return True
        start = decode(data, "net.pcapng.start")
        return start.error is None and start.value.byte_order is not None


def described(body: Record | None) -> Interface:
    """The facts of an interface description; invalid options, and those after the end of options, are ignored."""
    if body is None or "link_type" not in body:
        return Interface(_UNKNOWN)
    valid = takewhile(lambda each: each.get("code", 0) != pcapng.END_OF_OPTIONS, body.get("options", ()))
    options = {int(each.code): each.get("value") for each in reversed([*valid])}
    interface = Interface(int(body.link_type), body.get("snap_length", 0), name=options.get(pcapng.IF_NAME, ""))
    resolution, shift = options.get(pcapng.IF_TSRESOL), options.get(pcapng.IF_TSOFFSET)
    if isinstance(resolution, Record):
        interface = interface._replace(binary=resolution.binary, exponent=resolution.exponent)
    if isinstance(shift, int):
        interface = interface._replace(shift=shift)
    return interface


def _data_leads() -> dict[int, int]:
    """Number of bytes in a block before the data of its packet, by block type."""
    body = dict(pcapng.BLOCK_LE.members)["body"]
    assert isinstance(body, Switch)
    before = pcapng.BLOCK_LE.lead("body")
    return {
        kind: before + node.lead("data")
        for kind, node in body.cases.items()
        if isinstance(node, Struct) and "data" in dict(node.members)
    }


def _length(block: Struct) -> Length:
    node = dict(block.members)["block_total_length"]
    assert isinstance(node, Length)
    return node


DATA_LEADS = _data_leads()
_LENGTH_LEAD = pcapng.BLOCK_LE.lead("block_total_length")
_LENGTHS = {order: _length(block) for order, block in (("be", pcapng.BLOCK_BE), ("le", pcapng.BLOCK_LE))}
