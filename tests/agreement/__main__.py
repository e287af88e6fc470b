"""``python -m tests.agreement COUNT [SEED [PROCESSES [KEY...]]]``: so many inputs through all engines.

The first part of a key will do: ``kafka.`` stands for all schemas of the protocol. The exit status is 1 when engines do
not agree. ``make agreement`` runs it.
"""

from __future__ import annotations

import sys

from tests.agreement.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
