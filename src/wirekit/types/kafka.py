"""Types of the values of ``kafka``'s layouts."""

from wirekit.types import record_types

__getattr__ = record_types("kafka")
