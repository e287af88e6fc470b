"""Counts add up in any order, travel as JSON, and read well."""

from __future__ import annotations

import io
import itertools
import json
from collections import Counter

from rich.console import Console

import wirekit
from wirekit.capture.links import Link
from wirekit.pipeline.summary import FileSummary, Summary, facts, kind_of_reason, show, size_text, time_span


def part(number: int) -> Summary:
    summary = Summary()
    file = summary.file(f"{number % 2}.pcap")
    for time_us in (number, 10 * number):
        file.count_segment(time_us)
    file.connections["kafka" if number else ""] += 1
    file.without_payload += not number
    file.calls["kafka", "produce", number % 3, "request"] += 7
    file.calls["pulsar", "PING", None, "request"] += number
    file.messages["kafka"] += 100
    file.checks["crc32"] += number
    file.gaps["snap length", "ranges"] += 1
    file.gaps["snap length", "bytes"] += 40 * number
    file.quarantined(f"needs {number} bytes, {number} available", f"topics[{number}].name", 10)
    file.skipped["udp"] += 1
    file.bytes["captured"] += 1000
    if number == 3:
        file.damaged = "cut at byte 7"
    return summary


def test_parts_merge_in_any_order() -> None:
    results = []
    for order in itertools.permutations(range(4)):
        total = Summary()
        for number in order:
            total.merge(part(number))
        results.append(total)
    assert all(each == results[0] for each in results)
    odd = results[0].file("1.pcap")
    assert (odd.segments, odd.first_us, odd.last_us) == (4, 1, 30)
    assert odd.quarantine["topics[].name: needs N bytes, N available", "pieces"] == 2
    assert results[0].total().segments == 8
    assert results[0].unreadable == {"1.pcap": "cut at byte 7"}


def test_json_both_ways() -> None:
    total = part(2)
    total.merge(part(3))
    text = json.dumps(total.to_json())
    assert Summary.from_json(json.loads(text)) == total
    assert FileSummary.from_json(json.loads(text)["0.pcap"]) == total.file("0.pcap")


def test_connections_without_payload_are_not_called_unknown() -> None:
    file = part(0).file("0.pcap")
    assert next(facts(file))[1] == "without payload ×1 (2 segments, 1.0 kB of payload)"
    file.connections[""] += 2
    assert next(facts(file))[1] == "unknown ×2, without payload ×1 (2 segments, 1.0 kB of payload)"


def test_reasons_are_counted_by_kind() -> None:
    assert kind_of_reason("expected 3 to 9, found 'x\ny'", "a[0].b[12]") == "a[].b[]: expected N to N"
    assert kind_of_reason("needs 4 bytes, at byte 74 (0x4a)") == "needs N bytes, at byte N (N)"
    assert kind_of_reason("cut by 1448 bytes never captured") == "cut by N bytes never captured"
    assert len(kind_of_reason("long " * 100)) == 200


def test_numbers_that_all_reasons_of_a_kind_have_in_common_are_shown() -> None:
    reasons = [f"expected a wire type of 0, 1, 2 or 5 in NaN, field {number}" for number in (7, 7, 10)]
    texts = set()
    for order in itertools.permutations(reasons):
        file = FileSummary()
        for reason in order:
            part = FileSummary()
            part.quarantined(reason, "a[3].b", 10)
            file.merge(FileSummary.from_json(part.to_json()))
        assert file.undecoded == FileSummary.from_json(file.to_json()).undecoded
        (text,) = file.undecoded
        texts.add(text)
    assert texts == {"a[].b: expected a wire type of 0, 1, 2 or 5 in NaN, field N"}
    file = FileSummary()
    for number in (1, 10**6):
        file.quarantined(f"{number} {'long ' * 100}", "", 1)
    file.quarantined(f"above {2**80}", "", 1)
    assert [len(text) for text in file.undecoded] == [200, 7]


def test_bytes_that_tcp_ignores_are_in_the_report() -> None:
    file = FileSummary()
    file.bytes["ignored"] = 310
    assert ("ignored", "310 B: too late, after the end, or out of the window", "yellow") in [*facts(file)]


def test_bytes_that_are_no_frames_after_all_are_not_counted() -> None:
    """Of a frame that columns have read, and objects decode as other bytes."""
    summary, link = FileSummary(), Link("a:1>b:2#0", "a:1", "b:2", 0, True)
    link.count("client", "captured", 5)
    link.count("client", "frames", 5)
    link.count("client", "frames", -5)
    summary.count(link, None)
    assert summary.to_json()["bytes"] == {"captured": 5}


def test_the_report_reads_well() -> None:
    summary = part(1)
    summary.merge(part(3))
    summary.merge(part(2))
    summary.file("bad [red].pcap").unreadable = "expected a capture, found \x1b[31mtext"
    out = io.StringIO()
    show(summary, Console(file=out, width=100))
    assert out.getvalue() == (
        "1.pcap\n"
        "  connections    kafka ×2 (4 segments, 2.0 kB of payload)\n"
        "  requests       18: produce v0 ×7, produce v1 ×7, PING ×4\n"
        "  messages       kafka ×200\n"
        "  failed checks  crc32 ×4\n"
        "  missing        160 B in 2 pieces: snap length\n"
        "  not decoded    20 B in 2 pieces: topics[].name: needs N bytes, N available\n"
        "  no TCP         udp ×2\n"
        "  damaged        cut at byte 7\n"
        "0.pcap\n"
        "  connections    kafka ×1 (2 segments, 1.0 kB of payload)\n"
        "  requests       9: produce v2 ×7, PING ×2\n"
        "  messages       kafka ×100\n"
        "  failed checks  crc32 ×2\n"
        "  missing        80 B: snap length\n"
        "  not decoded    10 B: topics[].name: needs 2 bytes, 2 available\n"
        "  no TCP         udp ×1\n"
        "bad [red].pcap\n"
        "  not read       expected a capture, found �[31mtext\n"
        "all 3 files\n"
        "  connections    kafka ×3 (6 segments, 3.0 kB of payload)\n"
        "  requests       27: produce v0 ×7, produce v1 ×7, produce v2 ×7, PING ×6\n"
        "  messages       kafka ×300\n"
        "  failed checks  crc32 ×6\n"
        "  missing        240 B in 3 pieces: snap length\n"
        "  not decoded    30 B in 3 pieces: topics[].name: needs N bytes, N available\n"
        "  no TCP         udp ×3\n"
        "  not all read   2 files\n"
    )


def test_sizes() -> None:
    assert [size_text(n) for n in (0, 999, 1000, 152_340, 2_500_000, 3e9, 5e15)] == [
        "0 B", "999 B", "1.0 kB", "152 kB", "2.5 MB", "3.0 GB", "5,000.0 TB",
    ]  # fmt: skip


def test_the_end_of_a_time_span_has_a_date_on_another_day_only() -> None:
    begin = 1_795_000_000_000_000
    assert time_span(begin, begin + 7_107_000) == "2026-11-18 11:06:40.000000 to 11:06:47.107000 UTC (7.107 s)"
    assert " to 2026-11-19 11:06:40.000000 UTC (86,400.000 s)" in time_span(begin, begin + 86_400_000_000)


def test_a_later_file_of_a_capture_may_have_a_supported_link_type() -> None:
    usb, ethernet = FileSummary(skipped=Counter({"link type 220": 2})), FileSummary(segments=1)
    restored = FileSummary.from_json(usb.to_json())
    assert restored.to_json()["unreadable"] == "no packet can be read: wirekit does not support link type 220 ×2"
    restored.merge(ethernet)
    assert (restored.unread, restored.to_json()["unreadable"]) == ("", None)


def test_whole_frames_that_do_not_decode_count_if_they_show_their_api() -> None:
    """As in the table of calls, and as frames that are cut."""
    summary, link = FileSummary(), Link("a:1>b:2#0", "a:1", "b:2", 0, True)
    of_one_topic_without_a_topic = bytes.fromhex("0000000e 0003 0000 00000001 ffff 00000001")
    for item in wirekit.Conversation("kafka").receive("client", of_one_topic_without_a_topic):
        summary.count(link, item)
    assert summary.calls == {("kafka", "metadata", 0, "request"): 1}
    assert summary.quarantined_bytes == len(of_one_topic_without_a_topic)
