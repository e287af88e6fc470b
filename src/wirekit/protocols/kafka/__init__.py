"""Kafka: connections, the application messages of message sets, partitions and data directories."""
