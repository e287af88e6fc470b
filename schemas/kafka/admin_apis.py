"""SaslHandshake, ApiVersions, CreateTopics, DeleteTopics: what 0.10 added (API keys 17 to 20).

Source: Kafka 0.10.2 ``Protocol.java`` and the specification page.
"""

from __future__ import annotations

from wirekit.schemas.kafka.api import Api, Version
from wirekit.schemas.kafka.types import api_key, array, array_of, boolean, error_code, nullable_string, string
from wirekit.wire import Duration, Struct, int16, int32

# After a successful SaslHandshake raw tokens follow, without any header. An ApiVersions request of a version that the
# broker does not know is answered in version 0, with error 35 and no versions.

SASL_HANDSHAKE = Api(
    17,
    Version(
        "0.10.0",
        request=Struct("mechanism" / string),
        response=Struct("error_code" / error_code, "enabled_mechanisms" / array(string)),
    ),
)

API_VERSIONS = Api(
    18,
    Version(
        "0.10.0",
        request=Struct(),
        response=Struct(
            "error_code" / error_code,
            "api_versions" / array_of("api_key" / api_key, "min_version" / int16, "max_version" / int16),
        ),
    ),
)

CREATE_TOPIC_REQUESTS = "create_topic_requests" / array_of(
    "topic" / string,
    "num_partitions" / int32 * "-1 with replica_assignment",
    "replication_factor" / int16 * "-1 with replica_assignment",
    "replica_assignment" / array_of("partition_id" / int32, "replicas" / array(int32)),
    "configs" / array_of("config_key" / string, "config_value" / string),
)

CREATE_TOPICS = Api(
    19,
    Version(
        "0.10.1",
        request=Struct(CREATE_TOPIC_REQUESTS, "timeout" / Duration(int32) * "milliseconds"),
        response=Struct("topic_errors" / array_of("topic" / string, "error_code" / error_code)),
    ),
    Version(
        "0.10.2",
        "validate_only, error_message",
        request=Struct(CREATE_TOPIC_REQUESTS, "timeout" / Duration(int32) * "milliseconds", "validate_only" / boolean),
        response=Struct(
            "topic_errors" / array_of("topic" / string, "error_code" / error_code, "error_message" / nullable_string)
        ),
    ),
)

DELETE_TOPICS = Api(
    20,
    Version(
        "0.10.1",
        request=Struct("topics" / array(string), "timeout" / Duration(int32) * "milliseconds"),
        response=Struct("topic_error_codes" / array_of("topic" / string, "error_code" / error_code)),
    ),
)
