"""How an API and its versions are declared; the declarations are in the modules that ``apis`` lists.

A version gives only the half that changed; the other is that of the version before. Sizes and headers are added in
``frames``.
"""

from __future__ import annotations

from dataclasses import dataclass

from wirekit.errors import Misuse
from wirekit.schemas.kafka.types import API_KEYS, error_code, string
from wirekit.wire import Struct, int32


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an API as declared.

    Attributes:
        since: the first release whose brokers speak it.
        adds: what the version before did not have.
        request, response: the bodies; None when they are those of the version before.
    """

    since: str
    adds: str = ""
    request: Struct | None = None
    response: Struct | None = None


@dataclass(frozen=True, slots=True)
class Bodies:
    """A version of an API with both bodies."""

    since: str
    adds: str
    request: Struct
    response: Struct


class Api:
    """An API and its versions, from 0 on.

    Attributes:
        key: its number on the wire.
        name: what it is called in schema keys.
        title: what Kafka calls it, and used to.
        versions: their bodies; the index is the version.
    """

    def __init__(self, key: int, *versions: Version) -> None:
        symbol = API_KEYS(key)
        self.key = key
        self.name = symbol.symbol or ""
        self.title = symbol.description
        self.versions: list[Bodies] = []
        request = response = None
        for version in versions:
            request = version.request or request
            response = version.response or response
            if request is None or response is None:
                raise Misuse(f"version 0 of {self.name} needs a request and a response")
            self.versions.append(Bodies(version.since, version.adds, request, response))


BROKER = ("node_id" / int32, "host" / string, "port" / int32)
PARTITION_ERROR = ("partition" / int32, "error_code" / error_code)
