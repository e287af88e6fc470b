"""Small buffers at once: one block of memory, one call, one Arrow message.

Of a thousand messages the scan takes microseconds, and making an Arrow array for each column would take several times
as long. So a small buffer is scanned into one block that is laid out as an Arrow message, whose head is a template; the
kernel fills in the numbers, and Arrow reads the block as it stands. What is not usual (errors, compressed records, text
that is not UTF-8, more rows than expected) gives nothing here, and ``columns`` scans it again its own way.

Source: Arrow columnar format, "Encapsulated message format"; Arrow's Message.fbs for the order of the fields.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirekit.compiler import cache as columns_cache
from wirekit.compiler.columns.kernel import ERRORS, RANGES, SCALARS, Kernel, by_arrays, dtypes
from wirekit.compiler.columns.plan import Records, Start
from wirekit.compiler.kernels import message

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = 1 << 22  # bytes of a small buffer
ALIGNED = 64  # bytes: what each array in a block begins at a multiple of
ROW_GUESS = 64  # bytes a record takes, where it is not known
SPARE_ROWS = 128
ZEROS = "@zeros"


class Block:
    """How the small buffers of a layout are scanned.

    Args:
        kernel: the layout's kernel.
        plan: its list of records.
        schema: of the batch.
        least: bytes that a record takes at least.
    """

    def __init__(self, kernel: Kernel, plan: Records, schema: pa.Schema, least: int) -> None:
        self.schema = schema
        self.least = least
        self.until = np.frombuffer(plan.until or b"", np.uint8)
        self.stop = int(plan.stop)
        self.head, self.at = _template(schema)
        self.plans: dict[int, tuple[int, NDArray[Any], NDArray[Any]]] = {}
        self.body = 8 * len(self.head)
        outside = ("b", "until")
        self.names = [name for name in kernel.arguments if name not in SCALARS]
        self.inside = [name for name in self.names if name not in outside] + [ZEROS]
        self._measure(kernel)
        self.fields, self.buffers = self._tables(kernel, schema)
        self.function = columns_cache.function(kernel.source, "int32", "scan_block")

    def _measure(self, kernel: Kernel) -> None:
        """Where each array begins, as numbers that rows, bytes and 1 are multiplied with."""
        kinds = dtypes(kernel.columns) | {ZEROS: "int32"}
        rows, room, fixed = [0], [0], [-(-self.body // ALIGNED) * ALIGNED]
        self.sizes: list[tuple[int, int, int]] = []  # elements by rows, by bytes, and at least
        for name in self.inside:
            kind = kinds.get(name, "int64")
            width = 4 if kind == "offsets" else np.dtype(kind).itemsize
            each = (1, 0, 0)
            if name in RANGES or name in ERRORS:
                each = (0, 0, 1)
            elif kind == "offsets":
                each = (1, 0, 1)
            elif name.startswith("d") and name[1:].isdigit():
                each = (0, 1, 0)
            self.sizes.append(each)
            rows.append(rows[-1] + each[0] * width)
            room.append(room[-1] + each[1] * width)
            fixed.append(fixed[-1] + (ALIGNED if each[2] else 0))
        self.by_rows, self.by_room = np.array(rows, np.int64), np.array(room, np.int64)
        self.fixed = np.array(fixed, np.int64)
        self.counts = np.array(self.sizes, np.int64).T.copy()
        where = {name: index for index, name in enumerate(self.inside)}
        self.where = where
        self.table_at = np.array([2 * index for index, name in enumerate(self.names) if name in where], np.int64)
        self.table_of = np.array([where[name] for name in self.names if name in where], np.int64)
        self.table = np.zeros(2 * len(self.names), np.int64)
        until = 2 * self.names.index("until")
        self.table[until : until + 2] = self.until.__array_interface__["data"][0], self.until.size
        self.at = np.append(self.at, where[ZEROS])
        self.counts = self.counts[:, self.table_of].copy()

    def _tables(self, kernel: Kernel, schema: pa.Schema) -> tuple[NDArray[Any], NDArray[Any]]:
        """What each field of the schema is made of."""
        where = self.where
        columns = {column.path: column for column in kernel.columns}
        texts = {f"{column.path}.ok" for column in kernel.columns if column.kind == "text"}
        scan = {"@offset": "offset", "@length": "length", "@gap": "gap"}
        zeros, offset = where[ZEROS], where["offset"]
        fields, buffers = [], []
        for each in schema:
            column = columns.get(each.name)
            valid, packed = message.NEVER_NULL, -1
            if column is None:
                if each.name in scan:
                    values = [(message.VALUES, where[scan[each.name]], 8)]
                elif each.name == "@depth":
                    values = [(message.VALUES, zeros, 4)]
                else:  # @wrapper, or whether a record was opened: null
                    valid = message.ALL_NULL
                    flag = pa.types.is_boolean(each.type)
                    values = [(message.BITS, zeros, 0) if flag else (message.VALUES, offset, 8)]
            else:
                slot = column.slot
                valid = where[f"v{slot}"] if column.nullable else message.NEVER_NULL
                if column.kind in ("bytes", "text"):
                    ends = where[f"o{slot}"]
                    values = [(message.OFFSETS, ends, 4), (message.DATA, where[f"d{slot}"], ends)]
                elif column.kind == "flag":
                    packed = where[f"c{slot}"]
                    values = [(message.BITS, packed, 0)]
                else:
                    values = [(message.VALUES, where[f"c{slot}"], np.dtype(column.dtype).itemsize)]
            first = (message.BITS, valid if valid >= 0 else zeros, 0)
            buffers += [first if valid != message.NEVER_NULL else (message.EMPTY, 0, 0), *values]
            fields.append((valid, packed, int(each.name in texts)))
        return np.array(fields, np.int64), np.array(buffers, np.int64)

    def plan(self, total: int) -> tuple[int, NDArray[Any], NDArray[Any]]:
        """Of a block for buffers of so many bytes: its size, its table without the address, the places in it."""
        step = max(1 << max(total.bit_length() - 3, 0), ALIGNED)  # few sizes, so that plans can be kept
        room = (total // step + 1) * step
        found = self.plans.get(room)
        if found is None:
            rows = min(room // self.least + 1, room // ROW_GUESS + SPARE_ROWS)
            rows += -rows % ALIGNED
            places = self.by_rows * rows + self.by_room * room + self.fixed
            table = self.table.copy()
            table[self.table_at] = places[self.table_of]
            table[self.table_at + 1] = self.counts[0] * rows + self.counts[1] * room + self.counts[2]
            found = self.plans[room] = int(places[-1]), table, places
        return found

    def scanned(self, buffer: pa.Buffer, found: Start, frame: int) -> tuple[pa.Buffer, int] | None:
        """The message with the records of a buffer, and where they end; None when something is not usual.

        Args:
            found: where its records are.
            frame: the limit of what a frame's own length may announce, in bytes.
        """
        size, table, places = self.plan(found.end - found.start)
        block = pa.allocate_buffer(size)
        stopped = self.function(
            block.address,
            size,
            self.head,
            buffer.address,
            buffer.size,
            found.start,
            found.end,
            found.count,
            frame,
            self.stop,
            table,
            places,
            self.at,
            self.fields,
            self.buffers,
        )
        return None if stopped < 0 else (block, stopped)


def block(kernel: Kernel, plan: Records, schema: pa.Schema, least: int) -> Block | None:
    """How small buffers of a layout are scanned; None where a kernel fills more than arrays of an element a row."""
    if by_arrays(kernel) or kernel.lists:
        return None
    return Block(kernel, plan, schema, least)


def _template(schema: pa.Schema) -> tuple[NDArray[Any], NDArray[Any]]:
    """The head of a message, and where its open numbers are, in units of 8 bytes."""
    nulls = [pa.nulls(1, each.type) for each in schema]
    data = pa.RecordBatch.from_arrays(nulls, schema=schema.remove_metadata()).serialize().to_pybytes()
    (size,) = struct.unpack_from("<i", data, 4)
    head = data[: 8 + size]

    def field(table: int, number: int) -> int:
        at = table - struct.unpack_from("<i", head, table)[0] + 4 + 2 * number
        return int(table + struct.unpack_from("<H", head, at)[0])

    def there(place: int) -> int:
        return int(place + struct.unpack_from("<I", head, place)[0])

    root = there(8)
    batch = there(field(root, 2))
    places = (field(batch, 0), field(root, 3), there(field(batch, 1)) + 4, there(field(batch, 2)) + 4)
    return np.frombuffer(head, np.int64), np.array(places, np.int64) // 8
