"""Options that select: what is shown is what fits of all that there is, on every command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.net.building import ethernet, ipv4, ipv6, packet, pcap, tcp
from wirekit import decode, encode
from wirekit.capture.links import Link
from wirekit.cli import group
from wirekit.cli.filters import Selection, decided
from wirekit.cli.numbered import NOTHING, Numbered
from wirekit.cli.where import AT_ONCE, BYTES_AT_ONCE, WaitingMessages, WhereFrames, WhereMessages
from wirekit.conversation import Description, Frame, Message

JMQ4 = "jmq4-consume.pcap"
PULSAR = "pulsar-consume.pcap"
KAFKA = "kafka-0.9.0.1-2-produce.pcapng"
LINK = Link("c:1>s:2#0", "c:1", "s:2", 0, True)

Line = dict[str, Any]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(group, list(arguments), standalone_mode=False)


def lines(*arguments: str) -> list[Line]:
    return [json.loads(line) for line in run(*arguments).stdout.splitlines()]


def in_text(text: str) -> Callable[[Line], bool]:
    return lambda line: text in json.dumps(line["value"])


SELECTIONS: list[tuple[str, list[str], Callable[[Line], bool]]] = [
    (KAFKA, ["--api", "PRODUCE"], lambda line: line["api"] == "produce"),
    (KAFKA, ["--api", "pro*", "--api", "metadata"], lambda line: line["api"] in ("produce", "metadata")),
    (JMQ4, ["--api", "fetch_cluster"], lambda line: str(line["api"]).startswith("FETCH_CLUSTER")),
    (JMQ4, ["--id", "212"], lambda line: line["correlation_id"] == 212),
    (JMQ4, ["--slower-than", "0.3s"], lambda line: (line["latency_ms"] or 0) > 300),
    (KAFKA, ["--slower-than", "510ms", "--api", "fetch"], lambda line: (line["latency_ms"] or 0) > 510),
    (KAFKA, ["--connection", "2"], lambda line: line["connection"] == "127.0.0.1:40924>127.0.0.1:29102#0"),
    (KAFKA, ["--client", "console-*"], lambda line: line["api"] in ("metadata", "produce")),
    (KAFKA, ["--client", "127.0.0.1:40924"], lambda line: "127.0.0.1:40924" in (line["from"], line["to"])),
    (JMQ4, ["--since", "2019-07-29T09:02:09.5"], lambda line: line["time"] >= 1564390929.5),
    (JMQ4, ["--until", "11:02:09.5"], lambda line: True),
    (JMQ4, ["--until", "2019-07-29 11:02:09.5+02:00"], lambda line: line["time"] < 1564390929.5),
    (JMQ4, ["--until", "11:02:09.5+02:00"], lambda line: line["time"] < 1564390929.5),
    (JMQ4, ["--until", "23:02:09.5-10:00"], lambda line: line["time"] < 1564390929.5),
    (JMQ4, ["--until", "09:02:09.5"], lambda line: line["time"] < 1564390929.5),
    (JMQ4, ["--since", "2019-07-30"], lambda line: False),
    (JMQ4, ["--group", "nobody"], lambda line: False),
    (PULSAR, ["--topic", "*/t-consume", "--api", "message"], lambda line: line["api"] == "MESSAGE"),
    (JMQ4, ["--where", "version = 3"], lambda line: line["version"] == 3),
    (JMQ4, ["--where", "role = 'response' AND latency_us > 300000"], lambda line: (line["latency_ms"] or 0) > 300),
    (JMQ4, ["--where", "error LIKE 'FW_TOPIC%'"], lambda line: "FW_TOPIC_NOT_EXIST" in json.dumps(line["value"])),
    (
        KAFKA,
        ["--where", "topic = 't-lz4' AND api = 'produce'"],
        lambda line: line["api"] == "produce" and "t-lz4" in json.dumps(line["value"]),
    ),
    (KAFKA, ["--api", "fetch", "--where", "length < 80"], lambda line: line["api"] == "fetch" and line["length"] < 80),
]


@pytest.mark.parametrize(
    ("capture", "options", "fits"),
    SELECTIONS,
    ids=[f"{capture} {' '.join(options)}" for capture, options, _ in SELECTIONS],
)
def test_filters_show_exactly_the_matching_frames(
    capture: str, options: list[str], fits: Callable[[Line], bool], fixtures: Path
) -> None:
    path = str(fixtures / "pcap" / capture)
    assert lines("frames", path, *options) == [line for line in lines("frames", path) if fits(line)]


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("[fe80::1]:4000", True),
        ("[fe80::1]:*", True),
        ("[fe80::?]", True),
        ("[fe80::*]:400?", True),
        ("[*]:4000", True),
        ("fe80::1", True),
        ("[fe80::2]:*", False),
        ("[a-c]", True),
        ("[d-f]", False),
    ],
)
def test_brackets_of_an_address_are_no_class(pattern: str, fits: bool, tmp_path: Path) -> None:
    frame = encode("kafka.metadata.request.v0", {"correlation_id": 1, "client_id": "c", "body": {"topics": []}})
    path = tmp_path / "six.pcap"
    path.write_bytes(pcap(packet("net.ethernet", ethernet(ipv6(tcp(frame)), type="IPV6"))))
    chosen = lines("frames", "--port", "9092=kafka", "--client", pattern, str(path))
    assert [line["api"] for line in chosen] == ["metadata"] * fits


def test_an_answer_fits_by_the_topic_of_its_request(fixtures: Path) -> None:
    frames = lines("frames", str(fixtures / "pcap" / "pulsar-batch.pcap"), "--topic", "persistent://*/t-batch")
    assert [line["api"] for line in frames if line["api"].startswith("SEND")] == ["SEND", "SEND_RECEIPT"]
    assert not {"CONNECT", "CONNECTED"} & {line["api"] for line in frames}


def test_an_answer_about_other_topics_fits_by_the_topic_of_its_request(fixtures: Path) -> None:
    frames = lines("frames", str(fixtures / "pcap" / "jmq4-consume.pcap"), "--topic", "t2")
    kinds = ["FETCH_PARTITION_MESSAGE", "COMMIT_ACK"]
    assert [line["api"] for line in frames] == [each + suffix for each in kinds for suffix in ("", "_ACK")]


def test_errors_are_those_of_answers_of_checks_and_of_decoding(fixtures: Path, tmp_path: Path) -> None:
    frames = lines("frames", str(fixtures / "pcap" / JMQ4), "--errors")
    assert [line["api"] for line in frames] == [
        "BOOLEAN_ACK",
        "FETCH_CLUSTER_ACK",
        "FETCH_PARTITION_MESSAGE_ACK",
        "COMMIT_ACK_ACK",
        "PRODUCE_MESSAGE_PREPARE_ACK",
        "PRODUCE_MESSAGE_ROLLBACK_ACK",
        "FETCH_PRODUCE_FEEDBACK_ACK",
    ]
    undecoded = lines("frames", str(fixtures / "pcap" / KAFKA), "--errors")
    assert {line["error"] and line["error"]["kind"] for line in undecoded} == {"undecoded"}
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes((fixtures / "pcap" / "pulsar-batch.pcap").read_bytes().replace(b"msg-0", b"mug-0"))
    assert [line["api"] for line in lines("frames", str(damaged), "--errors")] == ["SEND"]


def test_messages_are_those_of_frames_that_fit(fixtures: Path) -> None:
    path = str(fixtures / "pcap" / PULSAR)
    everything = lines("messages", path)
    assert lines("messages", path, "--api", "MESSAGE") == [line for line in everything if line["offset"]]
    assert lines("messages", path, "--topic", "no-such-*") == []


def test_messages_of_a_frame_are_those_of_the_topic(tmp_path: Path) -> None:
    sets = {"messages": [{"offset": 0, "message": {"crc": 0, "magic": 0, "attributes": 0, "key": None, "value": "76"}}]}
    topics = [{"topic": topic, "data": [{"partition": 0, "record_set": sets}]} for topic in ("a", "b")]
    body = {"acks": 0, "timeout": 0, "topic_data": topics}
    frame = encode("kafka.produce.request.v0", {"correlation_id": 1, "client_id": "c", "body": body})
    path = tmp_path / "two.pcap"
    path.write_bytes(pcap(packet("net.ethernet", ethernet(ipv4(tcp(frame))))))
    assert [line["topic"] for line in lines("messages", "--port", "9092=kafka", str(path))] == ["a", "b"]
    assert [line["topic"] for line in lines("messages", "--port", "9092=kafka", "--topic", "b", str(path))] == ["b"]


def test_messages_by_an_expression_over_their_columns(fixtures: Path) -> None:
    path = str(fixtures / "pcap" / KAFKA)
    messages = lines("messages", path, "--where", "topic = 't-none' AND partition = 0 AND log_offset % 2 = 0")
    everything = lines("messages", path)
    assert messages
    assert messages == [line for line in everything if line["topic"] == "t-none" and line["offset"] in range(0, 100, 2)]


@pytest.mark.parametrize(
    ("capture", "expression"),
    [
        ("pulsar-consume.pcap", "direction = 'pushed'"),
        ("pulsar-consume.pcap", "group_id = 'sub-Shared'"),
        ("pulsar-consume.pcap", "redeliveries > 0"),
        ("pulsar-consume.pcap", "call_id IS NOT NULL AND connection_id IS NOT NULL"),
        (KAFKA, "direction = 'produced'"),
        ("jmq4-produce.pcap", "direction = 'produced'"),
    ],
)
def test_an_expression_chooses_the_messages_that_sql_chooses(capture: str, expression: str, fixtures: Path) -> None:
    path = str(fixtures / "pcap" / capture)
    (counted,) = lines("sql", f"SELECT count(*) AS n FROM messages WHERE {expression}", path)
    assert len(lines("messages", path, "--where", expression)) == counted["n"] > 0


def test_the_table_is_in_the_order_of_time(fixtures: Path) -> None:
    path = str(fixtures / "pcap" / KAFKA)
    text = run("frames", path, "--output", "table").stdout
    times = re.findall(r"^ *\d+ (\d\d:\d\d:\d\d\.\d+) ", text, re.MULTILINE)
    assert times == sorted(times)
    recognised = [line["time"] for line in lines("frames", path)]
    assert recognised != sorted(recognised)
    assert len(times) == len(recognised)


def test_a_frame_by_its_file_and_number(fixtures: Path) -> None:
    path = str(fixtures / "pcap" / JMQ4)
    expected = lines("frames", path, "--frame", "9", "--output", "json")
    assert lines("frames", "--frame", f"{path}:9", "--output", "json") == expected
    other = str(fixtures / "pcap" / PULSAR)
    assert lines("frames", path, other, "--frame", f"{path}:9", "--output", "json") == expected


def test_a_segment_has_no_frames_to_select(fixtures: Path) -> None:
    """It is refused before a capture beside it is shown."""
    segment = str(fixtures / "kafka" / "disk" / "0.8.2.2-t-lz4-0.log")
    for files in ([segment], [str(fixtures / "pcap" / KAFKA), segment]):
        result = run("messages", *files, "--topic", "*", "--api", "fetch", "--slower-than", "0ms")
        assert f"{segment} is not a capture, so --api and --slower-than cannot select" in str(result.exception)
        assert not result.stdout


def test_a_selection_applies_to_the_captures_of_a_directory(fixtures: Path, tmp_path: Path) -> None:
    segment = fixtures / "kafka" / "disk" / "0.8.2.2-t-lz4-0.log"
    (tmp_path / f"{0:020}.log").write_bytes(segment.read_bytes())
    refused = str(run("messages", str(tmp_path), "--api", "fetch").exception)
    assert refused.endswith(
        "it has log segments, which have no frames; `wirekit messages` lists their messages, and `wirekit sql` queries "
        "them"
    )
    (tmp_path / PULSAR).write_bytes((fixtures / "pcap" / PULSAR).read_bytes())
    result = run("messages", str(tmp_path), "--api", "MESSAGE")
    assert result.return_value == 0
    assert {json.loads(line)["file"] for line in result.stdout.splitlines()} == {str(tmp_path / PULSAR)}


@pytest.mark.parametrize("number", [9, 10])
def test_one_frame_with_its_request_or_answer(number: int, fixtures: Path) -> None:
    path = str(fixtures / "pcap" / JMQ4)
    everything = lines("frames", path)
    assert lines("frames", path, "--frame", str(number), "--output", "json") == everything[8:10]
    raw = run("frames", path, "--frame", str(number), "--output", "raw").stdout_bytes
    assert len(raw) == everything[number - 1]["length"]
    text = run("frames", path, "--frame", str(number), "--output", "tree").stdout
    mine, other = f"frame {number}: ", "its response: " if number == 9 else "its request: "
    assert (text.index(mine) < text.index(other)) is (number == 9)
    assert "FW_FETCH_MESSAGE_INDEX_OUT_OF_RANGE" in text
    assert "310.090 ms after its request" in text
    assert "|" in run("frames", path, "--frame", str(number), "--output", "hexdump").stdout


def test_following_a_connection_shows_the_frames_of_both_directions(fixtures: Path) -> None:
    path = str(fixtures / "pcap" / KAFKA)
    text = run("frames", path, "--follow", "2", "--output", "table").stdout.splitlines()
    assert len([line for line in text if line.startswith("connection ")]) == 1
    assert len([line for line in text if " 2→ " in line]) > 10
    assert len([line for line in text if " 2← " in line]) > 10


def test_following_a_connection_that_a_capture_does_not_have(fixtures: Path) -> None:
    one, several = (str(fixtures / "pcap" / name) for name in (JMQ4, KAFKA))
    lacking = f"wirekit: {one} has no connection 3; it has 1 connection\n"
    result = run("frames", one, "--follow", "3")
    assert (result.return_value, result.stdout, result.stderr) == (2, "", lacking)
    result = run("frames", one, several, "--follow", "2")
    assert result.return_value == run("frames", several, "--follow", "2").return_value < 2
    assert result.stdout
    assert result.stderr.startswith(lacking.replace("connection 3", "connection 2"))
    name = lines("frames", one)[0]["connection"]
    assert run("frames", one, "--follow", name).return_value == 0
    result = run("frames", one, "--follow", "1", "--api", "nothing")
    assert result.return_value == 0
    assert "no frame matches; it has 22 frames" in result.stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--since", "yesterday"], "'yesterday' is not a time"),
        (["--since", "10:00", "--until", "09:00"], "--until must be later than --since"),
        (["--since", "2019-07-30", "--until", "2019-07-30"], "--until must be later than --since"),
        (["--slower-than", "50"], "'50' is not a duration"),
        (["--connection", "10.23.45.67:51234"], "neither a number nor a name"),
        (["--output", "tree"], "needs --frame N"),
        (["--frame", "1", "--errors"], "--frame N shows one frame"),
        (["--frame", "1000"], "it has 22 frames"),
        (["--frame", "1", "--frame", "2"], "give it once"),
        (["--follow", "1", "--connection", "2"], "not both"),
        (["--frame", "trace.pcap:7"], "trace.pcap is not among the captures"),
        (["--frame", "seven"], "'seven' is neither N nor FILE:N"),
        (["--frame", "9" * 5_000], "is neither N nor FILE:N"),
        (["--port", f"{'9' * 5_000}=kafka"], "is not PORT=PROTOCOL"),
        (["--where", "apii = 'x'"], 'Referenced column "apii" not found'),
        (["--where", "apii = 'x'"], "The columns are frame, connection, protocol,"),
        (["--where", "api = "], "syntax error"),
    ],
)
def test_options_that_make_no_sense(options: list[str], text: str, fixtures: Path) -> None:
    result = run("frames", str(fixtures / "pcap" / JMQ4), *options)
    assert text in str(result.exception)
    assert result.stdout == ""


def test_names_are_listed_if_nothing_matches(fixtures: Path) -> None:
    path = str(fixtures / "pcap" / KAFKA)
    result = run("frames", path, "--api", "fech", "--topic", "nothing")
    frames = [json.loads(line) for line in run("frames", path, "--output", "json").stdout.splitlines()]
    apis = ", ".join(sorted({each["api"] for each in frames if each["api"]}))
    complaint = (
        f"no frame matches; it has {len(frames)} frames in {len({each['connection'] for each in frames})} connections"
    )
    assert result.stdout == ""
    assert f"{complaint}; APIs: {apis}; topics: " in result.stderr
    assert "; clients: ReplicaFetcherThread-0-1, " in run("frames", path, "--client", "nobody").stderr
    result = run("messages", path, "--topic", "nothing")
    assert result.stdout == ""
    assert f"{complaint.replace('frame', 'message', 1)}; topics: " in result.stderr


def test_frames_that_do_not_match_are_not_collected() -> None:
    """Memory stays flat however rarely a frame matches; with an expression, few items or few bytes wait."""
    read, large = 0, bytes(BYTES_AT_ONCE // 4)

    def items(data: bytes) -> Iterator[Numbered]:
        nonlocal read
        for read in range(1, 3 * AT_ONCE):
            frame = Frame("jmq4", "client", 0, data, 0, decode(b"", "jmq4.frame"), Description())
            yield Numbered(LINK, frame, 1, read, NOTHING)

    where = WhereFrames("length > 0")
    for expression, data, ahead, most in ((None, b"", 1, None), (where, b"", AT_ONCE, None), (where, large, 4, 12)):
        selected = decided(items(data), Selection(apis=("none",)), expression, live=False)
        for number, (each, matches) in enumerate(islice(selected, most)):
            assert number < each.frame <= read <= number + ahead
            assert not matches


def test_few_large_messages_wait_for_an_expression() -> None:
    frame = Frame("jmq4", "client", 0, b"", 0, decode(b"", "jmq4.frame"), Description())
    value = bytes(BYTES_AT_ONCE // 4)
    frame.messages = [Message("t", 0, 0, None, None, b"", value, 0, "none", 0, "ok", "jmq4.frame", "jmq4")]
    shown: list[tuple[Frame, Message]] = []
    waiting = WaitingMessages(WhereMessages("topic = 't'"), lambda *pair: shown.append(pair))
    for number in range(1, 7):
        waiting.add(frame, frame.messages, [{"topic": "t"}], lambda _: True)
        assert len(shown) == (0 if number < 4 else 4)
