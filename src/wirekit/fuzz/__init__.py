"""The harness that gives inputs of a layout to other people's parsers and servers: ``wirekit fuzz`` (docs/fuzzing.md).

``inputs`` makes cases, ``targets`` and ``network`` run one, ``findings`` judges outcomes, ``minimising`` makes a case
smaller, ``corpus`` keeps cases as files, ``running`` goes on until the time or the number of cases is spent, ``report``
writes the findings. ``worker`` runs in the process of a Python target and imports nothing of wirekit.

The target is hostile: its time, its memory and what it prints are bounded, and it never runs in this process.
"""

from __future__ import annotations

from wirekit.fuzz.cases import Case, Expectation
from wirekit.fuzz.findings import Finding
from wirekit.fuzz.running import Fuzzer, Options, Summary
from wirekit.fuzz.targets import Outcome, Target

__all__ = ["Case", "Expectation", "Finding", "Fuzzer", "Options", "Outcome", "Summary", "Target"]
