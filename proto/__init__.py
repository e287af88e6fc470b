"""Pulsar's commands, metadata and markers as protobuf messages.

``PulsarApi.proto`` and ``PulsarMarkers.proto`` are the source; ``PulsarApi_pb2`` and ``PulsarMarkers_pb2`` are made
from them by ``python -m wirekit.proto.regenerate`` and are never edited. Nothing else lives here, and importing this
package does not import protobuf: import the module that you need.
"""
