"""Types of the values of ``joyqueue``'s layouts."""

from wirekit.types import record_types

__getattr__ = record_types("joyqueue")
