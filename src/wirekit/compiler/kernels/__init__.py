"""Compiled functions that the interpreters of programs, and the kernels of single layouts, call.

The modules here import numba; this package does not, so that ``import wirekit`` stays free of it.
"""
