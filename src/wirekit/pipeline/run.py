"""What both drivers do around their work: claim the output, hash the captures meanwhile, add up, publish."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wirekit
from wirekit.pipeline.inputs import Identification, Job
from wirekit.pipeline.output import Output
from wirekit.pipeline.sink import Manifest
from wirekit.pipeline.summary import FileSummary, Summary

Progress = Callable[[int, int], None]
"""Is told (done, of how many), in whatever unit the driver can measure."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run did.

    Attributes:
        summary: the captures in the order in which they were named.
        manifest: what ``manifest.json`` says.
        changed: captures that changed while they were read.
    """

    summary: Summary
    manifest: dict[str, Any]
    changed: tuple[str, ...]


def publish(job: Job, output: str | os.PathLike[str], engine: str, work: Callable[[Path], list[Manifest]]) -> Result:
    """Runs the work and makes what it wrote the tables of ``output``; when it raises, ``output`` stays as it was.

    Args:
        job: what to do.
        output: the directory of tables.
        engine: name of the driver, for the manifest.
        work: writes into the directory of attempts that it is given; returns the manifest of each task.

    Raises:
        Misuse: ``output`` holds something that is not wirekit's.
    """
    with Output(output) as claimed, Identification(job.inputs) as identification:
        manifests = work(claimed.attempts)
        summary = Summary({job.capture_of(each.number).name: FileSummary() for each in job.inputs})
        for manifest in manifests:
            summary.merge(manifest.summary)
        changed = identification.changed()
        about = {
            "wirekit": wirekit.__version__,
            "engine": engine,
            "configuration": job.configuration(),
            "inputs": identification.rows(),
            "changed_while_read": changed,
            "summary": summary.to_json(),
        }
        return Result(summary, claimed.commit(manifests, about), tuple(changed))
