"""Pulsar: connections, producers and consumers, acknowledgments."""
