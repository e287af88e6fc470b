"""What brokers say to each other (API keys 4 to 7): the controller to brokers, and one that stops to the controller.

Source: Kafka 0.10.2 ``Protocol.java`` and the specification page; before 0.9
``kafka.api.LeaderAndIsrRequest`` and its neighbours.
"""

from __future__ import annotations

from wirekit.schemas.kafka.api import PARTITION_ERROR, Api, Version
from wirekit.schemas.kafka.types import array, array_of, boolean, error_code, nullable_string, security_protocol, string
from wirekit.wire import Struct, int32

CONTROLLER = ("controller_id" / int32, "controller_epoch" / int32)
PARTITION_STATES = "partition_states" / array_of(
    "topic" / string,
    "partition" / int32,
    "controller_epoch" / int32,
    "leader" / int32 * "-1: none, -2: the topic is being deleted (0.8.1)",
    "leader_epoch" / int32,
    "isr" / array(int32),
    "zk_version" / int32,
    "replicas" / array(int32),
)
PARTITION_ERRORS = "partitions" / array_of("topic" / string, *PARTITION_ERROR)

LEADER_AND_ISR = Api(
    4,
    Version(
        "0.8.0",
        request=Struct(
            *CONTROLLER,
            PARTITION_STATES,
            "live_leaders" / array_of("id" / int32, "host" / string, "port" / int32),
        ),
        response=Struct("error_code" / error_code, PARTITION_ERRORS),
    ),
)

STOP_REPLICA = Api(
    5,
    Version(
        "0.8.0",
        request=Struct(
            *CONTROLLER,
            "delete_partitions" / boolean,
            "partitions" / array_of("topic" / string, "partition" / int32),
        ),
        response=Struct("error_code" / error_code, PARTITION_ERRORS),
    ),
)

END_POINTS = "end_points" / array_of(
    "port" / int32,
    "host" / string,
    "security_protocol_type" / security_protocol,
)
NAMED_END_POINTS = "end_points" / array_of(
    "port" / int32,
    "host" / string,
    "listener_name" / string,
    "security_protocol_type" / security_protocol,
)

UPDATE_METADATA = Api(
    6,
    Version(
        "0.8.0",
        request=Struct(
            *CONTROLLER,
            PARTITION_STATES,
            "live_brokers" / array_of("id" / int32, "host" / string, "port" / int32),
        ),
        response=Struct("error_code" / error_code),
    ),
    Version(
        "0.9.0",
        "several end points per broker, with the port before the host",
        request=Struct(*CONTROLLER, PARTITION_STATES, "live_brokers" / array_of("id" / int32, END_POINTS)),
    ),
    Version(
        "0.10.0",
        "rack",
        request=Struct(
            *CONTROLLER,
            PARTITION_STATES,
            "live_brokers" / array_of("id" / int32, END_POINTS, "rack" / nullable_string),
        ),
    ),
    Version(
        "0.10.2",
        "listener_name",
        request=Struct(
            *CONTROLLER,
            PARTITION_STATES,
            "live_brokers" / array_of("id" / int32, NAMED_END_POINTS, "rack" / nullable_string),
        ),
    ),
)

CONTROLLED_SHUTDOWN = Api(
    7,
    Version(
        "0.8.0",
        request=Struct("broker_id" / int32),
        response=Struct(
            "error_code" / error_code,
            "partitions_remaining" / array_of("topic" / string, "partition" / int32),
        ),
    ),
    Version("0.9.0", "client_id in the request header"),
)
