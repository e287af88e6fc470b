"""The columns engine gives what the reference engine gives, record by record, and loses no neighbour of a bad one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import wirekit
from tests.agreement.walk import compare
from tests.compiler.samples import CHECKED, FEW, SAMPLES, files, message, message_sets, mixed, packets
from tests.fuzz.test_any_bytes import FIXTURES
from wirekit import compiler
from wirekit.compiler.columns import program, scan, source
from wirekit.errors import Misuse
from wirekit.program.maker import Program
from wirekit.program.read import read

pytestmark = pytest.mark.usefixtures("own_layouts")


def test_message_sets_that_real_brokers_sent() -> None:
    assert len(message_sets()) > 20
    depths = set()
    for data in message_sets():
        batch, errors = compare("kafka.message_set", data)
        assert errors.num_rows == 0
        depths |= set(batch["@depth"].to_pylist())
    assert depths == {0, 1}


@pytest.mark.parametrize(
    ("suffix", "key"), [(".log", "log_segment"), (".index", "offset_index"), (".timeindex", "time_index")]
)
def test_files_that_real_brokers_wrote(suffix: str, key: str) -> None:
    rows = 0
    for data in files(suffix):
        batch, errors = compare(f"kafka.{key}", data)
        assert errors.num_rows == 0
        rows += batch.num_rows
    assert rows > 10


@pytest.mark.parametrize("key", SAMPLES)
def test_whole_samples(key: str) -> None:
    data = SAMPLES[key]()
    batch, errors = compare(key, data)
    assert batch.num_rows > 3
    assert errors.num_rows == 0


def test_packets_of_a_capture() -> None:
    batch, errors = compare("net.pcap.packets.le", packets())
    assert errors.num_rows == 0
    file = wirekit.decode((FIXTURES / "pcap" / "jmq4-consume.pcap").read_bytes(), "net.pcap").value
    assert batch["original_length"].to_pylist() == [packet.original_length for packet in file.packets]
    assert batch["original_length.ok"].to_pylist() == [True] * batch.num_rows


def test_a_list_that_is_counted_and_bounded() -> None:
    entries = [{"data": b"x" * n or None} for n in range(4)]
    data = wirekit.encode("columnstest.counted", {"entries": entries})
    batch, errors = scan("columnstest.counted", data + b"behind")
    assert batch["data"].to_pylist() == [None, b"x", b"xx", b"xxx"]
    assert (
        batch["sum.ok"].to_pylist() == batch["crc.ok"].to_pylist() == batch["length_again.ok"].to_pylist() == [True] * 4
    )
    assert batch["@offset"].to_pylist()[0] == 6
    assert errors.num_rows == 0
    for cut in range(len(data)):
        batch, errors = scan("columnstest.counted", data[:cut])
        assert errors.num_rows > 0
    lots = data[:4] + b"\x7f\xff" + data[6:]
    batch, errors = scan("columnstest.counted", lots)
    assert (batch["data"].to_pylist(), errors["kind"].to_pylist()) == ([None, b"x", b"xx", b"xxx"], ["short"])
    batch, errors = scan("columnstest.counted", b"\x7f\xff\xff\xff" + data[4:])
    assert errors["kind"].to_pylist() == ["limit"]


@pytest.mark.parametrize("key", SAMPLES)
def test_nothing_gives_no_rows(key: str) -> None:
    batch, errors = scan(key, b"")
    assert (batch.num_rows, errors.num_rows) == (0, 0)


def test_any_contiguous_buffer_will_do() -> None:
    data = mixed()
    want = wirekit.columns("kafka.message_set", data)
    for buffer in (bytearray(data), memoryview(data), pa.py_buffer(data)):
        assert wirekit.columns("kafka.message_set", buffer).equals(want)
    with pytest.raises(Misuse, match="contiguous"):
        wirekit.columns("kafka.message_set", memoryview(data)[::2])
    with pytest.raises(Misuse, match="not str"):
        wirekit.columns("kafka.message_set", "text")


def test_arrays_without_bytes_of_their_own_are_refused() -> None:
    """An array of objects has pointers, an array of dates no buffer."""
    for array in (np.array([bytes(28)], object), np.zeros(2, "M8[s]")):
        with pytest.raises(Misuse, match="columns reads bytes, not"):
            wirekit.columns("kafka.message_set", array)


def test_arrays_grow_as_they_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    from wirekit.compiler.columns import run as columns_run

    entry = wirekit.encode("kafka.message_set", {"messages": [message(1, 0, b"v")]})
    bad = entry[:16] + b"\x09" + entry[17:]
    data = (entry * 3 + bad) * 2000
    want, wrong = scan("kafka.message_set", data)
    assert (want.num_rows, wrong.num_rows) == (6000, 2000)
    monkeypatch.setattr(columns_run, "ROW_GUESS", 1 << 40)
    monkeypatch.setattr(columns_run, "WHOLE", 0)
    rows, errors = scan("kafka.message_set", data)
    assert rows.equals(want)
    assert errors.equals(wrong)


def test_names_of_values_stand_in_the_metadata() -> None:
    field = wirekit.columns("kafka.message_set", b"").schema.field("message.attributes.codec")
    assert field.type == pa.int32()
    assert json.loads(field.metadata[b"wirekit.symbols"])["2"] == "SNAPPY"


@pytest.mark.skipif(FEW, reason="compiling takes longest")
def test_records_of_no_bytes_do_not_go_on_forever() -> None:
    batch, errors = scan("columnstest.empty", b"abc")
    assert batch.num_rows == 0
    assert errors.to_pylist()[0]["reason"] == "expected a record of at least one byte, found an empty one"
    assert (errors["offset"].to_pylist(), errors["length"].to_pylist()) == ([0], [3])


@pytest.mark.skipif(FEW, reason="compiling takes longest")
def test_records_of_no_bytes_can_be_counted() -> None:
    assert [compare("columnstest.counted_empty", data)[0].num_rows for data in (b"\x02abc", b"\x04abc", b"\xff")] == [
        2,
        0,
        0,
    ]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("columnstest.overflow", r"can exceed 64 bits"),
        ("columnstest.context", r"context\.version"),
    ],
)
def test_other_schemas_are_misuse(key: str, reason: str) -> None:
    with pytest.raises(Misuse, match=reason):
        wirekit.columns(key, b"")


def test_every_schema_of_wirekit_has_columns_as_the_page_says() -> None:
    refused = {}
    for key in wirekit.registry:
        try:
            program(key)
        except Misuse as error:
            refused[key] = str(error)
    assert "has several programs" in refused.pop("net.pcap")
    assert [key for key in refused if not key.startswith("columnstest.")] == []
    assert all(f"{key} has no columns: " in reason for key, reason in refused.items())
    page = (Path(__file__).parents[2] / "docs" / "columns.md").read_text(encoding="utf-8")
    section = page.partition("## Layouts without columns\n")[2].partition("\n## ")[0]
    assert section.strip().startswith("Every schema of wirekit has columns.")


def test_no_protocol_is_known_to_the_engine() -> None:
    modules = sorted(Path(str(compiler.__file__)).parent.rglob("*.py"))
    assert len(modules) > 40
    for module in modules:
        assert "wirekit.schemas" not in module.read_text(), module


def test_explain_prints_the_program_that_front_or_context_selects() -> None:
    from click.testing import CliRunner

    from wirekit.cli.explain import command

    options = ["--engine", "columns"]
    led = CliRunner().invoke(command, ["net.pcap", *options, "--front", str(FIXTURES / "pcap" / "jmq4-consume.pcap")])
    assert "emit r" in led.output
    assert "tcp.source_port: uint16?" in led.output
    printed = CliRunner().invoke(command, ["net.packet", *options, "--context", "link_type=1"]).output
    assert printed == source("net.packet", context={"link_type": 1}) != source("net.packet", context={"link_type": 101})
    with pytest.raises(Misuse, match="--front"):
        source("net.pcap")
    front = ["--front", str(FIXTURES / "pcap" / "jmq4-consume.pcap")]
    building = CliRunner().invoke(command, ["net.pcap", "--engine", "build-columns", *front]).output
    assert "take r7 = seconds as uint32 little\n" in building


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["kafka.response", "--engine", "columns", "--context", "api=fech"], "kafka.response has no api 'fech'"),
        (["kafka.response", "--context", "api=fetch"], "--context applies to the columns engines"),
        (["net.pcap", "--front", __file__], "--front applies to the columns engines"),
    ],
)
def test_explain_refuses_options_without_effect(arguments: list[str], words: str) -> None:
    from click.testing import CliRunner

    from wirekit.cli.explain import command

    refused = CliRunner().invoke(command, arguments)
    assert (refused.exit_code, words in refused.output) == (2, True)


def test_explain_prints_the_program() -> None:
    from click.testing import CliRunner

    from wirekit.cli.explain import command

    printed = CliRunner().invoke(command, ["kafka.offset_index", "--engine", "columns"]).output
    assert printed == source("kafka.offset_index")
    assert printed.startswith("need 8 before end else cut or short relative_offset\n")


@pytest.mark.skipif(CHECKED, reason="this is the run with bounds checks")
@pytest.mark.skipif("WIREKIT_LONG" not in os.environ, reason="takes a minute: make test-long")
def test_with_bounds_checked() -> None:
    """All that reads bytes, once more with every index compared with its array."""
    completed = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            __file__,
            *(str(Path(__file__).with_name(f"test_columns_{each}.py")) for each in ("damage", "lists")),
            "-k",
            "samples or grow or mutated or random or length",
        ],
        check=False,
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1", "WIREKIT_TEST_FEW": "1"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=290,
        cwd=Path(__file__).parents[2],
    )
    assert completed.returncode == 0, completed.stdout


def test_a_program_keeps_nothing_of_its_generation() -> None:
    """Programs are cached, and there are many of them."""
    assert type(read("kafka.sasl_token", wirekit.registry["kafka.sasl_token"].layout)) is Program
