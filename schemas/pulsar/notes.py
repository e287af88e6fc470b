"""Notes on the layouts of Pulsar: where the specification and the implementations disagree."""

from __future__ import annotations

from wirekit.registry import Note

SPECIFICATION = "Pulsar binary protocol specification"
CPP = "apache/pulsar-client-cpp 4.2.0"

FRAME = (
    Note(
        "the largest frame is max_message_size of CONNECTED (by default 5 MiB) plus 10 KiB; Java accepts a total_size "
        "of up to 4 bytes less, Go of up to exactly this size; C++, Rust and DotPulsar have no limit",
        "apache/pulsar PulsarDecoder.java, Commands.java",
    ),
    Note("only SEND and MESSAGE have an entry; Go and pulsar-rs would read one after any type", "client sources"),
    Note(
        "an unknown type, or one whose sub-message is missing, makes Java, C++ and Go close the connection",
        f"LightProto; {CPP}",
    ),
    Note("all peers ignore unknown fields", f"{CPP}, observed"),
)
COMMAND = (
    Note("the number of a type is that of its sub-message's field", "PulsarApi.proto, BaseCommand"),
    Note("uint64 fields hold Java longs: 2^64-1 is -1, as in the request_id of a broker's CLOSE_PRODUCER", "observed"),
    Note(
        "a bool other than 0 and 1 is true for protobuf and for Java since Pulsar 5, and false for Java before",
        "LightProto; apache/pulsar 2.8.4, 3.0.7 and 5.0.1, observed",
    ),
    Note("in ack_set, a set bit marks a message that is not acknowledged", "PIP-54; observed"),
)
ENTRY = (
    Note(
        "the checksum is the CRC-32C, four bytes, from metadata_size to the end of the payload; a translation says two",
        f"{SPECIFICATION}, Payload commands; observed",
    ),
    Note(
        "checksum and magic number are optional: clients omit them for brokers of version < 6; Go and "
        "DotPulsar refuse an entry without them",
        f"{CPP}; apache/pulsar-client-go",
    ),
    Note(
        "broker entry metadata reaches consumers of version 18 or later that announce it; its index is that of "
        "the last message of the batch",
        "PIP-70",
    ),
    Note("if num_messages_in_batch is present, the payload is a batch, even if it is 1", "Commands.java; Commands.cc"),
    Note(
        "uncompressed_size is that of the whole batch or chunked message; Java and Go also set it without compression",
        "golden vectors of pulsar-client-go",
    ),
    Note("ZLIB data of Java clients ends without a final block and checksum", "apache/pulsar#2854"),
    Note(
        "Java sends an empty message with ZLIB as a payload without bytes, and reads it or an empty stream; the C++ "
        "client discards a message with either, with DecompressionError",
        f"CompressionCodecZLib.java; apache/pulsar 3.0.7 and {CPP}, observed",
    ),
    Note(
        "an entry is compressed, then cut into chunks, then each is encrypted; the checksum covers the cipher text",
        "client-cpp ProducerImpl.cc",
    ),
    Note(
        "Java clients verify no checksum after broker entry metadata, so they deliver an entry with a wrong one",
        "ConsumerImpl.java; apache/pulsar 3.0.7, 4.1.1 and 5.0.1, observed",
    ),
    Note(
        "a first chunk begins its message anew; Java clients ignore a later chunk that they have, since 2.11, and give "
        "up the message after any other chunk out of order",
        "ConsumerImpl.java; apache/pulsar 3.0.7 and 4.1.1, observed",
    ),
    Note("brokers write markers (marker_type); no application sees them", "apache/pulsar Markers.java"),
)
BATCH = (
    Note("a message that compaction removed stays as compacted_out with an empty payload", "apache/pulsar compaction"),
    Note(
        "or it is removed, compacted_batch_indexes lists the remaining ones, and num_messages_in_batch is unchanged",
        "PIP-429",
    ),
    Note(
        "Java clients deliver the messages before a damaged one, and no message after num_messages_in_batch",
        "Commands.java; apache/pulsar 4.1.1, observed",
    ),
)
