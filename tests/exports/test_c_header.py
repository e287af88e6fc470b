"""The structs of `wirekit schemas --output c` lie in memory as the fields lie on the wire."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import wirekit
from tests.own import own
from wirekit.exports import export
from wirekit.values import SymbolTable
from wirekit.wire import String, Struct, Symbols, int8, uint16

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
HEADS = {"kafka.request": 12, "kafka.message": 6, "joyqueue.header": 23, "net.tcp": 20, "net.ipv4": 20}
"""{layout: bytes of its fixed beginning}."""


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_offsets_are_those_of_the_spans(tmp_path: Path) -> None:
    written = export(list(HEADS), "c").text
    (tmp_path / "layouts.h").write_text(written)
    prints, expected = [], []
    for key, size in HEADS.items():
        struct = key.replace(".", "_")
        data = wirekit.encode(key, wirekit.example(key))
        spans = {span.path: span for span in wirekit.decode(data, key).spans}
        body = re.search(rf"struct {struct} {{\n(.*?)}};", written, re.S)
        assert body is not None
        for name in re.findall(r" (\w+)(?:\[\d+\])*;", body[1]):
            member = name if name in spans else re.sub(r"_(length|count)$", r".$\1", name)
            prints.append(
                f'printf("%zu %zu\\n", offsetof(struct {struct}, {name}), sizeof(((struct {struct} *)0)->{name}));'
            )
            expected.append((spans[member].start, spans[member].end - spans[member].start))
        prints.append(f'printf("0 %zu\\n", sizeof(struct {struct}));')
        expected.append((0, size))
    program = ["#include <stddef.h>", "#include <stdio.h>", '#include "layouts.h"', "int main(void) {", *prints, "}"]
    (tmp_path / "main.c").write_text("\n".join(program))
    subprocess.run([str(COMPILER), "-Wall", "-Werror", "-o", "main", "main.c"], cwd=tmp_path, check=True, timeout=60)
    shown = subprocess.run([str(tmp_path / "main")], capture_output=True, check=True, text=True, timeout=60).stdout
    assert [tuple(map(int, line.split())) for line in shown.splitlines()] == expected


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("protocol", wirekit.registry.protocols())
def test_the_header_of_a_whole_protocol_compiles(protocol: str, tmp_path: Path) -> None:
    (tmp_path / "layouts.h").write_text(export([protocol], "c").text)
    subprocess.run(
        [str(COMPILER), "-fsyntax-only", "-Wall", "-Werror", "layouts.h"], cwd=tmp_path, check=True, timeout=60
    )


def test_fields_without_a_fixed_offset_are_listed() -> None:
    written = export(["kafka.message"], "c")
    assert [each.path for each in written.missing] == ["kafka.message.timestamp"]
    assert "kafka.message.timestamp" in written.text


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_text_of_varying_size_has_its_length(encoding: str) -> None:
    with own(Struct("a" / int8, "b" / String(uint16, encoding=encoding))) as key:
        assert "  uint16_t b_length; /* offset 1, big-endian */" in export([key], "c").text


def test_numbers_that_share_a_name_have_names_of_their_own() -> None:
    table = SymbolTable("kind", {1: "A", 2: "A", -2: "A", 3: "B-C", 4: "B C"})
    with own(Struct("kind" / Symbols(int8, table))) as key:
        entries = re.findall(r"(\w+) = (-?\d+),", export([key], "c").text)
    assert entries[:3] == [("KIND_A", "1"), ("KIND_A_2", "2"), ("KIND_A_2_2", "-2")]
    assert entries[3:] == [("KIND_B_C", "3"), ("KIND_B_C_4", "4")]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_names_that_c_cannot_tell_apart_are_numbered(tmp_path: Path) -> None:
    layout = Struct("int" / int8, "int_" / int8, "text_length" / int8, "text" / String(uint16))
    with own(layout) as key:
        written = export([key], "c").text
    assert re.findall(r"(\w+); /", written) == ["int_", "int__2", "text_length", "text_length_2"]
    (tmp_path / "layouts.h").write_text(written)
    subprocess.run([str(COMPILER), "-fsyntax-only", "-Werror", "layouts.h"], cwd=tmp_path, check=True, timeout=60)
