"""Types of the values of ``jmq4``'s layouts."""

from wirekit.types import record_types

__getattr__ = record_types("jmq4")
