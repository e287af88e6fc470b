"""The pairing of Pulsar commands, as data; ``dialogue`` has the same rules and the unusual cases.

The dialogue handles ERROR, which may answer a lookup or another request, a producer that has to wait, and responses to
SENDs by another number than the sequence id.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirekit.conversation.pairing import Heads, Kind, Pairing
from wirekit.protocols.pulsar.dialogue import ANSWERS, LINKED, NO_REQUEST, NUMBERED_APART, UNPAIRED
from wirekit.schemas.pulsar.frame import COMMAND

SENDING = ("producer_id", "sequence_id")
SENDERS = {"SEND": "client", "MESSAGE": "server"}
"""Who sends entries; those that come from the other side are left to the dialogue."""
NOT_READY = ("command.producer_success.producer_ready", 0)


def _kinds(side: str) -> Iterator[tuple[tuple[int], Kind]]:
    command = COMMAND.message
    symbols = command.fields[1].table
    for number, field in command.fields.items():
        api = symbols(number).symbol if field.message is not None and symbols is not None else None
        if api is None or field.message is None or api == "ERROR" or SENDERS.get(api, side) != side:
            continue
        path = f"command.{field.name}"
        names = {each.name for each in field.message.fields.values()}
        unusual = NOT_READY if api == "PRODUCER_SUCCESS" else None
        plain = Kind(api, "frame", "event")
        if "request_id" in names:
            path = f"{path}.request_id"
            role = "request" if side == "client" else "response"
            if api in UNPAIRED[side]:
                kind = Kind(api, "frame", "event", number=path, without=plain)
            else:
                unusual = unusual or (path, NO_REQUEST)
                link = NUMBERED_APART.get(api, "id")
                answers = ANSWERS.get(api, ()) if role == "request" else ()
                kind = Kind(
                    api, "frame", role, None, path, (path,), link, answers=answers, unusual=unusual, without=plain
                )
        elif api in LINKED:
            role, link = LINKED[api]
            pair = tuple(f"{path}.{name}" for name in SENDING) if link == "send" else ()
            most = f"{path}.max_message_size" if api == "CONNECTED" else ""
            answers = ANSWERS.get(api, ())
            kind = Kind(api, "frame", role, pair=pair, link=link, answers=answers, most=most)
        else:
            kind = plain
        yield (number,), kind


def _heads(side: str) -> Heads:
    return Heads("frame", ("command.type",), dict(_kinds(side)))


PAIRING = Pairing(_heads("client"), _heads("server"))
