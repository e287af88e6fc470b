"""Both directions of a connection in one paste are decoded as a conversation; a response alone is no request."""

from __future__ import annotations

import contextlib
import json
import re
import time

import pytest
from click.testing import CliRunner, Result

import wirekit
from tests.cli.test_literals import netty
from wirekit.cli import group
from wirekit.cli.guesses import MOST_ANSWERS
from wirekit.cli.input import Input, read_input
from wirekit.conversation import ENDED_INSIDE
from wirekit.errors import Misuse

REQUEST = wirekit.encode(
    "kafka.metadata.request.v0", {"correlation_id": 7, "client_id": "me", "body": {"topics": ["orders"]}}
)
RESPONSE = wirekit.encode(
    "kafka.metadata.response.v0",
    {
        "correlation_id": 7,
        "body": {
            "brokers": [{"node_id": 1, "host": "broker-1.example", "port": 9092}],
            "topic_metadata": [{"topic_error_code": 3, "topic": "orders", "partition_metadata": []}],
        },
    },
)
TURNS = [(0, REQUEST), (1, RESPONSE), (0, REQUEST), (1, RESPONSE)]


def followed(turns: list[tuple[int, bytes]], indent: str = "\t", *, head: bool = True) -> str:
    """What ``tshark -z follow,tcp,hex`` and, without a head, Wireshark's window show."""
    edge = ["=" * 67] if head else []
    about = ["Follow: tcp,hex", "Filter: tcp.stream eq 0", "Node 0: 127.0.0.1:1234", "Node 1: 127.0.0.1:9092"]
    lines, at = [*edge, *(about if head else [])], [0, 0]
    for side, data in turns:
        for begin in range(0, len(data), 16):
            row = data[begin : begin + 16]
            words = "  ".join(" ".join(f"{byte:02x}" for byte in row[half : half + 8]) for half in (0, 8))
            shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
            lines.append(f"{indent if side else ''}{at[side]:08X}  {words:<48}  {shown[:8]} {shown[8:]}".rstrip())
            at[side] += len(row)
    return "\n".join([*lines, *edge, ""])


def raw(turns: list[tuple[int, bytes]]) -> str:
    """What ``tshark -z follow,tcp,raw`` shows."""
    return "\n".join(["Follow: tcp,raw", *(side * "\t" + data.hex() for side, data in turns), ""])


def decoded(text: str | bytes, *arguments: str) -> Result:
    data = text.encode() if isinstance(text, str) else text
    return CliRunner().invoke(group, ["decode", *arguments, "--output", "json"], input=data, standalone_mode=False)


def schemas(result: Result) -> list[str]:
    return [json.loads(line)["schema"] for line in result.stdout.splitlines()]


@pytest.mark.parametrize("indent", ["\t", "    "])
@pytest.mark.parametrize("head", [True, False])
def test_a_followed_stream_has_its_turns(indent: str, head: bool) -> None:
    parsed = read_input(followed(TURNS, indent, head=head).encode())
    assert (parsed.dumps, parsed.sides) == (tuple(data for _, data in TURNS), (0, 1, 0, 1))


def test_a_followed_stream_needs_no_line_feed_at_its_end() -> None:
    assert read_input(followed(TURNS, head=False).rstrip().encode()).sides == (0, 1, 0, 1)


def test_a_followed_stream_of_one_side() -> None:
    for side in (0, 1):
        assert read_input(followed([(side, REQUEST)]).encode()).data == REQUEST


def test_a_followed_stream_that_lacks_bytes_is_refused_at_its_line() -> None:
    lines = followed(TURNS).splitlines(keepends=True)
    with pytest.raises(Misuse, match="line 6, column 1: bytes are missing after it, up to 0x1c"):
        read_input("".join(lines[:6] + lines[7:]).encode())
    with pytest.raises(Misuse, match="bytes are missing in the capture"):
        read_input("".join([*lines[:8], "[16 bytes missing in capture file]\n", *lines[8:]]).encode())
    with pytest.raises(Misuse, match="not a line of a followed stream"):
        read_input("".join([*lines[:8], "something else\n", *lines[8:]]).encode())


@pytest.mark.parametrize("text", [followed(TURNS), raw(TURNS)])
def test_responses_are_decoded_by_their_requests(text: str) -> None:
    result = decoded(text)
    assert schemas(result) == ["kafka.metadata.request.v0", "kafka.metadata.response.v0"] * 2
    assert f"dump 2 of 4: {len(RESPONSE)} bytes from the server" in result.stderr
    assert result.return_value == 0


def test_the_side_that_comes_first_may_be_the_server() -> None:
    result = decoded(followed([(0, RESPONSE), (1, REQUEST), (0, RESPONSE)]))
    assert f"dump 1 of 3: {len(RESPONSE)} bytes from the server" in result.stderr
    assert schemas(result)[-1] == "kafka.metadata.response.v0"


def test_boxes_that_cut_a_frame_are_joined() -> None:
    boxes = netty(REQUEST, "WRITE") + netty(RESPONSE[:11], "READ") + netty(RESPONSE[11:], "READ")
    assert schemas(decoded(boxes)) == ["kafka.metadata.request.v0", "kafka.metadata.response.v0"]


def test_a_conversation_that_ends_inside_a_frame_says_so() -> None:
    result = decoded(followed([(0, REQUEST), (1, RESPONSE[:-3])]))
    assert result.return_value == 1
    assert result.stderr.count(ENDED_INSIDE) == 1
    assert f"{ENDED_INSIDE}, {len(RESPONSE) - 3} of {len(RESPONSE)} bytes were captured" in result.stderr
    assert schemas(result) == ["kafka.metadata.request.v0", "kafka.metadata.response.v0"]


def test_a_layout_decodes_each_dump_by_itself() -> None:
    result = decoded(followed([(0, REQUEST), (1, REQUEST)]), "kafka.request")
    assert schemas(result) == ["kafka.request", "kafka.request"]


def dump(data: bytes) -> str:
    rows = [data[at : at + 16].hex(" ", 2) for at in range(0, len(data), 16)]
    return "".join(f"{16 * number:08x}: {row}\n" for number, row in enumerate(rows))


def test_dumps_of_requests_and_responses_in_turns_are_paired() -> None:
    result = decoded(dump(REQUEST) + dump(RESPONSE))
    assert schemas(result) == ["kafka.metadata.request.v0", "kafka.metadata.response.v0"]
    assert "decoded as alternating sides of a connection" in result.stderr


def test_dumps_that_do_not_pair_are_decoded_by_themselves() -> None:
    result = decoded(dump(REQUEST) + dump(REQUEST))
    assert schemas(result) == ["kafka.request", "kafka.request"]
    assert "in turns" not in result.stderr


def test_a_response_without_its_request_decodes_as_a_response() -> None:
    result = decoded(RESPONSE + RESPONSE, "--input", "raw")
    assert schemas(result) == ["kafka.response", "kafka.response"]
    assert "decoded as kafka.response with --context api=metadata --context version=0" in result.stderr
    assert result.return_value == 0


def test_contexts_that_fit_as_well_are_named() -> None:
    heartbeat = wirekit.encode("kafka.heartbeat.response.v0", {"correlation_id": 9, "body": {"error_code": 0}})
    result = decoded(heartbeat, "kafka.response", "--input", "raw")
    assert "kafka.response decodes cleanly with --context api=" in result.stderr
    assert "--context api=heartbeat --context version=0" in result.stderr


def test_text_that_is_no_dump_is_reported_once() -> None:
    result = decoded("neither hex nor anything else")
    assert result.return_value == 1
    assert result.stderr.count("wirekit:") == 1
    assert "text read as raw bytes" in result.stderr


def test_input_without_turns_has_no_sides() -> None:
    assert read_input(b"00 01") == Input(b"\0\1", "hex")


def test_of_very_many_responses_no_context_is_sought() -> None:
    for count in (MOST_ANSWERS, MOST_ANSWERS + 1):
        result = decoded(RESPONSE * count, "--input", "raw")
        assert ("decoded as kafka.response with" in result.stderr) == (count == MOST_ANSWERS)


def c_arrays(
    turns: list[tuple[int, bytes]], name: str = "char peer{side}_{number}[] = {{ /* Packet {number} */"
) -> str:
    """What Wireshark shows of a followed stream as C arrays, or exports with another name."""
    lines = []
    for number, (side, data) in enumerate(turns):
        rows = [", ".join(f"0x{byte:02x}" for byte in data[at : at + 8]) for at in range(0, len(data), 8)]
        lines += [name.format(side=side, number=number, size=len(data)), ",\n".join(rows) + " };", ""]
    return "\n".join(lines)


def test_c_arrays_of_a_followed_stream() -> None:
    parsed = read_input(c_arrays(TURNS).encode())
    assert (parsed.dumps, parsed.sides) == (tuple(data for _, data in TURNS), (0, 1, 0, 1))
    assert schemas(decoded(c_arrays(TURNS))) == ["kafka.metadata.request.v0", "kafka.metadata.response.v0"] * 2


@pytest.mark.parametrize(
    "name",
    ["/* Frame ({size} bytes) */\nstatic const unsigned char pkt{number}[{size}] = {{", "var f{number} = []byte{{"],
)
def test_several_arrays_without_senders(name: str) -> None:
    parsed = read_input(c_arrays(TURNS, name).encode())
    assert (parsed.dumps, parsed.sides) == (tuple(data for _, data in TURNS), ())


def test_a_list_of_bytes() -> None:
    assert read_input(repr([REQUEST, RESPONSE]).encode()).dumps == (REQUEST, RESPONSE)


def test_the_time_of_many_arrays_is_linear() -> None:
    begin = time.process_time()
    assert len(read_input(c_arrays([(0, REQUEST)] * 5_000).encode()).dumps) == 5_000
    assert time.process_time() - begin < 4


SOCAT = """\
> 2026/11/30 02:57:32.000624575  length=46 from=0 to=45
 00 00 00 2a 00 03 00 00 00 00 00 07 00 07 72 64  ...*..........rd
 6b 61 66 6b 61 00 00 00 02 00 06 6f 72 64 65 72  kafka......order
 73 00 0b 70 61 79 6d 65 6e 74 73 2d 65 75        s..payments-eu
--
< 2026/11/30 02:57:32.000627207  length=16 from=0 to=15
 00 00 00 0c 00 00 00 07 00 00 00 00 00 00 00 00  ................
--
"""
"""What ``socat -x -v`` prints."""
NGREP = """\
input: pulsar.pcap
filter: ((ip || ip6) || (vlan && (ip || ip6)))
##
T 127.0.0.1:34654 -> 127.0.0.1:6650 [AP] #4
  00 00 00 29 00 00 00 25    08 02 12 21 0a 11 50 75    ...)...%...!..Pu
  6c 73 61 72 2d 43 50 50    2d 76 34 2e 32 2e 30 20    lsar-CPP-v4.2.0
  14 2a 04 6e 6f 6e 65 52    04 08 01 10 01             .*.noneR.....
#
T 127.0.0.1:6650 -> 127.0.0.1:34654 [AP] #6
  00 00 00 0f 00 00 00 0b    08 16 b2 01 06 08 00 10    ................
  01 18 00                                              ...
##exit
"""
"""What ``ngrep -x`` prints."""


def test_pieces_of_socat_name_their_senders() -> None:
    for text in (SOCAT, re.sub(r"  \S*\n(?: |(?=--))", " ", SOCAT).replace("--\n", "\n")):
        parsed = read_input(text.encode())
        assert [len(data) for data in parsed.dumps] == [46, 16]
        assert (parsed.data[-20:-16], parsed.sides, parsed.note) == (b"s-eu", (0, 1), None)
    assert schemas(decoded(SOCAT)) == ["kafka.metadata.request.v0", "kafka.metadata.response.v0"]


def test_a_piece_of_socat_that_is_cut_is_refused() -> None:
    with pytest.raises(Misuse, match="line 1, column 1: 30 bytes follow"):
        read_input(re.sub(r" 6b.*\n", "", SOCAT).encode())


def test_packets_of_ngrep_name_their_senders() -> None:
    parsed = read_input(NGREP.encode())
    assert [len(data) for data in parsed.dumps] == [45, 19]
    assert (parsed.dumps[1][-4:], parsed.sides) == (bytes.fromhex("10011800"), (0, 1))
    three = NGREP.replace("6650 -> 127.0.0.1:34654", "6650 -> 127.0.0.1:34655")
    assert read_input(three.encode()).sides == ()
    with pytest.raises(Misuse, match="line 12, column 1: not a line of bytes in 'more'"):
        read_input(NGREP.replace("##exit", "more").encode())


@pytest.mark.parametrize("text", [SOCAT, NGREP], ids=["socat", "ngrep"])
def test_a_piece_that_lost_a_digit_is_never_read(text: str) -> None:
    data = read_input(text.encode()).data
    for digit in re.finditer(r"(?<=\b[0-9a-f])[0-9a-f](?=  ?)", text):
        for instead in ("", " "):
            damaged = text[: digit.start()] + instead + text[digit.end() :]
            with contextlib.suppress(Misuse):
                assert read_input(damaged.encode()).data == data  # the digit was not one of the bytes
