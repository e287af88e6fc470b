"""``wirekit encode``: the JSON that ``decode`` prints, back to bytes."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

from wirekit.cli.arguments import KeyType, schema_and_file
from wirekit.cli.common import on_terminal, read_bytes, say
from wirekit.cli.context import check_context, context_option, parse_context
from wirekit.encoding import encode
from wirekit.errors import Misuse, WirekitError
from wirekit.registry import registry
from wirekit.values import json_text, shown
from wirekit.wire.stream import join_path


@click.command("encode")
@click.argument("schema", required=False, type=KeyType(files=True))
@click.argument("file", required=False, type=click.Path(readable=False))
@click.option("--output", type=click.Choice(["raw", "hex"]), help="Default: hex on a terminal, raw on a pipe.")
@click.option("--strict", is_flag=True, help="Refuse values that peers refuse, wrong numbers, and gaps.")
@context_option
def command(
    schema: str | None, file: str | None, output: str | None, strict: bool, context_pairs: tuple[str, ...]
) -> int:
    """Encode FILE, or standard input: lines of `wirekit decode --output json`, or a value as JSON.

    Lengths, counts and checksums are computed, except in fields that `$keep` lists. A line of decode names its
    schema; a value without one needs SCHEMA. If SCHEMA is given, lines of another schema are refused.

    \b
    wirekit decode pulsar frame.bin --output json | wirekit encode pulsar > same.bin
    echo '{"correlation_id": 1, "client_id": "me", "body": {"topics": []}}' | wirekit encode kafka.metadata.request.v0
    """
    schema, file = schema_and_file("encode", schema, file)
    context = parse_context(context_pairs)
    if schema is not None:
        check_context(schema, context)
    form = output or ("hex" if on_terminal() else "raw")
    try:
        return _encode(schema, read_bytes(file), context, form, strict)
    except Misuse as error:
        say(str(error))
        return 1


def _encode(schema: str | None, text: bytes, context: dict[str, Any], form: str, strict: bool) -> int:
    if not text.strip():
        raise Misuse("the input is empty")
    status = 0
    for number, obj in _objects(text):
        key, value, frame_context = schema or "", obj, context
        if isinstance(obj, dict) and "value" in obj and "schema" in obj:
            _check_line(number, obj)
            if obj.get("error"):
                say(f"line {number}: its frame was not decoded completely: {_reason(obj['error'])}")
                status = 1
                continue
            key, value, frame_context = obj["schema"], obj["value"], {**obj.get("context", {}), **context}
            if schema not in (None, key, key.partition(".")[0]) and key in registry:
                raise Misuse(
                    f"line {number}: the schema is {key}, not {schema}; omit SCHEMA to use the schema of each line"
                )
        elif schema is None and isinstance(obj, dict) and "schema" in obj:
            raise Misuse(f"line {number} has a schema and no value; pass a line as `wirekit decode` prints it")
        elif schema is None:
            raise Misuse(f"line {number} names no schema; pass one: `wirekit encode SCHEMA`")
        try:
            data = encode(key, value, context=frame_context, strict=strict)
        except WirekitError as error:
            say(f"line {number}: {error}")
            return 1
        sys.stdout.buffer.write(data.hex().encode() + b"\n" if form == "hex" else data)
    return status


def _reason(error: Any) -> str:
    """The text of the error of a line."""
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) else json_text(error)


def _check_line(number: int, line: dict[str, Any]) -> None:
    if not isinstance(line["schema"], str):
        raise Misuse(f"line {number}: schema must be a key, not {shown(line['schema'])}")
    if not isinstance(line.get("context", {}), dict):
        raise Misuse(f"line {number}: context must be an object, not {shown(line['context'])}")


def _objects(data: bytes) -> Iterator[tuple[int, Any]]:
    """The JSON objects in a text, each with the number of its line: one over several lines, or one a line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misuse(f"not UTF-8: {error.reason} at byte {error.start}") from None
    try:
        yield 1, _loaded(text, 1)
        return
    except json.JSONDecodeError:
        lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, _loaded(line, number)
            except json.JSONDecodeError as error:
                raise Misuse(f"line {number} is not JSON: {error.msg} at column {error.colno}") from None


def _loaded(text: str, number: int) -> Any:
    """The value of a JSON text that begins in this line."""
    repeated: list[tuple[dict[str, Any], str]] = []  # the objects that have a key twice

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        obj = dict(pairs)
        if len(obj) < len(pairs):
            repeated.append((obj, Counter(name for name, _ in pairs).most_common(1)[0][0]))
        return obj

    try:
        value = json.loads(text, object_pairs_hook=unique)
        # The last one is not inside a value that a repeated key has replaced.
        path = [*next(_places(value, repeated[-1][0])), repeated[-1][1]] if repeated else []
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise Misuse(f"line {number}: the JSON is nested too deeply") from None
    except ValueError:
        raise Misuse(f"line {number}: the JSON has an integer with too many digits") from None
    if path:
        raise Misuse(f"line {number}: {join_path(path)}: the object has this key twice")
    return value


def _places(value: Any, target: dict[str, Any], path: tuple[str | int, ...] = ()) -> Iterator[list[str | int]]:
    """The path of an object in a value."""
    if value is target:
        yield [*path]
    elif isinstance(value, dict | list):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(each, target, (*path, name))
