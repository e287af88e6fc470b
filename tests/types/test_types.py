"""The types of values are those of the layouts, and hold for real values."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wirekit
from tests.own import declared, own
from tests.types import script
from wirekit.exports import export
from wirekit.exports.stubs import decoding
from wirekit.registry import Layout, Protocol
from wirekit.wire import Array, Bytes, Compressed, Struct, int8

TYPES = Path(wirekit.__file__).parent / "types"
PROTOCOLS = sorted(path.stem for path in TYPES.glob("*.pyi") if path.stem not in ("__init__", "decoding"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_stubs_are_those_of_the_layouts(protocol: str) -> None:
    """After a change: ``python -m wirekit.exports.stubs``."""
    assert (TYPES / f"{protocol}.pyi").read_text() == export([protocol], "pyi").text


def test_the_stub_of_decode_has_every_key() -> None:
    assert (TYPES / "decoding.pyi").read_text() == decoding()


def test_the_stub_of_decode_has_every_option() -> None:
    options = [
        each.name for each in inspect.signature(wirekit.decode).parameters.values() if each.kind == each.KEYWORD_ONLY
    ]
    assert re.findall(r"^    (\w+): ", decoding().partition("class Options")[2], re.M) == options


def test_every_protocol_of_messages_has_types() -> None:
    assert PROTOCOLS == ["jmq4", "joyqueue", "kafka", "pulsar"]


def test_a_users_script_runs() -> None:
    request = wirekit.example("kafka.produce.request.v2")
    value = script.decoded(wirekit.encode("kafka.produce.request.v2", request))
    assert script.topics(value) == {"text": 1}
    (topic,) = value.body.topic_data
    assert script.codecs(topic.data[0].record_set) == ["NONE"]
    frame = wirekit.encode("pulsar.frame", wirekit.example("pulsar.frame"))
    assert script.client(wirekit.decode(frame, "pulsar.frame").value) == "text"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_classes_are_the_record_types(protocol: str) -> None:
    module = importlib.import_module(f"wirekit.types.{protocol}")
    frame = {"kafka": "Request", "pulsar": "Frame"}.get(protocol, "Frame")
    key = f"{protocol}.{frame.lower()}"
    value = wirekit.decode(wirekit.encode(key, wirekit.example(key)), key).value
    assert isinstance(value, getattr(module, frame))
    with pytest.raises(AttributeError):
        module.NoSuchLayout  # noqa: B018


def test_fields_named_like_methods_of_mappings_are_attributes(tmp_path: Path) -> None:
    node = Struct("values" / int8, "items" / Struct("get" / int8))
    with own(node) as key:
        (tmp_path / "layouts.pyi").write_text(export([key], "pyi").text)
        value = wirekit.decode(b"\1\2", key).value
    assert (value.values, value.items.get) == (1, 2)
    completed = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--follow-imports=silent", str(tmp_path)],
        env={**os.environ, "MYPYPATH": str(TYPES.parents[1])},
        capture_output=True,
        check=False,
        text=True,
        timeout=300,
    )
    assert f"{tmp_path.name}/layouts.pyi" not in completed.stdout, completed.stdout


def test_fields_named_like_keywords_are_listed() -> None:
    with own(Struct("class" / int8, "inner" / Struct("from" / int8, "to" / int8))) as key:
        written = export([key], "pyi")
    assert [each.path for each in written.missing] == [f"{key}.inner.from", f"{key}.class"]
    assert "to: int" in written.text
    assert "# - fields named like Python keywords are not attributes" in written.text


def test_a_description_ends_no_docstring() -> None:
    text = 'a """ b \\" c"'
    with declared(Protocol("quotes", "a test", {"x": Layout(Struct("a" / int8), text)})):
        (*_, layout) = ast.parse(export(["quotes.x"], "pyi").text).body
    assert isinstance(layout, ast.ClassDef)
    assert ast.get_docstring(layout) == text


def test_types_within_brackets_stay_together() -> None:
    inner = Compressed(Bytes(int8), 1, {1: "gzip"}, Array(int8, int8))
    with own(Struct("data" / Compressed(Bytes(int8, null=-1), 1, {1: "gzip"}, inner))) as key:
        text = export([key], "pyi").text
    assert "data: bytes | _Opened[bytes | _Opened[list[int]]] | None\n" in text
