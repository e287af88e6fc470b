"""The harness of ``wirekit fuzz``: sends inputs of a layout to parsers, servers and clients (docs/fuzzing.md).

``numbered_cases`` and ``plays`` generate cases. ``targets``, ``network``, ``scripted_client``, ``clients`` run one;
``scripted_server`` answers a client. ``faults`` finds what is wrong with the bytes of clients and servers, ``findings``
judges outcomes, ``minimising`` shrinks a case, ``corpus`` stores cases as files. ``running`` repeats this until the
time or the number of cases is used up, and ``report`` writes the findings. ``worker`` and ``coverage_worker`` run in
the process of a Python target and import nothing of wirekit.

The target is untrusted: its time, memory and output are bounded, and it never runs in this process.
"""

from __future__ import annotations

from wirekit.fuzz.cases import Case, Expectation
from wirekit.fuzz.findings import Finding
from wirekit.fuzz.running import Fuzzer, Options, Summary
from wirekit.fuzz.targets import Outcome, Target

__all__ = ["Case", "Expectation", "Finding", "Fuzzer", "Options", "Outcome", "Summary", "Target"]
