"""Executes programs: nopython functions, and the encoded programs that they read.

These modules are imported on first use, because numba is slow to import.
"""
