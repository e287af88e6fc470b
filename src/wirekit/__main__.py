"""``python -m wirekit`` is the command line."""

from wirekit_command import main

main()
