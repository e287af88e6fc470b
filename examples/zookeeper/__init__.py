"""ZooKeeper's client protocol, the other half of every Kafka 0.8 to 0.10 cluster. NOTES.md has the sources."""

from __future__ import annotations

from examples.zookeeper import layouts
from examples.zookeeper.dialogue import ZooKeeperDialogue
from wirekit.conversation import Dialogue
from wirekit.registry import Layout, Protocol
from wirekit.wire import Limits


def _dialogue() -> type[Dialogue]:
    return ZooKeeperDialogue


PROTOCOL = Protocol(
    "zookeeper",
    "ZooKeeper, clients of 3.4 to 3.9",
    {
        "connect_request": Layout(layouts.CONNECT_REQUEST, "the first frame of a client", "zookeeper.jute"),
        "connect_response": Layout(layouts.CONNECT_RESPONSE, "the first frame of a server", "zookeeper.jute"),
        "request": Layout(layouts.REQUEST, "a request of any type", "zookeeper.jute, RequestHeader"),
        "response": Layout(layouts.RESPONSE, "a response or a notification", "zookeeper.jute, ReplyHeader"),
        "first_number": Layout(layouts.FIRST_NUMBER, "what all frames begin with", "zookeeper.jute"),
    },
    client="request",
    server="response",
    recognised_by=("connect_request", "connect_response", "request"),
    limits=Limits(frame=16 * 1024 * 1024),
    ports=(2181,),
    dialogue=_dialogue,
)
