"""The generated protobuf modules say exactly what Pulsar's own schema says."""

import ast
import doctest
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from wirekit.proto import PulsarApi_pb2, PulsarMarkers_pb2, regenerate

ROOT = Path(__file__).resolve().parents[2]
FACTS = json.loads((ROOT / "fixtures/pulsar/pulsar_proto.json").read_text())
MODULES = {"PulsarApi.proto": PulsarApi_pb2, "PulsarMarkers.proto": PulsarMarkers_pb2}

Field = descriptor_pb2.FieldDescriptorProto
PREFIX = ".pulsar.proto."

compiled = pytest.mark.skipif(find_spec("grpc_tools") is None, reason="needs grpcio-tools")


def file_of(source: str) -> descriptor_pb2.FileDescriptorProto:
    described = descriptor_pb2.FileDescriptorProto()
    MODULES[source].DESCRIPTOR.CopyToProto(described)
    return described


def default_of(field: descriptor_pb2.FieldDescriptorProto) -> Any:
    if not field.HasField("default_value"):
        return None
    if field.type == Field.TYPE_BOOL:
        return field.default_value == "true"
    if field.type == Field.TYPE_ENUM:
        return field.default_value
    return int(field.default_value)


def fields_of(message: descriptor_pb2.DescriptorProto) -> list[dict[str, Any]]:
    fields = []
    for field in message.field:
        fact: dict[str, Any] = {
            "name": field.name,
            "number": field.number,
            "label": Field.Label.Name(field.label).removeprefix("LABEL_").lower(),
            "type": Field.Type.Name(field.type).removeprefix("TYPE_").lower(),
            "default": default_of(field),
        }
        if field.type_name:
            fact["ref"] = field.type_name.removeprefix(PREFIX)
        if field.label == Field.LABEL_REPEATED:
            fact["packed"] = field.options.packed
        if field.HasField("oneof_index"):
            fact["oneof"] = message.oneof_decl[field.oneof_index].name
        fields.append(fact)
    return fields


def values_of(enum: descriptor_pb2.EnumDescriptorProto) -> list[dict[str, Any]]:
    return [{"name": value.name, "number": value.number} for value in enum.value]


def walk(
    source: str,
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, list[dict[str, Any]]]]:
    """All messages and enums of a file, nested ones under their dotted names."""
    messages: dict[str, list[dict[str, Any]]] = {}
    enums: dict[str, list[dict[str, Any]]] = {}

    def visit(message: descriptor_pb2.DescriptorProto, scope: str) -> None:
        name = scope + message.name
        messages[name] = fields_of(message)
        for enum in message.enum_type:
            enums[f"{name}.{enum.name}"] = values_of(enum)
        for nested in message.nested_type:
            visit(nested, f"{name}.")

    described = file_of(source)
    for enum in described.enum_type:
        enums[enum.name] = values_of(enum)
    for message in described.message_type:
        visit(message, "")
    return messages, enums


def facts(kind: str, source: str) -> dict[str, list[dict[str, Any]]]:
    return {name: entry for name, entry in FACTS[kind].items() if FACTS["defined_in"][name] == source}


@pytest.mark.parametrize("source", MODULES)
def test_file_is_proto2_of_pulsars_package(source: str) -> None:
    described = file_of(source)
    # Descriptors leave the syntax out when it is proto2.
    assert (described.syntax or "proto2", described.package) == (FACTS["syntax"], FACTS["package"])
    assert not described.extension
    assert not described.dependency


@pytest.mark.parametrize("source", MODULES)
def test_every_message_and_field_is_the_schemas(source: str) -> None:
    messages, _ = walk(source)
    expected = facts("messages", source)
    assert set(messages) == set(expected)
    for name, fields in expected.items():
        assert messages[name] == fields, name


@pytest.mark.parametrize("source", MODULES)
def test_every_enum_value_is_the_schemas(source: str) -> None:
    _, enums = walk(source)
    assert enums == facts("enums", source)


def test_nothing_of_the_schema_is_left_out() -> None:
    walks = [walk(source) for source in MODULES]
    assert sum(len(messages) for messages, _ in walks) == len(FACTS["messages"]) == 100
    assert sum(len(enums) for _, enums in walks) == len(FACTS["enums"]) == 20


def test_base_command_has_all_commands() -> None:
    base = PulsarApi_pb2.BaseCommand
    assert len(FACTS["commands"]) == len(base.Type.items()) == 71
    for command in FACTS["commands"]:
        field = base.DESCRIPTOR.fields_by_number[command["number"]]
        assert base.Type.Value(command["type"]) == command["number"]
        assert (field.name, field.message_type.name) == (command["field"], command["message"])


def test_a_recorded_command_reads_and_writes_back() -> None:
    (vector,) = (
        entry
        for entry in json.loads((ROOT / "fixtures/pulsar/golden_frames.json").read_text())
        if entry["id"] == "rs-1"
    )
    frame = bytes.fromhex(vector["hex"])
    command = PulsarApi_pb2.BaseCommand.FromString(frame[8 : 8 + int.from_bytes(frame[4:8], "big")])
    assert str(command) == vector["expect"]["command"]
    assert command.SerializeToString() == frame[8:16]


def test_messages_know_the_module_they_live_in() -> None:
    assert PulsarApi_pb2.BaseCommand.__module__ == "wirekit.proto.PulsarApi_pb2"
    assert PulsarMarkers_pb2.ClusterMessageId.__module__ == "wirekit.proto.PulsarMarkers_pb2"


@compiled
def test_regenerating_gives_the_committed_modules(tmp_path: Path) -> None:
    written = regenerate.generate(tmp_path)
    assert [path.name for path in written] == [
        "PulsarApi_pb2.py",
        "PulsarApi_pb2.pyi",
        "PulsarMarkers_pb2.py",
        "PulsarMarkers_pb2.pyi",
    ]
    for path in written:
        committed = (regenerate.HERE / path.name).read_text()
        if path.suffix == ".py":
            assert path.read_text() == committed, path.name
        else:
            # Compilers differ in how they spell the same types, never in what there is.
            names = re.compile(r"^\s*(?:class )?\w+", re.MULTILINE)
            assert names.findall(path.read_text().partition("DESCRIPTOR")[2]) == names.findall(
                committed.partition("DESCRIPTOR")[2]
            ), path.name


def test_stubs_are_python_and_declare_all_messages() -> None:
    declared: set[str] = set()
    for name in ("PulsarApi_pb2.pyi", "PulsarMarkers_pb2.pyi"):
        # protoc declares Schema.Type's value None, which Python cannot parse.
        body = ast.parse((regenerate.HERE / name).read_text()).body
        declared |= {node.name for node in body if isinstance(node, ast.ClassDef)}
    assert {name for name in (*FACTS["messages"], *FACTS["enums"]) if "." not in name} <= declared


def test_modules_accept_the_oldest_runtime_that_is_promised() -> None:
    numbers = ",\n    ".join(map(str, regenerate.RUNTIME))
    for name in ("PulsarApi_pb2.py", "PulsarMarkers_pb2.py"):
        assert f"Domain.PUBLIC,\n    {numbers},\n" in (regenerate.HERE / name).read_text()


@compiled
def test_check_finds_nothing_out_of_date_or_names_it(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(regenerate, "RUNTIME", (5, 99, 0))
    assert regenerate.main(["--check"]) == 1
    assert "PulsarApi_pb2.py is out of date" in capsys.readouterr().err


@compiled
def test_examples_in_the_documentation_run() -> None:
    assert doctest.testmod(regenerate).failed == 0
