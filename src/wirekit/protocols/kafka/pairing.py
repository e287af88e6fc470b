"""The pairing of Kafka requests and responses, as data; ``dialogue`` has the same rules and the unusual cases.

SASL tokens, and the connections on which a broker allows them, are left to the dialogue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from wirekit.conversation.pairing import Heads, Kind, Pairing, Unasked
from wirekit.protocols.kafka.dialogue import FETCHED, HIGHEST, UNSUPPORTED_VERSION
from wirekit.protocols.kafka.tables import NONE
from wirekit.schemas.kafka.admin_apis import API_VERSIONS, SASL_HANDSHAKE
from wirekit.schemas.kafka.apis import APIS
from wirekit.schemas.kafka.client_apis import PRODUCE
from wirekit.schemas.kafka.types import API_KEYS

NUMBER = "correlation_id"
ERROR = "body.error_code"


def _requests() -> Iterator[tuple[tuple[int, int], Kind]]:
    for api in APIS:
        for version in range(len(api.versions)):
            layout, answer = (f"{api.name}.{half}.v{version}" for half in ("request", "response"))
            silent = ("body.acks", 0) if api is PRODUCE else None
            accepted = (ERROR, NONE) if api is SASL_HANDSHAKE else None
            yield (
                (api.key, version),
                Kind(
                    api.name, layout, "request", version, NUMBER, (NUMBER,),
                    answer=answer, silent=silent, unusual_answer=accepted,
                ),
            )  # fmt: skip


def _undeclared() -> Iterator[tuple[int, Kind]]:
    """Requests of versions without a layout. Brokers answer ApiVersions of such a version in v0, with an error."""
    for key in API_KEYS:
        name = str(key.symbol)
        plain = Kind(name, "request", "request", "api_version", NUMBER, (NUMBER,), answer="response", headed=True)
        if name == API_VERSIONS.name:
            answer = f"{name}.response.v0"
            plain = replace(plain, answer=answer, answer_version=0, refusal=(ERROR, UNSUPPORTED_VERSION))
        yield int(key), plain


PAIRING = Pairing(
    client=Heads("request_header", ("api_key", "api_version"), dict(_requests()), dict(_undeclared()), HIGHEST),
    server=Heads(
        "response_header",
        kinds={(): Kind("", "", "response", None, NUMBER, (NUMBER,))},
        unasked=Unasked(tuple(key.partition(".")[2] for key in FETCHED), "body.responses.topic"),
    ),
    in_order=True,
)
