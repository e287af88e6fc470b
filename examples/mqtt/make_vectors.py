"""Writes vectors.json with paho, which wirekit does not depend on: ``pip install paho-mqtt==2.2.0``, then run this."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paho.mqtt import client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

CONNECTED = paho.CallbackAPIVersion.VERSION2


class Client(paho.Client):
    """A client that keeps the packets that it would send."""

    def __init__(self, protocol: Any) -> None:
        super().__init__(CONNECTED, client_id="sensor-1", protocol=protocol)
        self.packets: list[bytes] = []
        self._sock = object()

    def _packet_queue(self, command: int, packet: Any, mid: int, qos: int, info: Any = None) -> Any:
        self.packets.append(bytes(packet))
        return paho.MQTT_ERR_SUCCESS

    def __del__(self) -> None:
        """Nothing is open."""


def properties(kind: int, **values: Any) -> Properties:
    """Properties by paho's names."""
    paho_properties = Properties(kind)
    for name, value in values.items():
        setattr(paho_properties, name, value)
    return paho_properties


def vector(data: bytes, reads: dict[str, Any], level: int = 4) -> dict[str, Any]:
    """One line of the file."""
    return {"key": "packet", "context": {"level": level}, "hex": data.hex(), "reads": reads}


def sent(level: int) -> list[dict[str, Any]]:
    """What a client of a version sends."""
    five = level == 5
    one = Client(paho.MQTTv5 if five else paho.MQTTv311)
    one.username_pw_set("user", "secret")
    will = properties(PacketTypes.WILLMESSAGE, WillDelayInterval=30) if five else None
    one.will_set("last/will", b"\x00gone", qos=2, retain=True, properties=will)
    if five:
        one._connect_properties = properties(PacketTypes.CONNECT, SessionExpiryInterval=3600, ReceiveMaximum=20)
        one._clean_start = True
    one._send_connect(60)
    about = properties(PacketTypes.PUBLISH, ContentType="text/plain", UserProperty=("a", "ä")) if five else None
    if about is not None:
        about.UserProperty = ("b", "")
        about.CorrelationData = b"\xff\x00"
    one._send_publish(10, b"a/b", b"x" * 200, qos=1, retain=True, properties=about)
    one._send_publish(0, b"a/b", b"", properties=properties(PacketTypes.PUBLISH) if five else None)
    if five:
        options = paho.SubscribeOptions(qos=1, noLocal=True, retainHandling=2)
        numbered = properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=268_435_455)
        one._send_subscribe(0, [(b"a/#", options)], numbered)
    else:
        one._send_subscribe(0, [(b"a/#", 1), (b"b/+", 2)])
    one._send_unsubscribe(0, [b"a/#", b"b"], properties(PacketTypes.UNSUBSCRIBE) if five else None)
    one._send_puback(7)
    one._send_pubrel(8)
    one._send_pingreq()
    one._send_disconnect(paho.ReasonCode(PacketTypes.DISCONNECT, identifier=4) if five else None)
    names = {"client_id": "sensor-1", "user_name": "user", "password": b"secret".hex(), "keep_alive": 60}
    named = [{"id": 3, "value": "text/plain"}, {"id": 9, "value": "ff00"}]
    pairs = [{"id": 38, "value": {"name": "a", "value": "ä"}}, {"id": 38, "value": {"name": "b", "value": ""}}]
    expiry = [{"id": 17, "value": 3600}, {"id": 33, "value": 20}]
    topics = ["a/#"] if five else ["a/#", "b/+"]
    reads: list[dict[str, Any]] = [
        {
            "header": {"type": 1},
            "body": {
                "protocol_name": "MQTT",
                "level": level,
                "flags": {"will": True, "will_qos": 2, "will_retain": True, "clean_start": True},
                **names,
                "properties": expiry if five else None,
                "will_properties": [{"id": 24, "value": 30}] if five else None,
                "will_topic": "last/will",
                "will_payload": b"\x00gone".hex(),
            },
        },
        {
            "header": {"type": 3, "qos": 1, "retain": True, "dup": False},
            "body": {
                "topic": "a/b",
                "packet_id": 10,
                "properties": named + pairs if five else None,
                "payload": (b"x" * 200).hex(),
            },
        },
        {"header": {"type": 3, "qos": 0}, "body": {"topic": "a/b", "packet_id": None, "payload": ""}},
        {"header": {"type": 8, "qos": 1}, "body": {"subscriptions": [{"topic_filter": topic} for topic in topics]}},
        {"header": {"type": 10, "qos": 1}, "body": {"topic_filters": ["a/#", "b"]}},
        {"header": {"type": 4}, "body": {"packet_id": 7, "reason": None, "properties": None}},
        {"header": {"type": 6, "qos": 1}, "body": {"packet_id": 8}},
        {"header": {"type": 12}, "remaining_length": 0},
        {"header": {"type": 14}, "body": {"reason": 4 if five else None}},
    ]
    return [vector(data, value, level) for data, value in zip(one.packets, reads, strict=True)]


def received() -> list[dict[str, Any]]:
    """What a server sends, with properties that paho packs; paho reads these properties back."""
    about = properties(PacketTypes.CONNACK, AssignedClientIdentifier="auto", MaximumQoS=1, ServerKeepAlive=30).pack()
    assert Properties(PacketTypes.CONNACK).unpack(about)[0].AssignedClientIdentifier == "auto"
    body = b"\x01\x00" + about
    values = [{"id": 18, "value": "auto"}, {"id": 19, "value": 30}, {"id": 36, "value": 1}]
    why = properties(PacketTypes.PUBACK, ReasonString="no").pack()
    refused = b"\x00\x07\x87" + why
    return [
        vector(b"\x20\x02\x01\x05", {"header": {"type": 2}, "body": {"flags": {"session_present": True}, "reason": 5}}),
        vector(
            b"\x20" + bytes([len(body)]) + body,
            {"header": {"type": 2}, "body": {"flags": {"session_present": True}, "reason": 0, "properties": values}},
            5,
        ),
        vector(b"\x90\x04\x00\x0a\x01\x80", {"header": {"type": 9}, "body": {"packet_id": 10, "reasons": [1, 128]}}),
        vector(
            b"\x40" + bytes([len(refused)]) + refused,
            {
                "header": {"type": 4},
                "body": {"packet_id": 7, "reason": 0x87, "properties": [{"id": 31, "value": "no"}]},
            },
            5,
        ),
        vector(b"\xd0\x00", {"header": {"type": 13}, "remaining_length": 0}),
    ]


def main() -> None:
    """Writes the file."""
    lines = ",\n".join(f"  {json.dumps(each, ensure_ascii=False)}" for each in [*sent(4), *sent(5), *received()])
    Path(__file__).with_name("vectors.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
