"""Damaged runs of a real client, word for word: what ``wirekit decode`` says of the frame, and what is still shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wirekit
from wirekit.cli import main

FRAMES = Path(__file__).parents[2] / "fixtures" / "pulsar" / "frames"

SAID = {
    "corrupt_batch_count_high": "entry.payload: count check failed at byte 102: stored 5, computed 3",
    "corrupt_checksum": "entry.checksum: crc32c check failed at byte 34: stored 0xea3349d9, computed 0x474e1a88",
    "corrupt_lz4_garbage": (
        "entry.payload: 15 unexplained bytes at byte 71\n"
        "wirekit: pulsar.frame: entry.payload: decompression check failed at byte 71: "
        "lz4-block: expected a valid LZ4 block of 100 bytes"
    ),
    "corrupt_zstd_garbage": (
        "entry.payload: 21 unexplained bytes at byte 71\n"
        "wirekit: pulsar.frame: entry.payload: decompression check failed at byte 71: "
        "zstd: expected the magic 28b52ffd of a zstd frame, found ffffffff"
    ),
    "corrupt_truncated_metadata": (
        "entry.metadata: expected a wire type of 0, 1, 2 or 5, found 4, at byte 68 (0x44); "
        "entry.metadata_size says 16777215 bytes, but 125 are left"
    ),
}


def damaged(run: str) -> bytes:
    """The first frame of a run that the client could not take."""
    for line in (FRAMES / f"{run}.frames.jsonl").read_text().splitlines():
        frame = json.loads(line)
        if frame["type"] == "MESSAGE" and not wirekit.decode(bytes.fromhex(frame["hex"]), "pulsar.frame").clean:
            return bytes.fromhex(frame["hex"])
    raise AssertionError(run)


@pytest.mark.parametrize(("run", "text"), SAID.items(), ids=SAID)
def test_the_error_of_a_damaged_frame_names_the_fault(run: str, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["decode", "pulsar", "--output", "tree", "--strict", "--hex", damaged(run).hex()])
    out, err = capfd.readouterr()
    assert ended.value.code == 1
    assert err.startswith(f"wirekit: pulsar.frame: {text}")
    assert "producer_name = 'standalone-0-0'" in out
    assert "publish_time = " in out


@pytest.mark.parametrize("run", SAID)
def test_a_damaged_frame_is_written_as_it_was(run: str) -> None:
    decoded = wirekit.decode(damaged(run), "pulsar.frame")
    if decoded.error is None:
        assert wirekit.encode("pulsar.frame", wirekit.to_json(decoded.value)) == decoded.data


def test_fields_and_types_that_nobody_knows_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    line = next(
        line for line in (FRAMES / "unknown_field.frames.jsonl").read_text().splitlines() if "CONNECTED" in line
    )
    with pytest.raises(SystemExit) as ended:
        main(["decode", "pulsar", "--output", "tree", "--hex", json.loads(line)["hex"]])
    assert ended.value.code == 0
    assert "$unknown = field 999 = 616263, field 1000 = 5" in capfd.readouterr().out

    data = wirekit.encode("pulsar.frame", {"command": {"type": 99, "$keep": ["type"]}})
    with pytest.raises(SystemExit):
        main(["decode", "pulsar", "--output", "tree", "--hex", data.hex()])
    out, err = capfd.readouterr()
    refused = "readers expect a value of pulsar.proto.BaseCommand.Type, because readers take any other as missing"
    assert "type = 99" in out
    assert f"✗ required {refused}" in " ".join(out.split())
    assert f"command.type: required check failed at byte 8: {refused}" in err
