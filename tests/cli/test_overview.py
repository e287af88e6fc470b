"""``wirekit inspect``: what it counts is what the frames say, and what was not decoded is said in words."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import wirekit
from wirekit.cli import group, inspect, overview

CAPTURES = ("jmq4-consume.pcap", "pulsar-consume.pcap", "kafka-0.10.2.2-2-produce.pcapng")


def run(*arguments: str) -> str:
    return CliRunner().invoke(group, list(arguments), standalone_mode=False).stdout


def inspected(path: str, *options: str) -> dict[str, Any]:
    counted: dict[str, Any] = json.loads(run("inspect", path, *options, "--output", "json"))[path]
    return counted


def frames(path: str, *options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("frames", path, *options, "--output", "json").splitlines()]


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("options", [[], ["--slower-than", "1ms"], ["--errors"], ["--api", "[FLfl]*"]])
def test_counts_are_those_of_the_frames(capture: str, options: list[str], fixtures: Path) -> None:
    path = str(fixtures / "pcap" / capture)
    counted = inspected(path, *options)
    decoded = [line for line in frames(path, *options) if line["error"] is None]
    unanswered = Counter(ids(line) for line in decoded if line["latency_ms"] is None)
    answers = [line for line in decoded if line["latency_ms"] is not None]
    latencies = sorted(line["latency_ms"] for line in answers)
    alone = [line for line in answers if ids(line) not in unanswered]
    assert sum(api["calls"] for api in counted["apis"]) == unanswered.total() + len(alone)
    assert sum(api["answered"] for api in counted["apis"]) == len(latencies)
    assert [slow["latency_ms"] for slow in counted["slowest"]] == latencies[: -overview.MOST_SLOW - 1 : -1]
    assert max([api["latency_ms"]["max"] for api in counted["apis"] if api["latency_ms"]], default=None) == max(
        latencies, default=None
    )


@pytest.mark.parametrize("road", ["objects", "columns"])
def test_requests_without_a_response_are_counted(road: str, fixtures: Path) -> None:
    """A broker that closes the connection upon a request leaves no other trace of its refusal."""
    path = str(fixtures / "pcap" / "kafka-0.8.2.2-4-clients.pcapng")
    calls = wirekit.read([path], table="calls", columns=["api", "outcome"]).read_all().to_pylist()
    unanswered = Counter(call["api"] for call in calls if call["outcome"] == "unanswered")
    apis = inspected(path, "--road", road)["apis"]
    assert {api["api"]: api["unanswered"] for api in apis if api["unanswered"]} == unanswered == {"fetch": 2}
    assert "\n                   unanswered ×2\n" in run("inspect", "--road", road, "--output", "text", path)
    produced = inspected(str(fixtures / "pcap" / "kafka-0.8.2.2-2-produce.pcapng"), "--road", road)["apis"]
    assert {api["api"]: api["unanswered"] for api in produced} == {"fetch": 2, "metadata": 0, "produce": 0}  # acks 0


def ids(line: dict[str, Any]) -> tuple[str, int]:
    """The connection of a frame, and the number that its request and its response have in common."""
    return line["connection"], line["correlation_id"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_messages_are_those_of_the_topics(capture: str, fixtures: Path) -> None:
    path = str(fixtures / "pcap" / capture)
    messages = [json.loads(line) for line in run("messages", path, "--output", "json").splitlines()]
    expected = Counter(message["topic"] for message in messages)
    counts = {each["topic"]: each["produced"] + each["delivered"] for each in inspected(path)["topics"]}
    assert {topic: count for topic, count in counts.items() if count} == expected


@pytest.mark.parametrize("capture", CAPTURES)
def test_the_slowest_lead_to_their_frames(capture: str, fixtures: Path) -> None:
    path = str(fixtures / "pcap" / capture)
    text = run("inspect", "--output", "text", path)
    for slow in inspected(path)["slowest"]:
        *_, answer = frames(path, "--frame", str(slow["frame"]))
        assert (answer["latency_ms"], answer["connection"]) == (slow["latency_ms"], slow["connection"])
        line = next(line for line in text.splitlines() if f" ms: frame {slow['frame']}, " in line)
        assert line.endswith(f", client {slow['client']}" if slow["client"] else slow["topic"] or slow["api"])


def test_percentiles_are_the_nearest_answers() -> None:
    calls = overview._Calls()
    calls.latencies.extend(1000 * number for number in range(100, 0, -1))
    assert calls.milliseconds() == {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}
    calls.latencies = overview.array("q", [7_000])
    assert calls.milliseconds() == {"p50": 7.0, "p95": 7.0, "p99": 7.0, "max": 7.0}
    assert overview._Calls().milliseconds() is None


def test_errors_by_name_and_libraries(fixtures: Path) -> None:
    counted = inspected(str(fixtures / "pcap" / "jmq4-consume.pcap"))
    errors = {api["api"]: api["errors"] for api in counted["apis"] if api["errors"]}
    assert errors["ADD_CONNECTION"] == {"CN_AUTHENTICATION_ERROR": 1}
    assert errors["COMMIT_ACK"] == {"FW_CONSUMER_ACK_FAIL": 1}
    pulsar = inspected(str(fixtures / "pcap" / "pulsar-consume.pcap"))
    assert {client["software"] for client in pulsar["clients"]} == {"Pulsar-CPP-v4.2.0"}
    assert [each["group_id"] for each in pulsar["groups"]] == ["excl", "sub-Failover", "sub-Shared", "sub-KeyShared"]


def test_software_of_clients_with_one_name_and_address() -> None:
    counted = overview.Overview("a.pcap")
    for number, library in enumerate(("Go", "Java", "C++", "Java", "")):
        counted.software(f"c{number}", library, None)
    counted.client("10.0.0.1", "", 9, [f"c{number}" for number in range(5)])
    (client,) = counted.to_json()["clients"]
    assert (client["software"], client["other_software"]) == ("Java", ["C++", "Go"])
    assert overview._client_text(client) == "(no name) at 10.0.0.1 (Java and 2 more): 9 requests on 5 connections"


def test_responses_without_their_request_are_reported_in_words(fixtures: Path) -> None:
    text = run("inspect", "--output", "text", str(fixtures / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"))
    assert "  not decoded    2 responses whose request was before the capture\n" in text
    assert "correlation id" not in text


@pytest.mark.parametrize("road", ["objects", "columns"])
def test_failed_checks_name_the_command_that_places_them(road: str, fixtures: Path) -> None:
    path = str(fixtures / "pcap" / "pulsar-corrupt_checksum.pcap")
    text = run("inspect", "--output", "text", "--road", road, path)
    assert "  failed checks  crc32c ×1 (frames --errors shows where)\n" in text
    assert "✗ crc32c entry.checksum\n" in run("frames", "--errors", "--output", "table", path)


def test_names_are_counted_up_to_a_bound(monkeypatch: pytest.MonkeyPatch, fixtures: Path) -> None:
    path = str(fixtures / "pcap" / "jmq4-consume.pcap")
    whole = inspected(path)
    monkeypatch.setattr(overview, "MOST_NAMES", 2)
    counted = inspected(path)
    for kind in ("clients", "topics", "groups", "apis"):
        assert len(counted[kind]) <= 3
    for kind in ("topics", "apis"):
        assert sum(each["calls"] for each in counted[kind]) == sum(each["calls"] for each in whole[kind])


@pytest.mark.parametrize("capture", ["jmq4-versions.pcap", "pulsar-consume.pcap"])
def test_rules_broken_are_those_of_the_list(capture: str, fixtures: Path) -> None:
    path = str(fixtures / "pcap" / capture)
    listed = [json.loads(line) for line in run("inspect", "--rules", "--output", "json", path).splitlines()]
    counted = {(each["rule"], each["severity"]): each["count"] for each in inspected(path)["breaches"]}
    assert counted == Counter((line["rule"], line["severity"]) for line in listed)
    assert inspected(path, "--errors")["breaches"] == []


@pytest.mark.parametrize("command", ["frames", "messages", "inspect"])
def test_allow_cut_forgives_the_ends_of_connections_only(command: str, fixtures: Path, tmp_path: Path) -> None:
    path = fixtures / "pcap" / "kafka-0.10.2.2-2-produce.pcapng"
    damaged = tmp_path / "damaged.pcapng"
    data = bytearray(path.read_bytes())
    data[3000] ^= 0x55  # a segment is lost
    damaged.write_bytes(data)

    def status(path: Path, *options: str) -> Any:
        arguments = [command, str(path), *options, "--output", "json"]
        return CliRunner().invoke(group, arguments, standalone_mode=False).return_value

    assert (status(path), status(path, "--allow-cut")) == (1, 0)
    assert (status(damaged), status(damaged, "--allow-cut")) == (1, 1)


def test_requests_of_clients_without_a_name_are_counted(fixtures: Path) -> None:
    path = str(fixtures / "pcap" / "jmq4-versions.pcap")
    requests_by_client = {(each["client"], each["address"]): each["requests"] for each in inspected(path)["clients"]}
    requests_of_clients = Counter(
        line["from"].rpartition(":")[0] for line in frames(path) if line["latency_ms"] is None
    )
    for address, count in requests_of_clients.items():
        assert sum(requests for (_, each), requests in requests_by_client.items() if each == address) == count
    assert "(no name) at" in run("inspect", path, "--output", "text")


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("road", ["objects", "columns"])
def test_requests_of_clients_are_those_of_the_capture(capture: str, road: str, fixtures: Path) -> None:
    """Events such as FLOW and ACK are no requests."""
    counted = inspected(str(fixtures / "pcap" / capture), "--road", road)
    requests = sum(each["count"] for each in counted["calls"] if each["role"] == "request")
    assert sum(each["requests"] for each in counted["clients"]) == requests


def test_a_call_counts_if_one_of_its_frames_fits(fixtures: Path) -> None:
    path = str(fixtures / "pcap" / "kafka-0.10.2.2-2-produce.pcapng")
    whole, answers = inspected(path), inspected(path, "--slower-than", "0ms")
    assert [api["calls"] for api in answers["apis"]] == [api["answered"] for api in whole["apis"] if api["answered"]]
    assert sum(topic["produced"] for topic in answers["topics"]) == 0  # the requests, with the messages, do not fit


def test_rules_are_not_checked_in_large_captures(monkeypatch: pytest.MonkeyPatch, fixtures: Path) -> None:
    path = str(fixtures / "pcap" / "jmq4-versions.pcap")
    whole = inspected(path)
    monkeypatch.setattr(inspect, "LEAST_FOR_COLUMNS", 0)
    large = inspected(path)
    assert whole["breaches"]
    assert large["breaches"] is None
    names = "clients", "topics", "groups", "apis", "slowest"
    assert [whole[name] for name in names] == [large[name] for name in names]
    text = run("inspect", "--output", "text", path)
    assert "  rules broken   not counted in large captures (--rules lists them)\n" in text
