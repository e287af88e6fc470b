"""A kernel that builds is run over the rows of a batch; what it writes to grows as it is filled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirekit.compiler import cache as columns_cache
from wirekit.compiler.building.inputs import MISSING, WHOLE, Input, taken
from wirekit.compiler.building.kernel import CHOSEN, HELD, STATE, Builder, Reason, watching
from wirekit.compiler.building.places import Rows, place
from wirekit.compiler.building.tables import table
from wirekit.compiler.building.unfolding import Unfolded
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
    unfolded = Unfolded(key, batch, rows)
    inputs = _inputs(key, made, batch, unfolded)
    whole = np.zeros(max(inputs, default=0) + 1, np.uint8)
    arrays: dict[str, NDArray[Any]] = {"given": whole, "ends": ends}
    room = front + batch.num_rows * made.most
    room += sum(each.most * unfolded.elements(each.group.number) for each in made.lists)
    for slot, each in inputs.items():
        whole[slot] = each.given
        arrays |= each.arrays
        room += each.total
    arrays["seen"] = np.full(made.stamps, -1, np.int64)
    arrays |= _watched(made, inputs)
    arrays["turns"] = np.zeros(len(made.lists), np.int64)
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
        why = made.reason(-int(reason))
        raise Misuse(f"{key}: {_place(made, why, unfolded, int(state[1]), arrays['turns'])}: {why.text}")
    return arrays["o"], int(state[0])


def _inputs(key: str, made: Builder, batch: pa.RecordBatch, unfolded: Unfolded) -> dict[int, Input]:
    """The arrays of all columns, by slot; lists are known when the columns inside them are."""
    inputs: dict[int, Input] = {}
    for column in made.columns:
        if column.within is not None:
            inputs[column.slot] = unfolded.column(column)
            continue
        index = batch.schema.get_field_index(column.path)
        inputs[column.slot] = taken(key, column, None if index < 0 else batch.column(index), unfolded.rows)
    return inputs | {each.column.slot: unfolded.lists(each.column, each.group.number) for each in made.lists}


def _watched(made: Builder, inputs: dict[int, Input]) -> dict[str, NDArray[Any]]:
    """What ``unread`` looks at, in records and in the elements of each list."""
    known = {each.slot: each for each in [*made.columns, *(each.column for each in made.lists)]}
    found: dict[str, list[tuple[int, int, int]]] = {watching(None): []}
    found |= {watching(each.group): [] for each in made.lists}
    numbers = dict.fromkeys(found, 0)
    for slot in made.watched:
        name, given = watching(known[slot].within), inputs[slot].given
        valid = 0 if given == WHOLE else inputs[slot].arrays[f"v{slot}"].__array_interface__["data"][0]
        if given != MISSING:
            found[name].append((numbers[name], valid, slot))
        numbers[name] += 1
    return {name: np.array(each, np.int64).ravel() for name, each in found.items()}


def _place(made: Builder, why: Reason, unfolded: Unfolded, row: int, turns: NDArray[Any]) -> str:
    """Where the kernel ended."""
    if why.within is None:
        return place(unfolded.rows, row, why.path)
    at = next(at for at, each in enumerate(made.lists) if each.group is why.within)
    return place(unfolded.places[why.within.number], int(turns[at]), why.path)
