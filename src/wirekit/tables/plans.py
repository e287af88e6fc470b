"""Evaluates the declaration for the frames of one layout and kind by columns: all their rows at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.compiler.generated import by_key
from wirekit.conversation.dialogue import Dialogue
from wirekit.registry import load_object, registry
from wirekit.tables.batches import asked_of, columns_for, evaluate, paths_of, where
from wirekit.tables.columns import DECLARED, MESSAGES
from wirekit.tables.conversion import fitted
from wirekit.tables.declaration import Asked, Messages, Names, Rows, Tables
from wirekit.tables.paths import parse
from wirekit.tables.scopes import Frames, Scope, Unfit, Values

_plans: Callable[[str], dict[str, Plan]] = by_key(lambda key: {})
"""The plans of a schema by kind."""
ROW = "@row"
"""The column with the frame's row in the batch, for each row that frames give."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Declared rows of frames in a table.

    Attributes:
        table: its name.
        keys: the keys of the table that they declare, one bit each.
        rows: for each row, the row of its frame in the batch.
        columns: the declared columns.
    """

    table: str
    keys: int
    rows: NDArray[Any]
    columns: dict[str, pa.Array]


class Plan:
    """The declarations for frames of a layout and kind, evaluated on columns.

    Args:
        protocol: its name.
        layout: the layout (key without the protocol).
        kind: name of the kind of frames.
    """

    def __init__(self, protocol: str, layout: str, kind: str) -> None:
        self.protocol = protocol
        self._tables: Tables = registry.protocol(protocol).declared
        self.kind = self._tables.kind_of(layout)
        self._symbol = kind
        declared = self._tables.of(layout, None if self.kind is None else kind)
        self._rows, self._names, self._messages = declared.rows, declared.names, next(iter(declared.messages), None)

    def fields(self, key: str, more: list[str], context: Mapping[str, Any] | None = None) -> tuple[str, ...]:
        """The columns to read from such frames: of declared values, of ``more`` paths, and those that responses need.

        Raises:
            Unfit: a path leads to several columns.
        """
        if isinstance(self.kind, Asked):
            raise Unfit("the kind of a response is that of its request")
        return columns_for(key, [*more, *self._paths], context)

    @cached_property
    def _paths(self) -> list[str]:
        """The paths of declared values, and those that responses need."""
        paths = [self.kind] if isinstance(self.kind, str) else []
        for each in self._rows:
            paths += [*paths_of([*each.columns.values(), each.when]), *([each.each] if each.each else [])]
        for names in self._names:
            paths += paths_of([*names.columns.values(), names.key, names.when])
        if self._messages is not None:
            messages = self._messages
            paths += [
                *paths_of([*messages.columns.values(), messages.when]),
                *messages.fields,
                *([messages.each] if messages.each else []),
            ]
            crc = messages.columns.get("crc")
            paths += [f"{crc}.ok"] if isinstance(crc, str) else []
        return [*paths, *_asked_anywhere(self._tables)]

    @property
    def counts_messages(self) -> bool:
        """Whether a function of the protocol returns the messages, and leaves frames beyond the memory limit out."""
        return self._messages is not None and bool(self._messages.batches)

    @property
    def declares_names(self) -> bool:
        """Whether such frames may declare meanings of a number or text."""
        return bool(self._names)

    @property
    def message_checks(self) -> frozenset[str]:
        """Paths of checks whose verdicts the messages contain; a frame in which only these fail is evaluated here."""
        messages = self._messages
        paths = () if messages is None or not messages.batches else messages.fields
        return frozenset(path.removesuffix(".ok") for path in paths if path.endswith(".ok"))

    def check(self, frames: Frames) -> None:
        """Checks that the frames are of the kind.

        Raises:
            Unfit: some frames are of another kind.
        """
        if isinstance(self.kind, str) and frames.batch.num_rows:
            kinds = fitted(Scope(frames).path(self.kind), "string")
            if kinds.null_count or kinds.unique().to_pylist() != [self._symbol]:
                raise Unfit(f"{self.kind} is not {self._symbol} always")

    def names(self, frames: Frames) -> list[tuple[str, NDArray[Any], Values, dict[str, Values]]]:
        """(name, rows, keys, columns) of the names that the frames declare."""
        rows_of_names = []
        for each in self._names:
            scope = Scope(frames)
            rows = np.arange(scope.size) if each.when is None else np.flatnonzero(where(each.when, scope))
            key = _at_rows(evaluate(each.key, scope, "bigint"), rows)
            columns = {name: _at_rows(evaluate(value, scope, "string"), rows) for name, value in each.columns.items()}
            rows_of_names.append((each.name, rows, key, columns))
        return rows_of_names

    def rows(self, frames: Frames) -> list[Declared]:
        """The rows of all tables except ``messages``."""
        declared = []
        scopes: dict[str, Scope] = {}
        for each in self._rows:
            if each.each not in scopes:
                scopes[each.each] = Scope(frames, parse(each.each) if each.each else ())
            scope = scopes[each.each]
            types, keys = DECLARED[each.table].types, DECLARED[each.table].keys
            columns = {
                name: fitted(evaluate(value, scope, types[name]), types[name]) for name, value in each.columns.items()
            }
            rows = scope.rows
            if each.when is not None:
                matching = where(each.when, Scope(frames))[rows]
                if not matching.all():
                    indexes = pa.array(np.flatnonzero(matching))
                    rows, columns = rows[matching], {name: column.take(indexes) for name, column in columns.items()}
            bits = sum(1 << number for number, key in enumerate(keys) if key in each.columns)
            declared.append(Declared(each.table, bits, rows, columns))
        return declared

    def holds_messages(self, frames: Frames) -> NDArray[Any]:
        """Whether messages are declared, for each row."""
        if self._messages is None:
            return np.zeros(frames.batch.num_rows, bool)
        if self._messages.when is None:
            return np.ones(frames.batch.num_rows, bool)
        return where(self._messages.when, Scope(frames))

    def messages(self, frames: Frames) -> tuple[NDArray[Any], dict[str, pa.Array]]:
        """For each message, the row of its frame and its columns.

        Raises:
            Unfit: only the dialogue can return the messages.
            Crowded: they are too large to be in memory at once.
        """
        declared = self._messages
        if declared is None:
            return np.zeros(0, np.int64), {}
        types = MESSAGES.types
        if declared.batches:
            batch = self._messages_of(frames)
            rows = np.asarray(batch.column(ROW))
            if not rows.size:
                return rows, {}
            columns = self._columns(Scope(frames), declared)
            columns = {name: frames.repeats.repeated(column, rows) for name, column in columns.items()}
            columns |= {name: batch.column(name) for name in batch.schema.names if name != ROW}
        elif type(self)._is_declared(self.protocol) and (declared.each or "value" in declared.columns):
            scope = Scope(frames, parse(declared.each) if declared.each else ())
            rows, columns = scope.rows, self._columns(scope, declared)
            columns["crc_status"] = _status(scope, declared.columns.get("crc"))
            columns.setdefault("codec", pa.repeat("none", scope.size))
            if "log_offset" in columns and "message_id" in columns:
                numbered = columns["log_offset"].is_valid()
                columns["message_id"] = pc.if_else(numbered, pa.scalar(None, pa.string()), columns["message_id"])
        else:
            raise Unfit("only the dialogue knows its messages")
        holding = self.holds_messages(frames)[rows]
        if not holding.all():
            present = pa.array(np.flatnonzero(holding))
            rows, columns = rows[holding], {name: column.take(present) for name, column in columns.items()}
        if "timestamp_ms" in columns:
            columns.setdefault("timestamp", fitted(Values(columns["timestamp_ms"]), types["timestamp"]))
        return rows, columns

    @staticmethod
    def _is_declared(protocol: str) -> bool:
        """Whether a protocol's dialogue leaves messages to the declaration."""
        return type(registry.protocol(protocol).follow()).messages is Dialogue.messages

    @staticmethod
    def _columns(scope: Scope, messages: Messages) -> dict[str, pa.Array]:
        types = MESSAGES.types
        return {
            name: fitted(evaluate(value, scope, types[name]), types[name]) for name, value in messages.columns.items()
        }

    @cached_property
    def _messages_of(self) -> Callable[[Frames], pa.RecordBatch]:
        assert self._messages is not None
        function: Callable[[Frames], pa.RecordBatch] = load_object(self._messages.batches)
        return function


def plan_of(key: str, kind: str) -> Plan:
    """The plan for frames of a schema and kind; cached."""
    plans = _plans(key)
    if kind not in plans:
        protocol, _, layout = key.partition(".")
        plans[kind] = Plan(protocol, layout, kind)
    return plans[kind]


@lru_cache(64)
def _asked_anywhere(tables: Tables) -> tuple[str, ...]:
    """The paths in requests that responses read."""
    declared: list[Rows | Names | Messages] = [*tables.rows, *tables.names, *tables.messages]
    values = [value for each in declared for value in each.columns.values()]
    return tuple(paths_of(asked_of([*values, *(each.key for each in tables.names)])))


def _at_rows(values: Values, rows: NDArray[Any]) -> Values:
    return values if rows.size == len(values.array) else Values(values.array.take(pa.array(rows)), values.symbols)


def _status(scope: Scope, crc: Any) -> pa.Array:
    """The status of a checksum in frames without a failed one: ``ok``, or ``absent`` if there is none."""
    if not isinstance(crc, str):
        return pa.repeat("absent", scope.size)
    verified = np.asarray(scope.path(f"{crc}.ok").array.is_valid())
    return pa.array(np.where(verified, "ok", "absent"))
