"""Captures: packets to connections to byte streams with explicit gaps."""
