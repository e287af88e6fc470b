"""``wirekit inspect --rules``: what is printed, and the exit status."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.running import Run
from wirekit.cli import group
from wirekit.registry import registry
from wirekit.rules import rules_of


def test_a_violation_is_a_line(fixtures: Path) -> None:
    path = fixtures / "pcap" / "jmq4-versions.pcap"
    run = Run("inspect", "--rules", "--output", "json", str(path))
    assert (run.status, run.err) == (1, "")
    assert run.lines[0] == {
        "file": str(path),
        "connection": "10.23.45.67:51234>10.1.1.1:50088#0",
        "from": "10.23.45.67:51234",
        "to": "10.1.1.1:50088",
        "time": 1564390929.04854,
        "protocol": "joyqueue",
        "api": "FETCH_CLUSTER",
        "frame": 1,
        "offset": 0,
        "rule": "first_command_not_add_connection",
        "severity": "error",
        "says": "the first command of a connection is ADD_CONNECTION",
        "source": "JMQ4 protocol document, 连接流程 (connecting); ADD_CONNECTION",
        "found": "connection: absent",
    }
    assert [line["rule"] for line in run.lines[1:]] == ["request_id_not_rising"] * 3


def test_a_table_says_each_sentence_once(fixtures: Path) -> None:
    run = Run("inspect", "--rules", "--output", "text", str(fixtures / "pcap" / "jmq4-versions.pcap"))
    text = run.out.decode()
    assert text.count("request_id_not_rising") == 3
    assert text.count("request ids rise") == 1
    assert text.endswith("1 error, 3 warnings\n")


def test_nothing_broken(fixtures: Path) -> None:
    captures = [str(fixtures / "pcap" / name) for name in ("pulsar-consume.pcap", "kafka-0.9.0.1-2-produce.pcapng")]
    run = Run("inspect", "--rules", "--output", "json", *captures)
    assert (run.status, run.out) == (0, b"")
    undecoded = "153 bytes could not be decoded; rules that need earlier frames are not checked after them"
    assert run.err == f"wirekit: {captures[1]}: {undecoded}\n"
    assert Run("inspect", "--rules", "--output", "text", *captures).out == b"no rule is violated\n"


@pytest.mark.parametrize("data", [b"nothing of the kind", b""])
@pytest.mark.parametrize("output", ["json", "text"])
def test_a_capture_that_is_none(output: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "no.pcap"
    path.write_bytes(data)
    run = Run("inspect", "--rules", "--output", output, str(path))
    assert (run.status, run.out) == (1, b"")
    assert str(path) in run.err


def test_missing_bytes_are_reported_and_break_no_rule(fixtures: Path, tmp_path: Path) -> None:
    """Whichever packet of a capture is missing, no rule is broken that was not."""
    header, *packets = pcap_packets((fixtures / "pcap" / "pulsar-batch.pcap").read_bytes())
    gaps = 0
    for number in range(len(packets)):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(b"".join([header, *packets[:number], *packets[number + 1 :]]))
        output = CliRunner().invoke(group, ["inspect", "--rules", "--output", "json", str(path)], standalone_mode=False)
        assert (output.return_value, output.stdout) == (0, "")
        gaps += "missing from the capture" in output.stderr
    assert gaps > 5


def pcap_packets(data: bytes) -> list[bytes]:
    """The header of a little-endian pcap file, then each packet record."""
    pieces, at = [data[:24]], 24
    while at < len(data):
        size = 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        pieces.append(data[at : at + size])
        at += size
    return pieces


def test_the_list_of_rules() -> None:
    run = Run("inspect", "--rules", "--list", "--output", "json")
    assert run.status == 0
    listed = {(line["protocol"], line["rule"]) for line in run.lines}
    declared = {
        (name, rule.name)
        for name in registry.protocols()
        if (rules := rules_of(name)) is not None
        for rule in rules.rules
    }
    assert listed == declared
    assert all(line["says"] and line["source"] for line in run.lines)
    only = Run("inspect", "--rules", "--list", "--protocol", "kafka", "--output", "text").out.decode()
    assert "acks_0_answered" in only
    assert "receipt_without_send" not in only


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect",),
        ("inspect", "--rules"),
        ("inspect", "--list"),
        ("inspect", "--list", "a.pcap"),
        ("inspect", "--rules", "--list", "a.pcap"),
        ("inspect", "--rules", "--connections", "a.pcap"),
    ],
    ids=" ".join,
)
def test_options_that_make_no_sense(arguments: tuple[str, ...]) -> None:
    run = Run(*arguments)
    assert (run.status, run.out) == (2, b"")
    assert "Error: " in run.err
