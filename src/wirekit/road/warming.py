"""Compiles in advance what the road of columns uses, by reading a small capture."""

from __future__ import annotations

import tempfile

from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.summary import Summary
from wirekit.road.sample import sample
from wirekit.road.tables import captured
from wirekit.tables.columns import FROM_INPUTS


def warm() -> None:
    """Compiles the code that large captures use, unless it is compiled on this machine already."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(sample())
        file.flush()
        job = Job(find_inputs([file.name]), road="columns")
        for _ in captured(job.inputs, job, Summary(), FROM_INPUTS) or ():
            pass
