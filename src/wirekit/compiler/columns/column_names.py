"""The columns that a layout may have, including those that a buffer does not fill."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

import pyarrow as pa

from wirekit.compiler.columns.programs import Columnar
from wirekit.errors import Misuse
from wirekit.program.messages import Place, Tables, chosen, is_leaf

SCANNED = frozenset({"@offset", "@length", "@gap", "@depth", "@wrapper", "@index", "@parent", "@left"})
MOST_NAMES = 20
"""Columns that the error for an unknown one names."""


def checked(key: str, columnar: Columnar, fields: Sequence[str] | None) -> tuple[str, ...] | None:
    """The requested fields, None for all.

    Raises:
        Misuse: a field is not a column of the layout and contains none.
    """
    if fields is None:
        return None
    paths = () if isinstance(fields, str) else tuple(fields)
    if isinstance(fields, str) or not all(isinstance(name, str) for name in paths):
        raise Misuse(f"fields must be a list of paths, not {fields!r}")
    return _checked(key, columnar, paths)


@lru_cache(1 << 10)
def _checked(key: str, columnar: Columnar, fields: tuple[str, ...]) -> tuple[str, ...]:
    column_names = names(columnar)
    for name in fields:
        if (
            name not in SCANNED
            and name not in column_names
            and not any(path.startswith(f"{name}.") for path in column_names)
        ):
            raise unknown(key, name, columnar)
    return fields


def selected(batch: pa.RecordBatch, fields: tuple[str, ...] | None) -> pa.RecordBatch:
    """The requested columns of a batch."""
    requested = [name for name in batch.schema.names if chosen(name, fields)]
    return batch if len(requested) == batch.num_columns else batch.select(requested)


def unknown(key: str, name: str, columnar: Columnar) -> Misuse:
    """The error for a column that a layout does not have."""
    return no_column(key, name, sorted(names(columnar)))


def no_column(owner: str, name: str, column_names: Sequence[str]) -> Misuse:
    """The error for a column that a layout or a batch does not have."""
    near = difflib.get_close_matches(str(name), column_names, n=3, cutoff=0.4)
    if near:
        return Misuse(f"{owner} has no column {name!r}; did you mean {', '.join(near)}?")
    more = f" and {len(column_names) - MOST_NAMES:,} more" if len(column_names) > MOST_NAMES else ""
    return Misuse(f"{owner} has no column {name!r}; it has {', '.join(column_names[:MOST_NAMES]) or 'none'}{more}")


@cache
def names(columnar: Columnar) -> frozenset[str]:
    """The columns that a layout may have.

    >>> from wirekit.compiler.columns.programs import program
    >>> sorted(names(program("kafka.offset_index")))
    ['@length', '@offset', 'position', 'relative_offset']
    """
    return message_fields(columnar).union(_names_within(columnar, ""))


@cache
def message_fields(columnar: Columnar) -> frozenset[str]:
    """The columns of fields of protobuf messages."""
    fields = {place.path for tables in columnar.program.messages for place in leaves(tables)}
    if columnar.contents is not None:
        fields |= {f"{columnar.contents.plan.path}.{path}" for path in message_fields(columnar.contents)}
    return frozenset(fields)


def _names_within(columnar: Columnar, within: str) -> Iterator[str]:
    yield from (f"{within}{name}" for name in columnar.schema.names)
    if columnar.contents is not None:
        yield from _names_within(columnar.contents, f"{within}{columnar.contents.plan.path}.")
    if columnar.program.contents is not None:
        yield f"{within}{columnar.program.columns[columnar.program.contents.column].path}.ok"


def leaves(tables: Tables) -> Iterator[Place]:
    """The fields of a message that have columns."""
    return (place for slot, place in enumerate(tables.places) if is_leaf(place, slot))
