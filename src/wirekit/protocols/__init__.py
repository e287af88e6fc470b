"""The behaviour of each protocol: dialogue, rules, reading of stored files. Layouts are in ``schemas/``."""
