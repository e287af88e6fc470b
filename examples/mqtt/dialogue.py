"""What an MQTT connection means beyond layouts: its version, and which packet answers which.

Source: MQTT 5, 4.3 (delivery), 3.x (the packets); the same in 3.1.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.mqtt.layouts import V5
from wirekit.conversation import Description, Dialogue, Frame
from wirekit.engine import Decoded
from wirekit.registry import Protocol

ASKS = {
    "CONNECT": "connect",
    "SUBSCRIBE": "subscribe",
    "UNSUBSCRIBE": "unsubscribe",
    "PINGREQ": "ping",
    "PUBLISH": "publish",
    "PUBREL": "release",
}
ANSWERS = {
    "CONNACK": "connect",
    "SUBACK": "subscribe",
    "UNSUBACK": "unsubscribe",
    "PINGRESP": "ping",
    "PUBACK": "publish",
    "PUBREC": "publish",
    "PUBCOMP": "release",
}
OF_CLIENT = {"CONNECT", "SUBSCRIBE", "UNSUBSCRIBE", "PINGREQ"}
OF_SERVER = {"CONNACK", "SUBACK", "UNSUBACK", "PINGRESP"}
OTHER = {"client": "server", "server": "client"}


class MqttDialogue(Dialogue):
    """Follows one connection.

    Attributes:
        level: the version that CONNECT named, None before one was seen.
    """

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.level: int | None = None

    def schema(self, side: str, data: bytes) -> tuple[str, Mapping[str, Any], str | None]:
        """The packet, in the version of the connection."""
        return self.protocol.key("packet"), {} if self.level is None else {"level": self.level}, None

    def describe(self, side: str, decoded: Decoded) -> Description:
        """Type, version and packet id; an answer belongs to what the other side asked with the same id."""
        value = decoded.value if decoded.value is not None else {}
        header, body = value.get("header"), value.get("body")
        if header is None:
            return Description()
        name = header.type.symbol or str(int(header.type))
        number = body.get("packet_id") if body is not None else None
        if name in ASKS:
            answered = name != "PUBLISH" or header.qos > 0
            return Description(name, self.level, number, "request", answered, (ASKS[name], side, number))
        if name in ANSWERS:
            return Description(name, self.level, number, "response", pair=(ANSWERS[name], OTHER[side], number))
        return Description(name, self.level)

    def sender(self, decoded: Decoded) -> str:
        """The side that alone sends such a packet."""
        header = decoded.value.get("header") if decoded.value is not None else None
        name = None if header is None else header.type.symbol
        return "client" if name in OF_CLIENT else "server" if name in OF_SERVER else ""

    def observe(self, frame: Frame) -> None:
        """Takes note of the version that a CONNECT asks for."""
        body = frame.part("body")
        if frame.description.api == "CONNECT" and body is not None and body.get("level") is not None:
            self.level = int(body.level)

    def summary(self) -> dict[str, Any]:
        """The version of the connection."""
        return {} if self.level is None else {"level": self.level, "properties": self.level == V5}
