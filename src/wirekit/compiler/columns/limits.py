"""Limits exceeded inside compressed data: an error of the outermost record, as in the reference engine.

The reference engine decompresses nested records in place. If a limit is exceeded anywhere inside, it rejects the
outermost record, unless damage has ended the decompressed data before. The path of the error leads to the place, and
the outermost record has no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.compiler.columns.errors import LevelErrors, before, failure, record_of

if TYPE_CHECKING:
    from wirekit.compiler.columns.programs import Columnar
    from wirekit.compiler.columns.run import Level

ENDING = pa.array(["short", "wrong", "limit"])  # kinds of errors behind which the reference engine reads no record


def passed_on(columnar: Columnar, levels: list[Level], errors: list[LevelErrors]) -> None:
    """Makes limits errors of the records around them, and drops all other errors inside those records."""
    for depth in range(len(levels) - 1, 0, -1):
        level, around = levels[depth], levels[depth - 1]
        for inside, path, error in _limits(columnar, level, errors[depth]):
            parent = int(level.parents[inside])
            around.state[parent] = 2
            details = "limit", path, error["at"], error["reason"]
            errors[depth - 1].add(*failure(around, record_of(around, parent), depth - 1, details, error["at_depth"]))
    for depth in range(1, len(levels)):
        level, gone = levels[depth], levels[depth - 1].state[levels[depth].parents] == 2
        if gone.any():
            rows = np.searchsorted(level.arrays["first"], np.arange(level.rows), side="right") - 1
            level.state[gone[rows]] = 2
            errors[depth].forget(gone)


def _limits(columnar: Columnar, level: Level, errors: LevelErrors) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yields the number of each range that a limit ends, the path from the enclosing record, and the error."""
    assert columnar.inner is not None
    assert columnar.program.packing is not None
    content = f"{columnar.program.columns[columnar.program.packing.column].path}.content"
    for which, error in errors.front.items():
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
        inside = f".{error['path']}" if error["path"] else ""
        yield which, f"{content}[{before(level, which, error['offset'])}]{inside}", error
