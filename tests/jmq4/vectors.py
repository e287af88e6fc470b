"""The golden vectors, and their Java fields under the names of the schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[2] / "fixtures" / "jmq4"
ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
COMPRESSIONS = {"none": 0, "Zip": 1, "ZLIB": 2, "Snappy": 3}
FETCH_CLUSTER_ACK = -10
COUNTED = (-32, -33)
IN_MESSAGE = ("partition", "index", "term", "magic", "priority", "send_time", "store_time", "body_crc", "flag")


def load(name: str) -> list[dict[str, Any]]:
    """The vectors of a file."""
    return [json.loads(line) for line in (FIXTURES / name).read_text().splitlines()]


FRAMES = load("frames.jsonl")
RELEASE_FRAMES = load("frames_4.2.7.jsonl")
PARTS = load("parts.jsonl")
JUDGED = load("decode.jsonl")


def context(vector: dict[str, Any]) -> dict[str, Any]:
    """What has to be said about a frame because its header does not."""
    return {"layout_version": vector["layout_version"]} if "layout_version" in vector else {}


def frame_value(vector: dict[str, Any]) -> dict[str, Any]:
    """The frame that a vector was made from: all but what is computed."""
    header = vector["header"]
    kind = header["type"]
    response = header["direction"] == "RESPONSE"
    qos = header.get("qosCode", 1)
    value: dict[str, Any] = {
        "version": vector.get("header_version_on_wire", header["version"]),
        "identity": {"direction": int(response), "qos_level": qos & 3},
        "request_id": header["requestId"],
        "type": kind,
        "send_time": header["sendTime"],
        "payload": _payload(kind, vector["fields"]),
    }
    if response:
        value |= {"status": header["status"] & 0xFF, "error": header["error"] or None}
    return value


def _payload(kind: int, fields: dict[str, Any]) -> dict[str, Any]:
    value = _renamed(fields)
    if kind == FETCH_CLUSTER_ACK:
        for topic in value["topics"]:
            topic["is_exist_producer_policy"] = topic["producer_policy"] is not None
            topic["is_exist_consumer_policy"] = topic["consumer_policy"] is not None
        for broker in value["brokers"]:
            if "permission" in broker:
                number = broker["permission"]
                broker["permission"] = {"readable": bool(number & 1), "writable": bool(number & 2)}
    elif kind in COUNTED:
        value["count"] = sum(len(topic["partition_data"]) for topic in value["data"])
    return value


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if isinstance(value, dict):
        if "clientIp_hex" in value:
            return message_value(value)
        fields = {_snake(name): _renamed(item) for name, item in value.items()}
        if "qos_code" in fields:
            fields["qos_level"] = fields.pop("qos_code")
        if "point" in fields:
            fields["point"] = float(fields["point"])
        return fields
    return value or None if isinstance(value, str) else value


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z]+)", r"_\1", name).lower()


def message_value(fields: dict[str, Any]) -> dict[str, Any]:
    """The record of a message; what the Java fields would lose is on the wire (source, address, attributes)."""
    snake_fields = {_snake(name): value for name, value in fields.items()}
    address = bytes.fromhex(fields["clientIp_hex"])
    return {name: snake_fields[name] for name in IN_MESSAGE} | {
        "system_code": {
            "compressed": fields["compressed"],
            "ordered": fields["ordered"],
            "source": fields["source"] & 3,
            "compression": COMPRESSIONS[fields["compressionType"]] if fields["compressed"] else 0,
            "address_type": int(len(address) < 7),
            "message_version": fields["messageVersion"],
            "batch": fields["batch"],
        },
        "client_ip": address[:16].ljust(16, b"\0").hex(),
        "body": fields["body_hex"] or None,
        "business_id": fields["businessId"] or None,
        "attributes": format_attributes(dict(fields["attributes"] or [])),
        "extension": fields["extension_hex"] or None,
        "app": fields["app"] or None,
    }


def differences(expected: Any, actual: Any, path: str = "") -> list[str]:
    """Where a decoded value differs from the plain value it was made from; computed fields are not compared."""
    if isinstance(expected, dict):
        return [
            difference
            for name, item in expected.items()
            if not name.startswith("$")
            for difference in differences(item, actual[name], f"{path}.{name}" if path else name)
        ]
    if isinstance(expected, list):
        if len(expected) != len(actual):
            return [f"{path}: {len(expected)} elements expected, {len(actual)} found"]
        pairs = enumerate(zip(expected, actual, strict=True))
        return [text for index, (item, other) in pairs for text in differences(item, other, f"{path}[{index}]")]
    shown = actual.hex() if isinstance(actual, bytes) else actual
    return [] if expected == shown else [f"{path}: {expected!r} expected, {shown!r} found"]


def format_attributes(attributes: Mapping[str, str] | None) -> str | None:
    """The text of a map as Java properties, in its order; None for no map or an empty one."""
    if not attributes:
        return None
    return "\n".join(f"{_escaped(key, key=True)}={_escaped(value)}" for key, value in attributes.items())


def _escaped(text: str, *, key: bool = False) -> str:
    out = []
    for index, unit in enumerate(_units(text)):
        character = chr(unit)
        if character == " ":
            out.append("\\ " if key or index == 0 else " ")
        elif character in ESCAPES:
            out.append(ESCAPES[character])
        elif character in "\\=:#!":
            out.append("\\" + character)
        elif 0x20 <= unit <= 0x7E:
            out.append(character)
        else:
            out.append(f"\\u{unit:04X}")
    return "".join(out)


def _units(text: str) -> list[int]:
    """The UTF-16 units of a text."""
    return list(memoryview(text.encode("utf-16", "surrogatepass")).cast("H"))[1:]
