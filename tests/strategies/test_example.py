"""An example of every layout: valid, small, the same at every call, and taken by ``encode``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import wirekit
from wirekit.registry import BUILT_IN

ALL = wirekit.registry.keys()
KEYS = [key for key in ALL if key.partition(".")[0] in BUILT_IN]
WITHOUT = {"net.pcapng"}  # its first block must be a section header, which the list of blocks does not tell


@pytest.mark.parametrize("key", [key for key in KEYS if key not in WITHOUT])
def test_every_layout_has_a_valid_example(key: str) -> None:
    value = wirekit.example(key)
    data = wirekit.encode(key, value)
    assert wirekit.decode(data, key).clean
    assert len(data) < 1_000
    assert wirekit.example(key) == json.loads(json.dumps(value)) == value


@pytest.mark.parametrize("key", sorted(WITHOUT))
def test_a_schema_without_an_example_points_to_strategies(key: str) -> None:
    with pytest.raises(wirekit.Misuse, match="strategies"):
        wirekit.example(key)


def test_context_chooses_the_layout() -> None:
    value = wirekit.example("kafka.response", context={"api": "metadata", "version": 1})
    assert [broker["rack"] for broker in value["body"]["brokers"]] == ["text"]


def test_encode_accepts_the_output_of_example() -> None:
    command = [sys.executable, "-m", "wirekit"]
    shown = subprocess.run([*command, "example", "joyqueue.frame"], capture_output=True, check=True)
    built = subprocess.run([*command, "encode", "joyqueue.frame"], input=shown.stdout, capture_output=True, check=True)
    assert wirekit.decode(built.stdout, "joyqueue.frame").clean
