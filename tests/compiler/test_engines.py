"""The engines agree: same value, verdicts, sources and errors, on real bytes, damaged bytes and any bytes."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirekit
from tests.engines import same
from tests.fuzz.test_any_bytes import CONTEXT, FEWER, KEYS, damaged, samples
from tests.own import own
from wirekit.compiler import ir, rows
from wirekit.compiler.expressions import Expression
from wirekit.compiler.rows import direct
from wirekit.compiler.source import Generator
from wirekit.wire import Bytes, Struct, Switch, this, uint8


@pytest.mark.parametrize("key", samples())
def test_real_bytes(key: str) -> None:
    context = CONTEXT.get(key, {})
    engines = {same(key, data, context).engine for data in samples()[key]}
    if key not in ("kafka.response", "net.pcapng"):  # these need a context that differs from sample to sample
        assert "rows" in engines


@pytest.mark.parametrize("key", KEYS)
@FEWER
@given(data=st.binary(max_size=120))
def test_any_bytes(key: str, data: bytes) -> None:
    same(key, data, CONTEXT.get(key, {}))


@pytest.mark.parametrize("key", samples())
@FEWER
@given(data=st.data())
def test_damaged_bytes(key: str, data: st.DataObject) -> None:
    same(key, damaged(data, samples()[key]), CONTEXT.get(key, {}))


@pytest.mark.parametrize("key", [key for key in KEYS if key in samples()])
def test_cut_bytes(key: str) -> None:
    sample = min(samples()[key], key=len)
    for size in range(min(len(sample), 400)):
        same(key, sample[:size], CONTEXT.get(key, {}))


def test_code_is_generated_for_every_schema() -> None:
    for key in KEYS:
        assert callable(rows.unit(key))


def test_generated_code_shows_up_in_tracebacks() -> None:
    import traceback

    unit = rows.unit("kafka.sasl_token")
    state = rows.State("kafka.sasl_token", {}, wirekit.Limits())
    with pytest.raises(rows.Unusual) as caught:
        unit(state, b"\0\0\0\x09ab", 0, 6, ())
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert frame.filename == "<wirekit rows kafka.sasl_token>"
    assert "raise Unusual" in str(frame.line)


def test_values_do_not_share_state() -> None:
    data = wirekit.encode("kafka.message", {"magic": 0, "value": "61"})
    first = wirekit.decode(data, "kafka.message", engine="rows").value
    first.attributes.codec = 3
    assert wirekit.decode(data, "kafka.message", engine="rows").value.attributes.codec == 0


def test_a_key_gets_generated_code_when_it_is_decoded_often() -> None:
    data = wirekit.encode("kafka.heartbeat.response.v0", {"correlation_id": 7, "body": {"error_code": 0}})
    engines = [wirekit.decode(data, "kafka.heartbeat.response.v0").engine for _ in range(10)]
    assert engines[-1] == "rows"


def test_unknown_engine_is_misuse() -> None:
    with pytest.raises(wirekit.Misuse, match="choose from rows, trace, reference"):
        wirekit.decode(b"", "kafka.message", engine="fast")


SMALL = """\
def unit0(S, b, p, e, q):
    l1 = None
    p3 = p + 4
    if p3 > e: raise Unusual
    n2, = unpack_be_l(b, p)
    p = p3
    if n2 < 0 or n2 > S.frame: raise Unusual
    e4 = p + n2
    if e4 > e: raise Unusual
    v5 = b[p:e4]
    p = e4
    if p != e4:
        l1 = l1 or {}
        l1['size'] = S.left_over(q, 'size', b, p, e4)
        p = e4
    r6 = new0()
    r6._extra = l1 and {'trailing': l1}
    r6.size = n2
    r6.token = v5
    return r6, p
"""


def packet(total_length: int) -> bytes:
    """An IPv4 packet with TCP and ten bytes in it, 50 bytes in all, whatever it says."""
    numbers = dict.fromkeys(("source_port", "destination_port", "sequence_number", "acknowledgment_number"), 1)
    tcp = {**numbers, "payload": "00" * 10}
    value = {"total_length": total_length, "source": "0a000001", "destination": "0a000002", "payload": tcp}
    return wirekit.encode("net.ipv4", {**value, "fragment": 0, "$keep": ["total_length"]})


def record(captured: int, original: int) -> bytes:
    """A packet record of a pcap file."""
    return struct.pack(">4L", 1, 2, captured, original) + bytes(captured)


@pytest.mark.parametrize(
    ("key", "data", "verdicts", "keep"),
    [
        ("net.ipv4", packet(50), [], None),
        ("net.ipv4", packet(0), [], {"keep": ["total_length"]}),
        ("net.ipv4", packet(60), [("total_length", 56, 46, "bad")], {"keep": ["total_length"]}),
        ("net.ipv4", packet(50)[:45], [("total_length", 46, 41, "bad")], {"keep": ["total_length"]}),
        ("net.pcap.packet.be", record(4, 4), [("original_length", 4, 4, "ok")], None),
        ("net.pcap.packet.be", record(4, 9), [("original_length", 9, 4, "ok")], {"keep": ["original_length"]}),
    ],
    ids=["whole", "0 is the rest", "more than there is", "cut", "whole record", "cut record"],
)
def test_lengths_that_need_not_fit(key: str, data: bytes, verdicts: list[Any], keep: Any) -> None:
    decoded = same(key, data, {}, used=False)
    assert decoded.engine == "rows"
    verdicts_of_all = [(check.path, check.stored, check.computed, check.status) for check in decoded.checks]
    assert [verdict for verdict in verdicts_of_all if verdict[0].endswith("length")] == verdicts
    assert decoded.clean == all(verdict[3] == "ok" for verdict in verdicts)
    assert decoded.value._extra == keep
    assert wirekit.encode(key, decoded.value) == data


def test_a_length_too_small_is_wrong_on_both_engines() -> None:
    assert same("net.ipv4", packet(19), {}).error is not None
    assert same("net.pcap.packet.be", record(4, 3), {}).engine == "reference"


def test_captures_are_for_the_generated_code() -> None:
    for path in sorted((Path(__file__).parents[2] / "fixtures" / "pcap").glob("*.pcap*")):
        key = "net.pcap" if path.suffix == ".pcap" else "net.pcapng"
        assert wirekit.decode(path.read_bytes(), key, context={"link_type": 1}, engine="rows").engine == "rows", path


def test_verdicts_on_a_list_stay_in_order_around_compressed_data() -> None:
    inner = {"messages": [{"offset": index, "message": {"magic": 0, "value": "61"}} for index in range(3)]}
    packed = {"magic": 0, "attributes": {"codec": 1}, "value": {"content": inner}}
    plain = {"magic": 1, "timestamp": 5, "value": "62"}
    entries = [{"offset": index, "message": message} for index, message in enumerate([plain, packed, packed, plain])]
    data = wirekit.encode("kafka.message_set", {"messages": entries})
    decoded = same("kafka.message_set", data, {})
    assert [check.source for check in decoded.checks] == [0, 1, 1, 1, 0, 2, 2, 2, 0, 0]
    assert [check.path for check in decoded.checks if not check.source] == [
        f"messages[{index}].message.crc" for index in range(4)
    ]
    for size in range(len(data)):
        same("kafka.message_set", data[:size], {})


def test_generated_source_of_a_small_schema() -> None:
    assert rows.decoder("kafka.sasl_token").source == SMALL


@pytest.mark.parametrize("units", [rows.decoder, rows.tracer, direct.builder], ids=["rows", "trace", "build"])
def test_code_is_generated_from_the_expressions_of_a_node_once(
    units: Callable[[str], Generator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not again for each structure around it: the work grows as the layout does, however deep it is."""
    lowered = Counter[int]()
    real = ir.expressions
    for depth in (10, 40):

        def counted(node: ir.Node, depth: int = depth) -> Iterator[tuple[str, Expression]]:
            lowered[depth] += 1
            return real(node)

        node = Struct("size" / uint8, "data" / Bytes(this.size))
        for _ in range(depth):
            node = Struct("size" / uint8, "inner" / Switch(this.size, {1: node, 2: uint8}))
        with own(node) as key, monkeypatch.context() as patch:
            patch.setattr(ir, "expressions", counted)
            assert "def unit0(" in units(key).source
    assert lowered[40] < 4.5 * lowered[10]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_limit_anywhere_in_fixed_and_optional_fields_is_reported_by_both_engines(magic: int) -> None:
    message = {"magic": magic, "key": "6b", "value": "61"} | ({"timestamp": 5} if magic else {})
    entries = [{"offset": index, "message": message} for index in range(3)]
    data = wirekit.encode("kafka.message_set", {"messages": entries})
    assert same("kafka.message_set", data, {}).engine == "rows"
    for size in range(len(data)):
        same("kafka.message_set", data[:size], {})
    for announced in range(40):  # of the last message: the limit lies anywhere in its numbers
        last = len(data) - len(data) // 3 + 8
        for end in (len(data), last + 4 + announced):
            same("kafka.message_set", (data[:last] + struct.pack(">i", announced) + data[last + 4 :])[:end], {})


SEND = {
    "command": {"type": "SEND", "send": {"producer_id": 1, "sequence_id": 7}},
    "entry": {"metadata": {"producer_name": "p", "sequence_id": 7, "publish_time": 1}, "payload": "616263"},
}
LIST_GROUPS = {"correlation_id": 7, "client_id": "c", "body": {}}


def test_generated_code_reports_wrong_checksums_and_bytes_left_over_or_missing() -> None:
    """Frames whose only fault is one of these take no second decode."""
    sent = wirekit.encode("pulsar.frame", SEND)
    wrong = same("pulsar.frame", sent[:-1] + b"d", {}, used=False)
    assert [(check.path, check.status) for check in wrong.checks] == [("entry.checksum", "bad")]
    request = wirekit.encode("kafka.list_groups.request.v0", LIST_GROUPS)
    longer = same("kafka.list_groups.request.v0", (len(request) - 2).to_bytes(4, "big") + request[4:] + b"xy", {})
    assert [(gap.offset, gap.length, gap.path) for gap in longer.gaps] == [(1000 + len(request), 2, "size")]
    unknown = same("kafka.response", bytes.fromhex("0000000700000007616263"), {})
    assert [(gap.offset, gap.length, gap.path) for gap in unknown.gaps] == [(1008, 3, "body")]
    packet = {"protocol": "UDP", "source": "0a000001", "destination": "0a000002", "payload": "0001"}
    datagram = same("net.ethernet", wirekit.encode("net.ethernet", {"payload": packet}), {}, used=False)
    assert [(gap.offset, gap.length, gap.path) for gap in datagram.gaps] == [(1034, 2, "payload.payload")]
    pong = bytes.fromhex("000000090000000508129a0100")
    lacking = same("pulsar.frame", pong, {}, used=False)
    assert [(check.path, check.kind) for check in lacking.checks if check.status == "bad"] == [
        ("command.ping", "required")
    ]
    for decoded in (wrong, longer, unknown, datagram, lacking):
        assert decoded.engine == "rows"
        assert not decoded.clean
        assert wirekit.encode(decoded.schema, decoded.value) == decoded.data


def test_a_frame_in_order_behind_many_that_are_not_is_read_by_generated_code_soon() -> None:
    request = wirekit.encode("kafka.list_groups.request.v0", LIST_GROUPS)
    cut = (len(request) - 5).to_bytes(4, "big") + request[4:-1]
    engines = [wirekit.decode(data, "kafka.list_groups.request.v0").engine for data in [cut] * 20 + [request] * 20]
    assert engines[-1] == "rows"
