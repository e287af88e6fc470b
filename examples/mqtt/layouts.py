"""MQTT control packets, versions 3.1.1 and 5. Sources: NOTES.md. Names are the specification's.

Only CONNECT contains the version. The other layouts take it as context ``level``: 5, or another number for 3.1.1.
"""

from __future__ import annotations

from wirekit.values import SymbolTable
from wirekit.wire import (
    Bit,
    Bits,
    Bytes,
    If,
    IfMore,
    IfThenElse,
    Length,
    Node,
    RecordsToEnd,
    Sized,
    String,
    Struct,
    Switch,
    Symbols,
    Varint,
    context,
    rest,
    this,
    uint8,
    uint16,
    uint32,
)

V5 = 5
TYPES = SymbolTable(
    "packet_type",
    {
        1: "CONNECT",
        2: "CONNACK",
        3: "PUBLISH",
        4: "PUBACK",
        5: "PUBREC",
        6: "PUBREL",
        7: "PUBCOMP",
        8: "SUBSCRIBE",
        9: "SUBACK",
        10: "UNSUBSCRIBE",
        11: "UNSUBACK",
        12: "PINGREQ",
        13: "PINGRESP",
        14: "DISCONNECT",
        15: "AUTH",
    },
)
LEVELS = SymbolTable("level", {3: "V3_1", 4: "V3_1_1", 5: "V5"})
RETURN_CODES = SymbolTable(
    "return_code",
    {
        0: "ACCEPTED",
        1: "UNACCEPTABLE_PROTOCOL_VERSION",
        2: "IDENTIFIER_REJECTED",
        3: "SERVER_UNAVAILABLE",
        4: "BAD_USER_NAME_OR_PASSWORD",
        5: "NOT_AUTHORIZED",
    },
)
REASONS = SymbolTable(
    "reason",
    {
        0x00: ("SUCCESS", "also: normal disconnection; granted QoS 0"),
        0x01: "GRANTED_QOS_1",
        0x02: "GRANTED_QOS_2",
        0x04: "DISCONNECT_WITH_WILL_MESSAGE",
        0x10: "NO_MATCHING_SUBSCRIBERS",
        0x11: "NO_SUBSCRIPTION_EXISTED",
        0x18: "CONTINUE_AUTHENTICATION",
        0x19: "RE_AUTHENTICATE",
        0x80: "UNSPECIFIED_ERROR",
        0x81: "MALFORMED_PACKET",
        0x82: "PROTOCOL_ERROR",
        0x83: "IMPLEMENTATION_SPECIFIC_ERROR",
        0x84: "UNSUPPORTED_PROTOCOL_VERSION",
        0x85: "CLIENT_IDENTIFIER_NOT_VALID",
        0x86: "BAD_USER_NAME_OR_PASSWORD",
        0x87: "NOT_AUTHORIZED",
        0x88: "SERVER_UNAVAILABLE",
        0x89: "SERVER_BUSY",
        0x8A: "BANNED",
        0x8B: "SERVER_SHUTTING_DOWN",
        0x8C: "BAD_AUTHENTICATION_METHOD",
        0x8D: "KEEP_ALIVE_TIMEOUT",
        0x8E: "SESSION_TAKEN_OVER",
        0x8F: "TOPIC_FILTER_INVALID",
        0x90: "TOPIC_NAME_INVALID",
        0x91: "PACKET_IDENTIFIER_IN_USE",
        0x92: "PACKET_IDENTIFIER_NOT_FOUND",
        0x93: "RECEIVE_MAXIMUM_EXCEEDED",
        0x94: "TOPIC_ALIAS_INVALID",
        0x95: "PACKET_TOO_LARGE",
        0x96: "MESSAGE_RATE_TOO_HIGH",
        0x97: "QUOTA_EXCEEDED",
        0x98: "ADMINISTRATIVE_ACTION",
        0x99: "PAYLOAD_FORMAT_INVALID",
        0x9A: "RETAIN_NOT_SUPPORTED",
        0x9B: "QOS_NOT_SUPPORTED",
        0x9C: "USE_ANOTHER_SERVER",
        0x9D: "SERVER_MOVED",
        0x9E: "SHARED_SUBSCRIPTIONS_NOT_SUPPORTED",
        0x9F: "CONNECTION_RATE_EXCEEDED",
        0xA0: "MAXIMUM_CONNECT_TIME",
        0xA1: "SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED",
        0xA2: "WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED",
    },
)
PROPERTY_IDS = SymbolTable(
    "property",
    {
        1: "PAYLOAD_FORMAT_INDICATOR",
        2: "MESSAGE_EXPIRY_INTERVAL",
        3: "CONTENT_TYPE",
        8: "RESPONSE_TOPIC",
        9: "CORRELATION_DATA",
        11: "SUBSCRIPTION_IDENTIFIER",
        17: "SESSION_EXPIRY_INTERVAL",
        18: "ASSIGNED_CLIENT_IDENTIFIER",
        19: "SERVER_KEEP_ALIVE",
        21: "AUTHENTICATION_METHOD",
        22: "AUTHENTICATION_DATA",
        23: "REQUEST_PROBLEM_INFORMATION",
        24: "WILL_DELAY_INTERVAL",
        25: "REQUEST_RESPONSE_INFORMATION",
        26: "RESPONSE_INFORMATION",
        28: "SERVER_REFERENCE",
        31: "REASON_STRING",
        33: "RECEIVE_MAXIMUM",
        34: "TOPIC_ALIAS_MAXIMUM",
        35: "TOPIC_ALIAS",
        36: "MAXIMUM_QOS",
        37: "RETAIN_AVAILABLE",
        38: "USER_PROPERTY",
        39: "MAXIMUM_PACKET_SIZE",
        40: "WILDCARD_SUBSCRIPTION_AVAILABLE",
        41: "SUBSCRIPTION_IDENTIFIER_AVAILABLE",
        42: "SHARED_SUBSCRIPTION_AVAILABLE",
    },
)

VARIABLE = Varint(32, groups=4)
STRING = String(uint16)
BINARY = Bytes(uint16)
PAIR = Struct("name" / STRING, "value" / STRING, name="StringPair")
FORMS: tuple[tuple[Node, tuple[int, ...]], ...] = (
    (uint8, (1, 23, 25, 36, 37, 40, 41, 42)),
    (uint16, (19, 33, 34, 35)),
    (uint32, (2, 17, 24, 39)),
    (VARIABLE, (11,)),
    (STRING, (3, 8, 18, 21, 26, 28, 31)),
    (BINARY, (9, 22)),
    (PAIR, (38,)),
)
PROPERTY = Struct(
    "id" / Symbols(VARIABLE, PROPERTY_IDS),
    "value" / Switch(this.id, {number: form for form, numbers in FORMS for number in numbers}),
    name="Property",
)
PROPERTIES = Sized(VARIABLE, RecordsToEnd(PROPERTY))

IS_V5 = context.level == V5
PACKET_ID = "packet_id" / uint16
IN_V5 = "properties" / If(IS_V5, PROPERTIES)
REASON = Symbols(uint8, REASONS)

CONNECT = Struct(
    "protocol_name" / STRING,
    "level" / Symbols(uint8, LEVELS),
    "flags"
    / Bits(
        uint8,
        "user_name" / Bit(1),
        "password" / Bit(1),
        "will_retain" / Bit(1),
        "will_qos" / Bit(2),
        "will" / Bit(1),
        "clean_start" / Bit(1),
        "reserved" / Bit(1),
        order="msb",
    ),
    "keep_alive" / uint16 * "seconds",
    "properties" / If(this.level == V5, PROPERTIES),
    "client_id" / STRING,
    "will_properties" / If((this.level == V5) & this.flags.will, PROPERTIES),
    "will_topic" / If(this.flags.will, STRING),
    "will_payload" / If(this.flags.will, BINARY),
    "user_name" / If(this.flags.user_name, STRING),
    "password" / If(this.flags.password, BINARY),
    name="Connect",
)
CONNACK = Struct(
    "flags" / Bits(uint8, "reserved" / Bit(7), "session_present" / Bit(1), order="msb"),
    "reason" / IfThenElse(IS_V5, REASON, Symbols(uint8, RETURN_CODES)),
    "properties" / IfMore(PROPERTIES),
    name="Connack",
)
PUBLISH = Struct(
    "topic" / STRING,
    "packet_id" / If(this._.header.qos > 0, uint16),
    IN_V5,
    "payload" / rest(),
    name="Publish",
)
ACKNOWLEDGEMENT = Struct(
    PACKET_ID,
    "reason" / IfMore(REASON) * "version 5; left out for SUCCESS without properties",
    "properties" / IfMore(PROPERTIES),
    name="Acknowledgement",
)
SUBSCRIPTION = Struct(
    "topic_filter" / STRING,
    "options"
    / Bits(
        uint8,
        "reserved" / Bit(2),
        "retain_handling" / Bit(2),
        "retain_as_published" / Bit(1),
        "no_local" / Bit(1),
        "qos" / Bit(2),
        order="msb",
    ),
    name="Subscription",
)
SUBSCRIBE = Struct(PACKET_ID, IN_V5, "subscriptions" / RecordsToEnd(SUBSCRIPTION), name="Subscribe")
UNSUBSCRIBE = Struct(PACKET_ID, IN_V5, "topic_filters" / RecordsToEnd(STRING), name="Unsubscribe")
RESULTS = Struct(PACKET_ID, IN_V5, "reasons" / RecordsToEnd(REASON), name="Results")
EMPTY = Struct(name="Empty")
REASONED = Struct("reason" / IfMore(REASON), "properties" / IfMore(PROPERTIES), name="Reasoned")

PACKET = Struct(
    "header"
    / Bits(
        uint8,
        "type" / Bit(4, TYPES),
        "dup" / Bit(1),
        "qos" / Bit(2),
        "retain" / Bit(1),
        order="msb",
    ),
    "remaining_length" / Length(VARIABLE, frame=True),
    "body"
    / Switch(
        this.header.type,
        {
            1: CONNECT,
            2: CONNACK,
            3: PUBLISH,
            **dict.fromkeys((4, 5, 6, 7), ACKNOWLEDGEMENT),
            8: SUBSCRIBE,
            9: RESULTS,
            10: UNSUBSCRIBE,
            11: RESULTS,
            12: EMPTY,
            13: EMPTY,
            14: REASONED,
            15: REASONED,
        },
    ),
    name="Packet",
    doc="a control packet of any type",
)
