"""The kernel that builds records: its frame, which is the same for all, its arrays, and what its numbers mean.

``building.code`` writes what stands inside the frame; ``building.assembling`` calls it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from wirekit.compiler import ir
from wirekit.compiler.building.expressions import index_of
from wirekit.compiler.building.protobuf import MESSAGE
from wirekit.compiler.building.tables import Built
from wirekit.errors import Misuse
from wirekit.program.columns import Column, Repeated
from wirekit.program.unfit import in_words

SUMS = frozenset({"crc32", "crc32c"})  # of kernels.crc
INDENT = 3  # levels inside ``build`` where a record's fields are
GAPS = "@gap"
LIST = "list"  # the kind of a column that is no column of a batch, but says where the elements of a list are
STATE = 5  # elements

HEAD = """\
@njit(nogil=True, cache=True)
def build(table, state):
    \"\"\"Builds rows into o; gives 0 when it is done, 1 when o is full, and the number of a reason less than 0.\"\"\"
{views}
    p, row, rows, room, choosing = state[0], state[1], state[2], state[3], state[4]
    reason = np.int64(0)
{indexes}    while row < rows:
        i = np.uint64(row)
        record, before, gap0 = p, room, np.int64(0)
        while True:  # once; a value that does not fit leaves it early
"""

TAIL = """\
            break
        if reason != 0:
{turns}            p, room = record, before
            break
        if choosing:  # nothing stays
            p, room = record, before
        elif ends.size > 0:
            ends[i] = p
        row += 1
    state[0], state[1], state[3] = p, row, room
    return reason
"""

# What is known of a field that holds records, of each row: of what was chosen, and of what is there now.
# ``rows0`` has the number of records, ``plain0`` the bytes before compression; both are -1 where that tells nothing.
CHOSEN = {"codec0": "int8", "listed0": "uint8", "counted0": "uint8", "opaque0": "uint8"}
HELD = {"rows0": "int64", "plain0": "int64"}
FINDING = {"there", "lacks", "piece", "elements"}
TELLING = {"sized", "written", "has", "number_of", "count_of", "stored", "tells", "untold", "filled"}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a row is not built: the column, in words, and the list of which it was an element."""

    path: str
    text: str
    within: Repeated | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A list inside a record.

    Attributes:
        column: of the kind ``list``: where the elements are of each row, or of each element around it.
        group: the list as the scanning kernel has it.
        most: bytes that an element takes at most, without byte strings and lists inside.
    """

    column: Column
    group: Repeated
    most: int


@dataclass(frozen=True, slots=True)
class Builder:
    """The generated function and what its arguments mean.

    Attributes:
        source: the text.
        arrays: (name, dtype) of each array in the table, in order.
        columns: all that are read.
        reasons: by the number that the function gives, less one, as a negative number.
        most: bytes that a record can take at most, without its byte strings, messages and lists.
        messages: the protobuf messages of a record.
        watched: slots of columns that only some records, or elements, read.
        stamps: elements of ``seen``, which has of these and of messages the row that read them last.
        opens: whether a field holds records of another layout.
        lists: those of a record, outer ones first.
    """

    source: str
    arrays: list[tuple[str, str]]
    columns: list[Column]
    reasons: list[Reason]
    most: int
    messages: list[Built] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)
    stamps: int = 0
    opens: bool = False
    lists: list[Listed] = field(default_factory=list)

    def reason(self, number: int) -> Reason:
        """What the function gave, as a number above 0."""
        if number < MESSAGE:
            return self.reasons[number - 1]
        which, code = divmod(number, MESSAGE)
        return Reason(*self.messages[which - 1].fault(code))


def unfit(key: str, path: str, node: ir.Node | str, why: str = "") -> Misuse:
    """The error for a layout that cannot be built from columns."""
    kind = node if isinstance(node, str) else in_words(node)
    text = f"{key} is not built from columns: {path or 'its layout'} is {kind}{f' ({why})' if why else ''}"
    return Misuse(f"{text}; build it with wirekit.encode")


def watching(group: Repeated | None) -> str:
    """The array with what ``unread`` looks at in a record, or in an element of a list."""
    return "watched" if group is None else f"watched{group.number}"


def assembled(
    columns: Iterable[Column],
    reasons: list[Reason],
    body: list[str],
    uses: set[str],
    *,
    most: int,
    messages: list[Built],
    watched: list[int],
    stamps: int,
    opens: bool,
    lists: list[Listed],
) -> Builder:
    """The function around the code of one record.

    Args:
        body: the lines that write a record, at ``INDENT`` levels.
        uses: names of the kernels' functions that they call.
    """
    columns = [each for each in columns if each.kind != LIST]
    arrays = [("o", "uint8"), ("given", "uint8"), ("ends", "int64"), ("seen", "int64"), ("watched", "int64")]
    arrays += _arrays([*columns, *(each.column for each in lists)])
    arrays += [(f"m{number}", "int64") for number in range(len(messages))]
    arrays += [*CHOSEN.items(), *HELD.items()] if opens else []
    arrays += [("turns", "int64"), *((watching(each.group), "int64") for each in lists)] if lists else []
    views = "\n".join(
        f"    {name} = {kind}_at(table, np.int64({2 * index}))" for index, (name, kind) in enumerate(arrays)
    )
    indexes = "".join(f"    {index_of(each.group)} = np.uint64(0)\n" for each in lists)
    turns = "".join(f"{' ' * 12}turns[{at}] = {index_of(each.group)}\n" for at, each in enumerate(lists))
    source = _imports(uses, {kind for _, kind in arrays}) + HEAD.format(views=views, indexes=indexes)
    source += "\n".join(body) + "\n" + TAIL.format(turns=turns)
    return Builder(source, arrays, columns, reasons, most, messages, watched, stamps, opens, lists)


def _arrays(columns: Iterable[Column]) -> list[tuple[str, str]]:
    found = []
    for column in sorted(columns, key=lambda each: each.slot):
        if column.kind in ("bytes", "text"):
            found += [(f"d{column.slot}", "uint8"), (f"o{column.slot}", "int64")]
        elif column.kind == LIST:
            found.append((f"o{column.slot}", "int64"))
        else:
            found.append((f"c{column.slot}", column.dtype))
        found.append((f"v{column.slot}", "uint8"))
    return found


def _imports(uses: set[str], kinds: set[str]) -> str:
    reads = {"copy", "internet"}
    own = {
        "kernels.arrays": {f"{kind}_at" for kind in kinds},
        "kernels.crc": uses & SUMS,
        "kernels.protobuf_writes": uses & TELLING,
        "kernels.reads": uses & reads,
        "kernels.values": uses & FINDING,
        "kernels.writes": uses - SUMS - TELLING - FINDING - reads,
    }
    lines = [f"from wirekit.compiler.{name} import {', '.join(sorted(used))}\n" for name, used in own.items() if used]
    return "import numpy as np\nfrom numba import njit\n\n" + "".join(lines) + "\n\n"
