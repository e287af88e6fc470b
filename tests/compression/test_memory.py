"""Memory follows the input: 20 times its size and 300 MB at most, or decoding ends with ``Limit``. On every engine.

Each bomb is decoded in a process of its own, whose peak is measured. Bombs take next to no bytes for a value: empty
records, messages, lists, strings, nulls written oddly, symbols without a name; as they stand, or compressed to a few
thousandths. With the default limits the whole process stays in bound, libraries included; with small ones, what is
decoded stays in what they say.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import struct
import subprocess
import sys
import tracemalloc
import types
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import wirekit
from wirekit.cli.verdicts import WithBytes
from wirekit.compiler.engines import DECODERS
from wirekit.compression import compress, decompress
from wirekit.registry import Layout, Protocol, registry
from wirekit.values import SymbolTable
from wirekit.wire import (
    Array,
    Bit,
    Bits,
    Bytes,
    Compressed,
    Protobuf,
    RecordsToEnd,
    Ref,
    Sized,
    String,
    Struct,
    Symbols,
    int8,
    int16,
    int32,
    int64,
    this,
    uint8,
)

ENGINES = [*DECODERS, *(["columns"] if importlib.util.find_spec("numba") else [])]
RATIO, FIXED = 20, 300_000_000
MEMORY = 12 << 20  # of the small limits
SLACK = 8 << 20  # what a process takes besides, such as code that is imported late
MEASURED = """
import json, os, re, sys
from pathlib import Path
import wirekit
from tests.compression import test_memory as test
from wirekit.tuning import collect_rarely, keep_pandas_out
collect_rarely()
if "columns" in test.ENGINES:
    keep_pandas_out()
    import wirekit.compiler.columns
test.declare()
stdin = open(0, "rb", buffering=0)
while line := stdin.readline():  # which takes no more than the line: the copy reads the data, and this one never has it
    child = os.fork()
    if not child:
        break
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit(f"a decoding has failed: {status}")
else:
    sys.exit(0)
key, engine, memory, size = json.loads(line)
data = open(0, "rb", closefd=False).read(size)
limits = wirekit.Limits(memory=memory, memory_ratio=0) if memory else None
# The peak of getrusage is inherited from the process that started this one.
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
for piece in (data[:300], data):
    before = peak()
    ended = test.decoded(key, engine, piece, limits)
print(json.dumps([peak(), peak() - before, len(data), *ended]), flush=True)
os._exit(0)
"""
"""Makes a copy of itself for each decoding, which begins as the process of a command does, behind the imports."""


def declare() -> None:
    """Lists of each kind of element: counted, up to the end, inside each other, inside compressed data."""
    kinds = {
        "numbers": int8,
        "larger": int16,
        "largest": int64,
        "symbols": Symbols(int16, SymbolTable("colour", {0: "RED"})),
        "bits": Bits(uint8, "x" / Bit(4), "y" / Bit(4), order="msb"),
        "texts": String(int8),
        "nulls": Bytes(int8, null=-1),
        "lists": Array(int8, int8),
        "records": Struct("n" / int8),
        "pairs": Struct("a" / int8, "b" / Array(int8, int8)),
        "wide": Struct(*(f"f{number}" / Array(int8, int8, null=-1) for number in range(20))),
    }
    layouts = {name: Layout(Struct("items" / Array(int32, kind))) for name, kind in kinds.items()}
    layouts |= {f"{name}_to_end": Layout(Struct("items" / RecordsToEnd(kind))) for name, kind in kinds.items()}
    layouts["message"] = Layout(Struct("items" / Protobuf(f"{declared_messages()}:Bomb")))
    packed = Compressed(Bytes(int32), this.codec, {1: "gzip"}, Ref("bomb.records_to_end"))
    contained = Sized(uint8, Struct("text" / String(uint8)), contain=True)
    layouts["contained"] = Layout(Struct("items" / RecordsToEnd(contained)))
    layouts["packed"] = Layout(Struct("codec" / int8, "value" / packed))
    registry.register(Protocol("bomb", "a test", layouts))


def declared_messages() -> str:
    """The module of ``Bomb``, whose fields are lists: 1 to 4 of scalars, from ``WIDE`` on of messages.

    The message of field ``WIDE`` + n has n fields of an enum, that of field ``LISTS`` + n has n lists.
    """
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="bomb.proto", package="bomb", syntax="proto2")
    file.enum_type.add(name="Colour").value.add(name="RED", number=0)
    bomb = file.message_type.add(name="Bomb")
    for number, scalar in enumerate((kind.TYPE_STRING, kind.TYPE_UINT64, kind.TYPE_BYTES, kind.TYPE_ENUM), 1):
        bomb.field.add(name=f"scalar{number}", number=number, type=scalar, label=kind.LABEL_REPEATED)
    bomb.field[-1].type_name = ".bomb.Colour"
    for first, label in ((WIDE, kind.LABEL_OPTIONAL), (LISTS, kind.LABEL_REPEATED)):
        for width in WIDTHS:
            name = f"Message{first + width}"
            message = file.message_type.add(name=name)
            for number in range(1, width + 1):
                field = message.field.add(name=f"f{number}", number=number, type=kind.TYPE_ENUM, label=label)
                field.type_name = ".bomb.Colour"
            inner = bomb.field.add(name=name, number=first + width, type=kind.TYPE_MESSAGE, label=kind.LABEL_REPEATED)
            inner.type_name = f".bomb.{name}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    module = types.ModuleType("bomb_messages")
    vars(module)["Bomb"] = message_factory.GetMessageClass(pool.FindMessageTypeByName("bomb.Bomb"))
    return sys.modules.setdefault(module.__name__, module).__name__


def decoded(key: str, engine: str, data: bytes, limits: Any) -> tuple[list[str], int]:
    """The limits that were met, and how many values came out at the top."""
    if engine == "columns":
        from wirekit.compiler.columns import scan
        from wirekit.compiler.columns.scanning import LIBRARIES

        if limits is not None:
            limits = wirekit.Limits(memory=LIBRARIES + limits.memory, memory_ratio=0)
        batch, errors = scan(key, data, limits=limits)
        assert set(errors["kind"].to_pylist()) <= {"limit", "short"}
        reasons = [reason for reason in errors["reason"].to_pylist() if "limit" in reason]
        return [reason.rpartition("(")[2].rstrip(")") for reason in reasons], batch.num_rows
    result = wirekit.decode(data, key, engine=engine, limits=limits)
    if not isinstance(result.error, wirekit.Limit):
        assert len(result.checks) >= 0
        return [], len(result.value)
    assert result.value is not None
    return [result.error.limit], len(result.value)


def varint(number: int) -> bytes:
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def small_message(value: bytes = b"", codec: int = 0) -> bytes:
    """An entry of a message set of Kafka, of 26 bytes if it is empty."""
    body = struct.pack(">bbii", 0, codec, -1, len(value) if value else -1) + value
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def sets(number: int, depth: int, times: int = 1) -> bytes:
    """A message set, so many times compressed inside another; several of them."""
    data = small_message() * number
    for _ in range(depth):
        data = small_message(zlib.compress(data, 9, 31), 1)
    return data * times


def message_of(size: int) -> bytes:
    """A message set of one message of zeros."""
    return wirekit.encode(
        "kafka.message_set", {"messages": [{"offset": 0, "message": {"magic": 0, "value": "00" * size}}]}
    )


def plain(size: int) -> bytes:
    """A wrapper of one message of zeros."""
    return small_message(zlib.compress(small_message(bytes(size)), 9, 31), 1)


def member(number: int, content: bytes | int) -> bytes:
    """A field of a protobuf message."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def filled(number: int, fields: int) -> bytes:
    """A message inside of ``Bomb`` with so many fields, each a colour without a name."""
    return member(number, b"".join(member(each, 127) for each in range(1, fields + 1)))


def frame(field: bytes, number: int) -> bytes:
    """A frame of Pulsar that asks for a producer, with a field many times."""
    command = b"\x0a\x00\x10\x00\x18\x00" + field * number
    body = b"\x08\x05\x2a" + varint(len(command)) + command
    return struct.pack(">ii", len(body) + 4, len(body)) + body


def counted(element: bytes, number: int) -> bytes:
    return struct.pack(">i", number) + element * number


def repeated(element: bytes) -> bytes:
    return element * NUMBER


def packed() -> bytes:
    data = zlib.compress(bytes(NUMBER), 9, 31)
    return b"\x01" + struct.pack(">i", len(data)) + data


ELEMENTS = {
    "numbers": b"\x01",
    "larger": b"\x7f\x01",
    "largest": b"\x7f" * 8,
    "symbols": b"\x7f\x01",
    "bits": b"\x12",
    "texts": b"\x01\xff",
    "nulls": b"\xfe",
    "lists": b"\x00",
    "records": b"\x01",
    "pairs": b"\x01\x00",
    "wide": b"\xff" * 20,
}
NUMBER = 350_000
Bomb = tuple[str, Callable[[], bytes]]
BOMBS: dict[str, Bomb] = {name: (f"bomb.{name}", partial(counted, each, NUMBER)) for name, each in ELEMENTS.items()}
BOMBS |= {f"{name} to the end": (f"bomb.{name}_to_end", partial(repeated, each)) for name, each in ELEMENTS.items()}
BOMBS |= {
    "packed": ("bomb.packed", packed),
    "messages": ("kafka.message_set", partial(sets, 50_000, 0)),
    "wrapped": ("kafka.message_set", partial(sets, 50_000, 1)),
    "wrapped thrice": ("kafka.message_set", partial(sets, 50_000, 3)),
    "many wrappers": ("kafka.message_set", partial(sets, 500, 1, 200)),
    "empty properties": ("pulsar.frame", partial(frame, b"\x32\x00", 30_000)),
    "unknown fields": ("pulsar.frame", partial(frame, b"\xf8\x07\x00", 30_000)),
    "nested messages": ("pulsar.frame", partial(frame, b"\x32\x06\x32\x04\x32\x02\x32\x00", 30_000)),
    "plain bytes": ("kafka.message_set", partial(plain, 30 << 20)),
}
LARGE: dict[str, Bomb] = {
    "rows": ("kafka.message_set", partial(sets, 1_600_000, 1)),
    "columns": ("kafka.message_set", partial(sets, 3_000_000, 1)),
    "reference": ("pulsar.frame", partial(frame, b"\x32\x00", 400_000)),
    "trace": ("kafka.message_set", partial(sets, 150_000, 0)),
}


WIDTHS = (1, 6, 11, 22, 43)  # where a dict needs a larger table
WIDE, LISTS = 100, 200
ITEMS = 40_000
MESSAGES = {
    "texts": member(1, "é你".encode()),
    "numbers": member(2, 1 << 63),
    "bytes": member(3, b"ab"),
    "symbols": member(4, 127),
    "unknown inside": member(WIDE + 1, b"\xfa\x07\x01a"),
    "out of order": member(WIDE + 6, b"\x10\x01\x08\x01\x08\x01"),
}
for width in WIDTHS:
    for fields in sorted({0, 1, width}):
        MESSAGES[f"{fields} of {width} fields"] = filled(WIDE + width, fields)
        MESSAGES[f"{fields} of {width} lists"] = filled(LISTS + width, fields)
TRACED = BOMBS | {
    "lists of one": ("bomb.lists", partial(counted, b"\x01\x01", ITEMS)),
    "lists of one to the end": ("bomb.lists_to_end", partial(repeated, b"\x01\x01")),
    "contained errors": ("bomb.contained", partial(bytes, ITEMS)),
    "contained errors with gaps": ("bomb.contained", partial(bytes.__mul__, b"\x03\x09\x00\x00", ITEMS)),
    "wrong checksums": ("kafka.message_set", lambda: struct.pack(">qiIbbii", 0, 14, 1, 0, 0, -1, 0) * ITEMS),
    "properties without values": ("pulsar.frame", partial(frame, b"\x32\x02\x0a\x00", 30_000)),
    "whole properties": ("pulsar.frame", partial(frame, b"\x32\x07\x0a\x01a\x12\x02\xc3\xa9", 30_000)),
}
TRACED |= {f"message: {name}": ("bomb.message", partial(bytes.__mul__, each, ITEMS)) for name, each in MESSAGES.items()}


Process = subprocess.Popen[bytes]


@pytest.fixture(scope="module")
def declared() -> Iterator[None]:
    declare()
    yield
    registry.unregister("bomb")


@pytest.fixture(scope="module")
def measuring() -> Iterator[Process]:
    command = [sys.executable, "-c", MEASURED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def measured(process: Process, bomb: Bomb, engine: str, memory: int = 0) -> tuple[int, int, int, list[str], int]:
    key, make = bomb
    data = make()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([key, engine, memory, len(data)]).encode() + b"\n" + data)
    process.stdin.flush()
    peak, growth, size, limits, values = json.loads(process.stdout.readline())
    return peak, growth, size, limits, values


@pytest.mark.parametrize("engine", DECODERS)
@pytest.mark.parametrize("bomb", BOMBS)
def test_decoded_values_stay_within_the_memory_limit(bomb: str, engine: str, measuring: Process) -> None:
    _, growth, size, limits, _ = measured(measuring, BOMBS[bomb], engine, MEMORY)
    assert set(limits) <= {"memory"}
    assert growth < MEMORY * 1.1 + 2 * size + SLACK


@pytest.mark.parametrize("engine", DECODERS)
@pytest.mark.parametrize("bomb", TRACED)
def test_the_charge_for_values_covers_their_memory_in_this_python(bomb: str, engine: str, declared: None) -> None:
    (key, make), limits = TRACED[bomb], wirekit.Limits(memory=1 << 20, memory_ratio=0)
    data = make()
    wirekit.decode(data[:300], key, engine=engine, limits=limits)  # which compiles
    tracemalloc.start()
    result = wirekit.decode(data, key, engine=engine, limits=limits)
    ended = result.error is None and len(result.checks) >= 0
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ended or isinstance(result.error, wirekit.Limit) or "(memory)" in result.checks[-1].note
    assert peak < limits.memory + 30_000


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine == "columns"])
@pytest.mark.parametrize(
    "bomb", ["messages", "wrapped", "wrapped thrice", "many wrappers", "plain bytes", "empty properties"]
)
def test_columns_stay_in_the_limits_too(bomb: str, engine: str, measuring: Process) -> None:
    _, growth, size, limits, rows = measured(measuring, BOMBS[bomb], engine, MEMORY)
    assert set(limits) <= {"memory"}
    assert limits or bomb == "empty properties"  # a count is all that columns have of them
    assert growth < MEMORY * 1.1 + 4 * size + 4 * SLACK  # libraries work in steps of some MiB
    assert rows == 0 or bomb in ("messages", "many wrappers", "empty properties")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_process_stays_in_bound_with_the_default_limits(engine: str, measuring: Process) -> None:
    if engine == "columns":
        measured(
            measuring, ("kafka.message_set", partial(sets, 1, 0)), engine
        )  # compiles, which takes 90 MB more, once a machine
    peak, _, size, limits, _ = measured(measuring, LARGE[engine], engine)
    assert set(limits) == {"memory"}
    assert peak < RATIO * size + FIXED


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine == "columns"])
@pytest.mark.parametrize("size", [2_000_000, 8_000_000, 24_000_000])
def test_columns_take_memory_for_the_fields_of_a_message_that_occur(size: int, engine: str, measuring: Process) -> None:
    ping = bytes.fromhex("00000009" + "00000005" + "0812920100")
    bomb = ("pulsar.frame", lambda: ping * (size // len(ping)))
    measured(measuring, ("pulsar.frame", lambda: ping * 1000), engine)  # compiles
    peak, *_, limits, rows = measured(measuring, bomb, engine)
    assert rows > (100_000 if limits else size // len(ping) - 1)
    assert peak < RATIO * size + FIXED


@pytest.fixture(scope="module", params=["pulsar.frame", "joyqueue.frame", "kafka.request"])
def frames_of(request: pytest.FixtureRequest) -> tuple[str, list[bytes]]:
    """A schema, and frames of it. What draws them decodes each, which here one engine does: it is not tested."""
    from wirekit.strategies import bulk_frames  # not in the processes that are measured, which import this module

    key: str = request.param
    return key, [each for each in islice(bulk_frames(key, seed=1, clean=True), 1500) if len(each) < 400]


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine == "columns"])
def test_columns_that_few_rows_fill_count_for_all_rows(
    frames_of: tuple[str, list[bytes]], engine: str, measuring: Process
) -> None:
    """A hundred and more fields occur in the first frames; each of many small frames takes memory for all of them."""
    key, frames = frames_of
    small = min(frames, key=len)
    bomb = (key, lambda: b"".join(frames) + small * (4_000_000 // len(small)))
    measured(measuring, (key, lambda: b"".join(frames)), engine)  # compiles
    peak, _, size, limits, _ = measured(measuring, bomb, engine)
    assert set(limits) == {"memory"}
    assert peak < RATIO * size + FIXED


@pytest.mark.parametrize("engine", DECODERS)
def test_values_before_the_limit_are_kept_and_the_error_has_the_path(engine: str) -> None:
    data = small_message(b"first") + sets(20_000, 1)
    decoded = wirekit.decode(data, "kafka.message_set", engine=engine, limits=wirekit.Limits(memory=2 << 20))
    error = decoded.error
    assert isinstance(error, wirekit.Limit)
    assert (error.limit, error.source) == ("memory", 1)
    assert error.path.startswith("messages[1].message.value.content.messages[")
    assert decoded.value.messages[0].message.value == b"first"
    assert len(decoded.value.messages[1].message.value.messages) > 100


def test_spans_alone_may_be_too_many() -> None:
    data = sets(2000, 0)
    limits = wirekit.Limits(memory=3 << 20, memory_ratio=0)
    for engine in ("rows", "reference"):
        decoded = wirekit.decode(data, "kafka.message_set", engine=engine, limits=limits)
        assert decoded.error is None
        with pytest.raises(wirekit.Limit, match="memory"):
            _ = decoded.spans
    assert isinstance(wirekit.decode(data, "kafka.message_set", engine="trace", limits=limits).error, wirekit.Limit)


def test_fields_before_the_limit_are_shown_if_value_and_spans_exceed_it(capsys: pytest.CaptureFixture[str]) -> None:
    data = sets(2000, 0)
    limits = wirekit.Limits(memory=3 << 20, memory_ratio=0)
    decoded = wirekit.decode(data, "kafka.message_set", engine="rows", limits=limits)
    traced = decoded.traced()
    assert isinstance(traced.error, wirekit.Limit)
    assert 100 < len(traced.value.messages) < len(decoded.value.messages)
    assert traced.spans[0].path == "messages[0].offset"
    decoded.show()
    shown = capsys.readouterr().out
    assert "message_size = 14" in shown
    assert "(memory)" in shown
    drawn: list[wirekit.Decoded] = []
    draw = WithBytes(drawn.append)
    for each in (decoded, wirekit.decode(data[:26], "kafka.message_set")):
        draw(each)
    assert [len(each.value.messages) for each in drawn] == [len(traced.value.messages), 1]
    assert draw.status == 1
    assert capsys.readouterr().err.count("(memory)") == 1


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine == "columns"])
@pytest.mark.parametrize("content", [bytes(3 << 20), message_of(3 << 20)], ids=["damaged", "beyond the limit"])
def test_errors_of_columns_keep_no_decompressed_data(content: bytes, engine: str) -> None:
    """Commands collect garbage rarely: a segment of 2.5 MB took 1.4 GB in ``inspect``."""
    from wirekit.compiler.columns.scanning import LIBRARIES, scan

    codec = zlib.compressobj(9, wbits=31)
    packed = codec.compress(content) + codec.flush()
    entry = {
        "offset": 0,
        "message": {"magic": 0, "attributes": {"codec": "GZIP"}, "value": {"compressed": packed.hex()}},
    }
    data = wirekit.encode("kafka.message_set", {"messages": [entry] * 4})
    limits = wirekit.Limits(memory=(8 << 20) + LIBRARIES, memory_ratio=0, ratio=2000)
    scan("kafka.message_set", data, limits=limits)  # which compiles
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        _, errors = scan("kafka.message_set", data, limits=limits)
        remaining, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert errors.num_rows >= 3
    assert remaining < 1 << 20 < 3 << 20 < peak


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine == "columns"])
def test_columns_hold_decompressed_data_once(engine: str) -> None:
    """Arrow allocates the arrays with the values outside of what is traced."""
    from wirekit.compiler.columns import scan

    value = {"compressed": compress("gzip", message_of(500_000)).hex()}
    entry = {"offset": 0, "message": {"magic": 0, "attributes": {"codec": "GZIP"}, "value": value}}
    data = wirekit.encode("kafka.message_set", {"messages": [entry] * 20})
    limits = wirekit.Limits(memory=1 << 30)
    scan("kafka.message_set", data, limits=limits)  # which compiles
    tracemalloc.start()
    try:
        batch, _ = scan("kafka.message_set", data, limits=limits)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert batch.num_rows == 20
    assert 20 * 500_000 < peak < 1.5 * 20 * 500_000


@pytest.mark.parametrize("damaged", [False, True], ids=["beyond the limit", "damaged"])
def test_an_error_does_not_keep_the_output_before_it(damaged: bool) -> None:
    """Commands collect garbage rarely, and columns keep the errors of all compressed sets of a segment."""
    codec = zlib.compressobj(9, wbits=31)
    data = codec.compress(bytes(20 << 20)) + codec.flush()
    tracemalloc.start()
    try:
        with pytest.raises(wirekit.Wrong if damaged else wirekit.Limit) as refused:
            decompress("gzip", data[:-5000] + b"x" * 5000 if damaged else data)
        remaining, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.value.offset == 0
    assert remaining < 1 << 20 < peak
