"""The .ksy files compile, and the Python that kaitai-struct-compiler makes of them reads what wirekit decodes."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import wirekit
from tests.own import own
from wirekit.exports import export
from wirekit.exports.ksy import identifier
from wirekit.values import Record
from wirekit.wire import (
    Bit,
    Bits,
    Const,
    Delimited,
    Flag,
    IfMore,
    Node,
    Repeat,
    Sized,
    String,
    Struct,
    Varint,
    uint8,
    uint32,
)

ROOT = Path(__file__).parents[2]
JARS = ROOT / "build" / "kaitai"
FIXTURES = ROOT / "fixtures"
KEYS = ("kafka.request", "kafka.response", "kafka.consumer_offsets.group_value", "joyqueue.frame", "net.ipv4")


def compiler() -> list[str]:
    """The command of kaitai-struct-compiler: one that is installed, or the jars of `make kaitai`; [] for none."""
    installed = shutil.which("kaitai-struct-compiler")
    if installed:
        return [installed]
    if not any(JARS.glob("*.jar")) or not shutil.which("java"):
        return []
    return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*", "io.kaitai.struct.JavaMain"]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleType]:
    """{key: the module that the compiler made}."""
    return compile_all(KEYS, tmp_path_factory.mktemp("ksy"))


def compile_all(keys: Sequence[str], folder: Path) -> dict[str, ModuleType]:
    if not compiler():
        pytest.skip("kaitai-struct-compiler is not there; `make kaitai` brings it")
    for key in keys:
        (folder / f"{identifier(key)}.ksy").write_text(export([key], "ksy").text, encoding="utf-8")
    files = [f"{identifier(key)}.ksy" for key in keys]
    output = subprocess.run(
        [*compiler(), "-t", "python", *files], cwd=folder, capture_output=True, check=False, text=True, timeout=120
    )
    assert output.returncode == 0, output.stdout + output.stderr
    modules = {}
    for key in keys:
        spec = importlib.util.spec_from_file_location(f"ksy_{identifier(key)}", folder / f"{identifier(key)}.py")
        assert spec is not None
        assert spec.loader is not None
        modules[key] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[key])
    return modules


def reader(modules: dict[str, ModuleType], key: str) -> Callable[..., Any]:
    """Reads bytes as Kaitai's Python does; further arguments are the layout's parameters."""
    from kaitaistruct import BytesIO, KaitaiStream

    kind = getattr(modules[key], "".join(part.capitalize() for part in identifier(key).split("_")))

    def read(data: bytes, *params: Any) -> Any:
        return kind(*params, KaitaiStream(BytesIO(data)))

    return read


def same(value: Any, other: Any, path: str = "") -> int:
    """How many leaves are compared."""
    names = value._fields if isinstance(value, Record) else ()
    while hasattr(other, "value") and "value" not in names:
        other = other.value  # a node that is no structure stands alone in its type
    if isinstance(value, Record):
        if names == ("compressed", "content"):
            return same(value.compressed, other, path)
        return sum(same(getattr(value, name), member(other, identifier(name)), f"{path}.{name}") for name in names)
    if value is None:
        assert other is None, path
        return 0
    if isinstance(value, list):
        assert len(value) == len(other), path
        return sum(same(item, each, f"{path}[]") for item, each in zip(value, other, strict=True))
    assert (int(value) if isinstance(value, int) else value) == other, path
    return 1


def member(structure: Any, name: str) -> Any:
    """An attribute, which may lie behind a length; one that is absent is not set."""
    if name in dir(structure):
        return getattr(structure, name)
    groups = [getattr(structure, each) for each in vars(structure) if each.startswith("sized_by_")]
    members = [member(group, name) for group in groups]
    return next((each for each in members if each is not None), None)


def whole(key: str) -> bytes:
    """A small frame of a layout, in which no message is cut: that cannot be expressed in Kaitai Struct."""
    value = json.dumps(wirekit.to_json(wirekit.example(key)))
    return wirekit.encode(key, json.loads(re.sub(r'"partial": "\w+"', '"partial": ""', value)))


def test_requests_of_every_api_are_read_as_wirekit_decodes_them(compiled: dict[str, ModuleType]) -> None:
    read = reader(compiled, "kafka.request")
    compared = 0
    for key in wirekit.registry.protocol("kafka").layouts:
        if ".request.v" in key and not key.endswith(("untimed", "beta")):
            data = whole(f"kafka.{key}")
            compared += same(wirekit.decode(data, "kafka.request").value, read(data), key)
    assert compared > 400


def test_parameters_name_the_request_of_a_response(compiled: dict[str, ModuleType]) -> None:
    read = reader(compiled, "kafka.response")
    data = whole("kafka.fetch.response.v2")
    context = {"api": "fetch", "version": 2}
    assert same(wirekit.decode(data, "kafka.response", context=context).value, read(data, "fetch", 2)) > 10


def test_frames_of_joyqueues_own_codecs_are_read_as_wirekit_decodes_them(compiled: dict[str, ModuleType]) -> None:
    read = reader(compiled, "joyqueue.frame")
    compared = 0
    for line in (FIXTURES / "jmq4" / "frames.jsonl").read_text(encoding="utf-8").splitlines():
        data = bytes.fromhex(json.loads(line)["hex"])
        decoded = wirekit.decode(data, "joyqueue.frame")
        if decoded.error is None:  # some hold strings that JoyQueue's own readers refuse
            compared += same(decoded.value, read(data, 0, 0), json.loads(line)["name"])
    assert compared > 1000


def test_a_network_header_is_read_to_the_bit(compiled: dict[str, ModuleType]) -> None:
    data = wirekit.encode("net.ipv4", {**wirekit.example("net.ipv4"), "identification": 0x1234, "time_to_live": 3})
    assert same(wirekit.decode(data, "net.ipv4").value, reader(compiled, "net.ipv4")(data)) > 15


FLAGS = Bits(uint8, "high" / Bit(4), "low" / Bit(4), order="msb")
OWN: dict[str, tuple[Node, str, str]] = {
    "a list of bits": (Struct("flags" / Repeat(2, FLAGS)), "12 34", 'type: "flags_bits"\n    repeat: "expr"'),
    "a number with a length": (
        Struct("n" / Sized(uint8, uint32), "end" / uint8),
        "04 00000001 02",
        'n:\n    seq:\n      - id: "value"\n        type: "u4be"',
    ),
    "an optional text at the end": (
        Struct("n" / uint8, "text" / IfMore(String(uint8))),
        "01 00",
        'id: "text"\n    type: "text"\n    if: "not _io.eof"',
    ),
    "a constant flag": (
        Struct("flag" / Const(Flag(uint8), True), "end" / uint8),
        "01 02",
        'doc: "0 or not 0"\n  - id: "end"',
    ),
    "a type that is not read, in another one": (
        Struct("inner" / Struct("n" / Varint(32)), "end" / uint8),
        "",
        'seq:\n  - id: "inner"\n    type: "inner"\ntypes:',
    ),
}
"""Layouts with bytes, and lines of their .ksy file."""


@pytest.mark.parametrize("name", OWN)
def test_forms_of_other_layouts(name: str) -> None:
    layout, _, lines = OWN[name]
    with own(layout) as key:
        assert lines in export([key], "ksy").text


def test_other_layouts_are_read_as_wirekit_decodes_them(tmp_path: Path) -> None:
    with ExitStack() as stack:
        keys = [stack.enter_context(own(layout)) for layout, *_ in OWN.values()]
        compiled = compile_all(keys, tmp_path)
        for key, (_, text, _) in zip(keys, OWN.values(), strict=True):
            data = bytes.fromhex(text)
            assert not data or same(wirekit.decode(data, key).value, reader(compiled, key)(data), key) > 0


def test_numbers_in_text_are_listed() -> None:
    with own(Struct("n" / Delimited(" ", number=True))) as key:
        assert [each.reason for each in export([key], "ksy").missing] == ["numbers in text are read as text"]


def test_constructs_that_kaitai_struct_lacks_are_listed() -> None:
    written = export(["pulsar.frame"], "ksy")
    reasons = {each.path: each.reason for each in written.missing}
    assert reasons["pulsar.frame.command"] == "a protobuf message: the bytes to the end are one field"
    assert all(f"# - {line}" in written.text for line in written.summary())
