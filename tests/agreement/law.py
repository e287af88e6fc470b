"""The one law of the engines: what the reference engine says of bytes, every other engine says too.

A behaviour that is tested with ``agree`` is tested on all engines, and each is shown to have been used.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

import wirekit
from tests.agreement.walk import compare
from tests.engines import same
from wirekit.compiler import ir
from wirekit.compiler.expressions import fields_of
from wirekit.compiler.references import is_padded
from wirekit.errors import Misuse, Short, Wrong
from wirekit.program.show import shown
from wirekit.registry import BUILT_IN


def generated(key: str) -> bool:
    """Whether generated code decodes all that is in order; lengths of 0 that mean the rest are for the reference."""
    return not key.startswith("net.")


@functools.cache
def columnar(key: str) -> bool:
    """Whether a schema gives columns."""
    from wirekit.compiler.columns import program
    from wirekit.compiler.columns.header_variants import selected_by_header

    try:
        return selected_by_header(wirekit.registry[key].layout) or program(key) is not None
    except Misuse:
        return False


LISTS = {"kafka.metadata.response.v1", "kafka.fetch.response.v2", "joyqueue.commit_ack.request", "net.pcapng.blocks.le"}
"""Of the many schemas with lists in a record: counted, to the end, inside each other, in alternatives."""


@functools.cache
def compiled() -> frozenset[str]:
    """Keys for the columns engine: one of each kernel for many records; compiling all of them would take longest."""
    from wirekit.compiler.columns import program

    kernels: dict[str, str] = {}
    for key in filter(columnar, wirekit.registry.keys()):
        if key == "net.pcap":  # a kernel for each kind of link, which tests/compiler/test_columns_branches.py runs
            continue
        compiled_program = program(key)
        many = compiled_program.plan.path or key.endswith((".message", ".packets.le", ".frame")) or "index" in key
        if key in LISTS or (many and not compiled_program.program.lists) or key == "kafka.message_set":
            kernels.setdefault(shown(compiled_program.program), key)
    return frozenset(kernels.values())


@functools.cache
def forgetful(key: str) -> bool:
    """Whether something may be written in several ways that stands in no record, which would keep the way."""
    return _forgets(wirekit.registry[key].layout, frozenset({key}))


def _forgets(node: ir.Node, around: frozenset[str]) -> bool:
    match node:
        case ir.Structure() | ir.Protobuf():
            return False
        case ir.Reference(key=key):
            return key not in around and _forgets(wirekit.registry[key].layout, around | {key})
        case ir.Number(real=real, groups=groups):
            return real or groups > 0
        case ir.Blob(coding=coding) if coding is not None:  # what stands for nothing is shown; only a record keeps it
            return True
        case ir.Boolean() | ir.Bounded() | ir.Constant(fatal=False) | ir.WhenNext():
            return True
        case ir.Blob(null=null) | ir.Several(null=null) if null is not None:
            return True
    return any(_forgets(inner, around) for _, inner in ir.parts(node))


def prepare(key: str, sound: Iterable[tuple[Any, bytes]] = ()) -> None:
    """Compiles the kernels of a schema that gives columns: those that sound inputs need."""
    if columnar(key):
        from wirekit.compiler.columns import scan

        scan(key, b"")
        for context, data in sound:
            if not context:
                with contextlib.suppress(AssertionError):  # which the inputs show again
                    rebuild(key, data)


LOST = (
    *("no column has", "bytes are lost", "was not complete", "was damaged", "takes no bytes"),
    *("more elements than bytes", "decoding needs a byte for each record", "begins with the bytes that end the list"),
    "it is absent, but bytes follow",
)
"""What building from columns says of a record of which they have lost something."""


@functools.cache
def computed(key: str, context: tuple[tuple[str, Any], ...] = ()) -> frozenset[str]:
    """The columns of lengths, checksums, fields that tell of others, padding, and what is read ahead, which is not
    written.
    """
    element = _element(key, context)
    return frozenset() if element is None else frozenset(_computed(element, ""))


def _element(key: str, context: tuple[tuple[str, Any], ...]) -> ir.Node | None:
    """The record of a schema, None where what is in front selects it."""
    from wirekit.compiler.columns import program
    from wirekit.compiler.columns.header_variants import selected_by_header

    return None if selected_by_header(wirekit.registry[key].layout) else program(key, dict(context)).plan.element


def _computed(node: ir.Node, path: str) -> Iterator[str]:
    is_structure = isinstance(node, ir.Structure)
    for name, inner in ir.parts(node):
        yield from _computed(inner, f"{path}.{name}".lstrip(".") if is_structure else path)
    if isinstance(node, ir.Structure):
        names = [f"{path}.{member.name}".lstrip(".") for member in node.members]
        yield from (names[rule.at] for rule in (*node.measures, *node.sums))
        yield from (f"{names[rule.at]}.{rule.field}" for rule in node.derived)
    if isinstance(node, ir.Blob) and is_padded(node):
        yield path
    if isinstance(node, ir.Ahead):
        bits = node.node.fields if isinstance(node.node, ir.BitFields) else ()
        yield from (path, *(f"{path}.{bit.name}" for bit in bits))


@functools.cache
def _runs_on(key: str, context: tuple[tuple[str, Any], ...]) -> bool:
    """Whether a record in another form than the usual one may take bytes of the next one: for a list that ends where
    the next record is no element, or, without a length of its own, for a field that is there if bytes follow.
    """
    element = _element(key, context)
    open_end = isinstance(element, ir.Structure) and not element.measures
    return element is not None and any(
        (isinstance(node, ir.Several) and node.stop) or (open_end and isinstance(node, ir.WhenNext))
        for _, node in ir.walk(element)
    )


def _reads_ahead(key: str, context: tuple[tuple[str, Any], ...]) -> bool:
    """Whether a record may have a number that follows it, so that it cannot be read without the next one."""
    element = _element(key, context)
    return element is not None and any(isinstance(node, ir.Ahead) for _, node in ir.walk(element))


def rebuild(key: str, data: bytes, context: Mapping[str, Any] | None = None) -> str:
    """Builds what was scanned: to the same bytes, to others that say the same, or refused; gives which.

    All schemas that come with wirekit are built, of other layouts not all.

    Columns do not know a null of another length, a flag of 7, or a message in another form than the usual one: what is
    built then gives the same columns, but for what is computed, and the same bytes again.
    """
    from wirekit.compiler.building import encode_batch
    from wirekit.compiler.columns import scan

    batch, errors = scan(key, data, wrappers=True, context=context)
    if errors.num_rows:
        return "not built"
    if "@depth" in batch.schema.names:
        batch = batch.filter(pa.compute.equal(batch["@depth"], 0))
    built, why = b"", ""
    try:
        built = encode_batch(key, batch, context=context)
    except Misuse as error:
        why = str(error)
    if "is not built from columns" in why and key.partition(".")[0] not in BUILT_IN:
        return "not built"
    if "it would be less than" in why:  # a number takes fewer bytes in its usual form
        value = wirekit.to_json(wirekit.decode(data, key, context=context, engine="reference").value)
        with contextlib.suppress(Wrong):  # which the length of this number refuses, too
            wirekit.encode(key, _without_details(value), context=context, engine="reference")
            raise AssertionError(why)
        return "refused"
    if why.endswith("its number of elements differs from the one the layout requires"):  # it follows from a length
        assert pa.compute.max(batch["@gap"]).as_py(), why  # that covered bytes which no column has
        return "refused"
    if why.endswith("build more rows"):  # a length covered what is no record, too
        assert wirekit.decode(data, key, context=context).gaps, why
        return "refused"
    if why:
        assert any(text in why for text in LOST), why
        return "refused"
    if built == data[: int(batch.schema.metadata[b"wirekit.consumed"])]:
        build_defaults(key, built, batch, context)
        return "built"
    context_items = tuple(sorted((context or {}).items()))
    alone = [batch.slice(row, 1) for row in range(batch.num_rows)] if _runs_on(key, context_items) else [batch]
    for rows in alone:
        built = encode_batch(key, rows, context=context)
        again, _ = scan(key, built, wrappers=True, context=context)
        if "@depth" in again.schema.names:
            again = again.filter(pa.compute.equal(again["@depth"], 0))
        if again.num_rows < rows.num_rows and _reads_ahead(key, context_items):
            continue
        for name in rows.schema.names:
            if not name.startswith("@") and name.removesuffix(".ok") not in computed(key, context_items):
                assert rows[name].equals(again[name]) or str(rows[name]) == str(again[name]), name
        assert encode_batch(key, again, context=context) == built
    return "built in the usual form"


def build_defaults(key: str, data: bytes, batch: pa.RecordBatch, context: Mapping[str, Any] | None) -> None:
    """Builds a record without the columns of fields that have a default: to the bytes of a record without these fields.

    Fields stay that select or measure others: these might not fit the default.
    """
    from wirekit.compiler.building import encode_batch

    layout = wirekit.registry[key].layout
    if not isinstance(layout, ir.Structure) or batch.num_rows != 1:
        return
    trees = [tree for _, node in ir.walk(layout) for _, tree in ir.expressions(node)]
    read = {field.names[0] for tree in trees for field in fields_of(tree)}
    names = {each.name for each in layout.members if isinstance(each.node, ir.Optional)} - read
    missing = [name for name in batch.schema.names if name.partition(".")[0].partition(":")[0] in names]
    decoded = wirekit.decode(data, key, context=context, engine="reference")
    if not (missing and decoded.clean):
        return
    value = _without_details(wirekit.to_json(decoded.value))
    value = {name: each for name, each in value.items() if name not in names}
    with contextlib.suppress(Wrong):  # a length is too small without the fields that it covers
        expected = wirekit.encode(key, value, context=context, engine="reference")
        assert encode_batch(key, batch.drop_columns(missing), context=context) == expected


def _without_details(value: Any) -> Any:
    """A value as JSON, without what keeps bytes in an unusual form."""
    if isinstance(value, list):
        return [_without_details(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _without_details(each) for name, each in value.items() if not name.startswith("$")}


def _is_usual(key: str, data: bytes, context: Mapping[str, Any]) -> bool:
    """Whether bytes are written as an encoder writes them; of numbers that are none there are many, and what is
    compressed stays as it is.
    """
    decoded = wirekit.decode(data, key, context=context, engine="reference")
    if data and not decoded.consumed:
        return False  # what was read ahead, or is there and null, is not written
    return _again(key, data, context) == data and not decoded.sources and "nan" not in repr(decoded.value)


def _again(key: str, data: bytes, context: Mapping[str, Any]) -> bytes | None:
    """What decodes, written again; and what lies behind it."""
    decoded = wirekit.decode(data, key, context=context, engine="reference")
    if decoded.error is not None:
        return None
    with contextlib.suppress(Wrong):
        return wirekit.encode(key, decoded.value, context=context, engine="reference") + data[decoded.consumed :]
    return None  # shown without a record that keeps the bytes: what stands for nothing


def _written(key: str, decoded: wirekit.Decoded, data: bytes, context: Mapping[str, Any]) -> bytes | None:
    """What decodes, written again; None if a count in it is allowed only by bytes behind it."""
    try:
        return wirekit.encode(key, decoded.value, context=context, engine="reference")
    except Wrong as error:
        why = str(error)
    assert "one for each byte up to the limit" in why
    alone = wirekit.decode(data[: decoded.consumed], key, context=context, engine="reference")
    if not isinstance(alone.error, Short):  # a list ends before what is cut, or is there only if bytes follow
        assert wirekit.to_json(alone.value) != wirekit.to_json(decoded.value)
    with pytest.raises(Wrong, match="one for each byte up to the limit"):
        wirekit.encode(key, decoded.value, context=context, engine="rows")
    return None


def agree(
    key: str,
    data: bytes,
    context: Mapping[str, Any],
    *,
    columns: bool = True,
    used: bool = True,
    counts: Counter[str] | None = None,
) -> wirekit.Decoded:
    """Decodes bytes on every engine and compares value, verdicts, gaps, error and its offset.

    What decodes is written again by every engine that writes, to the same bytes; columns are built from as ``rebuild``
    has it. What stands in no record is written in the usual form, as nothing keeps another one (see ``forgetful``).

    Args:
        columns: whether to scan with the columns engine too, where the schema gives columns; it knows no context.
        used: whether generated code must decode what is in order.
        counts: receives what happened.

    Raises:
        AssertionError: when engines differ, or when one that must take the bytes left them to another.
    """
    usual = not forgetful(key) or _is_usual(key, data, context)
    decoded = same(key, data, dict(context), used=used and generated(key) and usual)
    if decoded.error is None and (usual or _again(key, data, context) is not None):
        written = _written(key, decoded, data, context)
        if written is not None:
            alike = not usual and _again(key, written, context) in (written, None)
            assert written == data[: decoded.consumed] or alike
            assert wirekit.encode(key, decoded.value, context=context, engine="rows") == written
    elif decoded.error is not None:
        assert decoded.error.offset is not None
    scanned = columns and not context and columnar(key)
    if scanned:
        compare(key, data)
    outcome = rebuild(key, data) if scanned else ""
    if counts is not None:
        counts.update([outcome] if outcome else [])
        how = decoded.error.kind if decoded.error is not None else "clean" if decoded.clean else "with verdicts"
        counts.update(["inputs", how, *(["columns"] if scanned else []), *([decoded.engine] if decoded.clean else [])])
    return decoded
