"""A generated kernel: its frame, which is the same for all, its arrays, and what its numbers mean.

``columns.code`` writes what stands inside the frame; ``columns`` calls it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wirekit.compiler import ir
from wirekit.compiler.columns.loops import named, written_out
from wirekit.compiler.columns.trim import trimmed
from wirekit.values import SymbolTable

if TYPE_CHECKING:
    from wirekit.compiler.columns.protobuf import Tables

SUMS = frozenset({"crc32", "crc32c"})  # of kernels.crc
FULL_LIST = 16  # what ``scan`` gives when the arrays of a list are full, plus the list's number
WALKS = frozenset({"walk", "ready", "keep", "holds"})  # of kernels.protobuf; everything else is of kernels.reads


@dataclass(slots=True)
class Repeated:
    """A list inside a record: its elements stand in arrays of their own.

    Attributes:
        number: the number in the names of its arrays: ``lo<number>`` has where the elements of each row end, ``room``
            how many there may be. ``lq<number>`` of the kernel is how many there are, ``lj<number>`` the one at hand.
        path: where it stands.
        outer: the list around it: then ``lo<number>`` is by element of that.
        nullable: whether ``lv<number>`` says which rows have a list.
    """

    number: int
    path: str
    outer: Repeated | None
    nullable: bool

    def arrays(self) -> Iterator[tuple[str, str]]:
        """(name, dtype) of its arrays; one element a row, or an element around it, and one more in ``lo``."""
        yield f"lo{self.number}", "int64"
        if self.nullable:
            yield f"lv{self.number}", "uint8"


@dataclass(slots=True)
class Column:
    """A column of the result, and the arrays that the kernel fills for it.

    Attributes:
        path: its name.
        kind: ``number``, ``flag``, ``bytes`` or ``text``.
        dtype: of a number, as numpy has it.
        nullable: whether ``v<slot>`` says which rows have a value.
        table: names of its values, if there are any.
        slot: the number in the names of its arrays: ``c<slot>`` values; ``d<slot>`` data and ``o<slot>`` offsets of
            byte strings, of which ``w<slot>`` is the last; ``u<slot>`` whether a text is UTF-8.
        unit: of a time since the epoch.
        within: the list of which it has an element each, instead of one a row.
    """

    path: str
    kind: str
    dtype: str = ""
    nullable: bool = False
    table: SymbolTable | None = None
    slot: int = 0
    unit: str | None = None
    within: Repeated | None = None

    def arrays(self) -> Iterator[tuple[str, str]]:
        """(name, dtype) of its arrays; one element a row, except for ``d`` (a byte each) and ``o`` (one more)."""
        if self.kind in ("bytes", "text"):
            yield f"d{self.slot}", "uint8"
            yield f"o{self.slot}", "int64"  # int32 where all bytes are fewer than 2 GiB
        else:
            yield f"c{self.slot}", self.dtype
        if self.nullable:
            yield f"v{self.slot}", "uint8"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a record is not good: the field, ``short``, ``wrong`` or ``limit``, and in words."""

    path: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Packing:
    """The byte strings of a column hold more records, where ``k0`` is the number of a codec plus one.

    Attributes:
        column: the index of the column.
        codecs: names of codecs, as ``wirekit.compression`` knows them.
        key: the schema of what is inside.
    """

    column: int
    codecs: tuple[str, ...]
    key: str


@dataclass(slots=True)
class Contents:
    """The byte strings of a column may be, or hold compressed, more records of another layout.

    Of each row tell ``codec0`` the number of a codec plus one, ``listed0`` 1 where there are records and more where a
    message of ``messages`` should be, ``count0`` how many records are announced and ``size0`` how many bytes there are
    when decompressed, both -1 where nothing is said.

    Attributes:
        column: the index of the column.
        codecs: names of codecs.
        element: the layout of one record inside, None where there are only bytes.
        variables: those of the kernel for the four arrays.
        opaque: the kernel's variable that tells whether the bytes are not the plain content.
        messages: names of protobuf messages.
    """

    column: int
    codecs: tuple[str, ...]
    element: ir.Node | None
    variables: tuple[str, str, str, str]
    opaque: str = ""
    messages: list[str] = field(default_factory=list)


CONTENTS = {"codec0": "int8", "listed0": "uint8", "count0": "int64", "size0": "int64"}


def field_metadata(table: SymbolTable | None, unit: str | None) -> dict[str, str] | None:
    """The metadata of a field whose values have names, or are times."""
    if unit is not None:
        return {"wirekit.unit": unit}
    if table is None:
        return None
    symbols = {str(int(symbol)): symbol.symbol for symbol in table}
    return {"wirekit.table": table.name, "wirekit.symbols": json.dumps(symbols)}


@dataclass(slots=True)
class Kernel:
    """The generated function and what its arrays mean.

    Attributes:
        source: the text, without imports.
        columns: in the order of the fields.
        reasons: by the number that the function gives, less one.
        packing: where more records lie inside, or None.
        gaps: whether bytes can be left over inside a record, which ``gap`` counts.
        arguments: the names of all arrays, in order.
        messages: the protobuf messages of a record.
        contents: what column may hold other records, or None.
        lists: the lists inside a record, outer first.
        left_out: paths that have no column.
    """

    source: str
    columns: list[Column]
    reasons: list[Reason]
    packing: Packing | None
    gaps: bool
    arguments: list[str]
    messages: list[Tables] = field(default_factory=list)
    contents: Contents | None = None
    lists: list[Repeated] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


# Arrays that every kernel has. ``state``: range, position (-1: at the start of the range), number in the range, rows,
# errors. One element a range: ``first`` row, errors before (``failed``), where it ``stopped``, end of the last ``good``
# record.
RANGES = ("starts", "ends", "counts", "first", "failed", "stopped", "good")
ERRORS = ("error_at", "error_offset", "error_length", "error_reason")
GENERAL = ("b", "state", "frame", "stop", "until", *RANGES, *ERRORS, "offset", "length")

HEAD = '''\
def {signature}:
    """Scans ranges of b; gives 0 when it is done, 1 when rows or errors are full, 2 when byte strings are."""
{views}    r, p, k, n, m = state[0], state[1], state[2], state[3], state[4]
    full = 0
{written}    while r < starts.size:
        limit, count = ends[r], counts[r]
        if p < 0:
            p, k = starts[r], 0
            first[r], failed[r], good[r] = n, m, p
        done = good[r]
        while k < count or (count < 0 and p < limit):
            if until.size > 0 and k > 0 and count < 0 and begins(b, p, limit, until):
                break
            if n >= offset.size or m >= error_at.size:
                full = 1
                break
            i = np.uint64(n)  # without a sign, numba need not look whether to count from the end
            record, after, reason = p, np.int64(-1), np.int64(0)
            while True:  # once; a field that does not fit leaves it early
'''

EMPTY = """\
                if p == record and count < 0:
                    reason = {empty}
                    break
"""

TAIL = """\
                offset[i] = record
                length[i] = p - record
                n += 1
                done = p
                break
            if full:
                p = record
                break
            k += 1
            if reason == 0:
                continue
            if reason < 0 and stop and count < 0:
                p = record  # the limit cuts the last record
                break
            error_at[m] = p
            error_offset[m] = record
            error_reason[m] = abs(reason)
            if after < 0:
                error_length[m] = limit - record
                m += 1
                p = record  # nothing says where the next record begins
                break
            error_length[m] = after - record
            m += 1
            p = after
        good[r] = done
        if full:
            break
        stopped[r] = p
        r += 1
        p = np.int64(-1)
    state[0], state[1], state[2], state[3], state[4] = r, p, k, n, m
    return full
"""

# A kernel without protobuf messages is called with a table of its arrays: one type of arguments for all of them, which
# costs less to compile, too. ``state`` has the scalars behind what the scan looks at. ``scan_block`` scans into a block
# and makes that an Arrow message (see ``columns.block``); it gives -1 when the block would hold what is not usual, else
# where the records end.
ENTRY = '''

@njit(nogil=True, cache=True)
def scan_block(base, size, head, data, length, begin, end, count, frame, stop, plan, places, at, fields, buffers):
    """Scans into a block and makes it a message."""
    block = int64_on(base, head.size)
    for index in range(head.size):
        block[index] = head[index]
    table = np.empty(plan.size, np.int64)
    for index in range(plan.size // 2):
        table[2 * index] = plan[2 * index] + base
        table[2 * index + 1] = plan[2 * index + 1]
    table[{b}], table[{b} + 1] = data, length
    table[{until}] = plan[{until}]
    int64_at(table, np.int64({starts}))[0] = begin
    int64_at(table, np.int64({ends}))[0] = end
    int64_at(table, np.int64({counts}))[0] = count
{zeroed}    state = np.zeros({elements}, np.int64)
    state[1], state[5], state[6] = -1, frame, stop
    full = scan_table(table, state)
    if full or {unusual}:
        return -1
    if not finish(base, size, 8 * head.size, state[3], places, at, fields, buffers):
        return -1
    return int64_at(table, np.int64({stopped}))[0]
'''
SCALARS = {"state": "state", "frame": "state[5]", "stop": "state[6]"}
STATE = 7  # elements

INDENT = 4  # levels inside ``scan`` where a record's fields are


def assembled(
    columns: list[Column],
    reasons: list[Reason],
    packing: Packing | None,
    body: list[str],
    uses: set[str],
    *,
    gaps: bool,
    may_be_empty: bool,
    messages: list[Tables],
    contents: Contents | None,
    lists: list[Repeated],
    left_out: list[str],
) -> Kernel:
    """The function around the code of one record.

    Args:
        body: the lines that read a record, at ``INDENT`` levels.
        uses: names of ``kernels.reads`` and ``kernels.crc`` that they call.
        gaps: whether they count bytes left over.
        may_be_empty: whether a record can take no bytes at all, which is wrong.
    """
    arguments: list[str] = list(GENERAL)
    arguments += [name for column in columns for name, _ in column.arrays()]
    arguments += ["room"] if lists else []
    arguments += [name for each in lists for name, _ in each.arrays()]
    arguments += ["k0"] if packing else []
    arguments += ["gap"] if gaps else []
    arguments += list(CONTENTS) if contents else []
    arguments += [f"{name}{number}" for number in range(len(messages)) for name in "mtyx"]
    body = trimmed(body)
    if gaps:
        body = ["    " * INDENT + "gap0 = np.int64(0)", *body, "    " * INDENT + "gap[i] = gap0"]
    slots = [column.slot for column in columns if column.kind in ("bytes", "text") and column.within is None]
    held = any(line.lstrip().startswith("held[:]") for line in body)
    written = (
        f"    held = np.zeros({3 * len(slots)}, np.int64)\n"
        if held
        else "".join(f"    w{slot} = np.int64(o{slot}[n])\n" for slot in slots)
    )
    reasons = [*reasons, Reason("", "wrong", "expected a record of at least one byte, found an empty one")]
    tail = (EMPTY.format(empty=len(reasons)) if may_be_empty else "") + TAIL
    made = Kernel("", columns, reasons, packing, gaps, arguments, messages, contents, lists, left_out)
    kinds = dtypes(columns, lists)
    table = {} if by_arrays(made) else _places(arguments)
    constants: list[str] = []
    body = list(written_out(body, kinds, table, constants))
    views = "".join(_views(kinds, table))
    signature = "scan_table(table, state)" if table else f"scan({_wrapped(arguments)})"
    head = HEAD.format(signature=signature, views=views, written=written)
    own, sums = sorted(uses - SUMS - WALKS | {"begins"}), sorted(uses & SUMS)
    imports = [f"from wirekit.compiler.kernels.protobuf import {', '.join(sorted(WALKS))}"] if messages else []
    imports += [f"from wirekit.compiler.kernels.crc import {', '.join(sums)}"] if sums else []
    imports += ["from wirekit.compiler.kernels.reads import (", *(f"    {name}," for name in own), ")"]
    start = (
        "import numpy as np\nfrom numba import njit\n\n"
        + "\n".join([*imports, *([""] if constants else []), *named(constants)])
        + "\n\n\n"
    )
    made.source = start + "@njit(nogil=True, cache=True)\n" + head + "\n".join(body) + "\n" + tail
    if table:
        made.source = _with_entry(made.source, kinds, table, packed=packing is not None)
    return made


def by_arrays(made: Kernel) -> bool:
    """Whether ``scan`` itself is called, as it fills more than arrays."""
    return bool(made.messages) or made.contents is not None


def dtypes(columns: list[Column], lists: Sequence[Repeated] = ()) -> dict[str, str]:
    """The types of the arrays that every kernel of these columns has; what is not named here is int64."""
    found = {"b": "uint8", "until": "uint8", "k0": "int8"}
    for column in columns:
        found |= dict(column.arrays())
        if column.kind in ("bytes", "text"):
            found[f"o{column.slot}"] = "offsets"
    for each in lists:
        found |= dict(each.arrays()) | {f"lo{each.number}": "offsets"}
    return found


def _places(arguments: list[str]) -> dict[str, int]:
    """Where the arrays stand in the table."""
    return {name: 2 * index for index, name in enumerate(name for name in arguments if name not in SCALARS)}


def _views(kinds: Mapping[str, str], table: dict[str, int]) -> Iterator[str]:
    """The lines that take all arrays out of the table. Numbers written as they are would each be a type to numba."""
    for name, index in table.items():
        yield f"    {name} = {kinds.get(name, 'int64')}_at(table, np.int64({index}))\n"
    if table:
        yield from (f"    {name} = {place}\n" for name, place in SCALARS.items() if name != place)


def _with_entry(source: str, kinds: Mapping[str, str], at: dict[str, int], *, packed: bool) -> str:
    """A kernel's source with the functions that are called."""
    used = {kinds.get(name, "int64") for name in at} - {"offsets"}
    offsets = [index for name, index in at.items() if kinds.get(name) == "offsets"]
    entry = ENTRY.format(
        zeroed="".join(f"    offsets_at(table, np.int64({index}))[0] = 0\n" for index in offsets),
        unusual=f"state[4] or np.any(int8_at(table, np.int64({at['k0']}))[: state[3]])" if packed else "state[4]",
        elements=STATE,
        **{name: at[name] for name in ("b", "until", "starts", "ends", "counts", "stopped")},
    )
    imports = "from wirekit.compiler.kernels.arrays import int32_at as offsets_at\n"
    for name in ("fit", "copied"):
        if f"offsets_{name}(" in source:
            imports += f"from wirekit.compiler.kernels.arrays import int32_{name} as offsets_{name}\n"
    cleared = {f"{kind}_cleared" for kind in used if f" {kind}_cleared(" in source}
    names = sorted({f"{kind}_at" for kind in used} | cleared | {"int64_on"})
    imports += "from wirekit.compiler.kernels.arrays import (\n"
    imports += "".join(f"    {name},\n" for name in names) + ")\n"
    imports += "from wirekit.compiler.kernels.message import finish\n"
    return source.replace("from numba import njit\n\n", f"from numba import njit\n\n{imports}", 1) + entry


def _wrapped(names: list[str]) -> str:
    """Argument names over as many lines as they need."""
    lines, line = [], ""
    for name in names:
        if len(line) + len(name) > 100:
            lines.append(line)
            line = ""
        line += f"{name}, "
    return "\n    " + "\n    ".join([*lines, line.rstrip()]).replace(", \n", ",\n") + "\n"
