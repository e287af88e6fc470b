"""The dialogue of a Kafka connection: it pairs requests and responses, and recognises SASL tokens.

- A response is decoded by the request with its correlation id. Brokers answer in order, so a response also shows that
  older requests will not be answered. If several requests have the id, the response answers the oldest that it fits.
- Produce with acks 0 has no response.
- A broker answers an ApiVersions version that it does not know in v0, with error 35, and a known version in
  that version. Brokers of 0.8 ignore the version and always answer in v0.
- A frame of an undeclared API or version is described by its header, and paired with its response. Its body is a
  gap.
- After SaslHandshake, both sides send raw tokens, until the client clearly sends a request. A connection whose first
  frame has no request header begins with tokens (0.9's GSSAPI).

Source: specification page; Kafka 0.10.2 ``KafkaApis.scala``, ``SaslServerAuthenticator.java``; Kafka 0.8
``RequestKeys.scala``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from typing import Any

from wirekit.conversation import CALL, THOROUGH, Description, Dialogue, Frame, Message, Skipped, Undeclared
from wirekit.decoding import decode, frame_size
from wirekit.engine import Decoded
from wirekit.errors import Short
from wirekit.fitting import begins, fitting_value, lead_of, numbers_of, value_of
from wirekit.registry import Protocol, variants
from wirekit.schemas.kafka.admin_apis import API_VERSIONS, SASL_HANDSHAKE
from wirekit.schemas.kafka.api import Api
from wirekit.schemas.kafka.apis import APIS
from wirekit.schemas.kafka.client_apis import FETCH, PRODUCE
from wirekit.schemas.kafka.types import API_KEYS
from wirekit.values import Record
from wirekit.wire.stream import Limits

TOKEN = "kafka.sasl_token"
ANY_REQUEST = "kafka.request"
ANY_RESPONSE = "kafka.response"
REQUEST_HEADER = "kafka.request_header"
RESPONSE_HEADER = "kafka.response_header"
CLIENT_HEADER = "kafka.client_header"

GSSAPI_TAG = b"\x60"
MOST_CALLS = 1_000
MOST_OF_ONE_ID = 4
"""Requests with one correlation id that a response may answer: the oldest of those that wait."""
HIGHEST = 255
"""The largest API key or version of any Kafka, which distinguishes an unknown request from a token."""
NEWEST_API, NEWEST_VERSION = 99, 20
"""The largest API key and version of a request without other evidence: slightly above those of Kafka 4."""
LONGEST_NAME = 255
"""Bytes of a client name that is evidence although only its beginning was captured."""
UNSUPPORTED_VERSION = 35
ANY_SIZE = Limits(frame=(1 << 31) - 1)

BY_KEY: Mapping[int | None, Api] = {api.key: api for api in APIS}
BY_NAME = {api.name: api for api in APIS}

MESSAGE_SETS = {
    PRODUCE.name: ("request", "topic_data", "data"),
    FETCH.name: ("response", "responses", "partition_responses"),
}
"""The places of message sets: role of the frame, name of the array of topics, name of the array of partitions."""
FETCHED = [
    f"kafka.{FETCH.name}.response.v{version}"
    for version, bodies in enumerate(FETCH.versions)
    if not version or bodies.response is not FETCH.versions[version - 1].response
]
"""The keys of the responses to a fetch, one of each layout."""

Choice = tuple[str, Mapping[str, Any], str | None]


class KafkaDialogue(Dialogue):
    """One connection of a client, or of one broker to another.

    Attributes:
        expects: the kind of bytes that a side sends next: ``start`` (nothing was seen yet), ``frames`` or ``tokens``.
        client_ids: the client ids of the requests so far; None for requests without one.
        layouts: {(API, version of the request): version of the layout of the broker's responses}.
        passed: the last requests that were overtaken by the response to a later one, by correlation id.
        calls: number of requests by (API, version).
        copies: number of requests that had the correlation id of a waiting request.
    """

    resumable = True

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.expects = {"client": "start", "server": "start"}
        self.client_ids: set[str | None] = set()
        self.layouts: dict[tuple[str, int], int] = {}
        self.passed: dict[int | None, Description] = {}
        self.calls: Counter[tuple[str, int]] = Counter()
        self.copies = 0

    def schema(self, side: str, data: bytes) -> Choice:
        """The key of a frame's API and version; for a response, those of its request."""
        return self._request(data) if side == "client" else self._response(data)

    def _request(self, data: bytes) -> Choice:
        header = numbers_of(data, REQUEST_HEADER)
        number, version = header.api_key, header.api_version
        api = BY_KEY.get(number)
        expected = self.expects["client"]
        if api is not None and _has_layout(api, version):
            key = f"kafka.{api.name}.request.v{version}"
            if expected == "tokens" and not self._may_be(data, key):
                return TOKEN, {}, None
            return key, {}, None
        headed = _headed(data, number, version)
        if expected == "tokens" and (api is None or not headed):
            return TOKEN, {}, None
        if expected == "start" and not headed:
            return (TOKEN, {}, None) if _gssapi(data) else (ANY_REQUEST, {}, "neither a request nor a GSSAPI token")
        if number is None or version is None:
            return ANY_REQUEST, {}, None
        symbol = API_KEYS(number).symbol
        name = f"{symbol} v{version}" if symbol else f"api key {number}"
        return ANY_REQUEST, {}, Undeclared(f"{name} is not known") if headed else f"{name} is not known"

    def _response(self, data: bytes) -> Choice:
        number = numbers_of(data, RESPONSE_HEADER).correlation_id
        waiting = [request.description for _, request in self.requests.with_number(number, MOST_OF_ONE_ID)]
        late = not waiting and number in self.passed
        if late:
            waiting = [self.passed[number]]
        tokens = self.expects["server"] == "tokens"
        keys = list(dict.fromkeys(self._answer(each, data) for each in waiting)) if waiting else []
        if tokens or len(keys) > 1:
            fitting: list[str | None] = [key for key in keys if key is not None and self._may_be(data, key)]
            keys = fitting if fitting or tokens else keys
        if not keys:
            return (TOKEN, {}, None) if tokens else (ANY_RESPONSE, {}, f"no request has correlation id {number}")
        if keys[0] is None and waiting[0].api == API_VERSIONS.name:
            reason = f"a newer broker answers api_versions v{waiting[0].version}, which is not known"
            return ANY_RESPONSE, {}, Undeclared(reason)
        if keys[0] is None:
            reason = f"the request is {waiting[0].api} v{waiting[0].version}, which is not known"
            return ANY_RESPONSE, {}, Undeclared(reason)
        return keys[0], {}, "out of order: a later request was answered before" if late else None

    def _answer(self, request: Description, data: bytes) -> str | None:
        """The key of the response to a request, or None if it is unknown."""
        api, version = BY_NAME.get(request.api or ""), request.version
        if api is None or version is None:
            return None
        if not _has_layout(api, version):
            return self._refusal(data) if api is API_VERSIONS else None
        layout = self.layouts.get((api.name, version))
        if layout is None:
            for layout in dict.fromkeys((version, 0)):
                if self._clean(data, f"kafka.{api.name}.response.v{layout}"):
                    self.layouts[api.name, version] = layout
                    break
            else:
                layout = version
        return f"kafka.{api.name}.response.v{layout}"

    def _clean(self, data: bytes, key: str) -> Decoded | None:
        """The decoded frame if the bytes are exactly one frame of a layout; otherwise None."""
        decoded = fitting_value(data, key)
        if decoded is not None and decoded.engine == "rows":  # results of the other engine depend on the offset
            self.whole = decoded
        return decoded

    def _may_be(self, data: bytes, key: str) -> bool:
        """Whether the bytes are exactly one frame of a layout, or the first bytes of such a frame."""
        size = frame_size(data, key, limits=ANY_SIZE)
        if size is not None and len(data) < size:
            return begins(data, key, size)
        return self._clean(data, key) is not None

    def _refusal(self, data: bytes) -> str | None:
        """The key of an ApiVersions response of a broker that does not know the requested version; otherwise None."""
        key = f"kafka.{API_VERSIONS.name}.response.v0"
        decoded = self._clean(data, key)
        return key if decoded is not None and decoded.value.body.error_code == UNSUPPORTED_VERSION else None

    def describe(self, side: str, decoded: Decoded) -> Description:
        """API, version, correlation id; the API of a token is ``sasl_token``."""
        if decoded.schema == TOKEN:
            return Description(api="sasl_token")
        value = decoded.value if decoded.value is not None else {}
        number = value.get("correlation_id")
        if side == "server":
            return self._describe_response(decoded.schema, number)
        key, version = value.get("api_key"), value.get("api_version")
        name = None if key is None else key.symbol or str(int(key))
        body = value.get("body")
        silent = name == PRODUCE.name and _acks(body) == 0
        pair: Hashable = number
        if number in self.requests:
            self.copies += 1
            pair = (number, self.copies)
        return Description(name, version, number, "request", not silent, pair)

    def _describe_response(self, key: str, number: int | None) -> Description:
        waiting = self.requests.with_number(number, MOST_OF_ONE_ID)
        if key == ANY_RESPONSE:
            pair, description = (waiting[0][0], waiting[0][1].description) if waiting else (None, Description())
            return Description(description.api, description.version, number, "response", pair=pair)
        name, version = _api_of(key)
        pair = next((pair for pair, request in waiting if request.description.api == name), None)
        return Description(name, version, number, "response", pair=pair)

    def sender(self, decoded: Decoded) -> str:
        """The client, if a request of a known API and version was decoded, or the header of another one.

        Produce has key 0, and responses can begin with two zero bytes: it needs a client name and a topic. A request
        that is cut needs a client name, too: elsewhere, such as in ZooKeeper's frames, small numbers come before text.
        """
        value = decoded.value
        if decoded.schema != ANY_REQUEST or value is None or not _named_if_cut(decoded):
            return ""
        api = BY_KEY.get(value.get("api_key"))
        if api is None or not _has_layout(api, value.get("api_version")):
            return "client" if self.headed("client", decoded.data, side_known=False) else ""
        proven = api is not PRODUCE or (_is_name(value.get("client_id")) and value.body.get("topic_data"))
        return "client" if proven else ""

    def plausible(self, side: str, data: bytes, size: int) -> bool:
        """Whether bytes are a whole request, with a known client id if any, or the response to a known request.

        A wrong CRC is accepted: the rest of the frame must fit. Of an undeclared request, only the header must fit.
        Produce without client id and topics is too much like other bytes, unless there is a client id to compare.
        If a capture starts while a consumer or follower waits, the server's side begins with the response to a
        fetch that was not captured: it is accepted, too; so is the first response to an undeclared request.
        """
        self.effort += CALL
        if side == "server":
            return self._may_answer(numbers_of(data, RESPONSE_HEADER).correlation_id, data, size)
        header = numbers_of(data, REQUEST_HEADER)
        if not any(self._fits(data, key, size) for key in _requests(header)):
            self.effort += CALL
            if not _is_headed(header, data, 0):
                return False
            self.effort += THOROUGH * CALL if len(data) == size else 0  # the reference engine will decode it
        if len(data) < size:
            return True
        request = None if self.whole is None else self.whole.value
        if not self.client_ids:
            return (
                request is None or request.api_key != PRODUCE.key or bool(request.client_id or request.body.topic_data)
            )
        value = value_of(data, CLIENT_HEADER) if request is None else request
        return "client_id" not in value or value.client_id in self.client_ids

    def proven(self, side: str, data: bytes) -> bool:
        """A request is proven if only clients send it, a response by the correlation id of a waiting request."""
        if side == "client":
            return self.sender(decode(data, ANY_REQUEST)) == side or self.headed(side, data, side_known=True)
        number = numbers_of(data, RESPONSE_HEADER).correlation_id
        return bool(self.requests.with_number(number, 1))

    def _fits(self, data: bytes, key: str, size: int) -> bool:
        """Whether bytes may be a frame, or the start of one; messages in it may have a wrong CRC."""
        of_messages = key.split(".")[1] in MESSAGE_SETS
        return self.fits_unverified(data, key, size) if of_messages else self.fits(data, key, size)

    def _may_answer(self, number: int | None, data: bytes, size: int) -> bool:
        """Whether bytes may be, or begin, the response to a waiting request with a correlation id."""
        if any(self._fits(data, key, size) for key in self._answers(number)):
            return True
        if self.expects["server"] != "start":
            return False
        waiting = [request.description for _, request in self.requests.with_number(number, MOST_OF_ONE_ID)]
        if any(each.api not in BY_NAME or not _has_layout(BY_NAME[each.api], each.version) for each in waiting):
            return True
        return not waiting and self._answers_a_fetch(data, size)

    def _answers(self, number: int | None) -> list[str]:
        """The keys of possible responses to a request with a correlation id."""
        keys = []
        for _, request in self.requests.with_number(number, MOST_OF_ONE_ID):
            name, version = request.description.api or "", request.description.version or 0
            for layout in (self.layouts.get((name, version), version), 0):
                if name in BY_NAME and _has_layout(BY_NAME[name], layout):
                    keys.append(f"kafka.{name}.response.v{layout}")
        return list(dict.fromkeys(keys))

    def _answers_a_fetch(self, data: bytes, size: int) -> bool:
        """Whether bytes may be, or begin, the response to a fetch of any version, with at least one topic."""
        if len(data) < size:
            return any(self._fits(data, key, size) for key in FETCHED)
        fitting = [key for key in FETCHED if self._fits(data, key, size)]
        values = [value_of(data, key) for key in fitting]
        return any(value.body.responses and value.body.responses[0].topic for value in values)

    def headed(self, side: str, data: bytes, *, side_known: bool) -> bool:
        """Whether bytes are a request of an undeclared API or version, or an ApiVersions request with excess bytes.

        The client name must be printable ASCII. librdkafka 0.9 to 1.3 sends ApiVersions v0 with four bytes too many.
        API key 0 does not identify the side: responses can begin with two zero bytes, followed by a string.
        """
        is_headed = side == "client" and _is_headed(numbers_of(data, REQUEST_HEADER), data, 0 if side_known else 1)
        return is_headed and _named_if_cut(decode(data, ANY_REQUEST))

    def observe(self, frame: Frame) -> None:
        """Follows SASL, and removes the requests that in-order responses have overtaken."""
        if frame.schema == TOKEN:
            self.expects["server"] = "tokens"
            if frame.side == "client":
                self.expects["client"] = "tokens"
        elif frame.side == "client":
            handshake = frame.description.api == SASL_HANDSHAKE.name
            self.expects["client"] = "tokens" if handshake else "frames"
            call = (frame.description.api or "", frame.description.version or 0)
            if call in self.calls or len(self.calls) < MOST_CALLS:
                self.calls[call] += 1
            if frame.decoded.error is None:
                self.client_ids.add(frame.value.get("client_id"))
        elif frame.request is None:
            if self.expects["server"] == "start":
                self.expects["server"] = "frames"
        else:
            self.expects["server"] = "frames"
            is_decoded = frame.decoded.error is None and frame.schema != ANY_RESPONSE  # its body is bytes
            if frame.description.api == SASL_HANDSHAKE.name and is_decoded:
                accepted = frame.value.body.error_code == 0
                self.expects["server" if accepted else "client"] = "tokens" if accepted else "frames"
            for request in self.requests.forget_before(frame.request.offset):
                self._pass(request.description)

    @property
    def usual(self) -> bool:
        """Whether only requests and responses follow whose layouts are those of the requested versions."""
        plain = all(layout == version for (_, version), layout in self.layouts.items())
        return plain and "tokens" not in self.expects.values()

    def skipped(self, frames: Skipped) -> None:
        """Stores client ids, and that the broker answers in the requested versions."""
        self.expects.update(dict.fromkeys(frames.sides, "frames"))
        self.client_ids.update(frames.clients)
        for api, version in frames.calls:
            self.layouts.setdefault((api, version), version)

    def _pass(self, request: Description) -> None:
        """Marks a request as one that will not be answered if the broker answers in order."""
        self.passed.pop(request.correlation_id, None)
        self.passed[request.correlation_id] = request
        if len(self.passed) > MOST_CALLS:
            del self.passed[next(iter(self.passed))]

    def summary(self) -> dict[str, Any]:
        """Client ids, and requests by API and version."""
        calls = [{"api": api, "version": version, "requests": count} for (api, version), count in self.calls.items()]
        return {"client_ids": sorted(each for each in self.client_ids if each), "calls": calls}

    def messages(self, frame: Frame) -> Iterator[Message]:
        """The messages of produce requests and fetch responses; a produced message has no offset yet."""
        api, role = frame.description.api, frame.description.role
        if frame.value is None or api not in MESSAGE_SETS or MESSAGE_SETS[api][0] != role:
            return
        from wirekit.protocols.kafka.damaged_sets import Sets

        sets = Sets(frame.decoded, ordered=role == "response")
        for path, message_set, topic, partition in sets_in(api, frame.value.get("body")):
            yield from sets.messages(message_set, path, topic=topic, partition=partition)


def sets_in(api: str | None, body: Any) -> Iterator[tuple[str, Any, str | None, int | None]]:
    """(path, message set, topic, partition) of the message sets in the body of a frame of an API."""
    if api not in MESSAGE_SETS or not isinstance(body, Record):
        return
    _, topics, partitions = MESSAGE_SETS[api]
    for index, topic in enumerate(body.get(topics) or []):
        for place, partition in enumerate(topic.get(partitions) or []):
            path = f"body.{topics}[{index}].{partitions}[{place}].record_set"
            yield path, partition.get("record_set"), topic.get("topic"), partition.get("partition")


def examine(decoded: Decoded) -> None:
    """Adds verdicts that need a search in a message set to a decoded value, as a conversation does with frames.

    These are the verdict on a message size beyond the end of its set, if intact messages follow, and on each CRC if
    the size covers more than the fields.

    Args:
        decoded: a message set or log segment, a produce request or a fetch response.
    """
    from wirekit.protocols.kafka.damaged_sets import SET, Sets
    from wirekit.protocols.kafka.reading import SEGMENT

    if not isinstance(decoded.value, Record):
        return
    sets = Sets(decoded, ordered=False)
    if decoded.schema == SEGMENT:
        sets.verify(decoded.value, "")
        return
    if decoded.schema == SET:
        message_sets = [("", decoded.value)]
    else:
        _, name, *role = decoded.schema.split(".")
        if decoded.schema == ANY_REQUEST:
            api = BY_KEY.get(decoded.value.get("api_key"))
            name = "" if api is None else api.name
        elif not role:
            name = str(decoded.context.get("api"))
        message_sets = [each[:2] for each in sets_in(name, decoded.value.get("body"))]
    for path, message_set in message_sets:
        for _ in sets.messages(message_set, path, topic=None, partition=None):
            pass


@cache
def _api_of(key: str) -> tuple[str, int]:
    """The API and version in the key of a response."""
    _, name, _, version, *_ = key.split(".")
    return name, int(version[1:])


def _gssapi(data: bytes) -> bool:
    """Whether a token is the first of GSSAPI's (RFC 2743, section 3.1: it begins with an application tag)."""
    token = value_of(data, TOKEN).get("token")
    return token is not None and token[:1] == GSSAPI_TAG


def _has_layout(api: Api, version: int | None) -> bool:
    """Whether an API's version has a layout."""
    return version is not None and 0 <= version < len(api.versions)


def _is_headed(header: Any, data: bytes, lowest: int) -> bool:
    """Whether the header, with the client id after it, belongs to a request for which no layout fits."""
    size, key, version = header.size, header.api_key, header.api_version
    if size is None or key is None or version is None:
        return False
    api = BY_KEY.get(key)
    if api is not None and api is not API_VERSIONS and _has_layout(api, version):
        return False
    if not (lowest <= key <= NEWEST_API and 0 <= version <= NEWEST_VERSION):
        return False
    lead = lead_of(data, CLIENT_HEADER)
    if lead is None or lead.client_id is None:
        return len(data) <= size  # cut, and the remaining bytes may show it
    return _is_name(lead.client_id)


def _is_name(client_id: str | None) -> bool:
    """Whether a client name is printable ASCII."""
    return client_id is not None and client_id != "" and client_id.isascii() and client_id.isprintable()


def _named_if_cut(decoded: Decoded) -> bool:
    """Whether a request is whole, or has a client name; if its bytes end inside the name, its beginning decides."""
    error = decoded.error
    if not isinstance(error, Short):
        return True
    if error.path != "client_id":
        return _is_name(decoded.value.get("client_id"))
    begun = decoded.data[len(decoded.data) - error.available :].decode("ascii", "replace")
    return error.needed <= LONGEST_NAME and (begun == "" or _is_name(begun))


def _requests(header: Any) -> list[str]:
    """The keys of the requests that a header may belong to."""
    api, version = BY_KEY.get(header.api_key), header.api_version
    if api is None or not _has_layout(api, version):
        return []
    key = f"kafka.{api.name}.request.v{version}"
    return [key, *variants(key)]


def _acks(body: Any) -> int | None:
    """The acks field of a produce request; None if the body is too short, or of an unknown version."""
    return None if body is None or isinstance(body, bytes) else body.get("acks")


def _headed(data: bytes, number: int | None, version: int | None) -> bool:
    """Whether a whole frame begins with the header of a request, declared or not."""
    if number is None or version is None or not (0 <= number <= HIGHEST and 0 <= version <= HIGHEST):
        return False
    decoded = decode(data, CLIENT_HEADER)
    return decoded.error is None and all(check.status != "bad" for check in decoded.checks)
