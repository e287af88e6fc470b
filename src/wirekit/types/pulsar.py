"""Types of the values of ``pulsar``'s layouts."""

from wirekit.types import record_types

__getattr__ = record_types("pulsar")
