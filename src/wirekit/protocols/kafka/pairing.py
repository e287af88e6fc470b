"""Which Kafka response answers which request, as data; ``dialogue`` has the same and what is unusual.

SASL, and versions that no layout is known of, are left to the dialogue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from wirekit.conversation.pairing import Heads, Kind, Pairing
from wirekit.protocols.kafka.dialogue import UNSUPPORTED_VERSION
from wirekit.schemas.kafka.admin_apis import API_VERSIONS, SASL_HANDSHAKE
from wirekit.schemas.kafka.apis import APIS
from wirekit.schemas.kafka.client_apis import PRODUCE

NUMBER = "correlation_id"


def _requests() -> Iterator[tuple[tuple[int, int], Kind]]:
    for api in APIS:
        if api is SASL_HANDSHAKE:
            continue
        for version in range(len(api.versions)):
            layout, answer = (f"{api.name}.{half}.v{version}" for half in ("request", "response"))
            silent = ("body.acks", 0) if api is PRODUCE else None
            refusal = ("body.error_code", UNSUPPORTED_VERSION) if api is API_VERSIONS else None
            kind = Kind(api.name, layout, "request", version, NUMBER, (NUMBER,), answer=answer, silent=silent)
            yield (api.key, version), replace(kind, refusal=refusal)


PAIRING = Pairing(
    client=Heads("request_header", ("api_key", "api_version"), dict(_requests())),
    server=Heads("response_header", kinds={(): Kind("", "", "response", None, NUMBER, (NUMBER,))}),
    in_order=True,
)
