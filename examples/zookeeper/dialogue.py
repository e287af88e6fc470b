"""What a ZooKeeper connection means beyond layouts: which answer belongs to which request.

A response says nothing but the number of its request (``xid``); the first frame of either side has no header, and the
number that stands where others have theirs is 0, which no request has (ClientCnxn.java, ``xid = 1``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirekit.conversation import Description, Dialogue
from wirekit.engine import Decoded
from wirekit.fitting import value_of

CONNECT = 0
NOTIFICATION = -1


class ZooKeeperDialogue(Dialogue):
    """Follows one connection of a client."""

    def schema(self, side: str, data: bytes) -> tuple[str, Mapping[str, Any], str | None]:
        """The layout of a frame; for a response, of what its request asked for."""
        number = value_of(data, self.protocol.key("first_number")).get("xid")
        if number == CONNECT:
            return self.protocol.key("connect_request" if side == "client" else "connect_response"), {}, None
        if side == "client":
            return self.protocol.key("request"), {}, None
        request = self.requests.get(number)
        key = self.protocol.key("response")
        if request is not None:
            return key, {"operation": request.description.api}, None
        return key, {}, None if number == NOTIFICATION else f"no request has xid {number}"

    def describe(self, side: str, decoded: Decoded) -> Description:
        """Operation and xid."""
        role = "request" if side == "client" else "response"
        if decoded.schema.rpartition(".")[2].startswith("connect"):
            return Description("connect", None, CONNECT, role)
        value = decoded.value if decoded.value is not None else {}
        number = value.get("xid")
        if number is None:
            return Description()
        if side == "client":
            operation = value.get("type")
            api = None if operation is None else operation.symbol or str(int(operation))
            return Description(api, None, int(number), "request")
        if number == NOTIFICATION:
            return Description("notification")
        request = self.requests.get(int(number))
        return Description(None if request is None else request.description.api, None, int(number), "response")

    def sender(self, decoded: Decoded) -> str:
        """Only a client sends a ConnectRequest."""
        return {"connect_request": "client", "connect_response": "server"}.get(decoded.schema.rpartition(".")[2], "")
