"""confluent-kafka (librdkafka) produces a message and consumes one: ``python confluent.py PORT``."""

import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

settings = {
    "bootstrap.servers": f"127.0.0.1:{sys.argv[1]}",
    "socket.timeout.ms": 2000,
    "log_level": 2,
    "error_cb": lambda error: None,
}
results = []
try:
    producer = Producer({**settings, "message.timeout.ms": 3000, "linger.ms": 0})
    producer.produce(
        "t", b"value", b"key", partition=0, on_delivery=lambda error, message: results.append((error, message))
    )
    producer.flush(4)
    if not results or results[0][0] is not None:
        print("not produced", results[0][0] if results else "")
        sys.exit(1)
    print("produced", results[0][1].offset())
    consumer = Consumer(
        {**settings, "group.id": "g", "enable.auto.commit": False, "auto.offset.reset": "earliest", "check.crcs": True}
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    end, message = time.monotonic() + 3, None
    while time.monotonic() < end and (message is None or message.error()):
        message = consumer.poll(0.2)
    if message is None or message.error():
        print("not consumed", message.error() if message is not None else "")
        sys.exit(1)
    print("consumed", message.offset(), message.key(), message.value())
    consumer.close()
except KafkaException as error:
    print(type(error).__name__, error)
    sys.exit(1)
