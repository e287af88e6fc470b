"""The captured requests and responses, the tables of Kafka's own, and small messages to compose sets of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wirekit
from wirekit.schemas.kafka.types import API_KEYS

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kafka"
DISK = FIXTURES / "disk"

TABLES: list[dict[str, Any]] = json.loads((FIXTURES / "kafka_apis.json").read_text())
ERRORS: list[dict[str, Any]] = json.loads((FIXTURES / "kafka_errors.json").read_text())
EMBEDDED: dict[str, Any] = json.loads((FIXTURES / "kafka_embedded.json").read_text())


@dataclass(frozen=True)
class Pdu:
    """A captured request or response.

    Attributes:
        line: where it stands in the file of its release, from 1.
        side: ``request`` or ``response``.
        data: its bytes, with the size in front.
    """

    release: str
    line: int
    api: str
    version: int
    side: str
    data: bytes

    @property
    def key(self) -> str:
        return f"kafka.{self.api}.{self.side}.v{self.version}"

    def __str__(self) -> str:
        return f"{self.release}:{self.line}-{self.api}.{self.side}.v{self.version}"


def sized(data: bytes) -> bytes:
    """Bytes behind their size."""
    return len(data).to_bytes(4, "big") + data


def _pdus() -> list[Pdu]:
    pdus = []
    for release in ("0.8.2.2", "0.9.0.1", "0.10.2.2"):
        text = (FIXTURES / "golden" / f"{release}.jsonl").read_text()
        for number, line in enumerate(text.splitlines(), 1):
            entry = json.loads(line)
            api = str(API_KEYS(entry["api_key"]).symbol)
            for side in ("request", "response"):
                if entry[side] is not None:
                    data = sized(bytes.fromhex(entry[side]))
                    pdus.append(Pdu(release, number, api, entry["version"], side, data))
    return pdus


PDUS = _pdus()
BROKEN = {"0.10.2.2:25-produce.request.v2", "0.10.2.2:31-produce.request.v2"}
"""Whose CRC was broken on purpose."""


def first(api: str, side: str, version: int) -> Pdu:
    """The longest captured PDU of an API version."""
    return max(
        (pdu for pdu in PDUS if (pdu.api, pdu.side, pdu.version) == (api, side, version)), key=lambda p: len(p.data)
    )


def message(value: Any, *, offset: int = 0, magic: int = 0, codec: str = "NONE", **fields: Any) -> dict[str, Any]:
    """An entry of a message set, in the JSON form; a list as value is the set of a compressed message."""
    attributes = {"codec": codec, "timestamp_type": fields.pop("timestamp_type", "CreateTime"), "reserved": 0}
    if isinstance(value, list):
        value = {"content": {"messages": value}}
    elif value is not None:
        value = value.hex()
    body = {"magic": magic, "attributes": attributes, "key": None, "value": value, **fields}
    if magic:
        body.setdefault("timestamp", 1_000)
    return {"offset": offset, "message": body}


def message_set(*entries: dict[str, Any]) -> bytes:
    """The bytes of a message set."""
    return wirekit.encode("kafka.message_set", {"messages": list(entries)})
