"""Bytes that somebody pasted: what they are taken for, and what is suggested when they do not decode."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.cli.running import Run
from tests.jmq4.vectors import FRAMES, PARTS, RELEASE_FRAMES, context
from wirekit.conversation import best_fit, reading

RECORDS = [part for part in PARTS if part["kind"].startswith("message")]
CUT_FROM = 39
"""Bytes of a record up to its send_time: those behind its magic number are more than fit a request of Kafka."""


@pytest.mark.parametrize("part", RECORDS, ids=lambda part: part["name"])
def test_a_message_record_is_known_by_its_magic_number(part: dict[str, Any]) -> None:
    data = bytes.fromhex(part["hex"])
    assert {best_fit(data[:end]) for end in range(CUT_FROM, len(data) + 1)} == {"joyqueue.message"}
    assert best_fit(data * 2) == "joyqueue.message"
    run = Run("decode", "--hex", part["hex"])
    assert run.status == 0
    assert "decoded as joyqueue.message, the best match; name a schema" in run.err
    other = data[:18] + bytes(2) + data[20:]
    assert best_fit(other) != "joyqueue.message"


def test_no_frame_is_recognised_as_a_record() -> None:
    for vector in FRAMES:
        data = bytes.fromhex(vector["hex"])
        assert {best_fit(data), best_fit(data[: len(data) // 2])} <= {"", "joyqueue", "jmq4"}


def test_a_damaged_frame_of_another_version_is_not_the_documents() -> None:
    """The document has version 2 only: what says another one is JoyQueue's, even where its own reader goes astray."""
    for vector in FRAMES:
        data = bytes.fromhex(vector["hex"])
        if vector["header"]["version"] != 2 and not wirekit.decode(data, "joyqueue.frame").clean:
            assert best_fit(data) == "joyqueue", vector["name"]


def test_bytes_left_over_suggest_nothing_that_was_tried() -> None:
    run = Run("decode", "joyqueue", "--hex", "0000001bcafebebe040200000001070000016c3d0e8b28deadbeef")
    assert run.err == "wirekit: joyqueue.frame: length: 4 unexplained bytes at byte 23\n"


@pytest.mark.parametrize("vector", RELEASE_FRAMES, ids=lambda vector: vector["name"])
def test_a_frame_of_another_layout_than_its_header_says_is_explained(vector: dict[str, Any]) -> None:
    """Releases 4.1.0 to 4.2.7 write their own header version in front of the layout that the request asked for."""
    data = bytes.fromhex(vector["hex"])
    decoded = wirekit.decode(data, "joyqueue.frame")
    if decoded.clean:
        return
    guessed = reading(decoded)
    assert guessed == context(vector)
    assert wirekit.decode(data, "joyqueue.frame", context=guessed).clean
    assert reading(wirekit.decode(data, "joyqueue.frame", context={"layout_version": 4})) is None
    run = Run("decode", "joyqueue", "--hex", vector["hex"])
    assert f"joyqueue.frame decodes cleanly with --context layout_version={vector['layout_version']}\n" in run.err


def test_frames_that_no_reading_mends() -> None:
    assert reading(wirekit.decode(bytes.fromhex("00000017cafebebe04"), "joyqueue.frame")) is None
    assert reading(wirekit.decode(b"\0\0", "kafka.request")) is None
