"""What a reader of Pulsar's layouts has to know besides: where specification and implementations disagree."""

from __future__ import annotations

from wirekit.registry import Note

SPECIFICATION = "Pulsar binary protocol specification"
CPP = "apache/pulsar-client-cpp 4.2.0"

FRAME = (
    Note(
        "the largest frame is max_message_size of CONNECTED (5 MiB unless it is said) and 10 KiB; a Java decoder takes "
        "total_size up to 4 bytes less, Go up to just that, C++, Rust and DotPulsar have no limit",
        "apache/pulsar PulsarDecoder.java, Commands.java",
    ),
    Note("only SEND and MESSAGE have an entry; Go and pulsar-rs would read one behind any type", "client sources"),
    Note(
        "an unknown type, or one whose sub-message is missing, makes Java, C++ and Go close the connection",
        f"LightProto; {CPP}",
    ),
    Note("unknown fields are ignored by all", f"{CPP}, observed"),
)
COMMAND = (
    Note("the number of a type is that of its sub-message's field", "PulsarApi.proto, BaseCommand"),
    Note("uint64 fields hold Java longs: 2^64-1 is -1, as in the request_id of a broker's CLOSE_PRODUCER", "observed"),
    Note("in ack_set a set bit is a message that is not acknowledged", "PIP-54; observed"),
)
ENTRY = (
    Note(
        "the checksum is CRC-32C, four bytes, of metadata_size to the end of the payload; a translation says two bytes",
        f"{SPECIFICATION}, Payload commands; observed",
    ),
    Note(
        "checksum and magic number are optional: clients leave them out towards brokers of version < 6; Go and "
        "DotPulsar refuse such an entry",
        f"{CPP}; apache/pulsar-client-go",
    ),
    Note(
        "broker entry metadata reaches consumers of version 18 or later that announce it; its index is that of "
        "the last message of the batch",
        "PIP-70",
    ),
    Note("presence of num_messages_in_batch makes a batch, even when it is 1", "Commands.java; Commands.cc"),
    Note(
        "uncompressed_size is of the whole batch or chunked message; Java and Go give it without compression too",
        "golden vectors of pulsar-client-go",
    ),
    Note("ZLIB data of Java clients ends without a final block and checksum", "apache/pulsar#2854"),
    Note(
        "a ZLIB payload without any bytes, or whose stream holds none, is empty for Java; the C++ client discards the "
        "message with DecompressionError",
        f"CompressionCodecZLib.java; {CPP}, observed for an empty stream",
    ),
    Note(
        "an entry is compressed, then cut in chunks, then each chunk is encrypted; the checksum is of the cipher text",
        "client-cpp ProducerImpl.cc",
    ),
    Note("markers (marker_type) are written by brokers, no application sees them", "apache/pulsar Markers.java"),
)
BATCH = (
    Note("a message that compaction removed stays as compacted_out with an empty payload", "apache/pulsar compaction"),
    Note(
        "or it is gone, compacted_batch_indexes lists those that are left, and num_messages_in_batch is as before",
        "PIP-429",
    ),
)
