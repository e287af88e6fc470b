"""Benchmarks: each answers one question, runs the peer in the same process, and prints a ratio."""
