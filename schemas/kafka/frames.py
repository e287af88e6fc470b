"""Requests and responses in the byte stream: size, header, body.

A response names neither API nor version: it is read as the answer to the request with its correlation id.

Source: specification page, "Common Request and Response Structure"; Kafka 0.10.2 ``RequestHeader.java``,
``ResponseHeader.java``, ``SaslServerAuthenticator.java``; 0.8 ``ControlledShutdownRequest.scala``; 2.4
``ApiVersionsRequest.json`` for the client's library.
"""

from __future__ import annotations

from typing import Any

from wirekit.schemas.kafka.api import Api
from wirekit.schemas.kafka.apis import APIS
from wirekit.schemas.kafka.broker_apis import CONTROLLED_SHUTDOWN
from wirekit.schemas.kafka.types import api_key, nullable_string
from wirekit.wire import (
    Const,
    If,
    Length,
    String,
    Struct,
    Switch,
    context,
    int16,
    int32,
    rest,
    this,
    uint8,
    unexplained,
    varint32,
)

SIZE = "size" / Length(int32, frame=True)
CLIENT_ID = "client_id" / nullable_string

_FIXED: tuple[Any, ...] = (
    "size" / int32,
    "api_key" / api_key,
    "api_version" / int16,
    "correlation_id" / int32,
)
_NAMED = "client_id" / If((this.api_key != CONTROLLED_SHUTDOWN.key) | (this.api_version != 0), nullable_string)

REQUEST_HEADER = Struct(*_FIXED, name="RequestHeader", doc="the header of all requests")
CLIENT_HEADER = Struct(*_FIXED, _NAMED, name="ClientHeader", doc="the header of all requests, with the client id")

RESPONSE_HEADER = Struct(
    "size" / int32,
    "correlation_id" / int32,
    name="ResponseHeader",
    doc="the header of all responses",
)

SASL_TOKEN = Struct(
    SIZE,
    "token" / rest(),
    name="SaslToken",
    doc="a token of the SASL mechanism; after SaslHandshake, or from the start with 0.9's GSSAPI",
)

CLIENT_SOFTWARE = Struct(
    "header_tags" / Const(uint8, 0) * "the number of tagged fields of the header",
    "name_size" / Length(varint32, "name", add=1),
    "name" / String(),
    "version_size" / Length(varint32, "version", add=1),
    "version" / String(),
    "tail" / rest() * "tagged fields, and fields that later versions add",
    name="ClientSoftware",
    doc="the bytes after the client id in ApiVersions v3 and later: the client's library",
)

REQUEST = Struct(
    SIZE,
    "api_key" / api_key,
    "api_version" / int16,
    "correlation_id" / int32,
    _NAMED,
    "body"
    / Switch(
        (this.api_key, this.api_version),
        {(api.key, number): version.request for api in APIS for number, version in enumerate(api.versions)},
        default=unexplained(),
    ),
    name="Request",
    doc="a request of any API",
)

RESPONSE = Struct(
    SIZE,
    "correlation_id" / int32,
    "body"
    / Switch(
        (context.api, context.version),
        {(api.name, number): version.response for api in APIS for number, version in enumerate(api.versions)},
        default=unexplained(),
    ),
    name="Response",
    doc="a response; the context api and version selects its body",
)


def request(api: Api, version: int, body: Struct) -> Struct:
    """The frame of a request. ControlledShutdown v0 alone has no client id in its header."""
    client_id: list[Any] = [] if api is CONTROLLED_SHUTDOWN and version == 0 else [CLIENT_ID]
    return Struct(
        SIZE,
        "api_key" / Const(api_key, api.key),
        "api_version" / Const(int16, version),
        "correlation_id" / int32,
        *client_id,
        "body" / body,
        name="Request",
    )


def response(body: Struct) -> Struct:
    """The frame of a response."""
    return Struct(SIZE, "correlation_id" / int32, "body" / body, name="Response")
