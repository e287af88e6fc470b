"""``python -m wirekit`` is the command line."""

from wirekit.cli import main

main()
