"""The entry point of the command ``wirekit``. It imports wirekit late, so that Ctrl-C is quiet while that loads."""

from __future__ import annotations

import signal


def main() -> None:
    """Runs the command line; until it is loaded, Ctrl-C ends the process without a word."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from wirekit.cli import main as run

    run()
