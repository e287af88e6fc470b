"""Unpacks compressed records of the same layout, level by level: the data of one level is scanned as the next level.

The reference engine decompresses nested records in place. If a limit is exceeded anywhere inside, it rejects the
outermost record, unless damage has ended the decompressed data before. The path of the error leads to the place, and
the outermost record has no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.compiler.columns.errors import Details, LevelErrors, path_inside, record_of
from wirekit.compiler.columns.plan import Ranges, Records, start
from wirekit.compiler.columns.programs import Columnar
from wirekit.compiler.columns.reference import of_records
from wirekit.compiler.columns.run import OPENED, REFUSED, ROW, UNTIL_DAMAGE, Level, NoRoom, run
from wirekit.errors import Limit, WireError
from wirekit.program.columns import Contents

ENDING = pa.array(["short", "wrong", "limit"])  # kinds of errors after which the reference engine reads no record


def compressed_levels(columnar: Columnar, fields: tuple[str, ...] | None, errors: list[LevelErrors]) -> list[Level]:
    """A level and the levels of the records compressed in it, outermost first.

    Args:
        fields: prefixes of the columns that are filled, or None for all.
        errors: the errors of the level; those of the other levels are added.
    """
    packing, inner = columnar.program.packing, columnar.inner
    while packing is not None and inner is not None:
        below = _Level(columnar, packing, inner, errors[-1].level, errors[-1], fields).unpacked()
        if below is None:
            break
        reference = of_records(inner, errors[-1].reference.allowance)
        errors.append(LevelErrors(columnar.program, reference, below, len(errors)).refused())
    _pass_on(columnar, errors)
    return [each.level for each in errors]


@dataclass(slots=True)
class _Level:
    """A level whose records may contain compressed records.

    Attributes:
        inner: the list of records in a record.
        errors: takes the errors of records that cannot be decompressed.
        fields: prefixes of the columns that are filled, or None for all.
    """

    columnar: Columnar
    packing: Contents
    inner: Records
    level: Level
    errors: LevelErrors
    fields: tuple[str, ...] | None

    def unpacked(self) -> Level | None:
        """The records inside the records, scanned; None if there are none."""
        level = self.level
        packed = np.flatnonzero(level.arrays["codec"])
        if packed.size == 0:
            return None
        level.left = np.full(level.rows, -1, np.int64)
        data, sizes, parents = self._decompressed(packed)
        level.state[parents] = np.maximum(level.state[parents], OPENED)
        while parents.size:
            try:
                below = self._scanned(data, sizes, parents)
            except NoRoom as error:
                for row in parents[error.range :].tolist():
                    level.state[row] = REFUSED
                    self.errors.too_much(row)
                sizes, parents = sizes[: error.range], parents[: error.range]
            else:
                damaged = level.state[parents] == UNTIL_DAMAGE
                empty = damaged & (np.diff(np.append(below.arrays["first"], below.rows)) == 0)
                level.state[parents[empty]] = ROW
                level.left[parents] = np.where(empty, -1, below.begins + sizes - below.arrays["good"])
                return below
        return None

    def _scanned(self, data: bytearray, sizes: NDArray[Any], parents: NDArray[Any]) -> Level:
        """The level of the decompressed pieces; the range of a ``NoRoom`` is the piece that exceeds the memory."""
        level, inner, allowance = self.level, self.inner, self.errors.reference.allowance
        below = Level.of(memoryview(data)[: int(sizes.sum())], sizes, parents)
        if inner.lead:
            places = zip(below.ranges.starts.tolist(), below.ranges.ends.tolist(), strict=True)
            view = below.buffer.data
            below.ranges = Ranges.of([start(inner, view, begin, end, allowance.limits.frame) for begin, end in places])
        outer = np.searchsorted(level.arrays["first"], parents, side="right") - 1
        below.roots = level.roots[outer] if self.errors.depth else level.arrays["offset"][parents]
        run(self.columnar, inner, below, allowance.limits, self.fields, allowance)
        return below

    def _decompressed(self, packed: NDArray[Any]) -> tuple[bytearray, NDArray[Any], NDArray[Any]]:
        """The decompressed bytes, one piece after the other; the sizes of the pieces, and the rows that held them."""
        data = bytearray()
        sizes = np.full(packed.size, -1, np.int64)
        for number, quick in enumerate(self._quickly(packed)):
            piece = self._content(int(packed[number])) if quick is None else quick
            if piece is not None:
                sizes[number] = len(piece)
                data += piece
        there = sizes >= 0
        return data, sizes[there], packed[there]

    def _quickly(self, packed: NDArray[Any]) -> Iterator[bytes | None]:
        """The contents of the valid compressed rows, run by run of rows of one codec."""
        from wirekit.compression_quick import pieces

        allowance, column = self.errors.reference.allowance, self.packing.column
        if self.errors.depth >= allowance.limits.depth:
            yield from (None for _ in packed)
            return
        data, offsets = self.level.arrays[f"d{column}"].data, self.level.arrays[f"o{column}"]
        codecs = self.level.arrays["codec"][packed]
        cuts = np.flatnonzero(codecs[1:] != codecs[:-1]) + 1
        for rows in np.split(packed, cuts):
            codec = self.packing.codecs[int(self.level.arrays["codec"][rows[0]]) - 1]
            yield from pieces(codec, data, offsets[rows].tolist(), offsets[rows + 1].tolist(), allowance)

    def _content(self, row: int) -> bytes | None:
        """The content of a row, bounded and verified at each step.

        If decompression fails, an error is added. The result then is the bytes before the damage; None without any.
        """
        arrays, column = self.level.arrays, self.packing.column
        allowance, depth = self.errors.reference.allowance, self.errors.depth
        data, offsets = arrays[f"d{column}"].data, arrays[f"o{column}"]
        try:
            if depth >= allowance.limits.depth:
                raise Limit("depth", allowance.limits.depth, depth + 1)
            codec = self.packing.codecs[int(arrays["codec"][row]) - 1]
            stored = data[int(offsets[row]) : int(offsets[row + 1])]
            plain, damage = allowance.decompress_until_damage(codec, stored, keep=self.packing.streamed)
        except WireError as error:
            self.level.state[row] = REFUSED if isinstance(error, Limit) else ROW
            self.errors.unopened(row, error)
            return None
        if damage is None:
            return plain
        self.level.state[row] = UNTIL_DAMAGE if plain else ROW
        self.errors.unopened(row, damage)
        return plain or None


def _pass_on(columnar: Columnar, errors: list[LevelErrors]) -> None:
    """Makes limits errors of the records around them, and drops all other errors inside those records."""
    for around, inside in reversed([*pairwise(errors)]):
        for which, path, error in _limits(columnar, inside):
            parent = int(inside.level.parents[which])
            around.level.state[parent] = REFUSED
            details = Details("limit", path, error["at"], error["reason"], error["limit"])
            around.add(record_of(around.level, parent), details, error["at_depth"])
    for around, inside in pairwise(errors):
        level = inside.level
        refused = np.isin(around.level.state[level.parents], (ROW, REFUSED))  # ROW: no record came before the damage
        if refused.any():
            level.state[refused[level.ranges_of_rows()]] = REFUSED
            inside.forget(refused)


def _limits(columnar: Columnar, errors: LevelErrors) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yields the number of each range that a limit ends, the path from the enclosing record, and the error."""
    assert columnar.inner is not None
    assert columnar.program.packing is not None
    content = f"{columnar.program.columns[columnar.program.packing.column].path}.content"
    for which, error in errors.lead_errors.items():
        if error["kind"] == "limit":
            yield which, f"{content}.{error['path']}", error
    if columnar.inner.path:
        content += f".{columnar.inner.path}"
    rows, ranges = errors.table()
    numbers = np.flatnonzero(pc.is_in(rows["kind"], ENDING))
    order = numbers[np.lexsort((rows["offset"].to_numpy()[numbers], ranges[numbers]))]
    first = order[np.unique(ranges[order], return_index=True)[1]]
    ended = first[np.asarray(pc.equal(rows["kind"], "limit"))[first]]
    for which, error in zip(ranges[ended].tolist(), rows.take(pa.array(ended)).to_pylist(), strict=True):
        yield which, path_inside(content, errors.level, which, error), error
