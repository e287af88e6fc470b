"""Every byte layout of wirekit, and nothing else; imported as ``wirekit.schemas``."""
