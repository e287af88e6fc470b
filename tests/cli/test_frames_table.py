"""The table of ``wirekit frames``: it fits the terminal, cuts no name, and says topics and errors by name."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from wirekit import encode
from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.links import Choice
from wirekit.capture.tcp import Segment
from wirekit.cli.numbered import Numbered, numbered
from wirekit.conversation import Frame
from wirekit.display.frames import BELOW, FrameTable

NUMBERS = {80: 45, 120: 49, 160: 49}
"""Columns in front of the names, by the width of the terminal."""
MIDNIGHT = 1_600_041_600_000_000
TOPIC = "orders." + "west-" * 40 + "1"


def items(path: Path) -> list[Numbered]:
    with open_capture(str(path)) as capture:
        return list(numbered(follow(each for each in segments(capture) if isinstance(each, Segment)), describe=True))


def lines(numbered: Iterable[Numbered], width: int, **options: Any) -> list[str]:
    out = io.StringIO()
    table = FrameTable(Console(file=out, width=width, **({"color_system": None} | options)))
    for each in numbered:
        if isinstance(each.item, Frame):
            table.frame(each.frame, each.connection, each.link, each.item, each.facts)
    return out.getvalue().splitlines()


def refused() -> list[Numbered]:
    """A topic is created that is there already, before and after midnight."""
    request = encode(
        "kafka.create_topics.request.v0",
        {
            "correlation_id": 7,
            "client_id": "admin",
            "body": {
                "create_topic_requests": [
                    {
                        "topic": TOPIC,
                        "num_partitions": 1,
                        "replication_factor": 1,
                        "replica_assignment": [],
                        "configs": [],
                    }
                ],
                "timeout": 1000,
            },
        },
    )
    answer = encode(
        "kafka.create_topics.response.v0",
        {"correlation_id": 7, "body": {"topic_errors": [{"topic": TOPIC, "error_code": 36}]}},
    )
    client, server = "10.0.0.1:4000", "10.0.0.2:9092"
    sent = [
        Segment(MIDNIGHT - 500, client, server, 1, 1, 16, request, 0, 0, len(request)),
        Segment(MIDNIGHT + 500, server, client, 1, 1 + len(request), 16, answer, 1, 0, len(answer)),
    ]
    return list(numbered(follow(sent, Choice(ports={9092: "kafka"})), describe=True))


@pytest.mark.parametrize("width", [80, 120, 160])
@pytest.mark.parametrize("name", ["jmq4-consume", "jmq4-odd", "pulsar-batch", "kafka-0.10.2.2-2-produce", ""])
def test_lines_fit_and_names_are_whole(width: int, name: str, fixtures: Path) -> None:
    numbered = items(next((fixtures / "pcap").glob(f"{name}.*"))) if name else refused()
    shown = lines(numbered, width)
    assert max(map(len, shown)) <= width
    text = re.sub(r"\s", "", "".join(line[NUMBERS[width] :] if line[:BELOW].strip() else line for line in shown))
    frames = [each for each in numbered if isinstance(each.item, Frame)]
    assert frames
    for each in frames:
        assert isinstance(each.item, Frame)
        names = [each.item.description.api or "?", *list(each.facts.topics)[:3]]
        names += [error.error for error in each.facts.errors]
        assert [one for one in names if re.sub(r"\s", "", one) not in text] == []


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("name", ["jmq4-odd", "pulsar-batch", "kafka-0.10.2.2-2-produce", ""])
def test_lines_without_colours_are_those_with_colours(width: int, name: str, fixtures: Path) -> None:
    numbered = items(next((fixtures / "pcap").glob(f"{name}.*"))) if name else refused()
    coloured = "\n".join(lines(numbered, width, color_system="standard", force_terminal=True))
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured).splitlines() == lines(numbered, width)


def test_numbers_dates_connections_and_errors() -> None:
    shown = lines(refused(), 400)
    api = "create_topics v0".ljust(36)
    assert shown == [
        "    # time             conn         ms    bytes  api, topic, error",
        "connection 1: 10.0.0.1:4000>10.0.0.2:9092#0  kafka, client admin, joined in the middle",
        "      2020-09-13",
        f"    1 23:59:59.999500     1→                251  {api}{TOPIC}",
        "      2020-09-14",
        f"    2 00:00:00.000500     1←     1.000      224  {api}{TOPIC}  TOPIC_ALREADY_EXISTS",
    ]


def test_errors_and_topics_are_whole_on_80_columns(fixtures: Path) -> None:
    shown = lines(items(fixtures / "pcap" / "jmq4-consume.pcap"), 80)
    assert any(line.endswith(" FW_FETCH_MESSAGE_INDEX_OUT_OF_RANGE") for line in shown)
    topics = lines(items(fixtures / "pcap" / "pulsar-consume.pcap"), 80)
    assert " " * (BELOW + 2) + "persistent://public/default/t-consume" in topics
    assert any(line.startswith("    2 09:02:09.050    1←     1.790       49  BOOLEAN_ACK v4") for line in shown)


def test_arrows_show_the_direction(fixtures: Path) -> None:
    numbered = items(fixtures / "pcap" / "pulsar-consume.pcap")
    sides = {each.frame: each.item.side for each in numbered if isinstance(each.item, Frame)}
    rows = [re.match(r" *(\d+) \d\d:\S+ +\d+([→←])", line) for line in lines(numbered, 160)]
    assert {int(row[1]): row[2] for row in rows if row} == {
        number: "→" if side == "client" else "←" for number, side in sides.items()
    }


def test_an_answer_is_about_the_topic_of_its_request(fixtures: Path) -> None:
    topics = {
        each.item.description.api: list(each.facts.topics)
        for each in items(fixtures / "pcap" / "pulsar-batch.pcap")
        if isinstance(each.item, Frame)
    }
    assert topics["SEND_RECEIPT"] == topics["LOOKUP_RESPONSE"] == ["persistent://public/default/t-batch"]
    assert topics["CONNECTED"] == []


def test_a_response_in_another_version_than_its_request_shows_both() -> None:
    """A broker answers a version of ApiVersions that it does not know in version 0; ``inspect`` counts the request."""
    value = {"correlation_id": 7, "client_id": "new", "body": {}}
    request = bytearray(encode("kafka.api_versions.request.v0", value))
    request[6:8] = (9).to_bytes(2)
    answer = encode(
        "kafka.api_versions.response.v0", {"correlation_id": 7, "body": {"error_code": 35, "api_versions": []}}
    )
    client, server = "10.0.0.1:4000", "10.0.0.2:9092"
    sent = [
        Segment(MIDNIGHT, client, server, 1, 1, 16, bytes(request), 0, 0, len(request)),
        Segment(MIDNIGHT + 500, server, client, 1, 1 + len(request), 16, answer, 1, 0, len(answer)),
    ]
    shown = lines(numbered(follow(sent, Choice(ports={9092: "kafka"})), describe=True), 160)
    assert "api_versions v9 " in shown[-2]
    assert "api_versions v0 to v9 " in shown[-1]
    assert "UNSUPPORTED_VERSION" in shown[-1]
