"""The connections of a capture: how their protocols are chosen, their addresses and counts, and their missing bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from wirekit import plain
from wirekit.conversation import Dialogue, Frame, Quarantined
from wirekit.registry import registry


@dataclass(frozen=True, slots=True)
class Choice:
    """The caller's choice of protocols: for all connections, or by port.

    Attributes:
        protocol: the protocol of every connection, or "" to recognise it from the bytes.
        ports: {server port: protocol} for connections on known ports.
    """

    protocol: str = ""
    ports: Mapping[int, str] = field(default_factory=dict)

    @property
    def server_ports(self) -> frozenset[int]:
        """The ports of servers: the chosen ones; without any, the usual ones of the protocols that are possible."""
        usual = [registry.protocol(self.protocol)] if self.protocol else registry.with_stream()
        return frozenset(self.ports) or frozenset(chain.from_iterable(each.ports for each in usual))

    def of(self, client: str, server: str) -> str:
        """The protocol chosen for these addresses, or ""."""
        if self.protocol or not self.ports:
            return self.protocol
        for address in (server, client):
            protocol = self.ports.get(int(address.rpartition(":")[2]))
            if protocol:
                return protocol
        return ""


def connection_name(client: str, server: str, ordinal: int) -> str:
    """The name of a connection; ``ordinal`` numbers those between these two addresses from 0.

    >>> connection_name("10.0.0.1:40000", "10.0.0.2:9092", 0)
    '10.0.0.1:40000>10.0.0.2:9092#0'
    """
    return f"{client}>{server}#{ordinal}"


_FATES: dict[tuple[str, str], tuple[str, str]] = {}
"""The keys of ``Link`` counts, each once: Python's collector does not go through a dictionary of numbers by these."""


@dataclass(slots=True)
class Link:
    """One TCP connection of a capture.

    Attributes:
        name: as ``connection_name`` gives it.
        client, server: addresses with ports.
        opened_us, closed_us: capture times, microseconds since the epoch; ``NO_TIME_US`` if the capture has none.
        known_start: whether its handshake was captured.
        protocol: its name, "" if it is not known (yet).
        closed: the cause of its end.
        dialogue: the state of the conversation, None while the protocol is not known; without requests after the
            connection ended.
        bytes: payload bytes by (side, use): ``captured``, ``frames``, ``quarantined``, ``duplicate``,
            ``ignored``, ``missing``.
    """

    name: str
    client: str
    server: str
    opened_us: int
    known_start: bool
    closed_us: int = 0
    protocol: str = ""
    closed: str = ""
    dialogue: Dialogue | None = field(default=None, repr=False)
    _bytes: dict[tuple[str, str], int] | None = field(default=None, init=False, repr=False)

    @property
    def bytes(self) -> Mapping[tuple[str, str], int]:
        """Payload bytes by (side, use); 0 for a missing key."""
        return Counter(self._bytes)

    def count(self, side: str, fate: str, size: int) -> None:
        """Adds payload bytes to ``bytes``."""
        if self._bytes is None:  # most connections of a scan of ports carry none
            self._bytes = {}
        key = side, fate
        counted = self._bytes.get(key)
        if counted is None:
            self._bytes[_FATES.setdefault(key, key)] = size
        else:
            self._bytes[key] = counted + size

    def forget(self) -> None:
        """Clears ``bytes``."""
        self._bytes = None

    @property
    def ordinal(self) -> int:
        """The number in its name."""
        return int(self.name.rpartition("#")[2])

    def state(self) -> dict[str, Any]:
        """The state for ``from_state``, without the dialogue."""
        return {"bytes": dict(self._bytes or {}), **{name: getattr(self, name) for name in _NO_LINK}}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Link:
        """The inverse of ``state``."""
        link = cls(**{name: plain.like(value, state[name]) for name, value in _NO_LINK.items()})
        for (side, fate), size in state["bytes"].items():
            link.count(side, fate, size)
        return link

    def addresses(self, side: str) -> tuple[str, str]:
        """(sender, receiver) of the bytes that a side sends."""
        return (self.client, self.server) if side == "client" else (self.server, self.client)


_NO_LINK: Mapping[str, Any] = {
    "name": "", "client": "", "server": "", "opened_us": 0, "known_start": False, "closed_us": 0, "protocol": "",
    "closed": "",
}  # fmt: skip
"""The attributes in the state of a link besides its bytes, by type."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A range of a direction that was not captured: offset and length in bytes, and the reason."""

    side: str
    offset: int
    length: int
    time_us: int | None
    reason: str


Item = Frame | Quarantined | Missing
