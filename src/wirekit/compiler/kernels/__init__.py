"""Compiled functions that the generated columnar kernels call.

The modules here import numba; this package does not, so that ``import wirekit`` stays free of it. Only the columns
engine, and the code that it generates, imports them.
"""
