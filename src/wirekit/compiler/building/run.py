"""A kernel that builds is run over the rows of a batch; what it writes to grows as it is filled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirekit.compiler import cache as columns_cache
from wirekit.compiler.building.inputs import MISSING, WHOLE, Rows, row_of, taken
from wirekit.compiler.building.kernel import CHOSEN, HELD, STATE, Builder
from wirekit.compiler.building.tables import table
from wirekit.errors import Misuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST = 4096  # bytes by which the room grows
NOWHERE = np.zeros(0, np.int64)


def run(
    key: str,
    made: Builder,
    batch: pa.RecordBatch,
    rows: Rows,
    *,
    front: int = 0,
    given: dict[str, NDArray[Any]] | None = None,
    ends: NDArray[Any] = NOWHERE,
    choosing: bool = False,
) -> tuple[NDArray[Any], int]:
    """What the kernel builds behind ``front`` bytes, and where it ends.

    Args:
        rows: the numbers of the rows, for errors.
        given: what is known of a field that holds records.
        ends: takes where each record ends.
        choosing: only find out what such a field holds.

    Raises:
        Misuse: for a column of another type, a value that does not fit; the text has the column and the row.
    """
    if not batch.num_rows:
        return np.zeros(front, np.uint8), front
    whole = np.zeros(max((column.slot for column in made.columns.values()), default=0) + 1, np.uint8)
    arrays: dict[str, NDArray[Any]] = {"given": whole, "ends": ends}
    room = front + batch.num_rows * made.most
    for column in made.columns.values():
        index = batch.schema.get_field_index(column.path)
        each = taken(key, column, None if index < 0 else batch.column(index), rows)
        whole[column.slot] = each.given
        arrays |= each.arrays
        room += each.total
    arrays["seen"] = np.full(made.stamps, -1, np.int64)
    watched = [
        (at, 0 if whole[slot] == WHOLE else arrays[f"v{slot}"].__array_interface__["data"][0], slot)
        for at, slot in enumerate(made.watched)
        if whole[slot] != MISSING
    ]
    arrays["watched"] = np.array(watched, np.int64).ravel()
    tables = [table(key, message, batch, rows) for message in made.messages]
    arrays |= {f"m{number}": each.memory for number, each in enumerate(tables)}
    if made.opens:
        arrays |= {name: np.zeros(batch.num_rows, kind) for name, kind in CHOSEN.items()}
        arrays |= {name: np.full(batch.num_rows, -1, kind) for name, kind in HELD.items()}
        arrays |= given or {}
    spare = sum(each.total for each in tables)
    arrays["o"] = np.empty(room + spare, np.uint8)
    state = np.zeros(STATE, np.int64)
    state[0], state[2], state[3], state[4] = front, batch.num_rows, spare, choosing
    function = columns_cache.function(made.source, "int64", "build")
    while True:
        told = [(arrays[name].__array_interface__["data"][0], arrays[name].size) for name, _ in made.arrays]
        reason = function(np.array(told, np.int64).ravel(), state)
        if reason <= 0:
            break
        more = max(arrays["o"].size, LEAST)  # for messages, and bytes that are in no column
        arrays["o"] = np.concatenate([arrays["o"], np.empty(more, np.uint8)])
        state[3] += more
    if reason < 0:
        path, text = made.reason(-int(reason))
        raise Misuse(f"{key}: row {row_of(rows, int(state[1]))}: {path}: {text}")
    return arrays["o"], int(state[0])
