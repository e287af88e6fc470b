"""Endpoints as text: ``host:port``, with brackets around an IPv6 host."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


def endpoint(host: str, port: int) -> str:
    """The text of an endpoint.

    >>> endpoint("::1", 9092)
    '[::1]:9092'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@lru_cache(maxsize=1 << 12)
def host_and_port(text: str) -> tuple[str, int]:
    """The parts of an endpoint.

    >>> host_and_port("[::1]:9092")
    ('::1', 9092)
    """
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def address_columns(client: str, server: str) -> dict[str, Any]:
    """The endpoints of a connection, as the tables' columns hold them."""
    (client_host, client_port), (server_host, server_port) = host_and_port(client), host_and_port(server)
    return {
        "client_address": client_host,
        "client_port": client_port,
        "server_address": server_host,
        "server_port": server_port,
    }
