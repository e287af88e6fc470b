"""kafka-python produces a message and consumes one: ``python kafka_python.py PORT``."""

import logging
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

logging.basicConfig(level=logging.ERROR)
server = f"127.0.0.1:{sys.argv[1]}"
try:
    producer = KafkaProducer(
        bootstrap_servers=server,
        max_block_ms=3000,
        request_timeout_ms=2000,
        bootstrap_timeout_ms=4000,
        linger_ms=0,
        retries=0,
        delivery_timeout_ms=2500,
    )
    print("produced", producer.send("t", b"value", b"key", partition=0).get(timeout=4).offset)
    producer.close(timeout=1)
    consumer = KafkaConsumer(
        bootstrap_servers=server,
        consumer_timeout_ms=2500,
        request_timeout_ms=2000,
        bootstrap_timeout_ms=4000,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        group_id=None,
        fetch_max_wait_ms=100,
    )
    consumer.assign([TopicPartition("t", 0)])
    message = next(consumer)
    print("consumed", message.offset, message.key, message.value)
    consumer.close()
except (KafkaError, StopIteration) as error:
    print(type(error).__name__, error)
    sys.exit(1)
