"""What an AMQP connection means beyond layouts: which method answers which.

Source: AMQP 0-9-1, 2.2.1 (synchronous methods) and chapter 1 of the reference: ``x-ok`` answers ``x`` on its channel.
"""

from __future__ import annotations

from wirekit.conversation import OTHER_SIDES, Description, Dialogue
from wirekit.engine import Decoded

OF_SERVER = {"connection.start", "connection.secure", "connection.tune"}
ONE_WAY = {
    "basic.publish",
    "basic.return",
    "basic.deliver",
    "basic.ack",
    "basic.reject",
    "basic.nack",
    "basic.recover-async",
    "connection.blocked",
    "connection.unblocked",
}


class AmqpDialogue(Dialogue):
    """Follows one connection; on each channel a method waits for its answer before the next one is sent."""

    def describe(self, side: str, decoded: Decoded) -> Description:
        """The method, or the type of the frame."""
        value = decoded.value if decoded.value is not None else {}
        payload, kind = value.get("payload"), value.get("type")
        method = payload.get("method") if kind == 1 and payload is not None else None
        if method is None:
            return Description(None if kind is None else str(kind.symbol or int(kind)).lower())
        name, channel = method.symbol or str(int(method)), value.get("channel")
        request_name = "basic.get" if name == "basic.get-empty" else name.removesuffix("-ok")
        if request_name != name:
            return Description(name, None, channel, "response", pair=(channel, request_name, OTHER_SIDES[side]))
        arguments = payload.get("arguments")
        waits = arguments is None or not (arguments.get("flags") or {}).get("no_wait")
        if name in ONE_WAY or not waits:
            return Description(name, None, channel, "event" if name in ONE_WAY else "request", False)
        return Description(name, None, channel, "request", pair=(channel, name, side))

    def sender(self, decoded: Decoded) -> str:
        """Only a server starts, secures and tunes a connection."""
        name = self.describe("client", decoded).api or ""
        if name in OF_SERVER:
            return "server"
        return "client" if name.removesuffix("-ok") in OF_SERVER else ""
