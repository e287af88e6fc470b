"""MQTT 3.1.1 and 5: control packets and the connections that they make. NOTES.md has the sources."""

from __future__ import annotations

from examples.mqtt import layouts
from examples.mqtt.dialogue import MqttDialogue
from wirekit.conversation import Dialogue
from wirekit.registry import Layout, Protocol
from wirekit.wire import Limits


def _dialogue() -> type[Dialogue]:
    return MqttDialogue


PROTOCOL = Protocol(
    "mqtt",
    "MQTT 3.1.1 and 5",
    {
        "packet": Layout(layouts.PACKET, "a control packet of any type", "MQTT 5, chapters 2 and 3"),
        "properties": Layout(layouts.PROPERTIES, "the properties of a packet of version 5", "MQTT 5, 2.2.2"),
    },
    client="packet",
    server="packet",
    recognised_by=("packet",),
    readings=({"level": 5},),
    limits=Limits(frame=268_435_455),
    ports=(1883,),
    dialogue=_dialogue,
)
