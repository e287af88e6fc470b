"""aiokafka produces a message and consumes one: ``python aiokafka_client.py PORT``."""

import asyncio
import logging
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

logging.basicConfig(level=logging.ERROR)


async def main(server: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=server, request_timeout_ms=2000)
    try:
        await producer.start()
        sent = await asyncio.wait_for(producer.send_and_wait("t", b"value", b"key", partition=0), 3)
        print("produced", sent.offset)
    finally:
        await asyncio.wait_for(producer.stop(), 2)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=server,
        request_timeout_ms=2000,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
    )
    try:
        await consumer.start()
        consumer.assign([TopicPartition("t", 0)])
        message = await asyncio.wait_for(consumer.getone(), 3)
        print("consumed", message.offset, message.key, message.value)
    finally:
        await asyncio.wait_for(consumer.stop(), 2)


try:
    asyncio.run(asyncio.wait_for(main(f"127.0.0.1:{sys.argv[1]}"), 8))
except (KafkaError, TimeoutError) as error:
    print(type(error).__name__, error)
    sys.exit(1)
