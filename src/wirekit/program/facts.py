"""Facts about IR nodes for programs and columns: sizes, column types, references."""

from __future__ import annotations

from wirekit.checksums import Form, checksum
from wirekit.compiler import ir
from wirekit.errors import first_of
from wirekit.program.columns import FLAG, Column
from wirekit.values import SymbolTable

NARROW = 32  # bits of a number with names, if it fits


def column_of(node: ir.Node) -> Column:
    """The column of a node without its place: its kind, type and meaning. Its kind is "" if the node has none."""
    match node:
        case ir.Number(real=real, signed=signed, unit=unit):
            bits = next(size for size in (8, 16, 32, 64) if size >= 8 * node.size)
            return Column("", "number", f"{'float' if real else 'int' if signed else 'uint'}{bits}", unit=unit)
        case ir.Boolean():
            return FLAG
        case ir.Named(number=number, table=table):
            bits = number.bits + (not number.signed)  # one more for the sign
            dtype = "int32" if bits <= NARROW else "int64" if bits <= 2 * NARROW else "uint64"
            return Column("", "number", dtype, table=table)
        case ir.Blob(is_text=is_text, coding=coding):
            return Column("", "text" if is_text else "bytes", coding=coding)
        case ir.Delimited(decimal=decimal):
            return Column("", "number", "int64") if decimal else Column("", "text")
    return Column("", "")


def bit_column(bit: ir.BitField) -> Column:
    """The column of a bit field, without its place."""
    if bit.table is not None:
        return Column("", "number", "int32" if bit.width < NARROW else "int64", table=bit.table)
    if bit.width == 1:
        return FLAG
    return Column("", "number", f"uint{next(size for size in (8, 16, 32, 64) if size >= bit.width)}")


def is_wide(number: ir.Number) -> bool:
    """Whether an int64 cannot hold the number."""
    return number.size == 8 and not number.signed and not number.real


def ranges_of(values: list[int]) -> list[tuple[int, int]]:
    """Numbers as ranges, in order.

    >>> ranges_of([5, 1, 2])
    [(1, 2), (5, 5)]
    """
    ranges: list[tuple[int, int]] = []
    for value in sorted(values):
        if ranges and value == ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], value
        else:
            ranges.append((value, value))
    return ranges


def names_of(table: SymbolTable) -> tuple[str, list[tuple[int, int]]]:
    """The reason for a number without a name, and the ranges of the numbers with one, as in registers."""
    numbers = [int(symbol) for symbol in table]
    text = f"expected one of {table.name}: {first_of(list(table))}"
    return text, ranges_of([number - (1 << 64) if number >> 63 > 0 else number for number in numbers])


def run_of(
    node: ir.Structure, index: int, closing: set[int], *, alone: bool = True, at_once: bool = False
) -> tuple[int, int]:
    """The number of members from ``index`` on that are compared with the limit at once, and their size in bytes.

    The run ends where a limit begins or ends.

    Args:
        closing: members after which a limit ends.
        alone: whether the run ends after a member that can be wrong by itself, an error before a short record.
        at_once: whether one struct call reads the run: in one byte order, up to a length of earlier members.
    """
    count = size = 0
    orders: set[bool] = set()
    for at in range(index, len(node.members)):
        member = node.members[at].node
        begins = count and any(measure.first == at and measure.bounds for measure in node.measures)
        number = ir.fixed(member)
        if number is not None and number.size > 1:
            orders.add(number.little)
        if number is None or begins or (at_once and len(orders) > 1):
            break
        count += 1
        size += number.size
        measured = [measure for measure in node.measures if measure.at == at]
        wrong = alone and (ir.can_be_wrong(member) or any(measure.bounds for measure in measured))
        if wrong or at in closing or (at_once and any(measure.last < at for measure in measured)):
            break
    return count, size


def form_of(total: ir.Sum, node: ir.Node) -> Form | None:
    """The compiled form of a checksum in a node; None if the interpreters call its function."""
    form = checksum(total.algorithm).form
    within = total.first <= total.at <= total.last and form != "internet"
    return form if isinstance(node, ir.Number) and not within else None


def takes_all(node: ir.Node) -> bool:
    """Whether a node always takes all bytes to the limit."""
    match node:
        case ir.Blob(length=None):
            return True
        case ir.Structure(members=members, measures=measures) if members:
            last = len(members) - 1
            return not any(each.is_limit and each.last == last for each in measures) and takes_all(members[-1].node)
        case ir.Alternatives(nodes=nodes):
            return all(map(takes_all, nodes))
    return False


def holds_records(node: ir.Node) -> bool:
    """Whether one of the alternatives of a node is compressed, together with its layout uncompressed."""
    match node:
        case ir.Packed(node=inner):
            return not isinstance(inner, ir.Reference)
        case ir.Alternatives(nodes=nodes):
            return any(map(holds_records, nodes))
    return False


def holds_bytes(node: ir.Node) -> bool:
    """Whether the values of a node are its bytes, so that ``len_`` is their number: no text, and nothing encoded."""
    return isinstance(node, ir.Blob) and not node.text and node.coding is None
