"""pulsar-client (C++) produces a message and consumes one: ``python pulsar_client.py PORT``."""

import sys

import pulsar

client = pulsar.Client(
    f"pulsar://127.0.0.1:{sys.argv[1]}",
    operation_timeout_seconds=3,
    logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"),
)
try:
    producer = client.create_producer("t", send_timeout_millis=2000)
    print("produced", producer.send(b"value").entry_id())
    consumer = client.subscribe("t", "s")
    print("consumed", consumer.receive(timeout_millis=2500).data())
    client.close()
except pulsar.PulsarException as error:
    print(type(error).__name__, error)
    sys.exit(1)
