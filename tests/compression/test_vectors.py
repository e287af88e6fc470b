"""Bytes that other implementations wrote.

Kafka's are message values out of captures of its own brokers and clients, JMQ4's were written by its Java client,
Pulsar's come from ``fixtures/pulsar/golden_frames.json``, which names the sources.
"""

import json
from pathlib import Path

import pytest

from wirekit import compression
from wirekit.errors import Wrong

ROOT = Path(__file__).resolve().parents[2]
PULSAR = [
    entry
    for entry in json.loads((ROOT / "fixtures/pulsar/golden_frames.json").read_text())
    if entry["kind"] == "compressed"
]
PULSAR_CODECS = {"LZ4": "lz4-block", "ZLIB": "zlib", "ZSTD": "zstd", "SNAPPY": "snappy"}

# 0.10.2.2 broker, topic with message.format.version=0.9: three messages in an LZ4 frame with the wrong header checksum.
BROKER_LZ4_V0 = bytes.fromhex(
    "04224d1860401a4300000012000100f20706000000110c94f89c0000ffffffff000000036f6e651c002000071d00466732f40b1d00337477"
    "6f1d00950800000013f77204c11d006005746872656500000000"
)
# The same broker and topic, gzip.
BROKER_GZIP = bytes.fromhex(
    "1f8b08000000000000ff63600003662016e499f2630e03c37f200089e4e7a542e418584092e9465fb8119225e5f95049562016fe5ec47210"
    "2ec95a9251949a0a00524c737a59000000"
)
# kafka-python 2.0.2 to a 0.8.2.2 broker: seven messages, once in snappy-java's stream, once as LZ4 of magic 0.
CLIENT_XERIAL = bytes.fromhex(
    "82534e4150505900000000010000000100000099ca010000190140103b986b540000ffffffff0000000276300d1b20010000001257e7496e"
    "051008026b31051e010601010002011e0cff060249010d0c00026b32051e01060101240300000010a2913aee001958003301190c00000004"
    "011c0c0463167a010d0c00026b340d7a0101000501560ca4c5a964010d0c00026b350556010601010006013a3cd2fbce610000ffffffff00"
    "0000027636"
)
CLIENT_LZ4_V0 = bytes.fromhex(
    "04224d1860401a9b00000016000100f302103b986b540000ffffffff0000000276301b0091010000001257e7496e100031026b311e000006"
    "0000020010021e0040ff0602490d004000026b32060010760600000200970300000010a2913aee58001033190040000000041c0041046316"
    "7a0e0033026b347a000002001005560040a4c5a9640d004000026b3506001076060000020010063a0043d2fbce6156005000000276360000"
    "0000"
)
# kafka-python 2.0.2 to a 0.10.2.2 broker: LZ4 of magic 1 with its content size, 258 bytes, in the header.
CLIENT_LZ4_WITH_SIZE = bytes.fromhex(
    "04224d186840020100000000000018ab00000016000100f000186b4ddab00100000001a1fb9e4fff0100630000000276302300001b00501a"
    "d193ac490900022400002000206b310600107606000002009b020000001a7972e76e260011322600000600000200960300000018f2448b0a"
    "260005700010332100400000000424004654b6a79e2400004400236b342a0000020010056e004b22b14c43240010352a0010760600000200"
    "10064a0046822e7f852600a0ffffffff00000002763600000000"
)
JMQ_PLAIN = b"the quick brown fox jumps over the lazy dog. " * 8
# java.util.zip.ZipOutputStream, one entry "0" with a data descriptor.
JMQ_ZIP = bytes.fromhex(
    "504b03041400080808005c05755d00000000000000000000000001000000302bc94855282ccd4cce56482aca2fcf5348cbaf50c82acd2d28"
    "56c82f4b2d5228014ae72456552aa4e4a7eb8179a38ac9520c00504b07080f86d9b73300000068010000504b010214001400080808005c05"
    "755d0f86d9b7330000006801000001000000000000000000000000000000000030504b050600000000010001002f000000620000000000"
)
# org.xerial.snappy.SnappyFramedOutputStream.
JMQ_SNAPPY = bytes.fromhex(
    "ff060000734e615070590043000028aa7420e8027874686520717569636b2062726f776e20666f78206a756d7073206f76657220011f206c"
    "617a7920646f672e050efe2d00fe2d00fe2d00fe2d00da2d00"
)


@pytest.mark.parametrize("vector", PULSAR, ids=lambda vector: vector["id"])
def test_pulsar_payloads(vector: dict) -> None:
    codec, expect = PULSAR_CODECS[vector["codec"]], vector["expect"]
    data, plain = bytes.fromhex(vector["hex"]), expect["uncompressed_utf8"].encode()
    assert compression.decompress(codec, data, size=expect["uncompressed_size"]) == plain
    if codec != "lz4-block":
        assert compression.decompress(codec, data) == plain


def test_all_pulsar_codecs_have_a_vector() -> None:
    assert {vector["codec"] for vector in PULSAR} == set(PULSAR_CODECS)


def messages(message_set: bytes) -> list[bytes]:
    """The messages of a Kafka message set, without their offsets."""
    contents = []
    while message_set:
        end = 12 + int.from_bytes(message_set[8:12], "big")
        contents.append(message_set[12:end])
        message_set = message_set[end:]
    return contents


def test_kafka_broker_lz4_of_magic_0_and_gzip_hold_the_same_messages() -> None:
    contents = messages(compression.decompress("kafka-lz4-v0", BROKER_LZ4_V0))
    assert contents == messages(compression.decompress("gzip", BROKER_GZIP))
    assert [message[14:] for message in contents] == [b"one", b"two", b"three"]


def test_kafka_clients_snappy_and_lz4_hold_the_same_messages() -> None:
    plain = compression.decompress("kafka-snappy", CLIENT_XERIAL)
    assert len(plain) == 202
    assert compression.decompress("kafka-lz4-v0", CLIENT_LZ4_V0) == plain


def test_kafka_client_lz4_with_content_size() -> None:
    for codec in ("kafka-lz4", "lz4-frame", "kafka-lz4-v0"):
        assert len(compression.decompress(codec, CLIENT_LZ4_WITH_SIZE)) == 258


def test_the_wrong_header_checksum_is_an_error_where_it_is_checked() -> None:
    for codec in ("kafka-lz4", "lz4-frame"):
        with pytest.raises(Wrong, match="headerChecksum"):
            compression.decompress(codec, BROKER_LZ4_V0)


def test_jmq4_zip_body() -> None:
    assert compression.decompress("zip", JMQ_ZIP) == JMQ_PLAIN


def test_jmq4_snappy_bodies() -> None:
    assert compression.decompress("snappy-framed", JMQ_SNAPPY) == JMQ_PLAIN
    assert compression.decompress("snappy-framed", bytes.fromhex("ff060000734e61507059")) == b""
