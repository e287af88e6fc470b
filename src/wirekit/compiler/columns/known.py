"""The columns that a layout may have, including those that a buffer does not fill."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import cache

import pyarrow as pa

from wirekit.compiler.columns.programs import Columnar
from wirekit.errors import Misuse
from wirekit.program.messages import Place, Tables, chosen, is_leaf

SCANNED = frozenset({"@offset", "@length", "@gap", "@depth", "@wrapper", "@index", "@parent", "@left"})


def checked(key: str, made: Columnar, fields: Sequence[str] | None) -> tuple[str, ...] | None:
    """The fields that a caller asks for, None for all.

    Raises:
        Misuse: for one that is no column of the layout, nor has any inside it.
    """
    if fields is None:
        return None
    if isinstance(fields, str):
        raise Misuse(f"fields must be a list of paths, not {fields!r}")
    known = names(made)
    for name in fields:
        if name not in SCANNED and name not in known and not any(path.startswith(f"{name}.") for path in known):
            raise unknown(key, name, made)
    return tuple(fields)


def selected(batch: pa.RecordBatch, fields: tuple[str, ...] | None) -> pa.RecordBatch:
    """The columns of a batch that a caller asks for."""
    return batch if fields is None else batch.select([name for name in batch.schema.names if chosen(name, fields)])


def unknown(key: str, name: str, made: Columnar) -> Misuse:
    """The error for a column that a layout does not have."""
    known = names(made)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    return Misuse(f"{key} has no column {name!r}; it has {', '.join(near or sorted(known))}")


@cache
def names(made: Columnar) -> frozenset[str]:
    """The columns that a layout may have.

    >>> from wirekit.compiler.columns.programs import program
    >>> sorted(names(program("kafka.offset_index")))
    ['@length', '@offset', 'position', 'relative_offset']
    """
    return message_fields(made).union(_named(made, ""))


@cache
def message_fields(made: Columnar) -> frozenset[str]:
    """The columns of fields of protobuf messages."""
    fields = {place.path for message in made.program.messages for place in leaves(message)}
    if made.contents is not None and made.held is not None:
        fields |= {f"{made.held.path}.{path}" for path in message_fields(made.contents)}
    return frozenset(fields)


def _named(made: Columnar, within: str) -> Iterator[str]:
    yield from (f"{within}{name}" for name in made.schema.names)
    if made.contents is not None and made.held is not None:
        yield from _named(made.contents, f"{within}{made.held.path}.")
    if made.program.contents is not None:
        yield f"{within}{made.program.columns[made.program.contents.column].path}.ok"


def leaves(made: Tables) -> Iterator[Place]:
    """The fields of a message that have columns."""
    return (place for slot, place in enumerate(made.places) if is_leaf(place, slot))
