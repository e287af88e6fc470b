"""What each protocol does beyond its layouts: dialogue, rules, reading of stored files. Layouts are in ``schemas/``."""
