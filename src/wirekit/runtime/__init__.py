"""Executes programs: nopython functions, and the words that they read.

Imported when an engine that needs them is first used, as numba is slow to import.
"""
