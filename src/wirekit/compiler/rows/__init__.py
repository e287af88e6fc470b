"""The rows engine: Python generated from the IR, one value at a time; ``decoding`` reads, ``build`` writes."""

from wirekit.compiler.heading import fixed_numbers
from wirekit.compiler.rows.decoding import decoder, tracer, tracing_unit, unit
from wirekit.compiler.rows.state import LEFT_OVER, NOTHING_FOUND, State, Unverified
from wirekit.compiler.source import REASONS, Unusual

__all__ = [
    "LEFT_OVER",
    "NOTHING_FOUND",
    "REASONS",
    "State",
    "Unusual",
    "Unverified",
    "fixed_numbers",
    "tracer",
    "tracing_unit",
    "unit",
    "decoder",
]
