"""Reads captures: packets, connections, and byte streams with explicit gaps."""
