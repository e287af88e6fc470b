"""Work on long connections that is deferred until their flow was followed: decoding frames, completing their row.

``wirekit.road.deferred`` describes it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from wirekit.pipeline.folders import folder
from wirekit.pipeline.sink import Manifest, Sink
from wirekit.pipeline.summary import Summary
from wirekit.tables.columns import CONNECTIONS
from wirekit.values import json_text


@dataclass(frozen=True, slots=True)
class Unit:
    """Frames of a connection that were cut but not decoded.

    Attributes:
        name: the name of its file in the folder of attempts.
        size: size of the frames in bytes.
        connection: the id of the connection.
        known: columns of its row in ``connections`` with values from earlier frames.
    """

    name: str
    size: int
    connection: str
    known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decoded:
    """The contribution of a decoded unit to the row of its connection.

    Attributes:
        name: the name of the unit.
        plain: whether columns could read all of its frames; otherwise its rows are dropped.
        calls, errors: the number of its calls, and of those with an error.
        facts: columns of ``connections``.
    """

    name: str
    plain: bool
    calls: int = 0
    errors: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DecodedUnits:
    """The result of a task that decoded units of a flow."""

    flow: int
    manifest: Manifest
    units: tuple[Decoded, ...]

    def dumps(self) -> str:
        """One line of JSON, to be sent in a row."""
        units = [[each.name, each.plain, each.calls, each.errors, each.facts] for each in self.units]
        return json_text({"flow": self.flow, "manifest": self.manifest.dumps(), "units": units})

    @classmethod
    def loads(cls, text: str) -> Self:
        """The inverse of ``dumps``."""
        obj = json.loads(text)
        return cls(obj["flow"], Manifest.loads(obj["manifest"]), tuple(Decoded(*unit) for unit in obj["units"]))


@dataclass(frozen=True, slots=True)
class Outstanding:
    """A flow that has units.

    Attributes:
        flow: its number in the table ``packets``.
        plain: False if later parts of the flow may depend on the content of the units.
        manifest: the manifest of its other rows.
        units: the units.
    """

    flow: int
    plain: bool
    manifest: Manifest
    units: tuple[Unit, ...]

    def dumps(self) -> str:
        """One line of JSON, to be sent in a row."""
        units = [[each.name, each.size, each.connection, each.known] for each in self.units]
        return json_text({"flow": self.flow, "plain": self.plain, "units": units, "manifest": self.manifest.dumps()})

    @classmethod
    def loads(cls, text: str) -> Self | None:
        """The inverse of ``dumps``; None for the result of ``Manifest.dumps``."""
        obj = json.loads(text)
        if "units" not in obj:
            return None
        units = tuple(Unit(name, size, connection, tuple(known)) for name, size, connection, known in obj["units"])
        return cls(obj["flow"], obj["plain"], Manifest.loads(obj["manifest"]), units)


def completed(
    attempts: str, flows: Sequence[Outstanding], decoded: Iterable[DecodedUnits]
) -> tuple[list[Manifest], list[int]]:
    """The manifests of all rows of flows whose units were decoded, and the flows that must be followed again.

    Args:
        attempts: the folder of all attempts.
        flows: the flows.
        decoded: the results of the units of plain flows.
    """
    manifests: list[Manifest] = []
    again: list[int] = []
    by_flow: dict[int, list[DecodedUnits]] = {}
    for each in decoded:
        by_flow.setdefault(each.flow, []).append(each)
    for flow in flows:
        units = {unit.name: unit for each in by_flow.get(flow.flow, ()) for unit in each.units}
        if flow.plain and all(units[each.name].plain for each in flow.units):
            manifests += [*_with_units(attempts, flow, units), *(each.manifest for each in by_flow[flow.flow])]
        else:
            again.append(flow.flow)
    return manifests, again


def _with_units(attempts: str, flow: Outstanding, units: Mapping[str, Decoded]) -> list[Manifest]:
    """The manifests of a flow's other rows; rows of ``connections`` are rewritten with the results of the units."""
    store, manifest = folder(attempts), flow.manifest
    connection_files = [each for each in manifest.files if each.table == CONNECTIONS.name]
    other_files = tuple(each for each in manifest.files if each.table != CONNECTIONS.name)
    with Sink(attempts, manifest.task, f"completed-{manifest.attempt}") as sink:
        for file in connection_files:
            content = store.read(f"{manifest.attempt}/{file.name}")
            rows = pq.read_table(io.BytesIO(content), schema=CONNECTIONS.schema).to_pylist()
            for row in rows:
                _complete(row, [(each, units[each.name]) for each in flow.units])
            sink.write(CONNECTIONS.name, pa.RecordBatch.from_pylist(rows, CONNECTIONS.schema))
        return [replace(manifest, files=other_files), sink.finish(Summary())]


def _complete(row: dict[str, Any], units: Iterable[tuple[Unit, Decoded]]) -> None:
    """Adds the results of units to the row of a connection; the first value of a column counts."""
    set_before: set[str] = set()
    for unit, decoded in units:
        if unit.connection == row["connection_id"]:
            row["calls"] += decoded.calls
            row["errors"] += decoded.errors
            facts = {name: value for name, value in decoded.facts.items() if name not in {*unit.known, *set_before}}
            row.update(facts)
            set_before |= facts.keys()
